//! `annals recover`: makes a file fit to be used again, or saves from it what verifies.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use annals::journal::Survey;
use annals::{Error, ErrorKind, Recovery, Result};
use clap::{Args, ValueEnum};

use crate::commands::recover_text::plan;
use crate::commands::salvage_text;
use crate::output::{Output, plain};
use crate::unfinished::Unfinished;
use crate::{Outcome, commands, progress};

/// Recover a database after a crash, or save what verifies of a damaged one
///
/// Every program that opens a database for writing recovers it by itself: it saves and cuts off what
/// was never known to be durable. This command shows first what would be kept and cut, asks, and copies
/// the whole file before it changes it. Nothing is done while another process has the file open.
///
/// The cut bytes are saved as FILE.tail-TXID-CHAIN: the bytes of the journal from the end of transaction TXID on. The
/// copy FILE.before-recovery-TXID-CHAIN is a database like any other.
///
/// A commit that verifies, but whose events don't apply, isn't cut either: nothing is done then, and the error names
/// the event. With --to hard it is cut, if it isn't known to have been flushed.
///
/// A damaged file, of which something is missing that was durable, is never changed. With --salvage all
/// transactions that verify, of all segments, are written into a new file: those up to the damage, and those after
/// it that are proven to be of this history, are whole, and fit what was kept. Where the image has what the journal
/// lost, one transaction takes it from there, and its comment says so. The status is 2 if that isn't all that the
/// file is known to have had.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals recover people.annals --dry-run
  annals recover people.annals
  annals recover people.annals --salvage salvaged.annals")]
pub(crate) struct Arguments {
    /// The database
    file: PathBuf,
    /// The end to recover to
    #[arg(long, value_enum, conflicts_with = "salvage")]
    to: Option<To>,
    /// Write all transactions that verify into this new file, and change nothing else
    #[arg(long, value_name = "NEW")]
    salvage: Option<PathBuf>,
    /// With --salvage, also take what verifies after damage and isn't proven to be of this history
    #[arg(long, requires = "salvage")]
    unproven: bool,
    /// Do it without asking
    #[arg(long, conflicts_with = "salvage")]
    yes: bool,
    /// Show the plan, and change nothing
    #[arg(long, conflicts_with_all = ["salvage", "yes"])]
    dry_run: bool,
    /// Print the report of --salvage as one JSON object
    #[arg(long, requires = "salvage")]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum To {
    /// The last transaction that is known to have been flushed
    Hard,
    /// The last transaction that the file notes as acknowledged
    Soft,
    /// The last transaction that verifies, as without this option
    End,
}

/// The decision of a person, or of the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    Nothing,
    Plan,
    No,
    Yes,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    match &arguments.salvage {
        Some(new) => salvage(arguments, new),
        None => recover(arguments),
    }
}

fn recover(arguments: &Arguments) -> Result<Outcome> {
    let recovery = match arguments.to {
        None => Recovery::Checked,
        Some(To::Hard) => Recovery::ToHard,
        Some(To::Soft) => Recovery::ToSoft,
        Some(To::End) => Recovery::ToEnd,
    };
    let decision = Arc::new(Mutex::new(Ok(Decision::Nothing)));
    let decided = Arc::clone(&decision);
    let (file, yes, dry_run) = (arguments.file.clone(), arguments.yes, arguments.dry_run);
    let ask = move |survey: &Survey| {
        let decision = decide(&file, survey, yes, dry_run);
        let goes_on = matches!(decision, Ok(Decision::Yes));
        *decided.lock().unwrap_or_else(PoisonError::into_inner) = decision;
        if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let options = progress::options().create(false).background(false).recovery(recovery);
    let opened = options.copy_first(true).before_recovery(ask).open(&arguments.file);
    let decision = std::mem::replace(
        &mut *decision.lock().unwrap_or_else(PoisonError::into_inner),
        Ok(Decision::Nothing),
    )?;
    let database = match opened {
        Err(error) if error.kind() == ErrorKind::Cancelled && decision == Decision::No => {
            let message = "nothing was changed, since the answer was not yes";
            return Err(Error::new(ErrorKind::Cancelled, message));
        }
        Err(error) if error.kind() == ErrorKind::Cancelled => return Ok(Outcome::Done),
        Err(error) if arguments.dry_run && is_only_for_reading(&error) => {
            return plan_unlocked(&arguments.file, recovery);
        }
        opened => opened?,
    };
    if let Some(unapplied) = database.unapplied() {
        let message = unapplied.explain(&arguments.file.display().to_string());
        return Err(Error::new(ErrorKind::Unapplied, format!("nothing was changed: {message}")));
    }
    let mut output = Output::new();
    let recovered = database.recovered().clone();
    if let Some(copy) = &recovered.copied_to {
        output.line(&format!("copied the whole file to {}", plain(copy)))?;
    }
    for finding in &recovered.findings {
        output.line(&plain(finding))?;
    }
    database.close()?;
    output.line("done: the file is closed properly")?;
    output.flush()?;
    Ok(Outcome::Done)
}

/// True if the file exists, but may not be written.
fn is_only_for_reading(error: &Error) -> bool {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    let only_for_reading = |kind| matches!(kind, PermissionDenied | ReadOnlyFilesystem);
    error.io_error().is_some_and(|cause| only_for_reading(cause.kind()))
}

/// Shows the plan for a file that can only be read, as it is at the moment.
fn plan_unlocked(file: &Path, recovery: Recovery) -> Result<Outcome> {
    let examination = annals_tools::examine(&progress::options().recovery(recovery), file)?;
    let inspection = &examination.inspection;
    if let Some(damage) = inspection.damage.as_ref().or(examination.problem.as_ref()) {
        return Err(Error::corrupt(damage.clone()));
    }
    if let Some(unapplied) = &examination.unapplied {
        let message = unapplied.explain(&file.display().to_string());
        return Err(Error::new(ErrorKind::Unapplied, message));
    }
    decide(file, inspection, false, true)?;
    let mut output = Output::new();
    output.line("note: this user may not write the file, so it was read without a lock")?;
    output.flush()?;
    Ok(Outcome::Done)
}

/// Shows the plan, and asks if there is anything to ask.
fn decide(file: &Path, survey: &Survey, yes: bool, dry_run: bool) -> Result<Decision> {
    let mut output = Output::new();
    for line in plan(file, survey) {
        output.line(&line)?;
    }
    output.flush()?;
    match (survey.has_tail() || survey.has_damaged_copy(), dry_run, yes) {
        (false, ..) => Ok(Decision::Nothing),
        (true, true, _) => Ok(Decision::Plan),
        (true, false, true) => Ok(Decision::Yes),
        (true, false, false) => ask(),
    }
}

fn ask() -> Result<Decision> {
    Ok(if commands::confirm()? { Decision::Yes } else { Decision::No })
}

fn salvage(arguments: &Arguments, new: &Path) -> Result<Outcome> {
    let options = progress::options().unproven(arguments.unproven);
    let _unfinished = Unfinished::of(new, "salvage");
    let salvaged = annals_tools::salvage(&options, &arguments.file, new)?;
    let mut output = Output::new();
    if arguments.json {
        output.line(&salvage_text::object(new, &salvaged).to_string())?;
    } else {
        for line in salvage_text::lines(new, &salvaged) {
            output.line(&plain(&line))?;
        }
    }
    output.flush()?;
    Ok(if salvaged.is_complete() { Outcome::Done } else { Outcome::Damaged })
}
