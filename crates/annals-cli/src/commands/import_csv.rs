//! `annals import csv`: a CSV file for each table, in one transaction.

use std::path::{Path, PathBuf};

use annals::{Error, ErrorKind, FieldNumber, Result, Schema, TableNumber, Timestamp};
use clap::Args;
use indicatif::ProgressBar;

use crate::exchange::arrival::{self, Arrived, Loading};
use crate::exchange::csv::{self, Manner, Source};
use crate::{Outcome, commands, files, language, progress};

/// Take in a CSV file for each table, in one transaction
///
/// IN is a directory as `annals export csv` writes it, with the schema beside the tables, or one file; or each
/// file is named with its table. Files may be compressed with gzip. Their first line names the columns: all
/// fields of the table, in any order, and `id`, the row's id; without that column rows get the next ids. A field with a
/// default needs no column.
///
/// An empty cell without quotes is null where the field may be null, else the empty string; for other types it is an
/// error. A cell in quotes is never a string's null. With --null that text is null, and nothing else is for a string.
/// In a table's name `-` is read as `_`, too. The cell of a blob is its bytes, as in 0x00ff, or its name, as in
/// `blob:7`, which must be in FILE already.
///
/// If FILE doesn't exist it is created with the schema of --schema or that of IN; without any, with a schema inferred
/// from the values. Else it must have the schema, if one is given. After an error nothing has changed.
#[derive(Debug, Args)]
#[command(
    override_usage = "annals import csv [OPTIONS] <IN> <FILE>
       annals import csv [OPTIONS] <FILE> <TABLE=PATH>...",
    after_help = "Example:
  annals import csv people-csv people.annals
  annals import csv people.annals --schema people.schema --at 2021-11-02T00:00:00Z \\
    person=person.csv.gz town=town.csv"
)]
pub(crate) struct Arguments {
    /// The schema file; that of IN or FILE if left out
    #[arg(long, value_name = "S")]
    schema: Option<PathBuf>,
    /// The time of the commit, as in 2021-11-02T00:00:00Z; the clock's if left out
    #[arg(long, value_name = "TIME", value_parser = language::time_option)]
    at: Option<Timestamp>,
    /// The text of a cell that is null
    #[arg(long, value_name = "TEXT")]
    null: Option<String>,
    /// The character between cells, as `;`, or `tab`; if left out it is a comma, unless the first line has none and has
    /// semicolons, tabs or bars
    #[arg(long, value_name = "CHARACTER", value_parser = separator)]
    separator: Option<u8>,
    /// The directory or file; or the database
    #[arg(value_name = "IN")]
    first: String,
    /// The database; or tables and their files, as TABLE=PATH
    #[arg(required = true, value_name = "FILE")]
    rest: Vec<String>,
}

/// The task of an import from a file for each table.
pub(crate) struct Plan {
    file: PathBuf,
    pub(crate) schema: Option<Schema>,
    next_ids: Vec<(TableNumber, u64)>,
    erased: Vec<(TableNumber, FieldNumber)>,
    pub(crate) files: Vec<(String, PathBuf)>,
    /// True if the tables were named one by one.
    named: bool,
}

/// Inserts the rows of one file.
pub(crate) type Filling<'f> = Box<dyn FnMut(&mut Loading<'_>) -> Result<()> + 'f>;

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let Arguments { schema, first, rest, at, .. } = arguments;
    let plan = plan(schema.as_deref(), first, rest, &["csv", "csv.gz", "tsv", "tsv.gz"])?;
    let bar = files::progress(0);
    let manner = Manner { null: arguments.null.as_deref(), separator: arguments.separator };
    let arrived = take_in(plan, *at, |schema, plan| {
        let (schema, sources) = match schema {
            Some(schema) => {
                let sources = open(&schema, plan, manner, &bar)?;
                (schema, sources)
            }
            None => csv::infer(&plan.files, manner, &bar)?,
        };
        let fill = |mut source: Source| -> Filling<'_> {
            Box::new(move |loading| source.import(loading, manner))
        };
        Ok((schema, sources.into_iter().map(fill).collect()))
    });
    bar.finish_and_clear();
    arrived?.tell()
}

