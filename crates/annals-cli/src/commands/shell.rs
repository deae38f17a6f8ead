//! `annals shell`: runs commands, from a script or from a terminal.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use annals::{Level, Result};
use clap::Args;

#[cfg(feature = "net")]
use crate::remote::shared_log::{Membership, tell_void};
use crate::remote::{self, Access};
use crate::shell::screen::Screen;
use crate::shell::session::Base;
use crate::{Outcome, files, language, notes, progress, shell};

/// Run commands, typed or from a script
///
/// The file is created if it doesn't exist. With --read-only it isn't, and nothing can be changed: that shows a file
/// as it is now, even if another process is writing it, or if it is read-only.
///
/// With --shared other processes that open the file so may write it too, in turn. The first change, or `begin`, waits
/// for the turn, 10 seconds at most unless --timeout says so, and loads the commits of the others. The turn is held
/// until `commit` or `rollback`: as long as changes are pending, no other process can write. `pull` loads the commits
/// of the others without a turn; nothing else does.
///
/// A script on standard input is one transaction until it says `commit`, and its end commits what is
/// pending. After each commit one line is printed at once: `committed txid=N position=P
/// level=soft|half|two_phase|checksummed`. An error rolls back what is not committed, prints `error: line N: ..` and
/// ends with status 1.
///
/// With --replica-of the server must accept each transaction; if another one came first, it is pulled, and the lines
/// run again. Once the server has it on permanent storage, `committed txid=N runs=N` is printed.
///
/// With --log it does the same as a node of a shared log: `committed ..` is printed once the log's servers have it.
///
/// With --offline, too, the changes are committed beside FILE, as FILE-local, without the server; `annals push FILE URL`
/// sends them later. Reads see both.
///
/// At a terminal each line is a transaction, except for those between `begin` and `commit`. An error is shown, has
/// changed nothing, and doesn't end the session. Tab completes; Ctrl-C clears the line, or ends a long output; Ctrl-D
/// leaves, and asks what to do with pending changes.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(crate) struct Arguments {
    /// The database: a file; with --read-only also the URL of one on a server, or of a file on a web server
    file: PathBuf,
    /// The level of commits that don't say another: soft or checksummed
    #[arg(long, value_name = "LEVEL", default_value = "checksummed")]
    #[arg(value_parser = language::level_option)]
    level: Level,
    /// Only look: everything that would change the file is an error
    #[arg(long)]
    read_only: bool,
    /// Let other processes write the file too, in turn; all that write it must open it so
    #[arg(long, conflicts_with = "read_only")]
    shared: bool,
    /// How many seconds to wait for the other processes at most, each time
    #[arg(long, value_name = "SECONDS", default_value_t = 10, requires = "shared")]
    timeout: u64,
    /// Run a script as transactions of a replica of the database at this URL: FILE is the copy, which is made if it
    /// isn't there
    #[arg(long, value_name = "URL", conflicts_with_all = ["read_only", "shared", "level"])]
    replica_of: Option<String>,
    /// Commit to FILE-local, without the server, until `annals push FILE URL`
    #[arg(long, requires = "replica_of")]
    offline: bool,
    #[command(flatten)]
    access: Access,
    #[cfg(feature = "net")]
    #[command(flatten)]
    membership: Membership,
    /// Don't remember the lines that are typed; ANNALS_HISTORY names the file that they are kept in
    #[arg(long)]
    no_history: bool,
}

