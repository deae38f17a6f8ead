//! The dialog at a terminal.

use std::rc::Rc;
use std::sync::Arc;

use annals::storage::Interrupts;
use annals::{Error, Result};
use annals_sql::Parameters;

use super::statements::is_whole;
use super::{Asking, Printing, dots};
use crate::output::{Output, plain, say};
use crate::shell::editor::{Editor, Typed};
use crate::shell::history;

/// Words of SQL that are completed, besides names.
const WORDS: [&str; 24] = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "HAVING",
    "LIMIT",
    "OFFSET",
    "JOIN",
    "LEFT JOIN",
    "ON",
    "AND",
    "OR",
    "NOT",
    "NULL",
    "LIKE",
    "GLOB",
    "BETWEEN",
    "DISTINCT",
    "count(",
    "WITH",
    "UNION",
    "BEGIN",
    "COMMIT",
];

/// Runs statements until the person leaves.
pub(crate) fn run(asking: &mut Asking, mut printing: Printing, remembers: bool) -> Result<()> {
    let mut output = Output::new();
    let mut editor = Editor::new(if remembers { history::file() } else { None })?;
    output.line("SQL that reads; a statement ends with `;`. `.help` tells more.")?;
    asking.end_at(Arc::new(Interrupts::catch()));
    let mut words: Vec<String> =
        WORDS.iter().chain(&dots::NAMES).map(|&word| word.to_owned()).collect();
    words.extend(names(asking)?);
    let words: Rc<[String]> = words.into();
    let mut begun = String::new();
    loop {
        output.flush()?;
        let prompt = if begun.is_empty() { "annals> " } else { "   ...> " };
        match editor.read_words(prompt, &words)? {
            Typed::Cleared => begun.clear(),
            Typed::End => return Ok(()),
            Typed::Lines(line) if begun.is_empty() && line.trim_start().starts_with('.') => {
                match dots::run(line.trim(), asking, &mut printing, &mut output) {
                    Ok(true) => {}
                    Ok(false) => return output.flush(),
                    Err(error) => show(&mut output, &error)?,
                }
            }
            Typed::Lines(line) => {
                begun.push_str(&line);
                begun.push('\n');
                if is_whole(&begun) {
                    let statement = std::mem::take(&mut begun);
                    let asked = printing.ask(asking, &statement, &Parameters::None, &mut output);
                    if let Err(error) = asked {
                        show(&mut output, &error)?;
                    }
                }
            }
        }
    }
}

/// Returns the names of tables, of what is made of them, and of their columns.
fn names(asking: &mut Asking) -> Result<Vec<String>> {
    let tables = asking.list("SELECT \"table\" FROM annals_schema WHERE kind = 'table'")?;
    let ends = ["", "_at(", "_history(", "_changes(", "_blame("];
    let mut names: Vec<_> =
        tables.iter().flat_map(|table| ends.map(|end| format!("{table}{end}"))).collect();
    names.extend(asking.list("SELECT DISTINCT name FROM annals_schema WHERE kind = 'field'")?);
    names.extend(["annals_log", "annals_schema", "annals_txid()"].map(str::to_owned));
    Ok(names)
}

fn show(output: &mut Output, error: &Error) -> Result<()> {
    // If the output can't be written, there is no dialog.
    output.flush()?;
    say(&format!("error: {}", plain(&error.to_string())));
    Ok(())
}
