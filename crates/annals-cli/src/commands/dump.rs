//! `annals dump`: the present state, as a script, as JSON, or as CSV files.

use std::path::PathBuf;

use annals::{Command, Options, Result, RowId, Table, TableView, View};
use clap::{Args, ValueEnum};

use crate::commands::export;
use crate::output::Output;
use crate::{Outcome, json, language};

/// Print the present state
///
/// As text it is a script: run through `annals shell` it gives a file with the same schema, rows, ids
/// and next ids, but without the history. As JSON it is one object with an array of rows for each
/// table. As CSV it is a file for each table in a directory, as `annals export csv` writes them.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals dump people.annals | annals shell copy.annals
  annals dump people.annals --format json | jq '.person[].name'
  annals dump people.annals --format csv people-csv")]
pub(crate) struct Arguments {
    /// The database
    file: PathBuf,
    /// How to print it
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// The directory for the CSV files; it is created if it isn't there
    #[arg(required_if_eq("format", "csv"))]
    dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A script for `annals shell`
    Text,
    /// One object: an array of rows for each table
    Json,
    /// A file for each table in DIR
    Csv,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    if let (Format::Text | Format::Json, Some(dir)) = (arguments.format, &arguments.dir) {
        return Err(annals::Error::invalid(format!(
            "a directory ({}) is for --format csv only",
            dir.display()
        )));
    }
    let snapshot = Options::new().open_read_only(&arguments.file)?.read();
    match (arguments.format, &arguments.dir) {
        (Format::Csv, Some(dir)) => export::write_csv(&snapshot, dir)?,
        (Format::Json, _) => print(&snapshot, print_json)?,
        _ => print(&snapshot, print_text)?,
    }
    Ok(Outcome::Done)
}

fn print(view: &View, how: fn(&View, &mut Output) -> Result<()>) -> Result<()> {
    let mut output = Output::new();
    how(view, &mut output)?;
    output.flush()
}

/// Prints tables and fields; then the next ids that the rows don't give by themselves; then the
/// rows; and at last the indexes, which are then built in one go.
fn print_text(view: &View, output: &mut Output) -> Result<()> {
    let schema = view.schema();
    let is_index = |command: &Command| matches!(command, Command::CreateIndex { .. });
    for command in schema.commands().iter().filter(|command| !is_index(command)) {
        output.line(&schema.command_text(command))?;
    }
    for table in schema.tables() {
        print_next_id(table, &view.table(table.number)?, output)?;
    }
    let mut line = String::new();
    for table in schema.tables() {
        for row in view.table(table.number)?.rows() {
            let row = row?;
            line.clear();
            line.push_str(&format!("insert_at {} {}", table.name, row.id().0));
            for field in &table.fields {
                line.push(' ');
                language::write_value(row.value(field.number), &mut line);
            }
            output.line(&line)?;
        }
    }
    for command in schema.commands().iter().filter(|command| is_index(command)) {
        output.line(&schema.command_text(command))?;
    }
    Ok(())
}

/// Uses and frees the last id that was ever used, if no row has it now.
fn print_next_id(table: &Table, rows: &TableView<'_>, output: &mut Output) -> Result<()> {
    let Some(last) = rows.next_id().checked_sub(1) else { return Ok(()) };
    if rows.contains(RowId(last)) {
        return Ok(());
    }
    output.line(&format!("insert_into {} {last}", table.name))?;
    output.line(&format!("delete_from {} {last}", table.name))
}

fn print_json(view: &View, output: &mut Output) -> Result<()> {
    let mut text = String::from("{");
    for (place, table) in view.schema().tables().iter().enumerate() {
        text.push_str(if place == 0 { "\n" } else { ",\n" });
        json::push_string(&mut text, &table.name);
        text.push_str(": [");
        let keys: Vec<String> = table.fields.iter().map(|field| json::key(table, field)).collect();
        for (place, row) in view.table(table.number)?.rows().enumerate() {
            let row = row?;
            text.push_str(if place == 0 { "\n{\"id\": " } else { ",\n{\"id\": " });
            text.push_str(&row.id().0.to_string());
            for (field, key) in table.fields.iter().zip(&keys) {
                text.push_str(", ");
                json::push_string(&mut text, key);
                text.push_str(": ");
                json::push_value(&mut text, row.value(field.number));
            }
            text.push('}');
            output.write(&text)?;
            text.clear();
        }
        text.push(']');
    }
    text.push_str("\n}");
    output.line(&text)
}
