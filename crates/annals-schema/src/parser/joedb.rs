//! The commands in joedb's files that aren't about the schema.
//!
//! joedb's compiler runs a script and keeps its effect on the schema; rows, comments and the like
//! are dropped. Its options file also steers how C++ is written. So that such files compile
//! unchanged, a closed list of these commands is taken, and does nothing.

use super::expect::Line;
use super::scope::{Mistake, Scope};
use super::tables::boolean;
use crate::{Diagnostic, Token};

/// The meaning of a command of joedb here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It steers how C++ is generated, or how a terminal looks: nothing to say.
    Silent,
    /// It changes rows, or writes to the journal: the reader of the schema gets a note.
    Data,
}

/// Commands of joedb's scripts that change rows, or write to the journal.
const DATA: [&str; 14] = [
    "insert_into",
    "insert_vector",
    "update",
    "update_vector",
    "delete_from",
    "delete_vector",
    "write_blob",
    "comment",
    "timestamp",
    "valid_data",
    "flush",
    "checkpoint",
    "soft_checkpoint",
    "hard_checkpoint",
];

/// Commands of Annals' own shell, which are no part of any schema file.
const SHELL: [&str; 5] = ["insert", "insert_at", "begin", "commit", "rollback"];

/// Takes a line that is joedb's and no schema; `None` if it isn't.
pub(super) fn take(scope: &Scope<'_>, tokens: &[Token<'_>]) -> Result<Option<Kind>, Mistake> {
    let Some(first) = tokens.first().filter(|first| !first.quoted) else {
        return Ok(None);
    };
    match first.text.as_ref() {
        "generate_c_wrapper" => Line::new(tokens, "generate_c_wrapper").end(1)?,
        "set_table_null_initialization" => {
            let line = Line::new(tokens, "set_table_null_initialization TABLE true|false");
            scope.table(line.word(1, "the table's name")?)?;
            boolean(&line, 2)?;
            line.end(3)?;
        }
        "set_table_storage" => {
            let line = Line::new(tokens, "set_table_storage TABLE WORD");
            scope.table(line.word(1, "the table's name")?)?;
            line.word(2, "the kind of storage")?;
            line.end(3)?;
        }
        "echo" | "prompt" => {}
        word if DATA.contains(&word) => return Ok(Some(Kind::Data)),
        word if SHELL.contains(&word) => {
            let message = format!("`{word}` is for the shell; a schema holds no data");
            return Err(Diagnostic::new(first, message)
                .hint("run it in `annals shell`, or do it in a custom function")
                .into());
        }
        _ => return Ok(None),
    }
    Ok(Some(Kind::Silent))
}
