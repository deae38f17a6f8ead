//! Writing a segment anew: the same frames, with other payloads where those change, and so in other places and
//! with other chains.
//!
//! Nobody sees the file before it is whole and flushed, so frames say of themselves that they are.

use std::io;

use super::format::{
    DATA_FRAME_MIN, FRAME_ALIGN, FRAME_HEADER_LEN, FRAMES_AT, Header, KIND_DATA, Point, Slot,
};
use super::frame::{self, FrameHeader};
use super::head;
use crate::storage::Storage;

/// Where frames were padded, they are so that they end where a sector of this many bytes does.
const SECTOR: u64 = 4096;

/// So much is written at once.
const STEP: usize = 1 << 20;

/// A segment that is being written.
pub(crate) struct Rewriting<'s> {
    storage: &'s dyn Storage,
    header: Header,
    /// What comes next in the file, and where.
    buffer: Vec<u8>,
    at: u64,
    /// The chain so far.
    chain: u64,
    /// The end of the last commit.
    end: Point,
}

impl<'s> Rewriting<'s> {
    /// Begins a segment, in an empty file.
    pub(crate) fn begin(storage: &'s dyn Storage, header: &Header) -> Self {
        let end = head::start(header);
        let buffer = head::new_head(header);
        Self { storage, header: *header, buffer, at: 0, chain: end.chain, end }
    }

    /// Gives the end of the last commit.
    pub(crate) const fn end(&self) -> Point {
        self.end
    }

    /// Adds a frame that has this payload, and all else as this header says, but for the place; gives its chain.
    pub(crate) fn frame(&mut self, old: &FrameHeader, payload: &[u8]) -> io::Result<u64> {
        let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
        let position = self.at + self.buffer.len() as u64;
        let len = frame::frame_len(u64::from(length));
        let padding = match old.kind {
            // It is never shorter, for else a gap could hide one.
            KIND_DATA => DATA_FRAME_MIN.saturating_sub(len).next_multiple_of(FRAME_ALIGN),
            _ if old.padding > 0 => (position + len).next_multiple_of(SECTOR) - (position + len),
            _ => 0,
        };
        let header = FrameHeader {
            length,
            padding: u32::try_from(padding).map_err(io::Error::other)?,
            position,
            previous: self.chain,
            durable: position,
            ..*old
        };
        let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or_default());
        bytes.resize(FRAME_HEADER_LEN, 0);
        bytes.extend_from_slice(payload);
        self.chain = frame::finish(&mut bytes, &header);
        self.buffer.append(&mut bytes);
        if header.is_commit() {
            let position = self.at + self.buffer.len() as u64;
            self.end = Point { position, txid: header.txid, chain: self.chain };
        }
        if self.buffer.len() >= STEP { self.write() } else { Ok(()) }.map(|()| self.chain)
    }

    fn write(&mut self) -> io::Result<()> {
        self.storage.write_at(self.at, &self.buffer)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the segment: all of it is on permanent storage, and its slots say so. Gives its length.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        self.write()?;
        let zeroed_to = self.end.position.max(FRAMES_AT);
        let slot = Slot { point: self.end, zeroed_to, copied: false };
        for which in [0, 1] {
            head::write_slot(self.storage, which, &slot, self.header.hash())?;
        }
        self.storage.flush()?;
        Ok(self.at)
    }
}
