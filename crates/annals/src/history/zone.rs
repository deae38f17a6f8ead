//! Zones: parts of the journal, of whole frames, which are read as a whole.

use super::format::ZONE_LEN;
use crate::bytes::{Fields, Layout};
use annals_storage::Point;

/// It has comments.
pub(crate) const COMMENTED: u32 = 1;
/// Its last transaction continues in the next zone.
pub(crate) const ENDS_INSIDE: u32 = 2;
/// It only repeats the state that the segment begins with.
pub(crate) const STATE: u32 = 4;

/// A part of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Zone {
    /// The segment in which it is.
    pub(crate) segment: u64,
    /// Where it begins: the place, the last transaction before it, and the chain.
    pub(crate) start: Point,
    /// Where it ends: the place, the last transaction that has committed, and the chain.
    pub(crate) end: Point,
    /// The least time of a commit in it, or in a later zone of the same run; the greatest possible if there is
    /// none.
    pub(crate) least_time: i64,
    /// How many commands of the schema there are before it.
    pub(crate) commands: u32,
    /// [`COMMENTED`], [`ENDS_INSIDE`], [`STATE`].
    pub(crate) flags: u32,
}

impl Zone {
    pub(crate) fn encode(&self) -> [u8; ZONE_LEN] {
        let mut to = Layout([0; ZONE_LEN]);
        to.put(0, self.segment.to_le_bytes());
        for (at, point) in [(8, &self.start), (32, &self.end)] {
            to.put(at, point.position.to_le_bytes());
            to.put(at + 8, point.txid.to_le_bytes());
            to.put(at + 16, point.chain.to_le_bytes());
        }
        to.put(56, self.least_time.to_le_bytes());
        to.put(64, self.commands.to_le_bytes());
        to.put(68, self.flags.to_le_bytes());
        to.0
    }

    pub(crate) fn decode(bytes: &[u8; ZONE_LEN]) -> Self {
        let from = Fields(bytes);
        let point =
            |at| Point { position: from.u64(at), txid: from.u64(at + 8), chain: from.u64(at + 16) };
        Self {
            segment: from.u64(0),
            start: point(8),
            end: point(32),
            least_time: i64::from_le_bytes(from.array(56)),
            commands: from.u32(64),
            flags: from.u32(68),
        }
    }

    /// True if a flag is set.
    pub(crate) const fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}
