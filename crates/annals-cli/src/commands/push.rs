//! `annals push`: updates a copy of a database from it, once or continuously.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use annals::storage::{Clock, SystemClock};
use annals::{Error, Result};
use annals_tools::{Copied, Push};
use clap::Args;

use super::backup::{line, object};
use crate::output::{Output, plain};
use crate::{Outcome, progress};

/// Update a copy of a database from it
///
/// DST is made if it is missing, with the whole history that SRC still has. Else SRC must have all that DST has: the
/// same transactions, with the same chains. If the two histories diverge, nothing is changed, and the error names the
/// last common transaction. Programs may meanwhile write SRC, continue it in new files, and forget its history; the
/// same new files are made for DST, which keeps history that SRC forgets. Others may read DST meanwhile. Only what is
/// known to be on permanent storage is copied.
///
/// With --follow it continues until it is stopped, and copies new commits. It may be killed at any moment: DST is a
/// database all the time, and the next push continues from there.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals push people.annals /backups/people.annals
  annals push people.annals /backups/people.annals --follow")]
pub(crate) struct Arguments {
    /// The database
    #[arg(value_name = "SRC")]
    from: PathBuf,
    /// The copy, which no other program writes
    #[arg(value_name = "DST")]
    to: PathBuf,
    /// Continue to copy new commits, until it is stopped
    #[arg(long)]
    follow: bool,
    /// Print each report as one JSON object
    #[arg(long)]
    json: bool,
}

/// How long it waits before it looks again.
const PAUSE: Duration = Duration::from_millis(100);

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
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
