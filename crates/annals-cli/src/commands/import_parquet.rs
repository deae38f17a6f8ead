//! `annals import parquet` and `annals import arrow`: a file for each table, in one transaction.

use std::path::PathBuf;

use annals::{Error, Result, Schema, Timestamp};
use clap::Args;

use crate::commands::import_csv::{Filling, Plan, plan, take_in};
use crate::exchange::parquet::{self, Source};
use crate::{Outcome, language};

/// Take in a Parquet file for each table, in one transaction
///
/// IN is a directory as `annals export parquet` writes it, with the schema beside the tables, or one file; or each
/// file is named with its table. Columns are found by the names of fields, in any order; `id` is the row's id, and
/// without that column rows get the next ids. Fields without a column get their default. A value that a field can't
/// hold is an error that names its row. After an error nothing has changed. Without any schema one is made of the
/// columns; then the column `id` is the row's id if its values are ids and ascend.
#[derive(Debug, Args)]
#[command(
    override_usage = "annals import parquet [OPTIONS] <IN> <FILE>
       annals import parquet [OPTIONS] <FILE> <TABLE=PATH>...",
    after_help = "Example:
  annals import parquet people-parquet people.annals
  annals import parquet people.annals --schema people.schema person=person.parquet"
)]
pub(crate) struct Parquet {
    #[command(flatten)]
    words: Words,
}

/// Take in a file of Arrow for each table, in one transaction
///
/// As `annals import parquet`, of files that `annals export arrow` or another program wrote in Arrow's streaming format
/// or in its format of files, which is also that of Feather.
#[derive(Debug, Args)]
#[command(
    override_usage = "annals import arrow [OPTIONS] <IN> <FILE>
       annals import arrow [OPTIONS] <FILE> <TABLE=PATH>...",
    after_help = "Example:
  annals import arrow people-arrow people.annals"
)]
pub(crate) struct Arrow {
    #[command(flatten)]
    words: Words,
}

#[derive(Debug, Args)]
struct Words {
    /// The schema file; that of IN or FILE if left out
    #[arg(long, value_name = "S")]
    schema: Option<PathBuf>,
    /// The time of the commit, as in 2021-11-02T00:00:00Z; the clock's if left out
    #[arg(long, value_name = "TIME", value_parser = language::time_option)]
    at: Option<Timestamp>,
    /// The directory or file; or the database
    #[arg(value_name = "IN")]
    first: String,
    /// The database; or tables and their files, as TABLE=PATH
    #[arg(required = true, value_name = "FILE")]
    rest: Vec<String>,
}

/// Runs `import parquet`.
pub(crate) fn run_parquet(arguments: &Parquet) -> Result<Outcome> {
    run(&arguments.words, true)
}

/// Runs `import arrow`.
pub(crate) fn run_arrow(arguments: &Arrow) -> Result<Outcome> {
    run(&arguments.words, false)
}

fn run(words: &Words, is_parquet: bool) -> Result<Outcome> {
    let endings: &[&str] = if is_parquet { &["parquet"] } else { &["arrows", "arrow", "feather"] };
    let plan = plan(words.schema.as_deref(), &words.first, &words.rest, endings)?;
    let arrived = take_in(plan, words.at, |schema, plan| {
        let (schema, sources) = match schema {
            Some(schema) => {
                let sources = open(&schema, plan, is_parquet)?;
                (schema, sources)
            }
            None => parquet::infer(&plan.files, is_parquet)?,
        };
        let fill =
            |mut source: Source| -> Filling<'_> { Box::new(move |loading| source.import(loading)) };
        Ok((schema, sources.into_iter().map(fill).collect()))
    });
    arrived?.tell()
}

fn open(schema: &Schema, plan: &Plan, is_parquet: bool) -> Result<Vec<Source>> {
    let (mut sources, mut tables) = (Vec::new(), Vec::new());
    for (name, path) in &plan.files {
        let table = language::table_of_file(schema, name)?.number;
        if tables.contains(&table) {
            let shown = path.display();
            return Err(Error::invalid(format!("{name}={shown}: that table is named twice")));
        }
        tables.push(table);
        sources.push(Source::open(table, path, is_parquet)?);
    }
    Ok(sources)
}
