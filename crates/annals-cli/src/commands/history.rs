//! `annals history`: every version of a row.

use std::path::PathBuf;

use annals::{Error, ErrorKind, Result, RowId, Table, Version};
use clap::{Args, ValueEnum};

use crate::commands::version_text::{self, Origin};
use crate::output::Output;
use crate::remote::Access;
use crate::{Outcome, language, progress};

/// Print every version of a row
///
/// Each has the number and the time of its transaction, its comments, and the changed fields, with their values
/// before and after, in the present fields of the table. An explicit insert may reuse an id for another row: both are
/// its history. Where older history was forgotten, it begins with the state at that point.
///
/// As JSON it is a list, the oldest version first. Each version has `txid`, `time`, `comment` (null if there is none;
/// several are lines of one), `kind` (insert, update, delete, or state where the history begins), and `old` and
/// `new`: objects of the changed fields, null where there was no row.
///
/// The history index in the image leads to each change of the row, so only those are read from the journal, and the
/// journal after the index. Without an image the whole journal is read.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals history people.annals person 3
  annals history people.annals person 3 --limit 10
  annals history people.annals person 3 --format json | jq '.[].new.name'")]
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
    /// Print only this many of the newest versions
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    #[command(flatten)]
    access: Access,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Some lines for each version
    Text,
    /// A list of objects, one for each version
    Json,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let reader = arguments.access.open(&progress::options(), &arguments.file)?;
    let now = reader.read();
    let table = version_text::find(now.schema(), &arguments.table)?;
    let history = reader.history_of(table.number, RowId(arguments.id))?;
    if let Some(problem) = history.index_problem() {
        crate::notes::note(&format!("{problem}; the whole journal is read instead"));
    }
    let (mut output, mut found, mut is_begun) = (Output::new(), false, false);
    let mut print = |version: &Version| {
        let is_first = !std::mem::replace(&mut is_begun, true);
        match arguments.format {
            Format::Text => text(table, version, &mut output),
            Format::Json => {
                output.write(if is_first { "[" } else { ",\n" })?;
                let mut object = String::new();
                annals_json::push_version(&mut object, table, version);
                output.write(&object)
            }
        }
    };
    match arguments.limit {
        Some(limit) => {
            let newest = history.newest(limit.max(1))?;
            found = !newest.is_empty();
            newest.iter().take(limit).rev().try_for_each(&mut print)?;
        }
        None => history.into_iter().try_for_each(|version| {
            found = true;
            print(&version?)
        })?,
    }
    if found && matches!(arguments.format, Format::Json) {
        output.line(if is_begun { "]" } else { "[]" })?;
    }
    output.flush()?;
    match found {
        true => Ok(Outcome::Done),
        false => Err(Error::new(
            ErrorKind::NotFound,
            format!(
                "{}: table `{}` has no row {}, and had none in the history that is left",
                arguments.file.display(),
                table.name,
                arguments.id
            ),
        )),
    }
}

const fn origin(version: &Version) -> Origin<'_> {
    let Version { txid, time, ref comments, .. } = *version;
    Origin { txid: txid.0, time, comments: comments.as_slice(), kind: version.kind() }
}

fn text(table: &Table, version: &Version, output: &mut Output) -> Result<()> {
    version_text::text(&origin(version), "", output)?;
    for (field, before, after) in annals_json::changes(table, version) {
        let mut line = format!("  {}: ", field.name);
        if let Some(before) = before {
            language::write_value(before.as_ref(), &mut line);
        }
        match (before, after) {
            (Some(_), Some(_)) => line.push_str(" -> "),
            (Some(_), None) => line.push_str(" before"),
            _ => {}
        }
        if let Some(after) = after {
            language::write_value(after.as_ref(), &mut line);
        }
        output.line(&line)?;
    }
    Ok(())
}
