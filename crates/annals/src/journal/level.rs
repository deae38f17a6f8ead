//! Commit levels: how a commit is made, and what it promises.

/// How a commit is made, and what it promises.
///
/// | level | steps | after a process crash | after a power cut |
/// |---|---|---|---|
/// | `Soft` | write | there | a recent state, never before the last hard checkpoint |
/// | `Half` | write, flush, write | there | all before it; it too if the last write got to the disk |
/// | `TwoPhase` | write, flush, write, flush | there | there |
/// | `Checksummed` | write, flush | there | there, proven by checksums |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Handed to the operating system: survives the end of the process, not a power cut. After a
    /// power cut the database is at a recent consistent state, never before the last durable one.
    /// (joedb's soft checkpoint; WAL mode of SQLite with `synchronous=NORMAL`.)
    Soft,
    /// Written with the first copy of a slot; flushed; then the second copy. After a power cut all
    /// commits before it are there, and this one if the second copy got to the disk. It costs what
    /// [`Checksummed`](Self::Checksummed) costs, and a small write. (joedb's `half_commit`.)
    Half,
    /// As [`Half`](Self::Half), with a second flush, so that it is on permanent storage when it is
    /// acknowledged. It doesn't rely on checksums to tell a whole commit from a torn one. (joedb's
    /// `full_commit`, redb's 2-phase commit.)
    TwoPhase,
    /// On permanent storage when acknowledged, and proven there by checksums: one write, one flush.
    /// (The idea of redb's 1PC+C.)
    Checksummed,
}

impl Level {
    /// All levels, from what promises least.
    pub const ALL: [Self; 4] = [Self::Soft, Self::Half, Self::TwoPhase, Self::Checksummed];

    /// Gives the level's name, as the shell and the log write it.
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

    /// Tells whether an acknowledged commit survives a power cut.
    #[must_use]
    pub const fn is_durable(self) -> bool {
        matches!(self, Self::TwoPhase | Self::Checksummed)
    }

    /// Tells whether its steps flush the journal, so that all commits before it are durable.
    #[must_use]
    pub const fn flushes(self) -> bool {
        !matches!(self, Self::Soft)
    }

    /// Tells whether a commit frame that verifies is enough for the commit to count. Otherwise it has
    /// to be known that the frame was flushed, or a commit that counts rests on it.
    pub(crate) const fn counts_alone(self) -> bool {
        matches!(self, Self::Soft | Self::Checksummed)
    }

    /// Gives the code in frames.
    pub(crate) const fn code(self) -> u8 {
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