/// Takes files in, in one transaction, into a new database or one that exists. `open` opens them, and finds the schema
/// if there is none.
pub(crate) fn take_in<'f>(
    mut plan: Plan,
    at: Option<Timestamp>,
    open: impl FnOnce(Option<Schema>, &Plan) -> Result<(Schema, Vec<Filling<'f>>)>,
) -> Result<Arrived> {
    let path = plan.file.clone();
    let is_new = !path.try_exists().map_err(|error| files::cannot("look for", &path, error))?;
    if plan.schema.is_none() && !is_new {
        let reader = commands::open_to_read(&progress::options(), &path)?;
        plan.schema = Some(Schema::clone(reader.read().schema()));
    }
    if plan.schema.is_none() && plan.named {
        let message =
            format!("{}: there is no such file; to create it, say its --schema", path.display());
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    // Everything that can be known to be wrong before the file is touched is known now.
    let (schema, mut sources) = open(plan.schema.take(), &plan)?;
    let mut rows = |mut loading: Loading<'_>| {
        loading.set_time(at);
        for source in &mut sources {
            source(&mut loading)?;
        }
        loading.finish(sources.len())
    };
    if !is_new {
        return add(&path, &schema, rows);
    }
    arrival::create(&path, |database| {
        let mut loading = Loading::begin(database.begin()?, &schema)?;
        for &(table, field) in &plan.erased {
            loading.expect_erased(table, field);
        }
        for &(table, next) in &plan.next_ids {
            loading.set_next_id(table, next)?;
        }
        loading.index_now()?;
        rows(loading)
    })
}

/// Reads the words of the command: IN FILE, or FILE and TABLE=PATH. Files of a directory have one of these endings.
pub(crate) fn plan(
    schema: Option<&Path>,
    first: &str,
    rest: &[String],
    endings: &[&str],
) -> Result<Plan> {
    let given = match schema {
        Some(path) => Some(language::read_schema(path)?.schema),
        None => None,
    };
    if let ([file], None) = (rest, rest.first().and_then(|word| word.split_once('='))) {
        if !Path::new(first).try_exists().unwrap_or(false) {
            return Err(expected_pair(first, file, endings));
        }
        let mut folder = csv::folder(Path::new(first), given.as_ref(), endings)?;
        let schema = given.or(folder.schema.take());
        let csv::Folder { next_ids, erased, files, .. } = folder;
        let file = PathBuf::from(file);
        return Ok(Plan { file, schema, next_ids, erased, files, named: false });
    }
    let mut files = Vec::new();
    for word in rest {
        let parts =
            word.split_once('=').filter(|(name, path)| !name.is_empty() && !path.is_empty());
        let (name, path) = parts.ok_or_else(|| {
            let ending = endings.first().unwrap_or(&"");
            Error::invalid(format!(
                "expected TABLE=PATH, as in person=person.{ending}, not {word:?}"
            ))
        })?;
        files.push((name.to_owned(), PathBuf::from(path)));
    }
    let file = PathBuf::from(first);
    let (next_ids, erased) = (Vec::new(), Vec::new());
    Ok(Plan { file, schema: given, next_ids, erased, files, named: true })
}

/// Returns the error for two words of which the first is no readable file.
fn expected_pair(first: &str, second: &str, endings: &[&str]) -> Error {
    let ending = endings.first().unwrap_or(&"");
    Error::new(
        ErrorKind::NotFound,
        format!(
            "{first}: there is no such file or directory to read; expected IN FILE, or FILE and TABLE=PATH, \
             as in person=person.{ending}, not {second:?}"
        ),
    )
}

fn open(
    schema: &Schema,
    plan: &Plan,
    manner: Manner<'_>,
    bar: &ProgressBar,
) -> Result<Vec<Source>> {
    let mut sources: Vec<Source> = Vec::new();
    for (name, path) in &plan.files {
        let table = language::table_of_file(schema, name)?;
        let source = Source::open(table, path, manner, bar)?;
        if sources.iter().any(|earlier| earlier.table == source.table) {
            let shown = path.display();
            return Err(Error::invalid(format!("{name}={shown}: that table is named twice")));
        }
        sources.push(source);
    }
    Ok(sources)
}

/// Reads the character between cells.
fn separator(text: &str) -> std::result::Result<u8, String> {
    match (text, text.as_bytes()) {
        ("tab" | "\\t", _) => Ok(b'\t'),
        (_, &[byte]) if byte.is_ascii() && !b"\"\r\n".contains(&byte) => Ok(byte),
        _ => Err("a separator is one character of ASCII, and no quote; `tab` is a tab".to_owned()),
    }
}

/// Adds rows to an existing database.
fn add(
    path: &Path,
    schema: &Schema,
    rows: impl FnOnce(Loading<'_>) -> Result<Arrived>,
) -> Result<Arrived> {
    let database = progress::options().create(false).open(path)?;
    crate::notes::tell_recovery(&database);
    let begin = || {
        let transaction = database.begin()?;
        let present = Schema::clone(transaction.view().schema());
        if present.commands().is_empty() {
            let mut loading = Loading::begin(transaction, schema)?;
            return loading.index_now().map(|()| loading);
        }
        if let Some(difference) = language::difference(&present, schema) {
            let message = format!("the file has another schema than --schema: {difference}");
            return Err(Error::new(ErrorKind::SchemaMismatch, message));
        }
        Ok(Loading::resume(transaction, present))
    };
    let imported = begin().and_then(rows);
    crate::notes::tell_damage(&database.image_damage());
    let closed = database.close();
    imported.and_then(|arrived| closed.map(|()| arrived))
}
