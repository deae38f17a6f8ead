//! The commands of whole tables, and `custom`.

use super::expect::Line;
use super::scope::{Mistake, Scope};
use crate::diagnostics::nearest;
use crate::{Command, Diagnostic, Token, shorten};

pub(super) fn create(scope: &Scope<'_>, tokens: &[Token<'_>]) -> Result<Command, Mistake> {
    let line = Line::new(tokens, "create_table NAME");
    let name = line.word(1, "the table's name")?;
    line.end(2)?;
    scope.check(Command::CreateTable { name: name.text.clone().into_owned() }, name)
}

pub(super) fn drop(scope: &Scope<'_>, tokens: &[Token<'_>]) -> Result<Command, Mistake> {
    let line = Line::new(tokens, "drop_table TABLE");
    let name = line.word(1, "the table's name")?;
    let table = scope.table(name)?.number;
    line.end(2)?;
    scope.check(Command::DropTable { table }, name)
}

pub(super) fn rename(scope: &Scope<'_>, tokens: &[Token<'_>]) -> Result<Command, Mistake> {
    let line = Line::new(tokens, "rename_table TABLE NAME");
    let table = scope.table(line.word(1, "the table's name")?)?.number;
    let name = line.word(2, "the new name")?;
    line.end(3)?;
    scope.check(Command::RenameTable { table, name: name.text.clone().into_owned() }, name)
}

pub(super) fn set_single_row(scope: &Scope<'_>, tokens: &[Token<'_>]) -> Result<Command, Mistake> {
    let line = Line::new(tokens, "set_single_row TABLE true|false");
    let name = line.word(1, "the table's name")?;
    let table = scope.table(name)?.number;
    let single = boolean(&line, 2)?;
    line.end(3)?;
    scope.check(Command::SetSingleRow { table, single }, name)
}

pub(super) fn set_history_index(
    scope: &Scope<'_>,
    tokens: &[Token<'_>],
    indexed: bool,
) -> Result<Command, Mistake> {
    let usage = if indexed { "history_index TABLE" } else { "no_history_index TABLE" };
    let line = Line::new(tokens, usage);
    let name = line.word(1, "the table's name")?;
    let table = scope.table(name)?.number;
    line.end(2)?;
    scope.check(Command::SetHistoryIndex { table, indexed }, name)
}

pub(super) fn custom(scope: &Scope<'_>, tokens: &[Token<'_>]) -> Result<Command, Mistake> {
    let line = Line::new(tokens, "custom NAME");
    let name = line.word(1, "the function's name")?;
    line.end(2)?;
    scope.check(Command::Custom { name: name.text.clone().into_owned() }, name)
}

/// Reads `true` or `false`.
pub(super) fn boolean(line: &Line<'_>, place: usize) -> Result<bool, Diagnostic> {
    let word = line.word(place, "`true` or `false`")?;
    match (word.quoted, word.text.as_ref()) {
        (false, "true") => Ok(true),
        (false, "false") => Ok(false),
        _ => {
            let hint = match nearest(&word.text, ["true", "false"].into_iter()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("write `{}`", line.usage),
            };
            let message = format!("`{}` is neither `true` nor `false`", shorten(&word.text));
            Err(Diagnostic::new(word, message).hint(hint))
        }
    }
}
