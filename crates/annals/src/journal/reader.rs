//! The reader: follows the chain of frames from one point on, verifying each.

use std::io;

use super::format::{self, FRAME_HEADER_LEN, Point};
use super::frame::{self, FrameHeader};
use crate::storage::Storage;

/// How much is read at once.
const WINDOW: usize = 1 << 20;
/// What frames are aligned to.
const STEP: usize = 8;
const _: () = assert!(STEP as u64 == format::FRAME_ALIGN);

/// Reads verified frames in order.
///
/// Invariants
/// 1. `position`, `txid` and `chain` describe what was verified so far: frames that committed, and
///    the data frames behind them.
/// 2. No more memory is taken than the file is long.
pub(crate) struct FrameReader<'s> {
    storage: &'s dyn Storage,
    len: u64,
    position: u64,
    chain: u64,
    /// The last transaction that committed.
    txid: u64,
    window: Vec<u8>,
    window_at: u64,
}

/// A verified frame.
pub(crate) struct Frame<'r> {
    pub(crate) header: FrameHeader,
    /// All of it.
    pub(crate) bytes: &'r [u8],
    pub(crate) payload: &'r [u8],
    /// Its chain: the previous chain of the next frame.
    pub(crate) chain: u64,
    /// Where it ends.
    pub(crate) end: u64,
}

impl Frame<'_> {
    /// Gives where the payload is in the file.
    pub(crate) const fn payload_at(&self) -> u64 {
        self.header.position + FRAME_HEADER_LEN as u64
    }
}

impl<'s> FrameReader<'s> {
    /// Begins at a point between two transactions. `len` is how far to read at most.
    pub(crate) fn new(storage: &'s dyn Storage, from: Point, len: u64) -> Self {
        Self {
            storage,
            len,
            position: from.position,
            chain: from.chain,
            txid: from.txid,
            window: Vec::new(),
            window_at: 0,
        }
    }

    /// Gives where the next frame would begin.
    pub(crate) const fn position(&self) -> u64 {
        self.position
    }

    /// Sets how far to read at most.
    pub(crate) const fn set_len(&mut self, len: u64) {
        self.len = len;
    }

    /// Gives what was verified so far; a point between two transactions behind a commit frame.
    pub(crate) const fn point(&self) -> Point {
        Point { position: self.position, txid: self.txid, chain: self.chain }
    }

    /// Gives the next frame, or `None` where nothing verifies any more: not a frame, one of
    /// another history, or a damaged one.
    pub(crate) fn next(&mut self) -> io::Result<Option<Frame<'_>>> {
        let at = self.position;
        let Some(header) = self.header_at(at)? else { return Ok(None) };
        if header.previous != self.chain || header.txid != self.txid + 1 {
            return Ok(None);
        }
        let Some(chain) = self.verify_at(&header)? else { return Ok(None) };
        self.position = at + header.frame_len();
        self.chain = chain;
        if header.is_commit() {
            self.txid = header.txid;
        }
        Ok(Some(self.frame(header, chain)))
    }

    /// Reads the header of a frame at any position, if it verifies by itself.
    pub(crate) fn header_at(&mut self, at: u64) -> io::Result<Option<FrameHeader>> {
        self.fill(at, FRAME_HEADER_LEN as u64)?;
        let header = self
            .bytes(at, FRAME_HEADER_LEN as u64)
            .first_chunk()
            .and_then(|bytes| FrameHeader::decode(bytes, at));
        Ok(header.filter(|header| header.frame_len() <= self.len.saturating_sub(at)))
    }

    /// Verifies the frame with this header by itself; gives its chain.
    pub(crate) fn verify_at(&mut self, header: &FrameHeader) -> io::Result<Option<u64>> {
        self.fill(header.position, header.frame_len())?;
        Ok(frame::verify(self.bytes(header.position, header.frame_len())))
    }

    /// Gives the frame with this header, which was verified last, and whose chain this is.
    pub(crate) fn frame(&self, header: FrameHeader, chain: u64) -> Frame<'_> {
        let bytes = self.bytes(header.position, header.frame_len());
        let end = header.position + header.frame_len();
        Frame { header, bytes, payload: frame::payload(bytes, &header), chain, end }
    }

    /// Tells whether nothing begins at the position: the file ends there, or zeros follow. (A frame whose
    /// writing was interrupted has its beginning.)
    pub(crate) fn starts_with_zeros(&mut self) -> io::Result<bool> {
        self.fill(self.position, FRAME_HEADER_LEN as u64)?;
        Ok(self.rest(self.position).iter().take(FRAME_HEADER_LEN).all(|&byte| byte == 0))
    }

    /// Finds the first byte that is not zero from `at` on.
    pub(crate) fn first_nonzero(&mut self, mut at: u64) -> io::Result<Option<u64>> {
        while at < self.len {
            let len = (self.len - at).min(WINDOW as u64);
            self.fill(at, len)?;
            let bytes = self.bytes(at, len);
            if bytes.is_empty() {
                break;
            }
            if let Some(place) = bytes.iter().position(|&byte| byte != 0) {
                return Ok(Some(at + place as u64));
            }
            at += len;
        }
        Ok(None)
    }

    /// Finds the next place, a multiple of the frames' alignment, where a frame may begin.
    pub(crate) fn next_magic(&mut self, from: u64) -> io::Result<Option<u64>> {
        let mut at = from.next_multiple_of(format::FRAME_ALIGN);
        while at < self.len {
            // What is in the window is looked at first: reading anew from each place would make a
            // long tail of small frames cost its square.
            self.fill(at, format::FRAME_ALIGN)?;
            let bytes = self.rest(at);
            if bytes.is_empty() {
                break;
            }
            let found = bytes.chunks(STEP).position(|word| word.starts_with(&format::FRAME_MAGIC));
            if let Some(place) = found {
                return Ok(Some(at + (place * STEP) as u64));
            }
            at += bytes.len() as u64;
        }
        Ok(None)
    }

    /// Gives bytes that are in the window; empty if they aren't (the file ends before).
    fn bytes(&self, at: u64, len: u64) -> &[u8] {
        let start = at.checked_sub(self.window_at).and_then(|start| usize::try_from(start).ok());
        let len = usize::try_from(len).ok();
        let range = start.zip(len).and_then(|(start, len)| Some(start..start.checked_add(len)?));
        range.and_then(|range| self.window.get(range)).unwrap_or_default()
    }

    /// Gives all bytes from `at` on that are in the window.
    fn rest(&self, at: u64) -> &[u8] {
        let start = at.checked_sub(self.window_at).and_then(|start| usize::try_from(start).ok());
        start.and_then(|start| self.window.get(start..)).unwrap_or_default()
    }

    /// Brings bytes into the window, as far as the file goes. What is there already isn't read again.
    fn fill(&mut self, at: u64, len: u64) -> io::Result<()> {
        let end = at.saturating_add(len).min(self.len);
        let window_end = self.window_at + self.window.len() as u64;
        if at >= end || (at >= self.window_at && end <= window_end) {
            return Ok(());
        }
        let wanted = (end - at).max(WINDOW as u64).min(self.len - at);
        let wanted = usize::try_from(wanted).map_err(io::Error::other)?;
        let (kept, len) = (self.rest(at).len(), self.window.len());
        self.window.copy_within(len - kept.., 0);
        self.window.resize(wanted, 0);
        self.window_at = at;
        let read = match self.window.get_mut(kept..) {
            Some(room) => self.storage.read_at(at + kept as u64, room),
            None => Ok(0),
        };
        self.window.truncate(kept + *read.as_ref().unwrap_or(&0));
        read.map(|_| ())
    }
}
