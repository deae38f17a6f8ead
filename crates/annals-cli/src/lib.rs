//! The program `annals`: one command a file, below `commands`.
//!
//! It is a library so that fuzzing can reach it ([`run_script`], [`print_log`]);
//! nothing else may use it as one.
//!
//! Exit status: 0 on success, 1 after an error (printed on stderr), 2 if `check` found damage, 3 if it found a commit
//! that doesn't apply. `diff` has 3 if rows differ, and `schema diff` 3 and 4 if schemas do.

#[cfg(test)]
mod advice;
mod arguments;
mod cell;
mod commands;
mod dump;
mod exchange;
mod files;
mod hints;
mod language;
mod new_file;
mod notes;
mod output;
mod present;
mod progress;
mod remote;
mod shell;
mod unfinished;

use std::io::{BufRead, ErrorKind as IoKind, Write};
use std::process::ExitCode;

use annals::storage::Directory;
use annals::{Database, ErrorKind, Level};
use clap::{Parser, Subcommand};

/// The status of a command that didn't fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It succeeded.
    Done,
    /// It found damage, and has reported it.
    Damaged,
    /// It found a commit that doesn't apply, and has reported it.
    Unapplied,
    /// It compared schemas, which differ, and the file can be upgraded.
    Upgradable,
    /// It compared schemas, which differ, and the file can't be upgraded.
    Incompatible,
    /// It compared two moments, and rows differ.
    Differs,
}

/// An embedded relational database that never forgets.
#[derive(Debug, Parser)]
#[command(
    name = "annals",
    version,
    propagate_version = true,
    subcommand_required = true,
    term_width = 90
)]
#[command(after_help = "Example:
  echo 'create_table person
  add_field person name string
  insert person \"Ada\"' | annals shell people.annals
  annals dump people.annals --format json
  annals recover people.annals --dry-run

Exit status: 0 when what was asked was done, 1 after an error, 2 when `check` found
damage, 3 when it found a commit that doesn't apply; `diff` has 3 for rows that differ,
and `schema diff` 3 and 4 for schemas.")]
struct Cli {
    /// The most memory that the command takes, about: a number of bytes, or one with KiB, MiB or GiB; 256MiB unless set
    #[arg(long, global = true, display_order = 900, value_name = "SIZE", value_parser = commands::size)]
    memory: Option<u64>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Shell(commands::shell::Arguments),
    #[cfg(feature = "sqlite")]
    Sql(commands::sql::Arguments),
    Compile(commands::compile::Arguments),
    Log(commands::log::Arguments),
    Diff(commands::diff::Arguments),
    History(commands::history::Arguments),
    Blame(commands::blame::Arguments),
    Revert(commands::revert::Arguments),
    Dump(commands::dump::Arguments),
    Info(commands::info::Arguments),
    Check(commands::check::Arguments),
    Recover(commands::recover::Arguments),
    Backfill(commands::backfill::Arguments),
    Retain(commands::retain::Arguments),
    Erase(commands::erase::Arguments),
    Backup(commands::backup::Arguments),
    Push(commands::push::Arguments),
    #[cfg(feature = "net")]
    Archive(commands::archive::Arguments),
    #[cfg(feature = "net")]
    Restore(commands::restore::Arguments),
    #[cfg(feature = "net")]
    Clone(commands::clone::Arguments),
    #[cfg(feature = "net")]
    Serve(commands::serve::Arguments),
    #[cfg(feature = "net")]
    Explore(commands::explore::Arguments),
    #[cfg(feature = "net")]
    Token(commands::token::Arguments),
    Pack(commands::pack::Arguments),
    Merge(commands::merge::Arguments),
    Convert(commands::convert::Arguments),
    Schema(commands::schema::Arguments),
    Import(commands::import::Arguments),
    Export(commands::export::Arguments),
    Completions(commands::completions::Arguments),
    Man(commands::man::Arguments),
}

/// Runs the program, with the arguments and the streams of this process; whether standard output was open when it
/// began.
#[must_use]
pub fn main(has_output: bool) -> ExitCode {
    annals::storage::ignore_file_size_signal();
    if !has_output {
        output::close();
    }
    let cli = match Cli::try_parse_from(arguments::with_either_json(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => {
            // Status 2 means damage in `check`, so a wrong argument must not cause it.
            let wrong = error.use_stderr();
            let is_printed = match error.print() {
                Ok(()) => true,
                Err(error) => error.kind() == IoKind::BrokenPipe,
            };
            let printed = is_printed && (wrong || has_output);
            return if wrong || !printed { ExitCode::from(1) } else { ExitCode::SUCCESS };
        }
    };
    match cli.command {
        #[cfg(feature = "net")]
        Command::Serve(_) => progress::leave_memory(),
        _ => cli.memory.into_iter().for_each(progress::limit_memory),
    }
    match run_soundly(&cli.command) {
        // It succeeded with the state before a commit that doesn't apply.
        Ok(Outcome::Done) if notes::is_behind() => ExitCode::from(1),
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Damaged) => ExitCode::from(2),
        Ok(Outcome::Unapplied | Outcome::Upgradable | Outcome::Differs) => ExitCode::from(3),
        Ok(Outcome::Incompatible) => ExitCode::from(4),
        Err(_) if output::has_lost_reader() => match notes::is_behind() {
            true => ExitCode::from(1),
            false => ExitCode::from(cli.command.status_without_reader()),
        },
        Err(error) => {
            hints::tell(&error);
            ExitCode::from(1)
        }
    }
}

