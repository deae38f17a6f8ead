//! The result for each transaction of a salvaged journal.

use annals::{Timestamp, Txid};

/// The report of a salvage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// How many transactions the new journal has.
    pub transactions: u64,
    /// The results for the old journal's transactions, in order, in runs of txids.
    pub runs: Vec<Run>,
    /// The files that were read, the oldest segment first.
    pub segments: Vec<SalvagedSegment>,
    /// The numbers of segments of which there is no file.
    pub missing: Vec<u64>,
    /// Files that have the name of a segment of this journal and belong to another one. These files weren't read.
    pub strangers: Vec<String>,
    /// The file at the path, if it wasn't read: it is older than a kept segment of the same number.
    pub replaced: Option<String>,
    /// Bytes that are no frame that verifies.
    pub skipped: Vec<Gap>,
    /// States that were taken from elsewhere, since transactions before them are lost.
    pub restored: Vec<Restored>,
    /// Why a state that might have been taken wasn't.
    pub unusable: Vec<String>,
    /// The time of the last transaction of the new journal.
    pub last_time: Option<Timestamp>,
}

/// A file that was salvaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SalvagedSegment {
    /// The number of the segment.
    pub number: u64,
    /// The path of the file.
    pub file: String,
    /// How many copies of the header verified, of 3; without any of them, the frames are the only evidence.
    pub headers: usize,
    /// How many of the two slots verified. Without any of them in the last segment, the end of the journal is
    /// unknown, so its last transactions may be missing without a trace.
    pub slots: usize,
}

/// Bytes that are no frame that verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The segment that they are in.
    pub segment: u64,
    /// Where they begin.
    pub position: u64,
    /// How many there are.
    pub bytes: u64,
}

/// A state that was taken from elsewhere than the journal's transactions, by one transaction of the new journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// The old journal's transaction after which the state was so.
    pub txid: Txid,
    /// Where it was taken from: the path of an image, or of a segment that begins with it.
    pub from: String,
    /// How many commands of the schema were applied.
    pub commands: u64,
    /// How many rows were inserted.
    pub inserted: u64,
    /// How many rows were updated.
    pub updated: u64,
    /// How many rows were deleted.
    pub deleted: u64,
    /// How many blobs were copied.
    pub blobs: u64,
    /// How many values are null, or an empty blob, since the bytes of their blob are lost.
    pub lost_blobs: u64,
}

impl Restored {
    /// True if it already had the state.
    pub(super) const fn is_nothing(&self) -> bool {
        self.commands + self.inserted + self.updated + self.deleted + self.blobs == 0
    }
}

/// Consecutive transactions with the same result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The txid of the first.
    pub first: u64,
    /// The txid of the last.
    pub last: u64,
    /// The segment that they are in, or would be.
    pub segment: u64,
    /// Where the frames begin, if any of them verifies.
    pub position: Option<u64>,
    /// The result for them.
    pub fate: Fate,
}

/// The result for a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// It is in the new journal, unchanged.
    Kept,
    /// Its frames don't verify, or aren't there.
    Lost,
    /// Some of its frames verify, and others don't, or may be missing.
    Incomplete,
    /// Its frames verify, but nothing proves that they are of this history: something before them doesn't verify, and
    /// the chain links them to nothing that is known.
    Unproven,
    /// Its frames verify, but rows that it changes are missing because of the loss.
    Unfit(String),
}

impl Salvaged {
    /// True if everything was kept that the old journal is known to have had.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        // Without any transaction only a whole head proves that there was none.
        let has_end = |last: &SalvagedSegment| match self.runs.is_empty() {
            true => (last.headers, last.slots) == (3, 2),
            false => last.slots > 0,
        };
        self.segments.last().is_some_and(has_end)
            && self.missing.is_empty()
            && self.replaced.is_none()
            && self.skipped.is_empty()
            && self.runs.iter().all(|run| run.fate == Fate::Kept)
    }

    /// Returns how many transactions shared a fate.
    #[must_use]
    pub fn count(&self, which: impl Fn(&Fate) -> bool) -> u64 {
        let chosen = self.runs.iter().filter(|run| which(&run.fate));
        chosen.map(|run| run.last.saturating_sub(run.first).saturating_add(1)).sum()
    }

    /// Adds a run to the one before it, if they share a fate.
    pub(super) fn note_run(&mut self, run: Run) {
        match self.runs.last_mut() {
            Some(last)
                if last.last.checked_add(1) == Some(run.first)
                    && (last.segment, &last.fate) == (run.segment, &run.fate) =>
            {
                last.last = run.last;
            }
            _ => self.runs.push(run),
        }
    }
}
