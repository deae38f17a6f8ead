//! Blobs: bytes of any length that stay in the journal and are read on demand.

use std::fmt;
use std::io::{self, Read, SeekFrom};
use std::sync::Arc;

use annals_schema::Blob;

use crate::db::engine::core::Writing;
use crate::db::handle::transaction::Transaction;
use crate::db::present::segment::JournalFile;
use crate::db::present::snapshot::{Published, Snapshot};
use crate::event::{MAX_PIECE, piece};
use crate::journal::segments::Place;
use crate::store::{BlobPiece, View};
use crate::{Error, ErrorKind, Result};

impl Transaction<'_> {
    /// Writes all bytes of a reader as a new blob, and returns its number, to be stored in a field.
    ///
    /// The bytes go through memory in pieces of 64 KiB, so that a blob may be larger than memory. If the reader
    /// fails, no number is returned: pieces that were written already stay in the journal without references, and the
    /// transaction can continue.
    ///
    /// # Errors
    /// `Io` if the reader fails, or if the journal can't be written (then all that is left is to roll
    /// back).
    pub fn write_blob(&mut self, mut reader: impl Read) -> Result<Blob> {
        self.usable()?;
        let written = self.stream_blob(&mut reader);
        // Only `append_blob` adds to a blob that was written.
        if written.is_err() {
            self.writing.store.end_blob();
        }
        written
    }

    fn stream_blob(&mut self, reader: &mut dyn Read) -> Result<Blob> {
        let (mut bytes, mut offset) = (Vec::new(), 0);
        let mut written = None;
        loop {
            bytes.clear();
            Read::take(&mut *reader, MAX_PIECE as u64)
                .read_to_end(&mut bytes)
                .map_err(|error| Error::io("can't read what is to be written as a blob", error))?;
            let blob = match written {
                Some(blob) if bytes.is_empty() => return Ok(blob),
                Some(blob) => blob,
                None => self.writing.store.next_blob()?,
            };
            self.write_piece(blob, offset, &bytes)?;
            if bytes.len() < MAX_PIECE {
                return Ok(blob);
            }
            offset += bytes.len() as u64;
            written = Some(blob);
        }
    }

    /// Appends bytes to the blob that this transaction wrote last, and returns its number. (A blob
    /// never changes once its transaction has ended.)
    ///
    /// # Errors
    /// `Invalid` if this transaction wrote no blob yet, or an empty one, or if there are no bytes;
    /// `Io` if the journal can't be written.
    pub fn append_blob(&mut self, bytes: &[u8]) -> Result<Blob> {
        self.usable()?;
        let (blob, mut offset) = match self.writing.store.open_blob() {
            Some((_, 0)) => {
                return Err(Error::invalid(
                    "the blob is empty, and stays so: write a new one with `write_blob`",
                ));
            }
            Some(open) => open,
            None => {
                return Err(Error::invalid(
                    "this transaction has written no blob to append to: begin one with \
                     `write_blob`",
                ));
            }
        };
        if bytes.is_empty() {
            return Err(Error::invalid("there are no bytes to append to the blob"));
        }
        for piece in bytes.chunks(MAX_PIECE) {
            self.write_piece(blob, offset, piece)?;
            offset += piece.len() as u64;
        }
        Ok(blob)
    }

    /// Adds a piece to a blob, the last one or a new one.
    pub(in crate::db) fn write_piece(
        &mut self,
        blob: Blob,
        offset: u64,
        bytes: &[u8],
    ) -> Result<()> {
        let Writing { writer, store, file } = &mut *self.writing;
        let written = writer.piece(blob, offset, bytes).and_then(|position| {
            let place = Place::new(file.segment, position);
            store.add_piece(blob, offset, bytes.len(), place.0)
        });
        self.broken = written.is_err();
        written
    }

    /// Opens a blob for reading: one that was committed, or that this transaction wrote.
    ///
    /// # Errors
    /// `NotFound`: there is no such blob; `Io`, `Corrupt`: its position can't be loaded.
    pub fn blob(&self, blob: Blob) -> Result<BlobReader<'_>> {
        self.usable()?;
        BlobReader::new(Source::Transaction(&self.writing), blob)
    }
}

impl Snapshot {
    /// Opens a blob for reading. The reader is independent: it may outlive the snapshot, and the database.
    ///
    /// # Errors
    /// `NotFound`: there is no such blob in this snapshot; `Io`, `Corrupt`: its position can't be loaded.
    pub fn blob(&self, blob: Blob) -> Result<BlobReader<'static>> {
        BlobReader::new(Source::Snapshot(Arc::clone(&self.published)), blob)
    }
}

/// Where bytes of blobs are read from.
#[derive(Clone)]
enum Source<'a> {
    Snapshot(Arc<Published>),
    Transaction(&'a Writing),
}

impl Source<'_> {
    fn view(&self) -> &View {
        match self {
            Self::Snapshot(published) => &published.view,
            Self::Transaction(writing) => writing.store.view(),
        }
    }

    fn file(&self) -> &JournalFile {
        match self {
            Self::Snapshot(published) => &published.file,
            Self::Transaction(writing) => &writing.file,
        }
    }

    fn read_at(&self, place: Place, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Transaction(writing) if place.segment() == writing.file.segment => {
                writing.writer.read_at(place.position(), buffer)
            }
            _ => self.file().read_at(place, buffer),
        }
    }
}

