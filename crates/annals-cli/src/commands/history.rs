//! `annals history`: every version of a row.

use std::path::PathBuf;

use annals::{Error, ErrorKind, Field, Result, RowId, Schema, Table, Value, Version};
use clap::{Args, ValueEnum};

use crate::output::Output;
use crate::{Outcome, commands, json, language, progress};

/// Print every version of a row
///
/// Each has the number and the time of its transaction, its comments, and the changed fields, with their values
/// before and after, in the present fields of the table. An explicit insert may reuse an id for another row: both are
/// its history. Where older history was forgotten, it begins with the state at that point.
///
/// With the history index beside the journal, FILE-history, which is kept in the background, only the parts of the
/// journal that changed the row are read; without it, all of it.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals history people.annals person 3
  annals history people.annals person 3 --limit 10
  annals history people.annals person 3 --format json | jq .after.name")]
pub(crate) struct Arguments {
    /// The database
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
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Some lines for each version
    Text,
    /// One object a line for each version
    Json,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let reader = commands::open_to_read(&progress::options(), &arguments.file)?;
    let now = reader.read();
    let table = find(now.schema(), &arguments.table)?;
    let history = reader.history_of(table.number, RowId(arguments.id))?;
    if let Some(problem) = history.index_problem() {
        crate::notes::note(&format!("{problem}; the whole journal is read instead"));
    }
    let (mut output, mut found) = (Output::new(), false);
    let mut print = |version: &Version| {
        found = true;
        match arguments.format {
            Format::Text => text(table, version, &mut output),
            Format::Json => output.line(&object(table, version)),
        }
    };
    match arguments.limit {
        Some(limit) => history.newest(limit.max(1))?.iter().rev().try_for_each(&mut print)?,
        None => history.into_iter().try_for_each(|version| print(&version?))?,
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

/// Finds a table by its current name. If there is none, the error says whether one of that name was dropped or renamed.
fn find<'s>(schema: &'s Schema, name: &str) -> Result<&'s Table> {
    if let Some(table) = schema.table_named(name) {
        return Ok(table);
    }
    let is_of_old = schema.commands().iter().any(|command| match command {
        annals::Command::CreateTable { name: created } => created == name,
        annals::Command::RenameTable { name: renamed, .. } => renamed == name,
        _ => false,
    });
    let why = match is_of_old {
        true => "a table of that name was dropped or renamed; `annals log` shows when",
        false => "`annals info` lists the tables",
    };
    Err(Error::new(ErrorKind::NotFound, format!("there is no table `{name}`: {why}")))
}

/// The change of the row.
const fn what(version: &Version) -> &'static str {
    match (&version.change.before, &version.change.after) {
        _ if version.is_beginning => "was there when the history begins",
        (None, _) => "inserted",
        (_, None) => "deleted",
        _ => "changed",
    }
}

/// Returns the fields that a version changes, with both values.
fn changes<'v>(
    table: &'v Table,
    version: &'v Version,
) -> impl Iterator<Item = (&'v Field, Option<&'v Value>, Option<&'v Value>)> {
    version.change.fields().filter_map(|number| {
        let field = table.field(number)?;
        let value = |side: &'v Option<Vec<Value>>| side.as_ref()?.get(number.0 as usize);
        Some((field, value(&version.change.before), value(&version.change.after)))
    })
}

fn text(table: &Table, version: &Version, output: &mut Output) -> Result<()> {
    output.line(&format!("txid {}, {}: {}", version.txid, version.time, what(version)))?;
    for comment in &version.comments {
        let mut line = "  comment ".to_owned();
        language::write_value(comment.as_str().into(), &mut line);
        output.line(&line)?;
    }
    for (field, before, after) in changes(table, version) {
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

fn object(table: &Table, version: &Version) -> String {
    let mut text = format!("{{\"txid\":{},\"time\":\"{}\"", version.txid, version.time);
    text.push_str(",\"comments\":[");
    for (place, comment) in version.comments.iter().enumerate() {
        text.push_str(if place == 0 { "" } else { "," });
        json::push_string(&mut text, comment);
    }
    let is = |is: bool| if is { "true" } else { "false" };
    text.push_str(&format!("],\"beginning\":{}", is(version.is_beginning)));
    for (name, side) in [("before", &version.change.before), ("after", &version.change.after)] {
        text.push_str(&format!(",\"{name}\":"));
        if side.is_none() {
            text.push_str("null");
            continue;
        }
        let mut separator = '{';
        for (field, before, after) in changes(table, version) {
            text.push(separator);
            separator = ',';
            json::push_string(&mut text, &json::key(table, field));
            text.push(':');
            let value = if name == "before" { before } else { after };
            value.into_iter().for_each(|value| json::push_value(&mut text, value.as_ref()));
        }
        text.push_str(if separator == '{' { "{}" } else { "}" });
    }
    text.push('}');
    text
}
