//! `annals import json` and `annals import ndjson`.

use std::path::PathBuf;

use annals::Result;
use clap::Args;

use crate::Outcome;
use crate::exchange::arrival::To;
use crate::exchange::json::{self, Layout, Source};

/// The common part of both imports.
#[derive(Debug, Args)]
struct Input {
    /// The JSON, which may be compressed with gzip
    input: PathBuf,
    #[command(flatten)]
    to: To,
    /// Without a schema: texts that are all times, as 2021-11-02T22:10:25Z, become timestamps
    #[arg(long)]
    times: bool,
}

/// Make a database of a JSON document
///
/// Of one that `annals export json` wrote it makes the same tables, rows, ids and next ids. Any other must be an
/// array of objects, which are the rows of a table with the name of the file, or an object of such arrays. Then a
/// schema is derived that holds all values: booleans, 64-bit integers, floats, or texts. `id` is the id of the row
/// where all are ids and ascend. Arrays and objects in a row become texts of JSON.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals import json people.json people.annals")]
pub(crate) struct Document {
    #[command(flatten)]
    input: Input,
}

/// Make a database of JSON lines
///
/// Of lines that `annals export ndjson` wrote it makes the same tables, rows, ids and next ids, in bounded
/// memory. Any others must be objects, one a line, which are the rows of a table that has the name of the file.
/// Then a schema is derived that holds all values, as `annals import json` does.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals import ndjson people.ndjson.gz people.annals")]
pub(crate) struct Lines {
    #[command(flatten)]
    input: Input,
}

/// Runs `annals import json`.
pub(crate) fn run_document(arguments: &Document) -> Result<Outcome> {
    run(&arguments.input, Layout::Document)
}

/// Runs `annals import ndjson`.
pub(crate) fn run_lines(arguments: &Lines) -> Result<Outcome> {
    run(&arguments.input, Layout::Lines)
}

fn run(input: &Input, layout: Layout) -> Result<Outcome> {
    let source = Source { path: input.input.clone(), layout, times: input.times };
    json::import(&source, &input.to)?.tell()
}
