//! `annals import csv`: a CSV file for each table, in one transaction.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use annals::{
    Commit, Database, Error, ErrorKind, Field, Result, Schema, Table, TableNumber, Timestamp,
    Transaction, Value, ValueRef,
};
use clap::Args;
use csv::StringRecord;
use indicatif::ProgressBar;

use crate::output::{Output, count};
use crate::quotes::Quotes;
use crate::{Outcome, cell, commands, files, language, progress};

/// Take in a CSV file for each table, in one transaction
///
/// The files may be compressed with gzip. Their first line names the columns: all fields of the
/// table, in any order, and `id`, the row's id; without that column rows get the next ids. An empty
/// cell is null where the field may be null, else the empty string; for other types it is an error.
/// In a table's name `-` stands for `_`, too. The cell of a blob is its name, as in `blob:7`, which
/// must be in FILE already. If FILE isn't there it is created with the schema of --schema; else it
/// must have that schema, if one is given. After an error nothing has changed.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals import csv people.annals --schema people.schema --at 2021-11-02T00:00:00Z \\
    person=person.csv.gz town=town.csv")]
pub(crate) struct Arguments {
    /// The database
    file: PathBuf,
    /// The schema file; that of FILE if left out
    #[arg(long, value_name = "S")]
    schema: Option<PathBuf>,
    /// The time of the commit, as in 2021-11-02T00:00:00Z; the clock's if left out
    #[arg(long, value_name = "TIME", value_parser = language::time_option)]
    at: Option<Timestamp>,
    /// A table and its file
    #[arg(required = true, value_name = "TABLE=PATH")]
    tables: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let schema = schema(arguments)?;
    let bar = files::progress(0);
    let mut sources = Vec::new();
    for argument in &arguments.tables {
        let source = Source::open(&schema, argument, &bar)?;
        if sources.iter().any(|earlier: &Source| earlier.table == source.table) {
            return Err(Error::invalid(format!("{argument}: that table is named twice")));
        }
        bar.inc_length(files::length(&source.path));
        sources.push(source);
    }
    // Everything that can be known to be wrong before the file is touched is known now.
    let path = &arguments.file;
    let is_new = !path.try_exists().map_err(|error| files::cannot("look for", path, error))?;
    let database = progress::options().create(is_new).open(path)?;
    commands::tell_recovery(&database);
    let imported = import(&database, &schema, arguments.at, &mut sources);
    commands::tell_damage(&database.image_damage());
    let closed = database.close();
    bar.finish_and_clear();
    if is_new && (imported.is_err() || closed.is_err()) {
        // It was made for this import alone, and holds nothing. The first error is the one to tell.
        let _ = std::fs::remove_file(path);
    }
    let (rows, commit) = imported?;
    closed?;
    tell(rows, sources.len(), commit)
}

fn schema(arguments: &Arguments) -> Result<Schema> {
    let Some(path) = &arguments.schema else {
        let reader = progress::options().open_read_only(&arguments.file).map_err(|error| {
            let is_missing = error.kind() == ErrorKind::NotFound;
            let advice = if is_missing { "; to create it, say its --schema" } else { "" };
            Error::new(error.kind(), format!("{error}{advice}"))
        })?;
        return Ok(Schema::clone(reader.read().schema()));
    };
    Ok(language::read_schema(path)?.schema)
}

fn tell(rows: u64, tables: usize, commit: Commit) -> Result<Outcome> {
    let Commit { txid, position, level } = commit;
    let level = level.name();
    let mut output = Output::new();
    let (rows, tables) = (count(rows, "row"), count(tables, "table"));
    output.line(&format!("imported {rows} into {tables}"))?;
    output.line(&format!("committed txid={txid} position={position} level={level}"))?;
    output.flush()?;
    Ok(Outcome::Done)
}

fn import(
    database: &Database,
    schema: &Schema,
    at: Option<Timestamp>,
    sources: &mut [Source],
) -> Result<(u64, Commit)> {
    let mut transaction = database.begin()?;
    if let Some(time) = at {
        transaction.set_time(time);
    }
    let present = transaction.view().schema().clone();
    if present.commands().is_empty() {
        for command in schema.commands() {
            transaction.apply_command(command)?;
        }
    } else if let Some(difference) = language::difference(&present, schema) {
        return Err(Error::new(
            ErrorKind::SchemaMismatch,
            format!("the file has another schema than --schema: {difference}"),
        ));
    }
    let mut rows = 0;
    for source in sources {
        rows += source.import(schema, &mut transaction)?;
    }
    Ok((rows, transaction.commit()?))
}

/// Where a column of the file goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    /// It is the row's id.
    Id,
    /// It is the field with this place among the table's.
    Field(usize),
}

/// A file, and the table that its rows go to.
struct Source {
    table: TableNumber,
    path: PathBuf,
    columns: Vec<Column>,
    /// Whether lines end with CR LF: the reader then counts a record to the line before its own,
    /// since it leaves the LF for later.
    ends_crlf: bool,
    reader: csv::Reader<Quotes<Box<dyn BufRead>>>,
}

