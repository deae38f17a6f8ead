//! `annals push`: updates a copy of a database from it, once or continuously.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use annals::storage::{Clock, SystemClock};
use annals::{Error, Result};
use annals_tools::{Copied, Push};
use clap::Args;
#[cfg(feature = "net")]
use serde_json::json;

use super::backup::{line, object};
use crate::output::{Output, count, plain};
use crate::remote::{self, Access};
use crate::{Outcome, progress};

/// Update a copy of a database from it
///
/// DST is made if it is missing, with the whole history that SRC still has. Else SRC must have all that DST has: the
/// same transactions, with the same chains. If the two histories diverge, nothing is changed, and the error names the
/// last common transaction. Programs may meanwhile write SRC, continue it in new files, and forget its history; the
/// same new files are made for DST, which keeps history that SRC forgets. Others may read DST meanwhile. Only what is
/// known to be on permanent storage is copied.
///
/// DST may be the URL of a database on a server: it accepts each transaction of SRC that it doesn't have, or refuses it
/// and all later ones. So SRC is a copy of that database, made by `annals clone` or `annals backup`, with changes that
/// were made since.
///
/// With --follow it continues until it is stopped, and copies new commits. It may be killed at any moment: DST is a
/// database all the time, and the next push continues from there.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals push people.annals /backups/people.annals
  annals push people.annals /backups/people.annals --follow
  annals push people.annals http://127.0.0.1:8080/v1/people")]
pub(crate) struct Arguments {
    /// The database
    #[arg(value_name = "SRC")]
    from: PathBuf,
    /// The copy, which no other program writes; or the URL of a database on a server
    #[arg(value_name = "DST")]
    to: PathBuf,
    /// Continue to copy new commits, until it is stopped
    #[arg(long)]
    follow: bool,
    /// Print each report as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

/// How long it waits before it looks again.
const PAUSE: Duration = Duration::from_millis(100);

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    if let Some(url) = remote::url(&arguments.to) {
        return push_to_server(arguments, url);
    }
    let (from, to) = (&arguments.from, &arguments.to);
    if let (Ok(a), Ok(b)) = (from.canonicalize(), to.canonicalize())
        && a == b
    {
        let message =
            format!("{} and {} are one file: name another copy", from.display(), to.display());
        return Err(Error::invalid(message));
    }
    let mut push = annals_tools::push(&progress::options(), &arguments.from, &arguments.to)?;
    let mut output = Output::new();
    let to = arguments.to.display().to_string();
    let mut tell = |copied: &Copied| {
        output.line(&match arguments.json {
            true => object(&to, copied).to_string(),
            false => plain(&format!("{to}: {}", line(copied))),
        })?;
        output.flush()
    };
    tell(&push.bring_up()?)?;
    if arguments.follow {
        follow(&mut push, &mut tell)?;
    }
    push.close()?;
    Ok(Outcome::Done)
}

/// Pushes to a server what it doesn't have, once or continuously.
#[cfg(feature = "net")]
fn push_to_server(arguments: &Arguments, url: &str) -> Result<Outcome> {
    let connection = arguments.access.connect(url)?;
    let mut output = Output::new();
    let mut is_first = true;
    loop {
        let sent = annals_replica::push(&*connection, &arguments.from)?;
        if sent.transactions > 0 || is_first {
            let (number, txid) = (sent.transactions, sent.end.txid);
            output.line(&match arguments.json {
                true => json!({ "url": url, "transactions": number, "txid": txid.0 }).to_string(),
                false => plain(&format!(
                    "{url}: pushed {}, up to transaction {txid}",
                    count(number, "transaction")
                )),
            })?;
            output.flush()?;
        }
        if !arguments.follow {
            return Ok(Outcome::Done);
        }
        is_first = false;
        SystemClock.pause(PAUSE);
    }
}

/// Pushes to a server: there is no way.
#[cfg(not(feature = "net"))]
fn push_to_server(arguments: &Arguments, _url: &str) -> Result<Outcome> {
    arguments.access.fetch(&arguments.to).map(|_| Outcome::Done)
}

/// Copies new commits until it is stopped or something fails.
fn follow(push: &mut Push, tell: &mut dyn FnMut(&Copied) -> Result<()>) -> Result<Infallible> {
    loop {
        SystemClock.pause(PAUSE);
        let mut copied = push.bring_up()?;
        while copied.transactions > 0 {
            tell(&copied)?;
            copied = push.bring_up()?;
        }
    }
}