fn after_help() -> String {
    let overview = shell::overview();
    format!(
        "{overview}
`#` or `//` begins a comment.

Example:
  echo 'create_table person
  add_field person name string
  insert person \"Ada\"
  commit at 1843-07-10T00:00:00Z' | annals shell people.annals"
    )
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let path = &arguments.file;
    if let Some(url) = &arguments.replica_of {
        return run_replica(arguments, url);
    }
    #[cfg(feature = "net")]
    if let Some(url) = &arguments.membership.log {
        return run_node(arguments, url);
    }
    if arguments.read_only {
        let reader = arguments.access.open(&progress::options(), path)?;
        let ran = run_lines(Base::ReadOnly(&reader), arguments);
        crate::notes::tell_damage(&reader.image_damage());
        return ran.map(|()| Outcome::Done);
    }
    remote::refuse_url(path)?;
    remote::refuse_partial(path)?;
    let is_new = !path.try_exists().map_err(|error| files::cannot("look for", path, error))?;
    let timeout = Duration::from_secs(arguments.timeout);
    let options = progress::options().level(arguments.level).shared(arguments.shared);
    let options = options.lock_timeout(timeout);
    let database = options.open(path)?;
    notes::tell_recovery(&database);
    let ran = run_lines(Base::Database(&database), arguments);
    crate::notes::tell_later_recoveries(&database);
    crate::notes::tell_damage(&database.image_damage());
    // A shared file may be another's by now.
    let is_unused = is_new && !arguments.shared && database.read().txid() == annals::Txid(0);
    let closed = database.close();
    if ran.is_err() && is_unused {
        // A script that did nothing leaves nothing. Its error is the one to report.
        let _ = std::fs::remove_file(path);
    }
    ran.and(closed).map(|()| Outcome::Done)
}

/// Runs a script as transactions of a replica.
#[cfg(feature = "net")]
fn run_replica(arguments: &Arguments, url: &str) -> Result<Outcome> {
    let connection = arguments.access.connect(url)?;
    let (options, patience) = (progress::options(), annals_replica::Patience::default());
    let replica =
        annals_replica::Replica::connect_with(connection, &arguments.file, &options, patience)?;
    if arguments.offline {
        let offline = replica.offline()?;
        let ran = run_lines(Base::Database(offline.database()), arguments);
        let closed = offline.close();
        let replica_closed = replica.close();
        return ran.and(closed).and(replica_closed).map(|()| Outcome::Done);
    }
    let mut screen = Screen::new(false);
    let ran = shell::replica::run(&replica, &mut std::io::stdin().lock(), &mut screen);
    let flushed = screen.output.flush();
    let closed = replica.close();
    ran.and(flushed).and(closed).map(|()| Outcome::Done)
}

/// Runs a script as transactions of a node of a shared log.
#[cfg(feature = "net")]
fn run_node(arguments: &Arguments, url: &str) -> Result<Outcome> {
    let Arguments { file, access, membership, replica_of, read_only, shared, .. } = arguments;
    if replica_of.is_some() || *read_only || *shared {
        let message = "--log can't be used with --replica-of, --read-only or --shared";
        return Err(annals::Error::invalid(message));
    }
    let log = membership.connect(url, access)?;
    let (options, patience) = (progress::options(), annals_replica::Patience::default());
    let connection = std::sync::Arc::clone(&log);
    let replica = annals_replica::Replica::connect_with(connection, file, &options, patience)?;
    if replica.behind().is_some() {
        replica.catch_up()?;
    }
    let mut screen = Screen::new(false);
    let ran = shell::replica::run(&replica, &mut std::io::stdin().lock(), &mut screen);
    let flushed = screen.output.flush();
    tell_void(&log, &mut 0);
    let closed = replica.close();
    ran.and(flushed).and(closed).map(|()| Outcome::Done)
}

/// Runs a script as transactions of a replica: there is no way.
#[cfg(not(feature = "net"))]
fn run_replica(arguments: &Arguments, url: &str) -> Result<Outcome> {
    arguments.access.fetch(url.as_ref()).map(|_| Outcome::Done)
}

fn run_lines(base: Base<'_>, arguments: &Arguments) -> Result<()> {
    if std::io::stdin().is_terminal() {
        shell::interactive::run(base, arguments.level, !arguments.no_history)
    } else {
        let mut screen = Screen::new(false);
        shell::script::run(base, arguments.level, &mut std::io::stdin().lock(), &mut screen)
    }
}
