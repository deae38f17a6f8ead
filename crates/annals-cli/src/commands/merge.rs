//! `annals merge`: the rows of several files in one.

use std::path::PathBuf;

use annals::Result;
use clap::Args;

use crate::output::{Output, count, plain};
use crate::{Outcome, progress};

/// Merge databases of the same schema into a new one
///
/// The rows of the first file keep their ids; those of each further one come behind them with new ids, and
/// references lead to the same rows as before. Blobs are copied. Each file becomes one transaction, with a comment
/// that names it; the histories stay where they are. A table of a single row must be the same in all files.
///
/// If two rows have the same key in a unique index, both are named with their files, and nothing is written. A
/// reference that leads to no row that ever was becomes null, and those are counted.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals merge all.annals north.annals south.annals")]
pub(crate) struct Arguments {
    /// The new file
    out: PathBuf,
    /// The databases, in the order of their rows
    #[arg(value_name = "IN", required = true)]
    from: Vec<PathBuf>,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let merged = progress::options().merge(&arguments.from, &arguments.out)?;
    let out = arguments.out.display().to_string();
    let mut output = Output::new();
    if arguments.json {
        let object = serde_json::json!({
            "file": out,
            "rows": merged.rows,
            "blobs": merged.blobs,
            "lost_references": merged.lost_references,
        });
        output.line(&object.to_string())?;
    } else {
        let (rows, blobs) = (count(merged.rows, "row"), count(merged.blobs, "blob"));
        output.line(&plain(&format!("{out}: {rows}, {blobs}")))?;
        if merged.lost_references > 0 {
            let lost = count(merged.lost_references, "reference");
            output.line(&format!("{lost} to rows that never were: null now"))?;
        }
    }
    output.flush()?;
    Ok(Outcome::Done)
}
