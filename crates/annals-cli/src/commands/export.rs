//! `annals export`: tables as files that other programs read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use annals::{Error, Result, Table, View};
use clap::{Args, Subcommand};

use crate::commands::export_joedb;
use crate::files::{NewFile, cannot};
use crate::{Outcome, cell, progress};

/// Write tables as files that other programs read
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals export csv people.annals people-csv
  annals export joedb people.annals people.joedb")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    format: Format,
}

#[derive(Debug, Subcommand)]
enum Format {
    Csv(Csv),
    Joedb(export_joedb::Arguments),
}

/// Write a CSV file for each table
///
/// DIR/TABLE.csv has a header, `id` and the fields in the order of the schema, and the rows in order
/// of their ids. Null is an empty cell, and so is an empty string. Of a blob there is the name, as in
/// `blob:7`, not the bytes. The files appear, and replace older ones, only when all of them are
/// complete.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals export csv people.annals people-csv")]
struct Csv {
    /// The database
    file: PathBuf,
    /// The directory; it is created if it isn't there
    dir: PathBuf,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let csv = match &arguments.format {
        Format::Csv(csv) => csv,
        Format::Joedb(arguments) => return export_joedb::run(arguments),
    };
    let snapshot = progress::options().open_read_only(&csv.file)?.read();
    write_csv(&snapshot, &csv.dir)?;
    Ok(Outcome::Done)
}

/// Writes a file for each table into a directory.
pub(crate) fn write_csv(view: &View, dir: &Path) -> Result<()> {
    match fs::create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(cannot("create the directory", dir, error));
        }
        _ => {}
    }
    let mut files = Vec::new();
    for table in view.schema().tables() {
        files.push(write_table(view, table, &dir.join(format!("{}.csv", table.name)))?);
    }
    files.into_iter().try_for_each(NewFile::finish)
}

fn write_table(view: &View, table: &Table, path: &Path) -> Result<NewFile> {
    let failed = |error: csv::Error| match error.into_kind() {
        csv::ErrorKind::Io(error) => cannot("write", path, error),
        other => Error::invalid(format!("cannot write {}: {other:?}", path.display())),
    };
    let mut writer = csv::Writer::from_writer(NewFile::create(path)?);
    let headings = table.fields.iter().map(|field| cell::heading(table, field));
    writer.write_record(std::iter::once("id".to_owned()).chain(headings)).map_err(failed)?;
    let mut text = String::new();
    for row in view.table(table.number)?.rows() {
        let row = row?;
        writer.write_field(row.id().0.to_string()).map_err(failed)?;
        for field in &table.fields {
            text.clear();
            cell::write(row.value(field.number), &mut text);
            writer.write_field(&text).map_err(failed)?;
        }
        writer.write_record(None::<&[u8]>).map_err(failed)?;
    }
    writer.into_inner().map_err(|error| {
        let kind = error.error().kind();
        cannot("write", path, io::Error::new(kind, error.error().to_string()))
    })
}
