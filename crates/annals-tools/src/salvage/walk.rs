//! A walk over all frames of a file that verify by themselves, also after damage.
//!
//! It returns the relation of each frame to the one before it, so that the end of a transaction is never taken for
//! the whole.

use std::io;

use annals::journal::Copies;
use annals::{Point, Txid};
use annals_journal::format::{FRAME_ALIGN, FRAMES_AT, Header};
use annals_journal::{Frame, FrameHeader, FrameReader};
use annals_storage::Storage;

/// The relation of a frame to the bytes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// It continues where the frame before it ended, in one history.
    Follows,
    /// Something before it doesn't verify, but no frame of its transaction is missing in front of it.
    Begins,
    /// Something before it doesn't verify, and may belong to its transaction.
    Unknown,
}

/// Bytes that are no frame that verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Skipped {
    /// Where they begin.
    pub(super) position: u64,
    /// How many there are.
    pub(super) bytes: u64,
}

/// A frame that verifies alone.
pub(super) struct Step<'r> {
    /// The frame.
    pub(super) frame: Frame<'r>,
    /// Its relation to the frame before it.
    pub(super) link: Link,
    /// The bytes skipped before it.
    pub(super) skipped: Option<Skipped>,
}

/// Facts of the last frame that verified.
#[derive(Clone, Copy, Debug)]
struct Last {
    txid: u64,
    is_commit: bool,
    chain: u64,
    /// The right chain, if the stored one is wrong. Where that is proven, `chain` is the same.
    computed: u64,
}

impl Last {
    /// Returns the transaction of a frame that follows it.
    fn next(&self) -> u64 {
        self.txid.saturating_add(u64::from(self.is_commit))
    }
}

/// Walks from the first frame on.
pub(super) struct Walk<'s> {
    reader: FrameReader<'s>,
    /// The end of the last frame that verified, or the end that the header of one that doesn't gives.
    end: u64,
    /// That frame, or the header's data for the position before the first.
    last: Last,
    /// The last frame that the chain links to the beginning, and whether that is `last`. A frame after a gap may be
    /// of another history: its txid doesn't bound those that follow.
    linked: Last,
    is_linked: bool,
    /// True if the segment of the frames is known.
    has_header: bool,
    /// How many bytes of frames that don't verify are still examined if no header can be checked.
    patience: u64,
}

impl<'s> Walk<'s> {
    /// Begins a walk. Without a header its hash in a slot does as well; without that, frames verify by the
    /// check of their payload and by the chain.
    pub(super) fn new(storage: &'s dyn Storage, copies: &Copies) -> io::Result<Self> {
        let header = copies.headers.iter().flatten().next();
        let slot = copies.slots.iter().flatten().flatten().next();
        let segment = header.map(Header::hash).or(copies.segment).unwrap_or_default();
        let first = header.map(|header| header.first_txid.saturating_sub(1));
        let txid = first.or(slot.map(|_| 0)).unwrap_or_default();
        let last = Last { txid, is_commit: true, chain: segment, computed: segment };
        // It doesn't follow the chain: each frame is verified alone.
        let nowhere = Point { position: FRAMES_AT, txid: Txid(0), chain: 0 };
        let len = storage.len()?;
        let mut reader = FrameReader::new(storage, segment, nowhere, len).confirming(&copies.slots);
        let has_header = header.is_some() || copies.segment.is_some();
        if !has_header {
            reader = reader.without_header();
        }
        let patience = len.saturating_mul(8);
        let (linked, is_linked) = (last, true);
        Ok(Self { reader, end: FRAMES_AT, last, linked, is_linked, has_header, patience })
    }

    /// Returns the next frame that verifies alone. After a header that verifies, its frame's bytes aren't examined
    /// again: so the work is proportional to the bytes.
    #[allow(clippy::should_implement_trait, reason = "an iterator can't lend what it has read")]
    pub(super) fn next(&mut self) -> io::Result<Option<Step<'_>>> {
        let mut at = self.end;
        let (header, verified) = loop {
            let Some(place) = self.reader.next_magic(at)? else { return Ok(None) };
            at = place + FRAME_ALIGN;
            let Some(header) = self.header_at(place)? else { continue };
            if let Some(verified) = self.reader.verify_at(&header)? {
                break (header, verified);
            }
            if self.has_header {
                at = place + header.frame_len();
            } else {
                let Some(left) = self.patience.checked_sub(header.frame_len()) else {
                    return Ok(None);
                };
                self.patience = left;
            }
        };
        let mut chain = verified.trailer.chain;
        let mut follows = [self.last.chain, self.last.computed]
            .into_iter()
            .any(|previous| verified.chain_after(&header, previous) == chain);
        let computed = verified.chain_after(&header, self.last.computed);
        let is_next = header.position == self.end && header.txid == self.last.next();
        if !follows && is_next && self.has_header && self.reader.confirms(&header, computed)? {
            (chain, follows) = (computed, true);
        }
        let link = self.link(&header, follows);
        let bytes = header.position - self.end;
        let skipped = (bytes > 0).then_some(Skipped { position: self.end, bytes });
        self.end = header.position + header.frame_len();
        let previous = std::mem::replace(
            &mut self.last,
            Last { txid: header.txid, is_commit: header.is_commit(), chain, computed },
        );
        self.is_linked &= link == Link::Follows;
        if self.is_linked {
            self.linked = self.last;
        }
        let frame = self.reader.frame(header, previous.chain, chain);
        Ok(Some(Step { frame, link, skipped }))
    }

    /// Decodes a header. Its txid is at least the txid of the last frame, or of the last frame that is linked to the
    /// beginning.
    fn header_at(&mut self, place: u64) -> io::Result<Option<FrameHeader>> {
        let (last, linked) = (self.last.txid, self.linked.txid);
        if !self.has_header {
            return self.reader.header_at(place, linked);
        }
        match self.reader.header_at(place, last)? {
            None if linked < last => self.reader.header_at(place, linked),
            found => Ok(found),
        }
    }

    /// Returns the relation of a frame to the last one that verified.
    fn link(&self, header: &FrameHeader, follows: bool) -> Link {
        let next = self.last.next();
        if header.position == self.end && follows && header.txid == next {
            return Link::Follows;
        }
        // Txids grow by one. If no commit is missing in between, it is of another history.
        let is_unknown = !self.has_header && self.last.txid == 0;
        let is_later = header.txid > self.linked.next();
        match (is_later || is_unknown) && header.is_first() {
            true => Link::Begins,
            false => Link::Unknown,
        }
    }

    /// Returns the bytes after the last frame that verifies, if they aren't all zeros.
    pub(super) fn rest(&mut self, len: u64) -> io::Result<Option<Skipped>> {
        let first = self.reader.first_nonzero(self.end)?;
        Ok(first.map(|position| Skipped { position, bytes: len.saturating_sub(position) }))
    }
}
