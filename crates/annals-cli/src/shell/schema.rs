//! The commands of the schema language, and those of joedb's that do nothing here.

use annals::{Error, Result, Transaction};

use super::screen::Screen;
use super::words::Words;
use crate::present::Present;

/// Runs a command of the schema language.
pub(crate) fn change(
    transaction: &mut Transaction<'_>,
    words: &Words<'_>,
    _screen: &mut Screen,
) -> Result<()> {
    let schema = transaction.view().schema().clone();
    let command = annals_schema::parse_command(&schema, words.tokens)
        .map_err(|diagnostic| Error::invalid(diagnostic.to_string()))?;
    match command {
        Some(command) => transaction.apply_command(&command),
        None => Err(words.misused()),
    }
}

/// Checks a `namespace` line. It names generated code, and changes nothing in a database; but a
/// schema file that has one is a script, too.
pub(crate) fn namespace(
    _present: &Present<'_>,
    words: &Words<'_>,
    _screen: &mut Screen,
) -> Result<()> {
    annals_schema::parse(words.line).map(drop).map_err(|mistakes| {
        let first = mistakes
            .into_iter()
            .next()
            .map(|mistake| annals_schema::Diagnostic { line: 0, ..mistake });
        Error::invalid(first.map(|mistake| mistake.to_string()).unwrap_or_default())
    })
}

/// A command of joedb's that changes nothing here; `on` or `off` may follow where its form says so.
pub(crate) fn ignored(
    _present: &Present<'_>,
    words: &Words<'_>,
    _screen: &mut Screen,
) -> Result<()> {
    match words.arguments() {
        [] => Ok(()),
        [word] if !words.command.form.is_empty() && (word.is("on") || word.is("off")) => Ok(()),
        _ => Err(words.misused()),
    }
}
