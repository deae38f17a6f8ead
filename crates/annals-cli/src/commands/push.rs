//! `annals push`: updates a copy of a database from it, once or continuously.

use std::convert::Infallible;
use std::path::PathBuf;
#[cfg(feature = "net")]
use std::sync::Arc;
use std::time::Duration;

use annals::storage::{Clock, SystemClock};
use annals::{Error, Result};
#[cfg(feature = "net")]
use annals::{ErrorKind, Violation};
#[cfg(feature = "net")]
use annals_replica::{Connection, Patience, Rebased, Replica, Sent};
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
/// were made since. Or it is the file of a replica, for which `annals shell --replica-of URL --offline` has made changes:
/// then SRC-local is pushed, and kept as SRC-local.pushed-TXID-CHAIN.
///
/// If the database has other transactions meanwhile, nothing is changed. With --rebase those of SRC are then made again
/// after them, by values: a field is set if it has the value from before, a row deleted if it is as it was. Rows whose
/// ids others have taken get new ones, which are printed. If anything clashes, nothing is changed, each clash is a
/// line, and the status is 1. SRC itself stays as it is; what was made again isn't made again another time.
///
/// With --follow it continues until it is stopped, and copies new commits. It may be killed at any moment: DST is a
/// database all the time, and the next push continues from there.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals push people.annals /backups/people.annals
  annals push people.annals /backups/people.annals --follow
  annals push people.annals http://127.0.0.1:8080/v1/people
  annals push people.annals http://127.0.0.1:8080/v1/people --rebase")]
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
    /// Make the transactions of SRC again, by values, if the database on the server has others meanwhile
    #[arg(long, conflicts_with = "follow")]
    rebase: bool,
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
    if arguments.rebase {
        return Err(Error::invalid("--rebase is for a database on a server: write its URL as DST"));
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
        let sent = send(arguments, &connection).or_else(|error| {
            report_clashes(arguments, url, &error, &mut output)?;
            Err(error)
        })?;
        if sent.transactions > 0 || is_first {
            report(arguments, url, &sent, &mut output)?;
        }
        if !arguments.follow {
            return Ok(Outcome::Done);
        }
        is_first = false;
        SystemClock.pause(PAUSE);
    }
}

/// Pushes what a replica's file has beside it, or else the file itself.
#[cfg(feature = "net")]
fn send(arguments: &Arguments, connection: &Arc<dyn Connection>) -> Result<Rebased> {
    let from = &arguments.from;
    let whole = |Sent { transactions, end }| Rebased { transactions, end, renumbered: Vec::new() };
    let differs = |error: &Error| matches!(error.kind(), ErrorKind::Diverged | ErrorKind::Conflict);
    let advised = |error: Error| match differs(&error) && !arguments.rebase {
        true => error.advising("with --rebase they are made again, by values"),
        false => error,
    };
    let whole_file = || match annals_replica::push(&**connection, from) {
        Err(error) if arguments.rebase && differs(&error) => {
            annals_replica::rebase_journal(Arc::clone(connection), from)
        }
        sent => sent.map(whole).map_err(advised),
    };
    if !annals_replica::has_offline_changes(from) {
        return whole_file();
    }
    let options = progress::options().create(false);
    let connect =
        || Replica::connect_with(Arc::clone(connection), from, &options, Patience::default());
    let (before, replica) = match connect() {
        // A server of an older backup lacks what the replica had from it, too.
        Err(error) if differs(&error) => {
            let sent = whole_file()?;
            if !annals_replica::has_offline_changes(from) {
                return Ok(sent);
            }
            (sent.transactions, connect()?)
        }
        connected => (0, connected?),
    };
    let sent = match arguments.rebase {
        true => replica.rebase(),
        false => replica.push().map(whole).map_err(advised),
    };
    let closed = replica.close();
    let sent = sent.and_then(|sent| closed.map(|()| sent))?;
    Ok(Rebased { transactions: before + sent.transactions, ..sent })
}

/// Prints what was pushed, and the rows that have other ids now.
#[cfg(feature = "net")]
fn report(arguments: &Arguments, url: &str, sent: &Rebased, output: &mut Output) -> Result<()> {
    let Rebased { transactions, end, renumbered } = sent;
    if arguments.json {
        let moved: Vec<_> = renumbered
            .iter()
            .map(|it| json!({ "table": it.table, "from": it.from.0, "to": it.to.0 }))
            .collect();
        let mut report = json!({ "url": url, "transactions": transactions, "txid": end.txid.0 });
        if arguments.rebase {
            report["renumbered"] = moved.into();
        }
        output.line(&report.to_string())?;
        return output.flush();
    }
    let number = count(*transactions, "transaction");
    output.line(&plain(&format!("{url}: pushed {number}, up to transaction {}", end.txid)))?;
    for it in renumbered {
        let (from, to) = (it.from.0, it.to.0);
        output.line(&plain(&format!("row {from} of `{}` is row {to} there", it.table)))?;
    }
    output.flush()
}

/// Prints the clashes of a rebase as JSON; as text they are in the error.
#[cfg(feature = "net")]
fn report_clashes(
    arguments: &Arguments,
    url: &str,
    error: &Error,
    output: &mut Output,
) -> Result<()> {
    let Some(Violation::Conflict { obstacles }) = error.violation().filter(|_| arguments.json)
    else {
        return Ok(());
    };
    let clashes: Vec<_> = obstacles
        .iter()
        .map(|it| {
            json!({
                "transaction": it.again.map(|txid| txid.0), "table": it.table, "row": it.row.0, "field": it.field,
                "by": it.txid.map(|txid| txid.0), "reason": it.reason,
            })
        })
        .collect();
    output.line(&json!({ "url": url, "conflicts": clashes }).to_string())?;
    output.flush()
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
