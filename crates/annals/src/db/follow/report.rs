//! The modes and the report of a backfill.

use annals_schema::Txid;
use std::ops::ControlFlow;
use std::time::Duration;

use crate::db::present::outcome::Restarted;

/// How much a backfill does, and what it waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BackfillMode {
    /// Never waits: updates the image to the newest commit.
    #[default]
    Passive,
    /// Waits for the transaction that is open: afterwards the image has the end of the journal.
    Full,
    /// As full; then waits for the readers of older roots and continues the journal in a new segment. The old one is
    /// sealed and kept as history. See [`Database::backfill_with`](crate::Database::backfill_with).
    Restart,
    /// As restart. Then it truncates the unused end of the image, or replaces it by a copy without gaps if more than
    /// half of it is free. It removes older segments if, and only if, the caller allows forgetting history.
    Truncate,
}

impl BackfillMode {
    /// All modes, each waiting for more than the one before.
    pub const ALL: [Self; 4] = [Self::Passive, Self::Full, Self::Restart, Self::Truncate];

    /// True if the journal continues in a new segment afterwards.
    #[must_use]
    pub const fn restarts(self) -> bool {
        matches!(self, Self::Restart | Self::Truncate)
    }

    /// Returns the mode's name, as the program `annals` knows it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passive => "passive",
            Self::Full => "full",
            Self::Restart => "restart",
            Self::Truncate => "truncate",
        }
    }

    /// Finds a mode by its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// The progress of a backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackfillProgress {
    /// How many pages and long values have been written.
    pub done: u64,
    /// How many there will be; 0 as long as that isn't known.
    pub total: u64,
    /// How many bytes have been written, with those of the image's directory.
    pub bytes: u64,
}

/// The callback, which answers whether to continue.
pub(in crate::db) type Watching<'w> = &'w mut dyn FnMut(BackfillProgress) -> ControlFlow<()>;

/// The outcome of a backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BackfillOutcome {
    /// The image has a new root.
    Advanced,
    /// The image had the newest commit already.
    UpToDate,
    /// The open transaction began before the last backfill ended, and must end first; in shared mode another process
    /// is writing, or updating the image, at this moment. Only [`BackfillMode::Passive`] answers so.
    Postponed,
}

/// The report of a backfill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backfilled {
    /// The requested mode.
    pub mode: BackfillMode,
    /// Its outcome.
    pub outcome: BackfillOutcome,
    /// The last transaction that the image has now.
    pub txid: Txid,
    /// The segment of the journal in which that transaction is.
    pub segment: u64,
    /// The end of that transaction in the segment, in bytes.
    pub position: u64,
    /// The bytes of the journal by which the image advanced.
    pub journal_bytes: u64,
    /// How many pages and long values were written.
    pub pages: u64,
    /// How many of those were taken from memory as they are.
    pub from_memory: u64,
    /// How many of those were copied first, because something may still be appended to them.
    pub copied: u64,
    /// How many nodes of the image's directory were written, its catalog among them.
    pub nodes: u64,
    /// How many bytes of all these there were.
    pub bytes: u64,
    /// How many writes they were joined into.
    pub runs: u64,
    /// The length of the image afterwards, in bytes.
    pub image_bytes: u64,
    /// The reader of the oldest root other than the newest, if there is one: space that only that root reaches isn't
    /// reused before it ends.
    pub oldest_reader: Option<OldestReader>,
    /// How the journal was restarted, in the modes that do so.
    pub restarted: Option<Restarted>,
    /// How long each phase took; a restart in between isn't among them.
    pub phases: BackfillPhases,
}

/// How long each phase of a backfill took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackfillPhases {
    /// Waiting for the backfill before, and for the transaction that is open where the mode does.
    pub wait: Duration,
    /// Making the journal hard up to the bound.
    pub harden: Duration,
    /// Finding free space, if unknown; finding changed pages; checksums. Completed pages are written meanwhile.
    pub collect: Duration,
    /// Waiting for writes to the image.
    pub write: Duration,
    /// Publishing the root: a flush.
    pub publish: Duration,
    /// Letting the store continue from the new root, while no transaction can begin; nothing if one had to do
    /// that itself.
    pub install: Duration,
    /// Freeing replaced memory of the store, while transactions continue; after many writes, also waiting a moment
    /// for a transaction that has to continue from the new root before.
    pub free: Duration,
}

impl BackfillPhases {
    /// Returns the sum.
    #[must_use]
    pub fn total(&self) -> Duration {
        let written = self.wait + self.harden + self.collect + self.write + self.publish;
        written + self.install + self.free
    }
}

/// What a backfill that restarts the journal waits for, and what it may forget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restarting {
    /// How long it waits at most for each: the writer, other backfills, readers of older roots.
    pub timeout: Duration,
    /// True if the history before may be removed; only with [`BackfillMode::Truncate`].
    pub forget_history: bool,
}

impl Default for Restarting {
    /// Waits for 10 s, and keeps the history.
    fn default() -> Self {
        Self { timeout: Duration::from_secs(10), forget_history: false }
    }
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
