//! The table of all commands of the shell.
//!
//! Invariants
//! 1. A command's form says how its arguments are written, and nothing else does: usage errors and
//!    completion are made from it (see [`form`](super::form)).
//! 2. Each command of the schema language stands here too; `annals_schema` reads its arguments.

use annals::{Error, Result, Schema, Transaction, View};
use annals_schema::Token;

use super::screen::Screen;
use super::words::Words;
use super::{display, help, rows, schema};

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
pub(crate) type Look = fn(&View, &Words<'_>, &mut Screen) -> Result<()>;

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
    /// The session rolls back.
    Rollback,
    /// The session ends.
    Quit,
}

/// All commands, in the order of the help.
pub(crate) static COMMANDS: [Command; 26] = [
    Command {
        name: "create_table",
        form: "NAME",
        help: "makes a table",
        more: "",
        kind: Kind::Schema,
        run: Run::Change(schema::change),
    },
    Command {
        name: "add_field",
        form: "T NAME TYPE [null] [default VALUE]",
        help: "adds a field; rows that are there get the default",
        more: "The types are bool, int8 to int64, uint8 to uint64, float32, float64, string, bytes, \
               timestamp, and `references T`. A field with `null` may be null; references always may.",
        kind: Kind::Schema,
        run: Run::Change(schema::change),
    },
    Command {
        name: "create_index",
        form: "NAME T FIELD[,FIELD..]",
        help: "makes an index",
        more: "",
        kind: Kind::Schema,
        run: Run::Change(schema::change),
    },
    Command {
        name: "create_unique_index",
        form: "NAME T FIELD[,FIELD..]",
        help: "makes an index whose keys are there once",
        more: "A key that contains null is never equal to another.",
        kind: Kind::Schema,
        run: Run::Change(schema::change),
    },
    Command {
        name: "namespace",
        form: "NAME",
        help: "does nothing here: it is for generated code",
        more: "",
        kind: Kind::Schema,
        run: Run::Look(schema::namespace),
    },
    Command {
        name: "insert",
        form: "T VALUE..",
        help: "inserts a row with the next id",
        more: "There is a value for each field, in the order of the schema. The next id is larger than any \
               that the table ever used.",
        kind: Kind::Data,
        run: Run::Change(rows::insert),
    },
    Command {
        name: "insert_at",
        form: "T ID VALUE..",
        help: "inserts a row at any free id",
        more: "There is a value for each field, in the order of the schema.",
        kind: Kind::Data,
        run: Run::Change(rows::insert_at),
    },
    Command {
        name: "insert_into",
        form: "T ID",
        help: "inserts a row of zero values",
        more: "The id is any that is free. Fields that may be null are null, others 0, false or empty; \
               defaults are for insert.",
        kind: Kind::Data,
        run: Run::Change(rows::insert_into),
    },
    Command {
        name: "update",
        form: "T ID FIELD VALUE",
        help: "sets a field of a row",
        more: "Unique indexes are checked at the commit, so that two rows can swap their values.",
        kind: Kind::Data,
        run: Run::Change(rows::update),
    },
    Command {
        name: "delete_from",
        form: "T ID",
        help: "deletes a row",
        more: "",
        kind: Kind::Data,
        run: Run::Change(rows::delete_from),
    },
    Command {
        name: "comment",
        form: "\"TEXT\"",
        help: "notes a text in the journal",
        more: "",
        kind: Kind::Data,
        run: Run::Change(rows::comment),
    },
    Command {
        name: "timestamp",
        form: "[SECONDS]",
        help: "notes a time since 1970; now, if left out",
        more: "",
        kind: Kind::Data,
        run: Run::Change(rows::timestamp),
    },
    Command {
        name: "begin",
        form: "",
        help: "begins a transaction",
        more: "What has changed since the last commit is part of it.",
        kind: Kind::Transaction,
        run: Run::Begin,
    },
    Command {
        name: "commit",
        form: "[soft|checksummed] [at TIME]",
        help: "commits what is pending",
        more: "`at` gives the commit a time of your own, such as 2021-11-02T22:10:25Z, instead of the \
               clock's. `soft` survives the end of the process, `checksummed` a power cut.",
        kind: Kind::Transaction,
        run: Run::Commit,
    },
    Command {
        name: "rollback",
        form: "",
        help: "drops what is pending",
        more: "",
        kind: Kind::Transaction,
        run: Run::Rollback,
    },
    Command {
        name: "soft_checkpoint",
        form: "",
        help: "commits what is pending at soft",
        more: "",
        kind: Kind::Transaction,
        run: Run::SoftCheckpoint,
    },
    Command {
        name: "hard_checkpoint",
        form: "",
        help: "commits, and makes all so far durable",
        more: "",
        kind: Kind::Transaction,
        run: Run::HardCheckpoint,
    },
    Command {
        name: "table",
        form: "T [MAX_COLUMN_WIDTH] [START] [COUNT]",
        help: "shows rows",
        more: "Shows COUNT rows behind the first START. On a terminal it shows 50 rows if COUNT is left \
               out, and makes them fit. Texts are cut at MAX_COLUMN_WIDTH; 0 is no limit. A text stands \
               in quotes where it could be taken for something else: \"\" is empty, null is null.",
        kind: Kind::Display,
        run: Run::Look(display::table),
    },
    Command {
        name: "record",
        form: "T ID",
        help: "shows one row, a field a line",
        more: "",
        kind: Kind::Display,
        run: Run::Look(display::record),
    },
    Command {
        name: "schema",
        form: "",
        help: "shows tables, fields, indexes, row counts",
        more: "",
        kind: Kind::Display,
        run: Run::Look(display::schema),
    },
    Command {
        name: "dump",
        form: "",
        help: "prints everything as a script",
        more: "As `annals dump` does, pending changes included.",
        kind: Kind::Display,
        run: Run::Look(display::dump),
    },
    Command {
        name: "sql",
        form: "",
        help: "prints everything as SQL, for SQLite",
        more: "As `annals dump --format sql` does, pending changes included.",
        kind: Kind::Display,
        run: Run::Look(display::sql),
    },
    Command {
        name: "json",
        form: "",
        help: "prints everything as JSON",
        more: "As `annals dump --format json` does, pending changes included.",
        kind: Kind::Display,
        run: Run::Look(display::json),
    },
    Command {
        name: "help",
        form: "[COMMAND]",
        help: "shows the commands, or tells of one",
        more: "",
        kind: Kind::Other,
        run: Run::Look(help::help),
    },
    Command {
        name: "quit",
        form: "",
        help: "ends the session",
        more: "A script that quits commits what is pending, as its end does. At a terminal you are \
               asked.",
        kind: Kind::Other,
        run: Run::Quit,
    },
    Command {
        name: "exit",
        form: "",
        help: "the same as quit",
        more: "",
        kind: Kind::Other,
        run: Run::Quit,
    },
];

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

/// Says that there is no such command, and which was meant or which there are.
pub(crate) fn unknown(name: &str) -> Error {
    let names = COMMANDS.iter().map(|command| command.name);
    let hint = match annals_schema::nearest(name, names.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the commands are: {}", names.collect::<Vec<_>>().join(", ")),
    };
    Error::invalid(format!("unknown command {name:?}; {hint}"))
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
        assert!(unknown("frobnicate").to_string().contains("the commands are: create_table, "));
    }
}
