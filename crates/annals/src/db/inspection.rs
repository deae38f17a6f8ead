//! Plain facts of the files of a journal, for people.

use std::time::Duration;

use annals_schema::{Timestamp, Txid};

use crate::journal::format::{Header, Live, Slot};
use crate::journal::{Committed, Copies, Point, SegmentFacts};

/// The contents of the first 16 KiB of a journal file.
#[derive(Clone, Copy, Debug)]
pub struct HeadInspection {
    /// The length of the file in bytes.
    pub len: u64,
    /// Each copy of header, slots and live block.
    pub copies: Copies,
}

/// The contents of a journal file's head.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The version of the format.
    pub version: u32,
    /// The journal's random id.
    pub journal_id: [u8; 16],
    /// The number of the segment.
    pub segment: u64,
    /// When it was created.
    pub created: Timestamp,
    /// All of the header.
    pub header: Header,
    /// The length of the file in bytes.
    pub len: u64,
    /// The end of the last valid commit.
    pub end: Point,
    /// The last valid commit.
    pub last: Option<Committed>,
    /// The farthest position that was known to be flushed.
    pub hard: u64,
    /// The first position that doesn't verify.
    pub verified_to: u64,
    /// The two hard slots, each with its two copies; `None` for each that doesn't verify.
    pub slots: [[Option<Slot>; 2]; 2],
    /// The live block.
    pub live: Option<Live>,
    /// The process that has it open for writing, as the live block says.
    pub holder: Option<u32>,
    /// True if a process of that number exists on this machine (always true if unknown).
    pub holder_lives: bool,
    /// How many copies of the header are damaged, of 3.
    pub damaged_headers: usize,
    /// Data frames after the end, of a transaction that didn't commit (or not yet).
    pub uncommitted_frames: u64,
    /// How many commits verify that the [`Recovery`](crate::Recovery) leaves out.
    pub left_out_commits: u64,
    /// The last of those.
    pub last_left_out: Option<Committed>,
    /// The end of a frame with a wrong stored chain, if all else confirms the right one. Opening the file for writing
    /// repairs it.
    pub wrong_chain: Option<u64>,
    /// The first nonzero byte after all frames that verify.
    pub tail: Option<u64>,
    /// How many frames after that verify by themselves.
    pub tail_frames: u64,
    /// Where the segment ends, if it is sealed: the journal continues in the next.
    pub sealed: Option<u64>,
    /// True if it was closed properly.
    pub closed: bool,
    /// The image beside it; `None` if there is none, or if it wasn't examined.
    pub image: Option<ImageInspection>,
    /// The history index in the image; `None` if there is none, or if it wasn't examined.
    pub history: Option<HistoryInspection>,
    /// The damage, if there is any: something was durable and doesn't verify any more.
    pub damage: Option<String>,
}

impl Inspection {
    /// True if anything would be cut off if the file were opened for writing.
    #[must_use]
    pub const fn has_tail(&self) -> bool {
        self.may_hold_a_commit() || self.uncommitted_frames > 0
    }

    /// True if a copy of the header or of a slot doesn't verify, the copies of a slot differ, or a stored chain is
    /// wrong. Nothing is lost by that, and opening the file for writing repairs it.
    #[must_use]
    pub fn has_damaged_copy(&self) -> bool {
        let differs = |[first, second]: &[Option<Slot>; 2]| first.is_none() || first != second;
        self.damaged_headers > 0 || self.wrong_chain.is_some() || self.slots.iter().any(differs)
    }

    /// True if a commit may be in the bytes to be cut, so that they are saved.
    #[must_use]
    pub const fn may_hold_a_commit(&self) -> bool {
        self.tail.is_some() || self.left_out_commits > 0
    }
}

/// A segment of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentInspection {
    /// Its path.
    pub path: String,
    /// Its number, length and transactions, and when it was begun. Readers of it are known here only if `pinned_by`
    /// names one.
    pub facts: SegmentFacts,
    /// Where its first frame begins.
    pub start: Point,
    /// The end of its last transaction; after its seal, if the journal continues in another.
    pub end: Point,
    /// When it was sealed, which is when the next one was begun.
    pub sealed: Option<Timestamp>,
    /// A process that reads its history, so that it can't be removed, if the system reports it.
    pub pinned_by: Option<u32>,
}

/// Facts of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageInspection {
    /// Its path.
    pub path: String,
    /// The length of the file in bytes.
    pub len: u64,
    /// The newest root that can be relied on; or why there is none.
    pub newest: std::result::Result<ImageRoot, String>,
    /// The last transactions of the older states that it keeps as key frames, in order.
    pub key_frames: Vec<Txid>,
    /// The readers of older roots, oldest first, whose space isn't reused meanwhile.
    pub readers: Vec<OldestReader>,
}

/// A root of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageRoot {
    /// The root's number, which is the number of the backfill that made it.
    pub number: u64,
    /// The last transaction in it.
    pub txid: Txid,
    /// The segment of the journal in which that transaction is.
    pub segment: u64,
    /// The end of that transaction in the segment, in bytes.
    pub position: u64,
    /// When its backfill began.
    pub time: Timestamp,
    /// How many bytes its backfill wrote.
    pub written: u64,
    /// How many bytes the journal has after it, which an opening replays.
    pub tail: u64,
}

/// Facts of the history index, the part of an image that leads to the changes of each row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryInspection {
    /// The last transaction in it; or the reason that it can't be used.
    pub txid: std::result::Result<Txid, String>,
    /// The number of its entries: consecutive rows that were changed at one place of the journal, a comment there, or
    /// a number that describes a part of the journal.
    pub entries: u64,
    /// How many nodes of at most 4 KiB its tree has had.
    pub nodes: u64,
}

/// A reader of an older root of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldestReader {
    /// The process; `None` if the system doesn't report it.
    pub pid: Option<u32>,
    /// The number of the root that it reads.
    pub root: u64,
    /// How long ago, at least, the root was replaced by a newer one; `None` if that isn't known.
    pub age: Option<Duration>,
}
