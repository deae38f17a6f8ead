//! One frame, read alone: for whoever knows where it is, and that it belongs to the history.

use std::io;

use super::committed::Committed;
use super::erasure::Erasure;
use super::format::{FRAME_ALIGN, FRAME_HEADER_LEN, MAX_FRAME_LEN, Point};
use super::frame::{self, FrameHeader, Spot, Verified};
use annals_storage::Storage;

/// How much is read at once: most frames are shorter.
const FIRST: usize = 512;

/// How much is read at once of consecutive frames.
const WINDOW: u64 = 4096;

/// How much is searched first for the beginning of a frame: most are shorter.
const NEAR: u64 = 16 << 10;

/// Reads single frames of a file.
#[derive(Clone, Copy, Debug)]
pub struct Singles<'s> {
    storage: &'s dyn Storage,
    /// The hash of the segment's header.
    segment: u64,
    /// The end of the part of the file that may be read.
    end: Point,
}

/// A frame that verifies alone.
#[derive(Debug)]
pub struct Single<'b> {
    /// Its header, with the time of the commit.
    pub header: FrameHeader,
    /// Its events; those of a long event are in several frames.
    pub payload: &'b [u8],
    /// Where it ends.
    pub end: u64,
    /// Its chain, as it is stored.
    pub chain: u64,
}

impl Single<'_> {
    /// Returns the facts of the transaction that it commits; `None` if it commits none, or is of an unknown level.
    #[inline]
    #[must_use]
    pub fn committed(&self) -> Option<Committed> {
        Committed::at(&self.header, self.end, self.chain)
    }

    /// Returns the mark of an erasure, if it is one.
    #[inline]
    #[must_use]
    pub fn erasure(&self) -> Option<Erasure> {
        Erasure::decode(&self.header, self.payload)
    }
}

impl<'s> Singles<'s> {
    /// Reads the frames of a file, before a point of its history. `segment` is the hash of its header.
    #[inline]
    #[must_use]
    pub fn new(storage: &'s dyn Storage, segment: u64, end: Point) -> Self {
        Self { storage, segment, end }
    }

