//! The pieces of blobs in a view, and adding some to a store.

use annals_schema::Blob;

use crate::blobs::{Blobs, Piece};
use crate::{Error, Result, Store, View};

impl View {
    /// Returns the blob that was written last; number 0 if none was.
    #[doc(hidden)]
    #[inline]
    pub fn last_blob(&self) -> Blob {
        Blob(self.blobs.last)
    }

    /// Returns the length of a blob, if there is one with that number.
    #[doc(hidden)]
    #[inline]
    pub fn blob_len(&self, blob: Blob) -> Result<Option<u64>> {
        self.blobs.len_of(blob)
    }

    /// Finds the piece that has the byte of a blob at `offset`.
    #[doc(hidden)]
    #[inline]
    pub fn blob_piece(&self, blob: Blob, offset: u64) -> Result<Option<Piece>> {
        let piece = self.blobs.piece(blob, offset)?;
        Ok(piece.filter(|piece| piece.holds(offset)))
    }
}

impl Store {
    /// Returns the number of the next blob.
    #[doc(hidden)]
    pub fn next_blob(&self) -> Result<Blob> {
        match self.working.blobs.last {
            last if last < Blob::MAX.0 => Ok(Blob(last + 1)),
            _ => Err(Error::invalid("there can't be more blobs: their numbers are used up")),
        }
    }

    /// Returns the blob that the current transaction wrote last, to which it may append, and its length.
    #[doc(hidden)]
    #[inline]
    pub const fn open_blob(&self) -> Option<(Blob, u64)> {
        self.open_blob
    }

    /// Ends the blob that was written last: nothing can be appended to it any more.
    #[doc(hidden)]
    #[inline]
    pub const fn end_blob(&mut self) {
        self.open_blob = None;
    }

    /// Adds a piece: the first one of the next blob, or the next one of the blob that the current
    /// transaction wrote last. Anything else is an error.
    #[doc(hidden)]
    pub fn add_piece(&mut self, blob: Blob, offset: u64, len: usize, position: u64) -> Result<()> {
        let follows = match self.open_blob {
            Some((open, end)) if open == blob => offset == end && end > 0 && len > 0,
            _ => self.next_blob()? == blob && offset == 0,
        };
        let len = u32::try_from(len).ok().filter(|_| follows).ok_or_else(|| {
            Error::invalid(format!(
                "a piece of blob {} at offset {offset} doesn't follow what was written before",
                blob.0
            ))
        })?;
        let piece = Piece { offset, position, len };
        self.begin_change();
        self.working.blobs.make_mut().add(blob, piece, &self.epoch)?;
        self.open_blob = Some((blob, piece.end()));
        Ok(())
    }
}

impl Store {
    /// Replaces the positions of all blobs by those of these pieces, in order.
    #[doc(hidden)]
    #[inline]
    pub fn move_blobs(&mut self, pieces: impl Iterator<Item = (Blob, Piece)>) -> Result<()> {
        self.begin_change();
        *self.working.blobs.make_mut() = Blobs::new();
        self.end_blob();
        for (blob, Piece { offset, position, len }) in pieces {
            self.add_piece(blob, offset, len as usize, position)?;
        }
        self.end_blob();
        Ok(())
    }
}
