//! `annals import`: data that other programs wrote.

use annals::Result;
use clap::{Args, Subcommand};

use crate::Outcome;
#[cfg(feature = "arrow")]
use crate::commands::import_parquet;
#[cfg(feature = "sqlite")]
use crate::commands::import_sqlite;
use crate::commands::{import_changes, import_csv, import_joedb, import_json};

/// Take in data that other programs wrote
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals import csv people.annals --schema people.schema person=person.csv.gz
  annals import sqlite people.sqlite people.annals
  annals import parquet people-parquet people.annals
  annals import changes people.annals changes.ndjson
  annals import joedb people.joedb people.annals")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Csv(import_csv::Arguments),
    Json(import_json::Document),
    Ndjson(import_json::Lines),
    #[cfg(feature = "sqlite")]
    Sqlite(import_sqlite::Arguments),
    Changes(import_changes::Arguments),
    #[cfg(feature = "arrow")]
    Parquet(import_parquet::Parquet),
    #[cfg(feature = "arrow")]
    Arrow(import_parquet::Arrow),
    Joedb(import_joedb::Arguments),
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    match &arguments.what {
        What::Csv(arguments) => import_csv::run(arguments),
        What::Json(arguments) => import_json::run_document(arguments),
        What::Ndjson(arguments) => import_json::run_lines(arguments),
        #[cfg(feature = "sqlite")]
        What::Sqlite(arguments) => import_sqlite::run(arguments),
        What::Changes(arguments) => import_changes::run(arguments),
        #[cfg(feature = "arrow")]
        What::Parquet(arguments) => import_parquet::run_parquet(arguments),
        #[cfg(feature = "arrow")]
        What::Arrow(arguments) => import_parquet::run_arrow(arguments),
        What::Joedb(arguments) => import_joedb::run(arguments),
    }
}