    /// Reads the frame at a position into a buffer; `None` if none verifies there.
    ///
    /// Cost: one read of 512 bytes, and another for the rest of a longer frame; a hash of the frame.
    ///
    /// # Errors
    /// Those of the file.
    #[inline]
    pub fn read<'b>(&self, at: u64, buffer: &'b mut Vec<u8>) -> io::Result<Option<Single<'b>>> {
        let mut found = self.verified(at, buffer)?;
        if found.is_none() {
            self.storage.drop_copies(at..at + MAX_FRAME_LEN);
            found = self.verified(at, buffer)?;
        }
        let Some((header, chain)) = found else { return Ok(None) };
        let end = at + header.frame_len();
        let (payload, time) = frame::payload(buffer, &header);
        let header = FrameHeader { time: time.unwrap_or(header.time), ..header };
        Ok(Some(Single { header, payload, end, chain }))
    }

    /// Reads the frame that ends at a position into a buffer; `None` if none verifies that does.
    ///
    /// Cost: one read of 16 KiB, or of a longer frame another of 512 KiB, and those of [`read`](Self::read).
    ///
    /// # Errors
    /// Those of the file.
    #[inline]
    pub fn ending<'b>(&self, end: u64, buffer: &'b mut Vec<u8>) -> io::Result<Option<Single<'b>>> {
        for most in [NEAR, MAX_FRAME_LEN] {
            let from = end.saturating_sub(most);
            self.fill(from, end - from, 0, buffer)?;
            let ends = |&inside: &usize| {
                let at = from + inside as u64;
                let header = buffer.get(inside..).and_then(|bytes| self.header(at, bytes));
                header.is_some_and(|header| at + header.frame_len() == end)
            };
            let step = usize::try_from(FRAME_ALIGN).unwrap_or(1);
            let found = (0..buffer.len()).step_by(step).rev().find(ends);
            if let Some(inside) = found {
                return self.read(from + inside as u64, buffer);
            }
        }
        Ok(None)
    }

    /// Reads the frame at a position into a buffer, which has just the frame then; returns its header and its chain.
    fn verified(&self, at: u64, buffer: &mut Vec<u8>) -> io::Result<Option<(FrameHeader, u64)>> {
        self.fill(at, FIRST as u64, 0, buffer)?;
        let Some(header) = self.header(at, buffer) else { return Ok(None) };
        let len = header.frame_len();
        if len > self.end.position.saturating_sub(at) {
            return Ok(None);
        }
        let read = buffer.len();
        if len > read as u64 {
            self.fill(at, len, read, buffer)?;
        }
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if buffer.len() < len {
            return Ok(None);
        }
        buffer.truncate(len);
        let verified = Verified::alone(buffer, &header);
        Ok(verified.map(|Verified { trailer, .. }| (header, trailer.chain)))
    }

    /// Visits the headers of consecutive frames, from the one at a position on, while `visit` returns true; returns
    /// the end of the last. The payloads aren't verified. It stops at what is no frame.
    ///
    /// Cost: reads 4 KiB at once, and of longer frames only the header.
    ///
    /// # Errors
    /// Those of the file.
    #[inline]
    pub fn walk(
        &self,
        from: u64,
        buffer: &mut Vec<u8>,
        visit: &mut dyn FnMut(&FrameHeader) -> bool,
    ) -> io::Result<u64> {
        let (mut at, mut begin) = (from, 0);
        buffer.clear();
        while at < self.end.position {
            let inside = usize::try_from(at - begin).ok().and_then(|inside| buffer.get(inside..));
            let bytes = inside.filter(|bytes| begin > 0 && bytes.len() >= FRAME_HEADER_LEN);
            let Some(bytes) = bytes else {
                begin = at;
                self.fill(at, WINDOW, 0, buffer)?;
                match buffer.len() < FRAME_HEADER_LEN {
                    true => return Ok(at),
                    false => continue,
                }
            };
            let Some(header) = self.header(at, bytes) else { return Ok(at) };
            if !visit(&header) {
                return Ok(at);
            }
            at += header.frame_len();
        }
        Ok(at)
    }

    /// Reads bytes from inside a frame into a buffer, which is shorter at the end of the file; once more, if they aren't
    /// right. Returns whether they are.
    ///
    /// # Errors
    /// Those of the file.
    #[inline]
    pub fn bytes(
        &self,
        at: u64,
        len: u64,
        buffer: &mut Vec<u8>,
        are_right: &dyn Fn(&[u8]) -> bool,
    ) -> io::Result<bool> {
        self.fill(at, len, 0, buffer)?;
        if are_right(buffer) {
            return Ok(true);
        }
        self.storage.drop_copies(at..at.saturating_add(len));
        self.fill(at, len, 0, buffer)?;
        Ok(are_right(buffer))
    }

    /// Decodes the header at the beginning of some bytes. The frame has the lower half of its transaction's number:
    /// the number is the greatest one up to the end, or, where that doesn't verify, an earlier one.
    fn header(&self, at: u64, bytes: &[u8]) -> Option<FrameHeader> {
        let bytes: &[u8; FRAME_HEADER_LEN] = bytes.first_chunk()?;
        let mut last = self.end.txid.0.saturating_add(1);
        loop {
            let txid = last.saturating_sub(u64::from(u32::MAX));
            let spot = Spot { position: at, segment: Some(self.segment), txid };
            match FrameHeader::decode(bytes, spot) {
                None if txid > 0 => last = txid.saturating_sub(1),
                found => return found,
            }
        }
    }

    /// Reads bytes `from` on of those at a position.
    fn fill(&self, at: u64, len: u64, from: usize, buffer: &mut Vec<u8>) -> io::Result<()> {
        let len = len.min(self.end.position.saturating_sub(at));
        buffer.resize(usize::try_from(len).unwrap_or(usize::MAX), 0);
        let read = match buffer.get_mut(from..) {
            Some(rest) => self.storage.read_at(at + from as u64, rest)?,
            None => 0,
        };
        buffer.truncate(from + read);
        Ok(())
    }
}