/// Reads a blob from the journal, piece by piece; each is verified before any of its bytes is given.
///
/// It is [`io::Read`] and [`io::Seek`]; where those meet damage, the error is of kind `InvalidData`. It keeps the
/// last piece (at most 64 KiB), so sequential small reads cost one read of the file for each piece.
#[derive(Clone)]
pub struct BlobReader<'a> {
    source: Source<'a>,
    blob: Blob,
    len: u64,
    /// Where `io::Read` continues.
    at: u64,
    /// The piece in the buffer: its checksum and its bytes, which were verified.
    piece: Option<BlobPiece>,
    buffer: Vec<u8>,
}

impl fmt::Debug for BlobReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { blob, len, at, .. } = self;
        f.debug_struct("BlobReader")
            .field("blob", &blob.0)
            .field("len", len)
            .field("at", at)
            .finish()
    }
}

impl<'a> BlobReader<'a> {
    fn new(source: Source<'a>, blob: Blob) -> Result<Self> {
        let len = source.view().blob_len(blob)?.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no blob number {}", blob.0))
        })?;
        Ok(Self { source, blob, len, at: 0, piece: None, buffer: Vec::new() })
    }

    /// Returns the length of the blob in bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// True if the blob has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads from `offset` on until `buffer` is full or the blob ends; returns how many bytes were read:
    /// 0 at or after the end. Doesn't move the place where [`io::Read`] continues.
    ///
    /// # Errors
    /// `Corrupt` if a piece doesn't verify any more, naming its position in the journal; `Io`. The contents of
    /// `buffer` are then undefined.
    pub fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let from = self.bytes_from(offset.saturating_add(done as u64))?;
            let count = from.len().min(rest.len());
            if count == 0 {
                break;
            }
            for (to, from) in rest.iter_mut().zip(from) {
                *to = *from;
            }
            done += count;
        }
        Ok(done)
    }

    /// Reads the whole blob into memory.
    ///
    /// # Errors
    /// `Invalid` if it is longer than `limit` bytes; otherwise as [`Self::read_at`].
    pub fn to_vec(&mut self, limit: usize) -> Result<Vec<u8>> {
        let len = usize::try_from(self.len).ok().filter(|&len| len <= limit).ok_or_else(|| {
            Error::invalid(format!(
                "blob {} has {} bytes, more than the {limit} that were allowed: read it in parts",
                self.blob.0, self.len
            ))
        })?;
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            let more = self.bytes_from(bytes.len() as u64)?;
            bytes.extend_from_slice(more);
        }
        Ok(bytes)
    }

    /// Borrows verified bytes from `offset` to the end of their piece; empty after the end.
    fn bytes_from(&mut self, offset: u64) -> Result<&[u8]> {
        if offset >= self.len {
            return Ok(&[]);
        }
        let held = self.piece.filter(|piece| piece.holds(offset));
        let piece = match held {
            Some(piece) => piece,
            None => self.load(offset)?,
        };
        let skipped = usize::try_from(offset - piece.offset).unwrap_or(usize::MAX);
        Ok(self.buffer.get(piece::SUM_LEN..).and_then(|b| b.get(skipped..)).unwrap_or_default())
    }

    /// Reads the piece that holds `offset`, and verifies it.
    fn load(&mut self, offset: u64) -> Result<BlobPiece> {
        self.piece = None;
        let found = self.source.view().blob_piece(self.blob, offset)?;
        let piece = found.ok_or_else(|| {
            let nowhere = Place::new(self.source.file().segment, 0);
            self.damaged(nowhere, "it is not in the table of blobs")
        })?;
        self.buffer.resize(piece::SUM_LEN + piece.len as usize, 0);
        // The checksum is right in front of the bytes.
        let at = Place(piece.position.saturating_sub(piece::SUM_LEN as u64));
        let read = self.source.read_at(at, &mut self.buffer).map_err(|error| {
            let (name, blob) = (self.source.file().name_of(at.segment()), self.blob.0);
            Error::io(
                format!("{name}: can't read blob {blob} at position {}", at.position()),
                error,
            )
        })?;
        if read < self.buffer.len() {
            return Err(self.damaged(at, "the file ends before it does"));
        }
        if piece::verify(self.blob, piece.offset, &self.buffer).is_none() {
            return Err(self.damaged(at, "its checksum is wrong"));
        }
        self.piece = Some(piece);
        Ok(piece)
    }

    #[cold]
    fn damaged(&self, at: Place, what: &str) -> Error {
        Error::corrupt(format!(
            "{}: damaged: a piece of blob {} at position {} doesn't verify: {what}; restore the \
             file from a backup",
            self.source.file().name_of(at.segment()),
            self.blob.0,
            at.position()
        ))
    }
}

impl Read for BlobReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.read_at(self.at, buffer).map_err(to_io)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl io::Seek for BlobReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// Wraps an error, so that its details aren't lost.
fn to_io(error: Error) -> io::Error {
    let kind = match error.kind() {
        ErrorKind::Corrupt => io::ErrorKind::InvalidData,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}
