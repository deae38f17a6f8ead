//! `annals blame`: since when each field of a row has its value.

use std::path::PathBuf;

use annals::{Blame, Result, RowId, Table};
use clap::{Args, ValueEnum};

use crate::commands::version_text::{self, Origin};
use crate::output::Output;
use crate::remote::Access;
use crate::{Outcome, language, progress};

/// Print since when each field of a row has its value
///
/// Each field has its value, and the number, the time and the comments of the transaction that set it. Where older
/// history was forgotten, a value may be older than the state that the history begins with.
///
/// As JSON it is a list, in the order of the fields. Each has `field`, `value`, `txid`, `time`, `comment` (null if
/// there is none; several are lines of one) and `kind` (insert, update, or state where the history begins).
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals blame people.annals person 3
  annals blame people.annals person 3 --format json | jq '.[] | select(.field == \"name\").txid'")]
pub(crate) struct Arguments {
    /// The database: a file, the URL of one on a server, or of a file on a web server (https://HOST/NAME.annals)
    file: PathBuf,
    /// The table, as it is called now
    table: String,
    /// The row
    id: u64,
    /// How to print it
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    access: Access,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Some lines for each field
    Text,
    /// A list of objects, one for each field
    Json,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let reader = arguments.access.open(&progress::options(), &arguments.file)?;
    let now = reader.read();
    let table = version_text::find(now.schema(), &arguments.table)?;
    let blamed = reader
        .blame(table.number, RowId(arguments.id))
        .map_err(|error| error.within(arguments.file.display()))?;
    let mut output = Output::new();
    match arguments.format {
        Format::Text => blamed.iter().try_for_each(|blame| text(table, blame, &mut output))?,
        Format::Json => {
            let object = |blame| {
                let mut text = String::new();
                annals_json::push_blame(&mut text, table, blame);
                text
            };
            let objects: Vec<_> = blamed.iter().map(object).collect();
            output.line(&format!("[{}]", objects.join(",\n")))?;
        }
    }
    output.flush()?;
    Ok(Outcome::Done)
}

const fn origin(blame: &Blame) -> Origin<'_> {
    let Blame { txid, time, ref comments, kind, .. } = *blame;
    Origin { txid: txid.0, time, comments: comments.as_slice(), kind }
}

fn text(table: &Table, blame: &Blame, output: &mut Output) -> Result<()> {
    let mut line = table.field(blame.field).map_or_else(String::new, |field| field.name.clone());
    line.push_str(": ");
    language::write_value(blame.value.as_ref(), &mut line);
    output.line(&line)?;
    version_text::text(&origin(blame), "  since ", output)
}
