//! What became of the transactions of a journal that was salvaged.

use annals_schema::Timestamp;

use crate::journal::Skipped;

/// What became of a journal that was salvaged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// How many transactions the new journal has.
    pub transactions: u64,
    /// What became of the old one's transactions, in order, in runs of txids.
    pub runs: Vec<Run>,
    /// Bytes that are no frame that verifies.
    pub skipped: Vec<Skipped>,
    /// How many copies of the header verified, of 3; with none of them everything stands on the frames
    /// alone.
    pub headers: usize,
    /// How many of the two slots verified; with none of them nothing tells how far the journal went, so
    /// that its last transactions may be missing without a trace.
    pub slots: usize,
    /// The time of the last transaction of the new journal.
    pub last_time: Option<Timestamp>,
}

/// Transactions one after another that shared a fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The txid of the first.
    pub first: u64,
    /// The txid of the last.
    pub last: u64,
    /// Where the frames begin, if any of them verifies.
    pub position: Option<u64>,
    /// What became of them.
    pub fate: Fate,
}

/// What becomes of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// It is in the new journal, as it was.
    Kept,
    /// Its frames don't verify, or aren't there.
    Lost,
    /// Some of its frames verify, and others don't, or may be missing.
    Incomplete,
    /// Its frames verify, but what it changes isn't there without what was lost.
    Unfit(String),
}

impl Salvaged {
    /// Tells whether everything was kept that the old journal is known to have had.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.slots > 0
            && self.skipped.is_empty()
            && self.runs.iter().all(|run| run.fate == Fate::Kept)
    }

    /// Gives how many transactions shared a fate.
    #[must_use]
    pub fn count(&self, which: impl Fn(&Fate) -> bool) -> u64 {
        let chosen = self.runs.iter().filter(|run| which(&run.fate));
        chosen.map(|run| run.last.saturating_sub(run.first).saturating_add(1)).sum()
    }

    pub(super) fn note(&mut self, txid: u64, position: Option<u64>, fate: Fate) {
        self.note_run(Run { first: txid, last: txid, position, fate });
    }

    /// Adds a run to the one before it, if they share a fate.
    pub(super) fn note_run(&mut self, run: Run) {
        match self.runs.last_mut() {
            Some(last) if last.last.checked_add(1) == Some(run.first) && last.fate == run.fate => {
                last.last = run.last;
            }
            _ => self.runs.push(run),
        }
    }
}
