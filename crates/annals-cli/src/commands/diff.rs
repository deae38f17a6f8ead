//! `annals diff`: which rows differ between two moments.

use std::path::PathBuf;

use annals::{Moment, Result, RowChange, Table, Value};
use clap::{Args, ValueEnum};

use crate::output::Output;
use crate::remote::Access;
use crate::{Outcome, language, progress};

/// So many bytes of rows are kept at once, about.
const ROOM: usize = 64 << 20;

/// Compare two moments of a database
///
/// Prints each row that was added (`+`), removed (`-`) or changed (`~`) from A to B, in order of tables and ids; of a
/// changed one the fields that differ. A may be the later one. A moment is the end of a transaction: `txid:17`,
/// `time:2024-02-29T12:00:00Z` (the last one that isn't later), or `comment:before the fair` (the last one that has
/// this comment). Values are those of the present fields; tables that were dropped since are left out. As JSON it is
/// one object a line: `table`, `id`, `before` and `after`, which are null where there was no row.
///
/// Reads the changes between the two, not all rows.
///
/// Exit status: 0 when nothing differs, 1 after an error, 3 when rows differ.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals diff people.annals txid:17 txid:20
  annals diff people.annals time:2024-01-01T00:00:00Z 'comment:before the fair' --table person")]
pub(crate) struct Arguments {
    /// The database: a file, the URL of one on a server, or of a file on a web server (https://HOST/NAME.annals)
    file: PathBuf,
    /// The first moment
    a: Moment,
    /// The other
    b: Moment,
    /// How to print it
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Compare only this table
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    #[command(flatten)]
    access: Access,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A line for each row
    Text,
    /// One object a line for each row
    Json,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let reader = arguments.access.open(&progress::options(), &arguments.file)?;
    let (now, mut output) = (reader.read(), Output::new());
    let schema = now.schema();
    let only = match &arguments.table {
        Some(name) => Some(language::table(schema, name)?.number),
        None => None,
    };
    let txid = |moment: &Moment| reader.txid_of(moment.clone());
    let (a, b) = (txid(&arguments.a)?, txid(&arguments.b)?);
    let mut outcome = Outcome::Done;
    let mut line = String::new();
    let mut rows = now.differing(a, b, ROOM)?;
    if let Some(only) = only {
        rows = rows.of(only);
    }
    for row in rows {
        let row = row?;
        let Some(table) = schema.table(row.table) else { continue };
        outcome = Outcome::Differs;
        line.clear();
        match arguments.format {
            Format::Text => push_text(&mut line, table, &row),
            Format::Json => annals_json::push_change(&mut line, table, &row),
        }
        output.line(&line)?;
    }
    output.flush()?;
    Ok(outcome)
}

fn push_text(line: &mut String, table: &Table, row: &RowChange) {
    let sign = match (&row.before, &row.after) {
        (None, _) => '+',
        (_, None) => '-',
        _ => '~',
    };
    line.push_str(&format!("{sign} {} {}", table.name, row.id.0));
    for field in &table.fields {
        let place = field.number.0 as usize;
        let value =
            |side: &Option<Vec<Value>>| side.as_ref().and_then(|row| row.get(place).cloned());
        match (value(&row.before), value(&row.after)) {
            (Some(before), Some(after)) if before == after => continue,
            (before, after) => {
                line.push_str(&format!(" {}: ", field.name));
                for (place, value) in before.iter().chain(&after).enumerate() {
                    line.push_str(if place > 0 { " -> " } else { "" });
                    language::write_value(value.as_ref(), line);
                }
                line.push(',');
            }
        }
    }
    if line.ends_with(',') {
        line.pop();
    }
}
