//! What a process does before it is killed.

use std::path::Path;

use super::step;
use crate::engine::Failure;
use crate::peers;

/// The changes of a process that is killed after its last acknowledged commit.
pub(super) struct Session {
    kind: Kind,
    /// Rows when the first session began.
    rows: u64,
    changes: u64,
    /// How many turns began.
    turn: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Append,
    Update,
}

/// Sessions of an engine in a turn.
const A_TURN: u32 = 2;

impl Session {
    /// A process that appends rows to a table of so many.
    pub(super) const fn append(rows: u64, changes: u64) -> Self {
        Self { kind: Kind::Append, rows, changes, turn: 0 }
    }

    /// A process that updates random ones of so many rows.
    pub(super) const fn update(rows: u64, changes: u64) -> Self {
        Self { kind: Kind::Update, rows, changes, turn: 0 }
    }

    /// Begins the next turn.
    pub(super) const fn next(&mut self) {
        self.turn += 1;
    }

    /// Gives what the openings after it are called, by the index and by id.
    pub(super) const fn workloads(&self) -> [&'static str; 2] {
        match self.kind {
            Kind::Append => ["killed, rows appended, by the index", "killed, rows appended, by id"],
            Kind::Update => ["killed, rows updated, by the index", "killed, rows updated, by id"],
        }
    }

    /// Gives how many random updates it makes, if that is what it does.
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub(super) fn replayed(&self) -> Option<f64> {
        (self.kind == Kind::Update).then_some(self.changes as f64)
    }

    /// Runs the session of this place in the turn, in a process that is killed at its end. Gives a row
    /// that the last commit changed, with its value.
    pub(super) fn run(&self, own: (&str, &Path), place: usize) -> Result<(u64, i64), Failure> {
        let number = (self.turn - 1) * A_TURN + u32::try_from(place)?;
        let (deed, first) = match self.kind {
            Kind::Append => ("append", self.rows + u64::from(number) * self.changes),
            Kind::Update => ("update", self.rows),
        };
        let version = number + 1;
        let arguments = [first.to_string(), self.changes.to_string(), version.to_string()];
        let last = step::run_and_kill(own, deed, &arguments)?.parse()?;
        let version = if self.kind == Kind::Append { 0 } else { version };
        Ok((last, peers::value(last, version)))
    }
}
