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
    // The schema is only lent: a transaction that shared it would have to copy it to change it.
    let command = annals_schema::parse_command(transaction.view().schema(), words.tokens)
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
        [word] if !words.usage.form.is_empty() && (word.is("on") || word.is("off")) => Ok(()),
        _ => Err(words.misused()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::catalog;

    #[test]
    fn a_command_changes_the_schema_where_it_is_and_copies_none() {
        let folder = tempfile::tempdir().unwrap();
        let database = annals::Database::open(folder.path().join("a.annals")).unwrap();
        let mut transaction = database.begin().unwrap();
        let mut screen = Screen::to(Vec::new());
        let mut run = |line: &str| {
            let tokens = annals_schema::tokenize(line).unwrap();
            let usage = catalog::command_of(&tokens).unwrap().words();
            let words = Words { usage, line, tokens: &tokens };
            change(&mut transaction, &words, &mut screen).unwrap();
            std::sync::Arc::as_ptr(transaction.view().schema())
        };
        // The first change copies the schema that readers have.
        let schema = run("create_table t");
        for line in ["add_field t a int64", "rename_field t a b", "create_index i t b"] {
            assert_eq!(run(line), schema, "{line}");
        }
    }
}
