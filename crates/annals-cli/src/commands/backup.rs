//! `annals backup`: a copy of a database, whatever others do with it meanwhile.

use std::path::PathBuf;

use annals::Result;
use annals_tools::Copied;
use clap::Args;
use serde_json::{Value, json};

use crate::output::{Output, count, plain};
use crate::remote::Access;
use crate::unfinished::Unfinished;
use crate::{Outcome, progress};

/// Copy a database, also while programs write it
///
/// The copy has the whole history that is left, byte for byte: the same journal with the same transactions, in as
/// many files as the original has (OUT and OUT-segment-NUMBER). Everything is verified while it is copied. Only
/// transactions that are known to be on permanent storage are copied; commits of the last moment may be missing, and
/// are counted. The image isn't copied: it is rebuilt when it is needed.
///
/// OUT must not exist yet. It appears when it is whole, and not at all if anything fails. `annals push` updates it
/// from the original later, unless it was written meanwhile.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals backup people.annals /backups/people-monday.annals")]
pub(crate) struct Arguments {
    /// The database: a file, the URL of one on a server, or of a file on a web server (https://HOST/NAME.annals)
    file: PathBuf,
    /// The new file
    out: PathBuf,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let file = &*arguments.access.fetch(&arguments.file)?;
    let _unfinished = Unfinished::of(&arguments.out, "backup");
    let copied = annals_tools::backup(&progress::options(), file, &arguments.out)?;
    let mut output = Output::new();
    let out = arguments.out.display().to_string();
    output.line(&match arguments.json {
        true => object(&out, &copied).to_string(),
        false => plain(&format!("{out}: {}", line(&copied))),
    })?;
    output.flush()?;
    Ok(Outcome::Done)
}

/// Describes how many transactions aren't durable.
pub(super) fn not_hard(soft: u64) -> String {
    format!("{} not known to be on permanent storage yet", count(soft, "transaction"))
}

/// Prints the report of a copy.
pub(super) fn line(copied: &Copied) -> String {
    let Copied { is_new, transactions, end, segment, soft } = copied;
    let of = if *segment == 0 { String::new() } else { format!(" of segment {segment}") };
    let up_to = format!("up to transaction {}, position {}{of}", end.txid, end.position);
    let soft = match soft {
        0 => String::new(),
        soft => format!("; after that {}", not_hard(*soft)),
    };
    match transactions {
        0 if *is_new => format!("copied the state, {up_to}{soft}"),
        0 => format!("nothing to copy, {up_to}{soft}"),
        _ => format!("copied {}, {up_to}{soft}", count(*transactions, "transaction")),
    }
}

/// Returns the same for programs.
pub(super) fn object(out: &str, copied: &Copied) -> Value {
    json!({
        "file": out,
        "new": copied.is_new,
        "transactions": copied.transactions,
        "txid": copied.end.txid.0,
        "chain": format!("{:016x}", copied.end.chain),
        "position": copied.end.position,
        "segment": copied.segment,
        "soft": copied.soft,
    })
}
