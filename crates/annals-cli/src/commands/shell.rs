//! `annals shell`: runs a script from standard input.

use std::path::PathBuf;

use annals::{Commit, Database, Error, Level, Options, Result};
use clap::Args;

use crate::files::{self, read_line};
use crate::output::Output;
use crate::session::Session;
use crate::{Outcome, commands, language};

/// Run a script from standard input
///
/// The file is created if it isn't there. A script is one transaction until it says `commit`, and
/// its end commits what is pending. After each commit one line is printed at once:
/// `committed txid=N position=P level=soft|checksummed`. An error rolls back what is not committed,
/// prints `error: line N: ..` and ends with status 1.
#[derive(Debug, Args)]
#[command(after_help = "Commands of the script:
  create_table T                         create_index NAME T FIELD[,FIELD..]
  add_field T FIELD TYPE [null] [default VALUE]
                                         create_unique_index NAME T FIELD[,FIELD..]
  insert T VALUE..                       the next id; a value for each field
  insert_at T ID VALUE..                 any free id; a value for each field
  insert_into T ID                       any free id; zero values
  update T ID FIELD VALUE                delete_from T ID
  comment \"TEXT\"                         timestamp [SECONDS] (now, if left out)
  begin                                  rollback
  commit [soft|checksummed] [at TIME]    # or // begins a comment
  namespace NAME                         does nothing here: it is for generated code

Example:
  echo 'create_table person
  add_field person name string
  insert person \"Ada\"
  commit at 1843-07-10T00:00:00Z' | annals shell people.annals")]
pub(crate) struct Arguments {
    /// The database
    file: PathBuf,
    /// The level of commits that don't say another: soft or checksummed
    #[arg(long, value_name = "LEVEL", default_value = "checksummed")]
    #[arg(value_parser = language::level_option)]
    level: Level,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let path = &arguments.file;
    let is_new = !path.try_exists().map_err(|error| files::cannot("look for", path, error))?;
    let database = Options::new().level(arguments.level).open(path)?;
    commands::tell_recovery(&database);
    let ran = run_script(&database, arguments.level);
    let is_unused = is_new && database.read().txid() == 0;
    let closed = database.close();
    if ran.is_err() && is_unused {
        // A script that did nothing leaves nothing. Its error is the one to tell.
        let _ = std::fs::remove_file(path);
    }
    ran.and(closed).map(|()| Outcome::Done)
}

/// Runs the lines as they come: a commit is made, and told, before the next line is read.
fn run_script(database: &Database, level: Level) -> Result<()> {
    let mut output = Output::new();
    let mut input = std::io::stdin().lock();
    let mut session = Session::new(database, level);
    let mut line = Vec::new();
    let mut number = 0_u64;
    loop {
        let more = read_line(&mut input, &mut line)
            .map_err(|error| Error::io("cannot read the script from standard input", error))?;
        if !more {
            break;
        }
        number += 1;
        let commit = run_line(&mut session, &line).map_err(|error| at_line(number, error))?;
        tell(&mut output, commit)?;
    }
    let commit = session.end().map_err(|error| at_line(number, error))?;
    tell(&mut output, commit)
}

fn run_line(session: &mut Session<'_>, line: &[u8]) -> Result<Option<Commit>> {
    let line = std::str::from_utf8(line).map_err(|error| {
        Error::invalid(format!("invalid UTF-8 at byte {} of the line", error.valid_up_to() + 1))
    })?;
    // Some editors begin a file with a byte order mark.
    session.run(line.strip_prefix('\u{feff}').unwrap_or(line))
}

fn at_line(number: u64, error: Error) -> Error {
    error.within(format_args!("line {number}"))
}

fn tell(output: &mut Output, commit: Option<Commit>) -> Result<()> {
    let Some(Commit { txid, position, level }) = commit else { return Ok(()) };
    let level = language::level_name(level);
    output.line(&format!("committed txid={txid} position={position} level={level}"))?;
    output.flush()
}
