//! The bytes of a history index's head, and the sizes of its parts. `docs/format.md` says the same in words, and a
//! test compares the two.
//!
//! All numbers are little-endian. Nothing read here is believed before its checksum agrees, and then its lengths
//! and places are still checked.

use super::extent::Extent;
use crate::bytes::{Fields, Layout};
use annals_storage::Point;

/// The version of the format that this library writes.
pub(crate) const HISTORY_VERSION: u32 = 1;
/// How each copy of the head begins.
pub(crate) const HISTORY_MAGIC: [u8; 8] = *b"\x89ANHIST\n";
/// The length of a page, and of a copy of the head.
pub(crate) const PAGE: usize = 4096;
/// Where the two copies of the head are, which are written by turns.
pub(crate) const HISTORY_AT: [u64; 2] = [0, 4096];
/// Where the first run may be.
pub(crate) const RUNS_AT: u64 = 8192;
/// The length of a head's start, before its runs.
pub(crate) const HISTORY_HEAD_LEN: usize = 96;
/// The length of a run in a head.
pub(crate) const HISTORY_RUN_LEN: usize = 88;
/// How many runs there are at most.
pub(crate) const MOST_RUNS: usize = 40;
/// The length of a zone.
pub(crate) const ZONE_LEN: usize = 80;
/// The length of a page's record of one page below it.
pub(crate) const CHILD_LEN: usize = 32;
/// The number of pages recorded in one page above them.
pub(crate) const CHILDREN: u64 = (PAGE / CHILD_LEN) as u64;
/// How many zones a page has.
pub(crate) const ZONES: u64 = (PAGE / ZONE_LEN) as u64;

const SUM_AT: usize = PAGE - 8;
const _: () = assert!(HISTORY_HEAD_LEN + MOST_RUNS * HISTORY_RUN_LEN <= SUM_AT);
const _: () = assert!(HISTORY_AT[1] == PAGE as u64 && RUNS_AT == 2 * PAGE as u64);

/// The end of an index in the journal: the end of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    /// The segment.
    pub(crate) segment: u64,
    /// Where in it.
    pub(crate) point: Point,
    /// How many commands of the schema there are before.
    pub(crate) commands: u64,
}

/// The head: the point of the index, and the positions of its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Grows by one with each that is written.
    pub(crate) number: u64,
    /// The journal that it is of.
    pub(crate) journal_id: [u8; 16],
    /// Up to where.
    pub(crate) bound: Bound,
    /// The number of the next zone.
    pub(crate) next_zone: u64,
    /// The runs, the oldest zones first.
    pub(crate) runs: Vec<Extent>,
}

/// Returns the id of the journal whose history index begins with these bytes, whether the rest verifies or not; `None`
/// if no index begins so.
pub(crate) fn journal_id_of(bytes: &[u8]) -> Option<[u8; 16]> {
    let mut copies = HISTORY_AT.iter().filter_map(|&at| bytes.get(usize::try_from(at).ok()?..));
    let copy = copies.find(|copy| copy.starts_with(&HISTORY_MAGIC))?;
    copy.get(16..32)?.try_into().ok()
}

impl Head {
    pub(crate) fn encode(&self) -> [u8; PAGE] {
        let mut to = Layout([0; PAGE]);
        to.put(0, HISTORY_MAGIC);
        to.put(8, HISTORY_VERSION.to_le_bytes());
        to.put(12, u32::try_from(self.runs.len()).unwrap_or(u32::MAX).to_le_bytes());
        to.put(16, self.journal_id);
        to.put(32, self.number.to_le_bytes());
        to.put(40, self.bound.segment.to_le_bytes());
        to.put(48, self.bound.point.position.to_le_bytes());
        to.put(56, self.bound.point.txid.to_le_bytes());
        to.put(64, self.bound.point.chain.to_le_bytes());
        to.put(72, self.bound.commands.to_le_bytes());
        to.put(80, self.next_zone.to_le_bytes());
        for (place, run) in self.runs.iter().take(MOST_RUNS).enumerate() {
            to.put(HISTORY_HEAD_LEN + place * HISTORY_RUN_LEN, run.encode());
        }
        to.seal(SUM_AT);
        to.0
    }

    /// Reads a copy; `None` if it is none, damaged, or of another version.
    pub(crate) fn decode(bytes: &[u8; PAGE]) -> Option<Self> {
        let from = Fields(bytes);
        let runs = usize::try_from(from.u32(12)).ok().filter(|&runs| runs <= MOST_RUNS)?;
        let valid = from.array(0) == HISTORY_MAGIC
            && from.checked(SUM_AT)
            && from.u32(8) == HISTORY_VERSION;
        let runs = (0..runs)
            .map(|place| Extent::decode(&from.array(HISTORY_HEAD_LEN + place * HISTORY_RUN_LEN)));
        let point = Point { position: from.u64(48), txid: from.u64(56), chain: from.u64(64) };
        let head = Self {
            number: from.u64(32),
            journal_id: from.array(16),
            bound: Bound { segment: from.u64(40), point, commands: from.u64(72) },
            next_zone: from.u64(80),
            runs: runs.collect::<Option<_>>()?,
        };
        let follow = head.runs.windows(2).all(|two| match two {
            [one, next] => one.end_zone() == next.zone,
            _ => true,
        });
        let ends = head.runs.last().is_none_or(|last| last.end_zone() == head.next_zone);
        (valid && follow && ends).then_some(head)
    }
}
