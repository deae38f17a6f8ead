//! `annals pack`: keeps only the present.

use std::path::PathBuf;
use std::time::Duration;

use annals::reports::Packed;
use annals::{Error, ErrorKind, Result};
use clap::Args;
use serde_json::json;

use super::backfill::{forgotten, forgotten_object};
use crate::output::{Output, count, plain};
use crate::unfinished::Unfinished;
use crate::{Outcome, commands, progress};

/// Keep only the present of a database, and forget its history
///
/// The tables, rows, blobs and ids are unchanged, and programs open the file as before; the history is removed and
/// can't be restored. Without OUT the database itself is packed: its journal continues in a new file that begins with
/// the present state, and the older files are removed once that is on permanent storage. Files in use by readers are
/// kept; packing again removes them later. With OUT the file itself stays as it is, and OUT is a new database.
///
/// Nothing is done where the result would have more bytes than before: FILE is left as it is then, and OUT isn't
/// written, which is an error.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals pack people.annals
  annals pack people.annals small.annals")]
pub(crate) struct Arguments {
    /// The database
    file: PathBuf,
    /// The new file; without it the database itself is packed
    out: Option<PathBuf>,
    /// How many seconds to wait for writers at most
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
    /// Let other processes write the file meanwhile; all that write it must open it so
    #[arg(long, conflicts_with = "out")]
    shared: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let Arguments { file, out, .. } = arguments;
    let _unfinished = out.as_ref().map(|out| Unfinished::of(out, "pack"));
    let packed = match out {
        Some(out) => annals_tools::pack(&progress::options(), file, out)?,
        None => pack(arguments)?,
    };
    let shown = out.as_ref().unwrap_or(file).display().to_string();
    if !packed.is_done && out.is_some() {
        return Err(Error::new(
            ErrorKind::Invalid,
            format!(
                "{shown}: not written: packed it would have {}, and {} has {}; copy it with `annals backup`",
                count(packed.after, "byte"),
                file.display(),
                count(packed.before, "byte")
            ),
        ));
    }
    let mut output = Output::new();
    if arguments.json {
        output.line(&object(&shown, &packed).to_string())?;
    } else {
        for line in lines(&shown, &packed) {
            output.line(&plain(&line))?;
        }
    }
    output.flush()?;
    Ok(Outcome::Done)
}

/// Packs the database itself.
fn pack(arguments: &Arguments) -> Result<Packed> {
    let timeout = Duration::from_secs(arguments.timeout);
    let database = commands::open_to_maintain(&arguments.file, arguments.shared, timeout)?;
    let packed = database.pack(timeout);
    crate::notes::tell_damage(&database.image_damage());
    let closed = database.close();
    let packed = packed?;
    closed?;
    Ok(packed)
}

/// Prints the report.
fn lines(shown: &str, packed: &Packed) -> Vec<String> {
    let (before, after) = (count(packed.before, "byte"), count(packed.after, "byte"));
    if !packed.is_done {
        return vec![format!(
            "{shown}: left as it is, with {before}: packed it would have {after}"
        )];
    }
    let mut lines = vec![format!("{shown}: {after}, before {before}")];
    if let Some(gone) = &packed.forgotten {
        lines.push(format!("forgotten: {}", forgotten(gone)));
    }
    if let Some(pinned) = packed.pinned {
        lines.push(format!(
            "not forgotten: somebody reads segment {pinned}; pack again when that has ended"
        ));
    }
    lines
}

/// Returns the same for programs.
fn object(shown: &str, packed: &Packed) -> serde_json::Value {
    json!({
        "file": shown,
        "packed": packed.is_done,
        "before": packed.before,
        "after": packed.after,
        "forgotten": packed.forgotten.as_ref().map(forgotten_object),
        "pinned": packed.pinned,
    })
}
