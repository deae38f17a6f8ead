//! `annals convert`: the newest format, compressed or not.

use std::path::PathBuf;

use annals::Result;
use clap::Args;

use crate::output::{Output, count, plain};
use crate::unfinished::Unfinished;
use crate::{Outcome, progress};

/// Rewrite a database in the newest format, and compress it or unpack it
///
/// OUT has the whole history, in as many files as IN (OUT and OUT-segment-NUMBER). With --compress they are
/// compressed with zstd, in blocks: `log`, `dump`, `info`, `check` and all that only reads open them as they are, in
/// little memory and without unpacking them to a disk. They can't be written. Converted again, without --compress,
/// they have the bytes that they had before; `zstd -d` unpacks them, too.
///
/// Programs may write IN meanwhile: then, as by `annals backup`, all that is known to be on permanent storage is
/// converted, and the transactions after that are counted. Everything is verified. OUT must not exist yet, and appears
/// only when it is whole.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals convert people.annals people.annals.zst --compress
  annals dump people.annals.zst --format json
  annals convert people.annals.zst people-again.annals")]
pub(crate) struct Arguments {
    /// The database
    #[arg(value_name = "IN")]
    from: PathBuf,
    /// The new file
    out: PathBuf,
    /// Compress it
    #[arg(long)]
    compress: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let Arguments { from, out, compress, json } = arguments;
    let _unfinished = ["convert", "backup"].map(|what| Unfinished::of(out, what));
    let done = annals_tools::convert(&progress::options(), from, out, *compress)?;
    let out = out.display().to_string();
    let mut output = Output::new();
    if *json {
        let object = serde_json::json!({
            "file": out,
            "files": done.segments,
            "plain_bytes": done.plain,
            "written_bytes": done.written,
            "soft": done.soft,
        });
        output.line(&object.to_string())?;
    } else {
        let size = match compress {
            true => {
                format!("{}, unpacked {}", count(done.written, "byte"), count(done.plain, "byte"))
            }
            false => count(done.written, "byte"),
        };
        let left = match done.soft {
            0 => String::new(),
            soft => format!("; {} left out", super::backup::not_hard(soft)),
        };
        output.line(&plain(&format!("{out}: {size} in {}{left}", count(done.segments, "file"))))?;
    }
    output.flush()?;
    Ok(Outcome::Done)
}
