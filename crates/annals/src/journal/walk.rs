//! A walk over all frames of a file that verify by themselves, also behind damage.
//!
//! It tells of each frame how it stands to the one before it, so that whoever puts transactions
//! together never takes the end of one for the whole.

use std::io;

use super::copies::Copies;
use super::format::{DATA_FRAME_MIN, FRAME_ALIGN, FRAMES_AT, Header, Point};
use super::frame::FrameHeader;
use super::reader::{Frame, FrameReader};
use crate::storage::Storage;

/// How a frame stands to what is before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// It goes on where the frame before it ended, in one history.
    Follows,
    /// Something before it doesn't verify, but no frame of its transaction is missing in front of it.
    Begins,
    /// Something before it doesn't verify, and may belong to its transaction.
    Unknown,
}

/// Bytes that are no frame that verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// Where they begin.
    pub position: u64,
    /// How many there are.
    pub bytes: u64,
}

/// A frame that verifies by itself.
pub(crate) struct Step<'r> {
    pub(crate) frame: Frame<'r>,
    pub(crate) link: Link,
    /// What was stepped over in front of it.
    pub(crate) skipped: Option<Skipped>,
}

/// What is known of the last frame that verified.
#[derive(Clone, Copy, Debug)]
struct Last {
    txid: u64,
    is_commit: bool,
    chain: u64,
}

/// Walks from the first frame on.
pub(crate) struct Walk<'s> {
    reader: FrameReader<'s>,
    /// Where the last frame that verified ended.
    end: u64,
    /// That frame, or what the header says of what is before the first; `None` without any header.
    last: Option<Last>,
    /// How many bytes of frames that don't verify are still looked at. Torn frames don't overlap, so
    /// they are no longer than the file; others are made to cost time.
    patience: u64,
}

impl<'s> Walk<'s> {
    pub(crate) fn new(storage: &'s dyn Storage, copies: &Copies) -> io::Result<Self> {
        let start = |header: &Header| Last {
            txid: header.first_txid.saturating_sub(1),
            is_commit: true,
            chain: header.hash(),
        };
        let last = copies.headers.iter().flatten().next().map(start);
        // It doesn't follow the chain: each frame is verified by itself.
        let nowhere = Point { position: FRAMES_AT, txid: 0, chain: 0 };
        let len = storage.len()?;
        let reader = FrameReader::new(storage, nowhere, len);
        Ok(Self { reader, end: FRAMES_AT, last, patience: len.saturating_mul(8) })
    }

    /// Gives the next frame that verifies by itself.
    pub(crate) fn next(&mut self) -> io::Result<Option<Step<'_>>> {
        let (mut at, mut torn) = (self.end, None);
        let (header, chain) = loop {
            let Some(place) = self.reader.next_magic(at)? else { return Ok(None) };
            at = place + FRAME_ALIGN;
            let Some(header) = self.reader.header_at(place)? else { continue };
            let Some(patience) = self.patience.checked_sub(header.frame_len()) else { continue };
            if let Some(chain) = self.reader.verify_at(&header)? {
                break (header, chain);
            }
            self.patience = patience;
            torn = Some(header);
        };
        let link = self.link(&header, torn.as_ref());
        let bytes = header.position - self.end;
        let skipped = (bytes > 0).then_some(Skipped { position: self.end, bytes });
        self.end = header.position + header.frame_len();
        self.last = Some(Last { txid: header.txid, is_commit: header.is_commit(), chain });
        let frame = self.reader.frame(header, chain);
        Ok(Some(Step { frame, link, skipped }))
    }

    /// Tells how a frame stands to the last one that verified; `torn` is a frame between them whose
    /// header verifies.
    fn link(&self, header: &FrameHeader, torn: Option<&FrameHeader>) -> Link {
        let gap = header.position - self.end;
        let Some(last) = self.last else {
            return if gap == 0 { Link::Begins } else { Link::Unknown };
        };
        let next = last.txid.saturating_add(u64::from(last.is_commit));
        if gap == 0 && header.previous == last.chain && header.txid == next {
            return Link::Follows;
        }
        // Txids grow by one. If no commit is missing in between, nothing can be said.
        if header.txid <= next {
            return Link::Unknown;
        }
        let touching = torn.filter(|torn| torn.position + torn.frame_len() == header.position);
        let is_first = match touching {
            Some(torn) => torn.is_commit() && header.txid.checked_sub(1) == Some(torn.txid),
            None => gap > 0 && gap < DATA_FRAME_MIN,
        };
        if is_first { Link::Begins } else { Link::Unknown }
    }

    /// Gives what follows the last frame that verifies, if it isn't all zeros.
    pub(crate) fn rest(&mut self, len: u64) -> io::Result<Option<Skipped>> {
        let first = self.reader.first_nonzero(self.end)?;
        Ok(first.map(|position| Skipped { position, bytes: len.saturating_sub(position) }))
    }
}
