//! A command of the shell.
//!
//! Invariants
//! 1. A command's form says how its arguments are written, and nothing else does: usage errors and
//!    completion are made from it (see [`form`](super::form)).
//! 2. Each command of the schema language is in the table too; `annals_schema` reads its arguments.

use annals::{Result, Transaction};

use super::screen::Screen;
use super::words::{Usage, Words};
use crate::present::Present;

/// A command of the shell.
#[derive(Debug)]
pub(crate) struct Command {
    /// Its first word.
    pub(crate) name: &'static str,
    /// How its arguments are written.
    pub(crate) form: &'static str,
    /// Its summary, in one line.
    pub(crate) help: &'static str,
    /// Further details, in sentences; may be empty.
    pub(crate) more: &'static str,
    /// Its section in the help.
    pub(crate) kind: Kind,
    /// Its handler.
    pub(crate) run: Run,
}

/// The topic of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Tables, fields and indexes.
    Schema,
    /// Rows, and notes in the journal.
    Data,
    /// Where transactions begin and end.
    Transaction,
    /// The present state, pending changes included.
    Display,
    /// The session itself.
    Other,
}

impl Kind {
    /// All kinds, in the order of the help.
    pub(crate) const ALL: [Self; 5] =
        [Self::Schema, Self::Data, Self::Transaction, Self::Display, Self::Other];

    /// Returns the heading of the kind's commands.
    pub(crate) const fn heading(self) -> &'static str {
        match self {
            Self::Schema => "Schema",
            Self::Data => "Rows and notes",
            Self::Transaction => "Transactions",
            Self::Display => "Display",
            Self::Other => "Other",
        }
    }
}

/// A function that changes rows or notes something.
pub(crate) type Change = fn(&mut Transaction<'_>, &Words<'_>, &mut Screen) -> Result<()>;
/// A function that changes nothing.
pub(crate) type Look = fn(&Present<'_>, &Words<'_>, &mut Screen) -> Result<()>;

/// The handler of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    /// It changes something, in the transaction.
    Change(Change),
    /// It changes nothing.
    Look(Look),
    /// It describes the commands.
    Help,
    /// The session begins a transaction.
    Begin,
    /// The session commits.
    Commit,
    /// The session commits at `soft`.
    SoftCheckpoint,
    /// The session commits durably.
    HardCheckpoint,
    /// The session commits. The command takes no arguments.
    Checkpoint,
    /// The session rolls back.
    Rollback,
    /// The session sets a savepoint.
    Savepoint,
    /// The session returns to a savepoint.
    RollbackTo,
    /// The session forgets a savepoint.
    Release,
    /// The session rolls back, with an error.
    Abort,
    /// The session loads the commits of others.
    Pull,
    /// The session updates the image.
    Backfill,
    /// The session ends.
    Quit,
}

impl Command {
    /// Returns how it is written.
    pub(crate) const fn words(&self) -> Usage {
        Usage { name: self.name, form: self.form }
    }

    /// Returns the whole form: the name, and the arguments if there are any.
    pub(crate) fn usage(&self) -> String {
        self.words().text()
    }
}
