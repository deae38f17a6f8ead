//! Reading blobs: bytes of any length that stay in the journal and are read on demand.

use std::fmt;
use std::io::{self, Read, SeekFrom};
use std::sync::Arc;

use annals_schema::Blob;

use crate::db::present::segment::JournalFile;
use crate::db::present::snapshot::{Published, Snapshot};
use crate::db::write::core::Writing;
use crate::event::piece;
use crate::journal::segments::Place;
use crate::store::{BlobPiece, View};
use crate::{Error, ErrorKind, Result};

impl Snapshot {
    /// Opens a blob for reading. The reader is independent: it may outlive the snapshot, and the database.
    ///
    /// # Errors
    /// `NotFound`: there is no such blob in this snapshot; `Io`, `Corrupt`: its position can't be loaded.
    pub fn blob(&self, blob: Blob) -> Result<BlobReader<'static>> {
        BlobReader::new(BlobSource::Snapshot(Arc::clone(&self.published)), blob)
    }
}

/// Where bytes of blobs are read from.
#[derive(Clone)]
enum BlobSource<'a> {
    Snapshot(Arc<Published>),
    Transaction(&'a Writing),
}

impl BlobSource<'_> {
    fn view(&self) -> &View {
        match self {
            Self::Snapshot(published) => &published.view,
            Self::Transaction(writing) => writing.store.unsettled(),
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
    source: BlobSource<'a>,
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
    /// Opens a blob that was committed, or that the open transaction wrote.
    pub(in crate::db) fn of_transaction(writing: &'a Writing, blob: Blob) -> Result<Self> {
        Self::new(BlobSource::Transaction(writing), blob)
    }

    fn new(source: BlobSource<'a>, blob: Blob) -> Result<Self> {
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
