//! `annals erase`: takes values out of all history.

use std::path::PathBuf;

use annals::{Error, ErrorKind, Result};
use annals_tools::{Erase, Erased};
use clap::Args;
use serde_json::{Value, json};

use crate::output::{Output, count, plain, say};
use crate::{Outcome, commands, language, progress};

/// Erase the values of a row from all history
///
/// The journal is rewritten from the first file on that holds a value of this row, or of the one field. All values
/// that it ever had under this id are null from then on, at all times. Blobs lose their bytes if nothing else ever
/// led to them. Files that derive from the journal and may hold values are removed: the image, saved
/// tails, copies from before a recovery, files of interrupted commands. A file that only has such a name stays, and
/// is listed. Nothing else changes; a last transaction says what was erased.
///
/// If a request to a server with an Idempotency-Key wrote such a value, its answer goes, too, and the hash of the request.
/// The key stays, even with --comments: the same request, sent again, is refused. Other comments aren't touched unless that
/// is asked for, and the schema and other rows that say the same never are.
/// Copies elsewhere, backups and replicas, must be erased separately, and programs that have the old files open still
/// see the values.
///
/// Removing a file doesn't destroy its bytes on the disk. --overwrite writes zeros over the old files first. That
/// destroys them on a plain disk with a file system that writes in place (ext4 and XFS on a hard disk). It does not
/// on SSDs and flash cards, which write to other places. Nor does it on file systems that copy on write or keep
/// snapshots (btrfs, ZFS, APFS, XFS with reflinks), or in backups of the machine: there only encrypting the disk
/// helps.
///
/// It shows first what would be erased, and asks. No process may have the file open for writing.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals erase people.annals person 17 --dry-run
  annals erase people.annals person 17 --field address
  annals erase people.annals person 17 --comments --overwrite
  annals erase people.annals person 17 --yes")]
pub(crate) struct Arguments {
    /// The database
    file: PathBuf,
    /// The table
    table: String,
    /// The id of the row, which need not be there any more
    #[arg(value_parser = |id: &str| language::row_id(id).map_err(|error| error.to_string()))]
    id: annals::RowId,
    /// Only the values of this field
    #[arg(long, value_name = "FIELD")]
    field: Option<String>,
    /// Also erase the comments of all transactions that wrote such a value
    #[arg(long)]
    comments: bool,
    /// Also erase the comments of this transaction, even if there is no value left to erase; may be repeated
    #[arg(long, value_name = "TXID")]
    comments_of: Vec<u64>,
    /// Overwrite the old files with zeros before they are removed
    #[arg(long)]
    overwrite: bool,
    /// Do it without asking
    #[arg(long)]
    yes: bool,
    /// Show what would be erased, and change nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let path = &arguments.file;
    let what = Erase {
        table: arguments.table.clone(),
        row: arguments.id,
        field: arguments.field.clone(),
        comments: arguments.comments,
        comments_of: arguments.comments_of.clone(),
        overwrite: arguments.overwrite,
        dry_run: arguments.dry_run,
    };
    let mut output = Output::new();
    if !arguments.yes {
        let planned = annals_tools::erase(
            &progress::options(),
            path,
            &Erase { dry_run: true, ..what.clone() },
        )?;
        if arguments.dry_run {
            tell(arguments, &planned, &mut output)?;
            return Ok(Outcome::Done);
        }
        for line in lines(arguments, &planned, "would be ") {
            say(&plain(&line));
        }
        if !commands::confirm()? {
            let message = "nothing was changed, since the answer was not yes";
            return Err(Error::new(ErrorKind::Cancelled, message));
        }
    }
    let erased = annals_tools::erase(&progress::options(), path, &what)?;
    tell(arguments, &erased, &mut output)?;
    Ok(Outcome::Done)
}

fn tell(arguments: &Arguments, erased: &Erased, output: &mut Output) -> Result<()> {
    if arguments.json {
        output.line(&object(arguments, erased).to_string())?;
    } else {
        let would = if arguments.dry_run { "would be " } else { "" };
        for line in lines(arguments, erased, would) {
            output.line(&plain(&line))?;
        }
    }
    output.flush()
}

fn lines(arguments: &Arguments, erased: &Erased, would: &str) -> Vec<String> {
    let Erased { held, rewritten, .. } = erased;
    let mut lines = vec![format!(
        "{would}erased: {} of row {} of table {}, fields {}, from transactions {} to {}",
        count(erased.values, "value"),
        arguments.id.0,
        arguments.table,
        if erased.fields.is_empty() { "none".to_owned() } else { erased.fields.join(", ") },
        held.0,
        held.1
    )];
    if erased.comments > 0 {
        lines.push(format!("{would}erased: {}", count(erased.comments, "comment")));
    }
    if erased.answers > 0 {
        let answers = count(erased.answers, "answer");
        lines.push(format!("{would}erased: {answers} to requests with a key, which stays"));
    }
    if erased.blobs > 0 {
        lines.push(format!("{would}erased: the bytes of {}", count(erased.blobs, "blob")));
    }
    lines.push(format!(
        "{would}rewritten: {}, {}, with transactions {} to {}",
        count(erased.segments, "segment"),
        count(erased.bytes, "byte"),
        rewritten.0,
        rewritten.1
    ));
    lines.push(format!("{would}marked: by transaction {}", erased.mark));
    if erased.left > 0 {
        lines.push(format!(
            "left: {}, in a table or field that had this name before, and was dropped: erase once more",
            count(erased.left, "value")
        ));
    }
    lines.extend(erased.removed.iter().map(|name| format!("{would}removed: {name}")));
    lines.extend(erased.unproven.iter().map(|name| {
        format!(
            "left: {name}, which isn't proven to be a file of this database: look what it holds"
        )
    }));
    lines
}

/// Returns the same for programs.
fn object(arguments: &Arguments, erased: &Erased) -> Value {
    json!({
        "file": arguments.file.display().to_string(),
        "dry_run": arguments.dry_run,
        "table": arguments.table,
        "row": arguments.id.0,
        "fields": erased.fields,
        "values": erased.values,
        "comments": erased.comments,
        "answers": erased.answers,
        "blobs": erased.blobs,
        "held": [erased.held.0, erased.held.1],
        "rewritten": [erased.rewritten.0, erased.rewritten.1],
        "segments": erased.segments,
        "bytes": erased.bytes,
        "mark": erased.mark,
        "left": erased.left,
        "removed": erased.removed,
        "unproven": erased.unproven,
    })
}
