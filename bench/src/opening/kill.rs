//! The work of a process before it is killed.

use std::path::Path;
use std::time::Duration;

use super::step;
use crate::engines::{self, Failure};

/// The changes of a process that is killed after its last acknowledged commit.
pub(super) struct Session {
    kind: Kind,
    /// Rows when the first session began.
    rows: u64,
    changes: u64,
    /// How many sessions there were before the first turn.
    before: u32,
    /// How many turns began.
    turn: u32,
    /// How long the process does nothing before it is killed.
    idle: Duration,
}

/// The measurements of a session.
pub(super) struct Workloads {
    /// The openings after it: one for each time that it runs in a turn.
    pub(super) openings: &'static [(First, &'static str)],
    /// The part of the journal after the image then.
    pub(super) tail: &'static str,
}

/// The first read after an opening.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    /// Any row, by the index.
    ByIndex,
    /// Any row, by its id.
    ById,
    /// A row that the last commit changed, by the index.
    OfTheTail,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Append,
    Update,
}

/// Longer than any engine waits before it does something in the background.
const A_WHILE: Duration = Duration::from_secs(1);

impl Session {
    /// A process that appends rows to a table of a given size.
    pub(super) const fn append(rows: u64, changes: u64) -> Self {
        Self { kind: Kind::Append, rows, changes, before: 0, turn: 0, idle: Duration::ZERO }
    }

    /// A process that updates random rows of a table of a given size.
    pub(super) const fn update(rows: u64, changes: u64) -> Self {
        Self { kind: Kind::Update, rows, changes, before: 0, turn: 0, idle: Duration::ZERO }
    }

    /// A process that does the same after all turns of this session, and then nothing for a while.
    pub(super) const fn then_idle(&self) -> Self {
        let before = self.before + self.turn * self.a_turn();
        Self { before, turn: 0, idle: A_WHILE, ..*self }
    }

    /// Returns how many sessions an engine has in a turn: one for each opening after it.
    const fn a_turn(&self) -> u32 {
        match (self.kind, self.idle.is_zero()) {
            (Kind::Append, true) => 3,
            (Kind::Update, true) => 2,
            (_, false) => 1,
        }
    }

    /// Begins the next turn.
    pub(super) const fn next(&mut self) {
        self.turn += 1;
    }

    /// Returns what is measured of it.
    pub(super) const fn workloads(&self) -> Workloads {
        let (openings, tail): (&[_], _) = match (self.kind, self.idle.is_zero()) {
            (Kind::Append, true) => (
                &[
                    (First::ByIndex, "killed, rows appended, by the index"),
                    (First::ById, "killed, rows appended, by id"),
                    (First::OfTheTail, "killed, rows appended, one of them by the index"),
                ],
                "tail after rows were appended",
            ),
            (Kind::Update, true) => (
                &[
                    (First::ByIndex, "killed, rows updated, by the index"),
                    (First::ById, "killed, rows updated, by id"),
                ],
                "tail after rows were updated",
            ),
            (Kind::Append, false) => (
                &[(First::ByIndex, "killed when idle for 1 s, rows appended, by the index")],
                "tail 1 s after rows were appended",
            ),
            (Kind::Update, false) => (
                &[(First::ByIndex, "killed when idle for 1 s, rows updated, by the index")],
                "tail 1 s after rows were updated",
            ),
        };
        Workloads { openings, tail }
    }

    /// Returns the number of random updates, if it makes nothing else.
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub(super) fn replayed(&self) -> Option<f64> {
        (self.kind == Kind::Update && self.idle.is_zero()).then_some(self.changes as f64)
    }

    /// Runs the session of this place in the turn, in a process that is killed at its end. Returns a row that the
    /// last commit changed, with its value.
    pub(super) fn run(&self, own: (&str, &Path), place: usize) -> Result<(u64, i64), Failure> {
        let number = self.before + (self.turn - 1) * self.a_turn() + u32::try_from(place)?;
        let (deed, first) = match self.kind {
            Kind::Append => ("append", self.rows + u64::from(number) * self.changes),
            Kind::Update => ("update", self.rows),
        };
        let version = number + 1;
        let idle = self.idle.as_millis();
        let arguments =
            [first.to_string(), self.changes.to_string(), version.to_string(), idle.to_string()];
        let last = step::run_and_kill(own, deed, &arguments)?.parse()?;
        let version = if self.kind == Kind::Append { 0 } else { version };
        Ok((last, engines::value(last, version)))
    }
}