impl Source {
    /// Opens `TABLE=PATH` and reads its header.
    fn open(schema: &Schema, argument: &str, bar: &ProgressBar) -> Result<Self> {
        let parts =
            argument.split_once('=').filter(|(name, path)| !name.is_empty() && !path.is_empty());
        let (name, path) = parts.ok_or_else(|| {
            Error::invalid(format!(
                "expected TABLE=PATH, as in person=person.csv, not {argument:?}"
            ))
        })?;
        let table = language::table_of_file(schema, name)?;
        let path = PathBuf::from(path);
        let mut input = files::open_input(&path, bar)?;
        let start = input.fill_buf().map_err(|error| files::cannot("read", &path, error))?;
        let first_line = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let ends_crlf = first_line.last() == Some(&b'\r');
        let mut reader = csv::Reader::from_reader(Quotes::new(input));
        let headings = reader.headers().map_err(|error| unreadable(&path, 0, error))?;
        let columns = columns(table, headings).map_err(|error| error.within(path.display()))?;
        Ok(Self { table: table.number, path, columns, ends_crlf, reader })
    }

    /// Inserts all rows; gives how many.
    fn import(&mut self, schema: &Schema, transaction: &mut Transaction<'_>) -> Result<u64> {
        let Some(table) = schema.table(self.table) else { return Ok(0) };
        let mut values: Vec<Value> = table.fields.iter().map(Field::default_value).collect();
        let mut record = StringRecord::new();
        let mut rows = 0;
        let more = u64::from(self.ends_crlf);
        let failed = |error| unreadable(&self.path, more, error);
        while self.reader.read_record(&mut record).map_err(failed)? {
            let line = record.position().map_or(0, csv::Position::line) + more;
            insert(table, &self.columns, &record, &mut values, transaction).map_err(|error| {
                error.within(format_args!("{}: line {line}", self.path.display()))
            })?;
            rows += 1;
        }
        Ok(rows)
    }
}

/// Inserts one row. `values` is space for its values.
fn insert(
    table: &Table,
    columns: &[Column],
    record: &StringRecord,
    values: &mut [Value],
    transaction: &mut Transaction<'_>,
) -> Result<()> {
    let mut id = None;
    for (column, text) in columns.iter().zip(record) {
        match *column {
            Column::Id => {
                id = Some(language::row_id(text).map_err(|error| error.within("column id"))?);
            }
            Column::Field(place) => {
                if let (Some(field), Some(value)) = (table.fields.get(place), values.get_mut(place))
                {
                    *value = cell::value(table, field, text)?;
                }
            }
        }
    }
    let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    match id {
        Some(id) => transaction.insert_at(table.number, id, &values),
        None => transaction.insert(table.number, &values).map(drop),
    }
}

/// Finds where each column goes; all fields must be there, and nothing else.
fn columns(table: &Table, headings: &StringRecord) -> Result<Vec<Column>> {
    let names: Vec<String> = table.fields.iter().map(|field| cell::heading(table, field)).collect();
    let known = || language::those("fields", names.iter().map(String::as_str));
    let mut columns = Vec::new();
    for heading in headings {
        let column = match names.iter().position(|name| name == heading) {
            Some(place) => Column::Field(place),
            None if heading == "id" => Column::Id,
            None => {
                return Err(Error::invalid(format!(
                    "table {} has no field for column {heading:?}; {}",
                    table.name,
                    known()
                )));
            }
        };
        if columns.contains(&column) {
            return Err(Error::invalid(format!("column {heading:?} is there twice")));
        }
        columns.push(column);
    }
    let missing: Vec<&str> = names
        .iter()
        .enumerate()
        .filter(|(place, _)| !columns.contains(&Column::Field(*place)))
        .map(|(_, name)| name.as_str())
        .collect();
    if !missing.is_empty() {
        let (table, missing) = (&table.name, missing.join(", "));
        return Err(Error::invalid(format!(
            "no column for these fields of table {table}: {missing}"
        )));
    }
    Ok(columns)
}

/// Says why a CSV file can't be read, and where; `more` is added to the lines that the reader counts.
fn unreadable(path: &Path, more: u64, error: csv::Error) -> Error {
    let line = |at: Option<&csv::Position>| at.map_or(1, |at| at.line() + more);
    let path_shown = path.display();
    let message = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(error) => files::cannot("read", path, error),
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => Error::invalid(format!(
            "{path_shown}: line {}: {len} cells, where the header has {expected_len}",
            line(pos.as_ref()),
        )),
        csv::ErrorKind::Utf8 { pos, err } => Error::invalid(format!(
            "{path_shown}: line {}: cell {}: invalid UTF-8",
            line(pos.as_ref()),
            err.field() + 1,
        )),
        _ => Error::invalid(format!("{path_shown}: {message}")),
    }
}
