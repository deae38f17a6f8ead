//! The table of all commands of the shell: what an entry is, and finding one. The entries are in
//! [`commands`](super::commands).
//!
//! Invariants
//! 1. A command's form says how its arguments are written, and nothing else does: usage errors and
//!    completion are made from it (see [`form`](super::form)).
//! 2. Each command of the schema language stands here too; `annals_schema` reads its arguments.

use annals::{Error, Result, Schema, Transaction};
use annals_schema::Token;

pub(crate) use super::commands::COMMANDS;
use super::schema;
use super::screen::Screen;
use super::words::Words;
use crate::present::Present;

/// A command of the shell.
#[derive(Debug)]
pub(crate) struct Command {
    /// Its first word.
    pub(crate) name: &'static str,
    /// How its arguments are written.
    pub(crate) form: &'static str,
    /// What it does, in one line.
    pub(crate) help: &'static str,
    /// What else there is to know, in sentences; may be empty.
    pub(crate) more: &'static str,
    /// Where it stands in the help.
    pub(crate) kind: Kind,
    /// What runs it.
    pub(crate) run: Run,
}

/// What a command is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Tables, fields and indexes.
    Schema,
    /// Rows, and notes in the journal.
    Data,
    /// Where transactions begin and end.
    Transaction,
    /// What there is, pending changes included.
    Display,
    /// The session itself.
    Other,
}

impl Kind {
    /// All kinds, in the order of the help.
    pub(crate) const ALL: [Self; 5] =
        [Self::Schema, Self::Data, Self::Transaction, Self::Display, Self::Other];

    /// Gives the heading of the kind's commands.
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

/// What runs a command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    /// It changes something, in the transaction.
    Change(Change),
    /// It changes nothing.
    Look(Look),
    /// The session begins a transaction.
    Begin,
    /// The session commits.
    Commit,
    /// The session commits at `soft`.
    SoftCheckpoint,
    /// The session commits durably.
    HardCheckpoint,
    /// The session commits; it takes no arguments.
    Checkpoint,
    /// The session rolls back.
    Rollback,
    /// The session rolls back, with an error.
    Abort,
    /// The session brings in what others committed.
    Pull,
    /// The session brings the image forward.
    Backfill,
    /// The session ends.
    Quit,
}

/// Finds a command by its name.
pub(crate) fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// What runs a command of the schema language that has no line in the table.
static UNLISTED: Command = Command {
    name: "",
    form: "",
    help: "",
    more: "",
    kind: Kind::Schema,
    run: Run::Change(schema::change),
};

/// Finds the command that a line's first word names.
pub(crate) fn command_of(tokens: &[Token<'_>]) -> Result<&'static Command> {
    let name = match tokens.first() {
        Some(first) if !first.quoted => &first.text,
        first => return Err(unknown(first.map_or("", |first| &first.text))),
    };
    if let Some(command) = find(name) {
        return Ok(command);
    }
    // Whatever the language knows can be run, even where its line in the table is missing.
    match annals_schema::parse_command(&Schema::default(), tokens) {
        Ok(None) => Err(unknown(name)),
        Ok(Some(_)) | Err(_) => Ok(&UNLISTED),
    }
}

/// Says that there is no such command, and which was meant or how to see all.
pub(crate) fn unknown(name: &str) -> Error {
    let names = COMMANDS.iter().map(|command| command.name);
    let hint = match annals_schema::nearest(name, names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`help` lists the commands".to_owned(),
    };
    Error::invalid(format!("unknown command {:?}; {hint}", annals_schema::shorten(name)))
}

impl Command {
    /// Gives the whole form: the name, and the arguments if there are any.
    pub(crate) fn usage(&self) -> String {
        format!("{} {}", self.name, self.form).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_there_once_and_helps_fit_on_a_line() {
        for (place, command) in COMMANDS.iter().enumerate() {
            assert!(std::ptr::eq(find(command.name).unwrap(), command), "{}", command.name);
            assert!(!command.help.is_empty() && command.help.len() <= 49, "{}", command.name);
            let kind = Kind::ALL.iter().position(|&kind| kind == command.kind);
            let before = COMMANDS.get(place.wrapping_sub(1)).unwrap_or(command);
            let kind_before = Kind::ALL.iter().position(|&kind| kind == before.kind);
            assert!(kind_before <= kind, "{} is not among its kind", command.name);
        }
    }

    #[test]
    fn the_table_has_the_commands_of_the_schema_language_and_no_others() {
        for name in annals_schema::COMMANDS {
            let kind = find(name).map(|command| command.kind);
            assert_eq!(kind, Some(Kind::Schema), "the table lacks {name}");
        }

        let commands = COMMANDS.iter().filter(|command| command.kind == Kind::Schema);
        for command in commands.filter(|command| command.name != "namespace") {
            let tokens = annals_schema::tokenize(command.name).unwrap();
            let parsed = annals_schema::parse_command(&annals::Schema::default(), &tokens);
            assert!(parsed.is_err(), "{}: nothing asks for its arguments", command.name);
        }
    }

    #[test]
    fn a_slip_is_told_from_a_word_that_is_none() {
        let message = unknown("isnert").to_string();
        assert_eq!(message, "unknown command \"isnert\"; did you mean `insert`?");
        assert!(unknown("frobnicate").to_string().ends_with("`help` lists the commands"));
    }
}
