//! `annals merge`: the rows of several files in one.

use std::path::PathBuf;

use annals::Result;
use annals_tools::OnConflict;
use clap::{Args, ValueEnum};

use crate::output::{Output, count, plain};
use crate::unfinished::Unfinished;
use crate::{Outcome, progress};

/// Merge databases of the same schema into a new one
///
/// The rows of the first file keep their ids; those of each further one get new ids after them, and references still
/// refer to the same rows. Blobs are copied. Each file becomes one transaction, with a comment that names it; the
/// histories stay where they are. A table of a single row must be the same in all files.
///
/// If a row has the key of a row of an earlier file in a unique index, an error names both with their files, and
/// nothing is written. With --on-conflict they become one row, with the values of the chosen one. A reference to a
/// row that never existed becomes null, and those are counted.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals merge all.annals north.annals south.annals
  annals merge all.annals old.annals new.annals --on-conflict replace")]
pub(crate) struct Arguments {
    /// The new file
    out: PathBuf,
    /// The databases, in the order of their rows
    #[arg(value_name = "IN", required = true)]
    from: Vec<PathBuf>,
    /// What to do if two rows have the same key, or single rows differ
    #[arg(long, value_enum, value_name = "CHOICE", default_value = "refuse")]
    on_conflict: Choice,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

/// The row that is kept.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Choice {
    /// Write nothing, and name both
    Refuse,
    /// The row of the earlier file; the other one is left out
    Keep,
    /// The values of the later file, in the row of the earlier one
    Replace,
}

impl From<Choice> for OnConflict {
    fn from(choice: Choice) -> Self {
        match choice {
            Choice::Refuse => Self::Refuse,
            Choice::Keep => Self::Keep,
            Choice::Replace => Self::Replace,
        }
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let Arguments { out, from, on_conflict, .. } = arguments;
    let _unfinished = Unfinished::of(out, "merge");
    let merged = annals_tools::merge(&progress::options(), from, out, (*on_conflict).into())?;
    let out = arguments.out.display().to_string();
    let mut output = Output::new();
    if arguments.json {
        let object = serde_json::json!({
            "file": out,
            "rows": merged.rows,
            "blobs": merged.blobs,
            "lost_references": merged.lost_references,
            "conflicts": merged.conflicts,
        });
        output.line(&object.to_string())?;
    } else {
        let (rows, blobs) = (count(merged.rows, "row"), count(merged.blobs, "blob"));
        output.line(&plain(&format!("{out}: {rows}, {blobs}")))?;
        if merged.conflicts > 0 {
            let rows = count(merged.conflicts, "row");
            output.line(&format!("{rows} became one with a row of an earlier file"))?;
        }
        if merged.lost_references > 0 {
            let lost = count(merged.lost_references, "reference");
            output.line(&format!("{lost} to rows that never were: null now"))?;
        }
    }
    output.flush()?;
    Ok(Outcome::Done)
}
