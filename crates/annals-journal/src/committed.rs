//! Facts of a transaction in the journal.

use annals_schema::{Timestamp, Txid};

use super::format::Point;
use super::frame::FrameHeader;
use super::level::Level;
use super::reader::Frame;

/// One committed transaction of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Its number.
    pub txid: Txid,
    /// The end of its commit frame, in bytes.
    pub position: u64,
    /// Its level.
    pub level: Level,
    /// Its time.
    pub time: Timestamp,
    /// True if the time was given by the program rather than by the clock.
    pub explicit_time: bool,
    /// The chain: one number that represents the whole history up to here.
    pub chain: u64,
}

impl Committed {
    /// Reads it from a commit frame; `None` if the frame is another, or of an unknown level.
    #[doc(hidden)]
    pub fn of(frame: &Frame<'_>) -> Option<Self> {
        Self::at(&frame.header, frame.end, frame.chain)
    }

    /// Does what [`of`](Self::of) does, for a frame that ends at a position with a chain.
    pub(super) fn at(header: &FrameHeader, position: u64, chain: u64) -> Option<Self> {
        let level = Level::of_code(header.level)?;
        header.is_commit().then_some(Self {
            txid: Txid(header.txid),
            position,
            level,
            time: Timestamp(header.time),
            explicit_time: header.has_explicit_time(),
            chain,
        })
    }

    /// Returns the place after it.
    #[must_use]
    pub const fn point(&self) -> Point {
        Point { position: self.position, txid: self.txid, chain: self.chain }
    }
}
