//! Commit levels: the steps of a commit, and its guarantees.

/// The steps of a commit, and its guarantees.
///
/// | level | steps | after a process crash | after a power cut |
/// |---|---|---|---|
/// | `Soft` | write | there | a recent state, never before the last hard checkpoint |
/// | `Checksummed` | write, flush | there | there |
///
/// A commit is valid when its chain verifies, whatever its level. Few programs need the two others, which are in
/// `annals::advanced`: they also write a slot, so that damage to the commit is an error later, and is never taken for
/// the end of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Handed to the operating system: survives the end of the process, not a power cut. After a
    /// power cut the database is at a recent consistent state, never before the last durable one.
    /// (joedb's soft checkpoint; WAL mode of SQLite with `synchronous=NORMAL`.)
    Soft,
    #[doc(hidden)]
    /// [`Checksummed`](Self::Checksummed) with a slot that records the commit, written after the flush. It costs one
    /// small write more. (joedb's `half_commit`.)
    Half,
    #[doc(hidden)]
    /// [`Half`](Self::Half) with a second flush: so it is known to have been durable as long as one
    /// copy of a slot can be read. (joedb's `full_commit`, redb's 2-phase commit.)
    TwoPhase,
    /// On permanent storage when acknowledged, and proven there by checksums: one write, one flush.
    /// (The idea of redb's 1PC+C.)
    Checksummed,
}

impl Level {
    /// All levels, from the weakest guarantee.
    pub const ALL: [Self; 4] = [Self::Soft, Self::Half, Self::TwoPhase, Self::Checksummed];

    /// Returns the level's name, as the shell and the log write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Soft => "soft",
            Self::Half => "half",
            Self::TwoPhase => "two_phase",
            Self::Checksummed => "checksummed",
        }
    }

    /// Finds a level by its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    /// True if an acknowledged commit survives a power cut.
    #[must_use]
    pub const fn is_durable(self) -> bool {
        !matches!(self, Self::Soft)
    }

    /// True if its steps flush the journal, so that all commits before it are durable.
    #[must_use]
    pub const fn flushes(self) -> bool {
        !matches!(self, Self::Soft)
    }

    /// Returns the code in frames.
    #[doc(hidden)]
    #[inline]
    pub const fn code(self) -> u8 {
        match self {
            Self::Soft => 0,
            Self::Half => 1,
            Self::TwoPhase => 2,
            Self::Checksummed => 3,
        }
    }

    pub(crate) fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.code() == code)
    }
}