/// Runs a command. One that only reads, and finds a page of an image lost, is run again without that page.
fn run_soundly(command: &Command) -> annals::Result<Outcome> {
    let mut ended = run(command);
    if ended.as_ref().is_err_and(|error| error.kind() == ErrorKind::PageLost)
        && command.can_be_repeated()
    {
        output::begin_again();
        progress::verify_images();
        ended = run(command);
    }
    let written = output::let_go();
    ended.and_then(|outcome| written.map(|()| outcome))
}

/// Runs a script as `annals shell` does with standard input: to its end, or to its first error, after
/// which the rest of it is still to be read.
///
/// # Errors
/// The result of a line of the script, or of the commit at its end.
#[doc(hidden)]
pub fn run_script(
    database: &Database,
    script: &mut dyn BufRead,
    output: impl Write + 'static,
) -> annals::Result<()> {
    let mut screen = shell::screen::Screen::to(output);
    shell::script::run(
        shell::session::Base::Database(database),
        Level::Checksummed,
        script,
        &mut screen,
    )
}

/// Prints the history of a file as `annals log` does.
///
/// # Errors
/// As [`annals_tools::scan`].
#[doc(hidden)]
pub fn print_log(
    directory: &dyn Directory,
    name: &str,
    output: impl Write + 'static,
) -> annals::Result<()> {
    commands::log::print(output::Output::to(output), |sink| {
        annals_tools::scan_in(&annals::Options::new(), directory, name, sink)
    })
}

fn run(command: &Command) -> annals::Result<Outcome> {
    if matches!(command, Command::Import(_) | Command::Export(_)) {
        unfinished::remove_at_interrupt();
    }
    match command {
        Command::Shell(arguments) => commands::shell::run(arguments),
        #[cfg(feature = "sqlite")]
        Command::Sql(arguments) => commands::sql::run(arguments),
        Command::Compile(arguments) => commands::compile::run(arguments),
        Command::Log(arguments) => commands::log::run(arguments),
        Command::Diff(arguments) => commands::diff::run(arguments),
        Command::History(arguments) => commands::history::run(arguments),
        Command::Blame(arguments) => commands::blame::run(arguments),
        Command::Revert(arguments) => commands::revert::run(arguments),
        Command::Dump(arguments) => commands::dump::run(arguments),
        Command::Info(arguments) => commands::info::run(arguments),
        Command::Check(arguments) => commands::check::run(arguments),
        Command::Recover(arguments) => commands::recover::run(arguments),
        Command::Backfill(arguments) => commands::backfill::run(arguments),
        Command::Retain(arguments) => commands::retain::run(arguments),
        Command::Erase(arguments) => commands::erase::run(arguments),
        Command::Backup(arguments) => commands::backup::run(arguments),
        Command::Push(arguments) => commands::push::run(arguments),
        #[cfg(feature = "net")]
        Command::Archive(arguments) => commands::archive::run(arguments),
        #[cfg(feature = "net")]
        Command::Restore(arguments) => commands::restore::run(arguments),
        #[cfg(feature = "net")]
        Command::Clone(arguments) => commands::clone::run(arguments),
        #[cfg(feature = "net")]
        Command::Serve(arguments) => commands::serve::run(arguments),
        #[cfg(feature = "net")]
        Command::Explore(arguments) => commands::explore::run(arguments),
        #[cfg(feature = "net")]
        Command::Token(arguments) => commands::token::run(arguments),
        Command::Pack(arguments) => commands::pack::run(arguments),
        Command::Merge(arguments) => commands::merge::run(arguments),
        Command::Convert(arguments) => commands::convert::run(arguments),
        Command::Schema(arguments) => commands::schema::run(arguments),
        Command::Import(arguments) => commands::import::run(arguments),
        Command::Export(arguments) => commands::export::run(arguments),
        Command::Completions(arguments) => commands::completions::run(arguments),
        Command::Man(arguments) => commands::man::run(arguments),
    }
}

impl Command {
    /// True if it changes nothing, and finds the same input again.
    const fn can_be_repeated(&self) -> bool {
        match self {
            Self::Log(_) | Self::Diff(_) | Self::History(_) | Self::Blame(_) => true,
            Self::Dump(_) | Self::Info(_) | Self::Export(_) => true,
            #[cfg(feature = "sqlite")]
            Self::Sql(_) => true,
            Self::Schema(arguments) => arguments.only_shows(),
            _ => false,
        }
    }

    /// Returns the status if the reader closed standard output before its end (`annals log F | head`), which needs no
    /// message: that of success, if the command only shows something.
    const fn status_without_reader(&self) -> u8 {
        match self {
            // What it shows are differences.
            Self::Diff(_) => 3,
            Self::Log(_) | Self::History(_) | Self::Blame(_) | Self::Dump(_) | Self::Info(_) => 0,
            #[cfg(feature = "sqlite")]
            Self::Sql(_) => 0,
            // Damage is said elsewhere, and is no error of writing.
            Self::Check(_) | Self::Compile(_) | Self::Completions(_) | Self::Man(_) => 0,
            Self::Schema(arguments) if arguments.only_shows() => 0,
            // A script wasn't run to its end, or nobody knows that something was done.
            _ => 1,
        }
    }
}
