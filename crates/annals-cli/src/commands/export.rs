//! `annals export`: all data, as files that other programs read.

use std::path::{Path, PathBuf};

use annals::Result;
use clap::{Args, Subcommand};

use crate::commands::export_joedb;
use crate::exchange::{csv, json};
use crate::new_file::NewFile;
use crate::present::Present;
use crate::progress::{self, Rows};
use crate::{Outcome, commands, files};

/// Write everything as files that other programs read
///
/// `annals import` rebuilds the same database from them, without the history: schema, rows, ids and next ids.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals export csv people.annals people-csv
  annals export json people.annals people.json
  annals export sqlite people.annals people.sqlite
  annals export parquet people.annals people-parquet
  annals export joedb people.annals people.joedb")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    format: Format,
}

#[derive(Debug, Subcommand)]
enum Format {
    Csv(Csv),
    Json(Json),
    Ndjson(Ndjson),
    #[cfg(feature = "sqlite")]
    Sqlite(Sqlite),
    #[cfg(feature = "arrow")]
    Parquet(Parquet),
    #[cfg(feature = "arrow")]
    Arrow(Arrow),
    Joedb(export_joedb::Arguments),
}

/// Write a CSV file for each table
///
/// DIR/TABLE.csv has a header, `id` and the fields in the order of the schema, and the rows in order of their ids.
/// Null is an empty cell; the empty string is quoted. Bytes, and those of blobs, are written as 0x00ff.
/// DIR/schema.annals has the schema. The files appear, and replace older ones, only when all of them are complete.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals export csv people.annals people-csv")]
struct Csv {
    /// The database
    file: PathBuf,
    /// The directory; it is created if it doesn't exist
    dir: PathBuf,
}

/// Write a Parquet file for each table
///
/// DIR/TABLE.parquet has `id` and the fields in the order of the schema, with Arrow's types: decimals, times with the
/// zone UTC, days, UUIDs, enums as dictionaries, references as ids. The bytes of blobs are in the cells.
/// DIR/schema.annals has the schema. The files appear, and replace older ones, only when all of them are complete.
#[cfg(feature = "arrow")]
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals export parquet people.annals people-parquet
  duckdb -c \"select name from 'people-parquet/person.parquet'\"")]
struct Parquet {
    /// The database
    file: PathBuf,
    /// The directory; it is created if it doesn't exist
    dir: PathBuf,
}

/// Write a stream of Arrow for each table
///
/// DIR/TABLE.arrows is what `annals export parquet` writes, in Arrow's streaming format.
#[cfg(feature = "arrow")]
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals export arrow people.annals people-arrow")]
struct Arrow {
    /// The database
    file: PathBuf,
    /// The directory; it is created if it doesn't exist
    dir: PathBuf,
}

/// The contents of one file.
#[derive(Debug, Args)]
struct File {
    /// The database
    file: PathBuf,
    /// The new file
    out: PathBuf,
    /// Replace OUT if it exists
    #[arg(long)]
    replace: bool,
}

/// Write one JSON document
///
/// It has the schema as commands, and an array of rows for each table. Bytes and blobs are written in base64, times
/// as texts, and a float without a JSON number as "NaN", "Infinity" or "-Infinity". Integers have all their digits,
/// and floats enough to restore the same value: read integers beyond 2^53 with a program that doesn't convert them to
/// floats.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals export json people.annals people.json
  jq '.tables.person[].name' people.json")]
struct Json {
    #[command(flatten)]
    file: File,
}

/// Write JSON lines
///
/// The first line has the schema as commands; then there is a line for each row, an object with the name of the
/// table and the row. Values are written as `annals export json` does.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals export ndjson people.annals people.ndjson
  jq 'select(.person) | .person.name' people.ndjson")]
struct Ndjson {
    #[command(flatten)]
    file: File,
}

/// Write a database of SQLite
///
/// Ids are INTEGER PRIMARY KEY, references foreign keys with their rules; indexes, defaults and NOT NULL are
/// included. Times are microseconds since 1970. Values without a number in SQLite are stored differently: NaN as the
/// text `NaN`, -0 and integers from 2^63 on as the eight bytes of the number.
#[cfg(feature = "sqlite")]
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals export sqlite people.annals people.sqlite
  sqlite3 people.sqlite 'SELECT name FROM person'")]
struct Sqlite {
    #[command(flatten)]
    file: File,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    match &arguments.format {
        Format::Csv(csv) => {
            let permissions = files::permissions(&csv.file)?;
            export(&csv.file, |present| {
                csv::write_folder(present, &csv.dir, permissions, &csv::FORMAT)
            })
        }
        Format::Json(json) => one_file(&json.file, |present, mut file| {
            let written = json::document(present, &mut file, &mut rows(present)?);
            written.map_err(|error| error.within(json.file.out.display()))?;
            file.finish()
        }),
        Format::Ndjson(lines) => one_file(&lines.file, |present, mut file| {
            let written = json::lines(present, &mut file, &mut rows(present)?);
            written.map_err(|error| error.within(lines.file.out.display()))?;
            file.finish()
        }),
        #[cfg(feature = "sqlite")]
        Format::Sqlite(sqlite) => one_file(&sqlite.file, |present, file| {
            crate::exchange::sqlite::write(present, &sqlite.file.out, file)
        }),
        #[cfg(feature = "arrow")]
        Format::Parquet(to) => folder(&to.file, &to.dir, &crate::exchange::parquet::PARQUET),
        #[cfg(feature = "arrow")]
        Format::Arrow(to) => folder(&to.file, &to.dir, &crate::exchange::parquet::ARROW),
        Format::Joedb(arguments) => export_joedb::run(arguments),
    }
}

#[cfg(feature = "arrow")]
fn folder(file: &Path, dir: &Path, format: &csv::Format) -> Result<Outcome> {
    let permissions = files::permissions(file)?;
    export(file, |present| csv::write_folder(present, dir, permissions, format))
}

fn one_file(file: &File, how: impl FnOnce(&Present<'_>, NewFile) -> Result<()>) -> Result<Outcome> {
    let unless = (!file.replace).then_some("--replace");
    let new = NewFile::like(files::permissions(&file.file)?, &file.out, unless)?;
    export(&file.file, |present| how(present, new))
}

fn export(file: &Path, how: impl FnOnce(&Present<'_>) -> Result<()>) -> Result<Outcome> {
    let reader = commands::open_to_read(&progress::options_for_a_pass(), file)?;
    let exported = how(&Present::Committed(reader.read()));
    crate::notes::tell_damage(&reader.image_damage());
    exported.map(|()| Outcome::Done)
}

fn rows(present: &Present<'_>) -> Result<Rows> {
    let mut total = 0;
    for table in present.schema().tables() {
        total += present.table(table.number)?.len();
    }
    Ok(Rows::new("writing", total))
}
