//! Plain facts of the files of a journal, for people.

use std::ops::Deref;
use std::time::Duration;

use annals_schema::{Timestamp, Txid};

use crate::db::follow::source::is_damaged;
use crate::journal::format::Slot;
use crate::journal::{Point, SegmentFacts, Survey};
use crate::storage;

/// What a journal file has, and the image beside it. The findings in the file itself are those of the [`Survey`].
#[derive(Clone, Debug)]
pub struct Inspection {
    survey: Survey,
    /// The image beside it; `None` if there is none, or if it wasn't examined.
    pub image: Option<ImageInspection>,
    /// The history index in the image; `None` if there is none, or if it wasn't examined.
    pub history: Option<HistoryInspection>,
    /// The damage, if there is any: something was durable and doesn't verify any more.
    pub damage: Option<String>,
}

impl Deref for Inspection {
    type Target = Survey;

    fn deref(&self) -> &Survey {
        &self.survey
    }
}

impl Inspection {
    /// Describes a journal, without the files beside it.
    pub(in crate::db) fn of(survey: Survey, shown: &str) -> Self {
        let damage = is_damaged(&survey).then(|| survey.damage(shown).to_string());
        Self { survey, image: None, history: None, damage }
    }

    /// Returns the process that has it open for writing, as the live block says.
    #[must_use]
    pub fn holder(&self) -> Option<u32> {
        self.head.live.map(|live| live.pid).filter(|&pid| pid != 0)
    }

    /// True if a process of that number exists on this machine (always true if unknown).
    #[must_use]
    pub fn holder_lives(&self) -> bool {
        self.holder().is_some_and(storage::is_alive)
    }

    /// Returns how many copies of the header are damaged, of 3.
    #[must_use]
    pub fn damaged_headers(&self) -> usize {
        self.head.damaged_headers.iter().filter(|&&damaged| damaged).count()
    }

    /// Returns the end of a frame with a wrong stored chain, if all else confirms the right one. Opening the file for
    /// writing repairs it.
    #[must_use]
    pub fn wrong_chain(&self) -> Option<u64> {
        self.wrong_chains.first().map(|point| point.position)
    }

    /// True if anything would be cut off if the file were opened for writing.
    #[must_use]
    pub fn has_tail(&self) -> bool {
        self.may_hold_a_commit() || self.uncommitted_frames > 0
    }

    /// True if a copy of the header or of a slot doesn't verify, the copies of a slot differ, or a stored chain is
    /// wrong. Nothing is lost by that, and opening the file for writing repairs it.
    #[must_use]
    pub fn has_damaged_copy(&self) -> bool {
        let differs = |[first, second]: &[Option<Slot>; 2]| first.is_none() || first != second;
        self.damaged_headers() > 0
            || !self.wrong_chains.is_empty()
            || self.head.slots.iter().any(differs)
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
