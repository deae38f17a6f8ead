//! `annals clone`: begins a replica of a database on a server, or brings one up; or begins a lazy one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use annals::storage::{FileDirectory, SystemClock};
use annals::{Error, ErrorKind, Result};
use annals_replica::{Connection, Fetching, Lazy, Patience, Ranges, Replica, lazy};
use clap::Args;

use crate::output::{Output, count, plain};
use crate::remote::{self, Access, Place};
use crate::{Outcome, progress};

/// Copy a database from a server, or fetch what is new
///
/// FILE gets all history that the server has, transaction by transaction, each verified and applied before it is
/// written. If FILE is such a copy already, only what is new is fetched. It is a database of its own from the first
/// transaction on: programs read it without the network.
///
/// The URL may also be that of a file on any web server that sends ranges of files (Range), if it ends with `.annals`.
/// Its image and its kept segments are beside it, as in a directory. Or it is that of an archive: s3://BUCKET/PATH,
/// file:///FOLDER and so on.
///
/// With --lazy nearly nothing is fetched, and FILE isn't made: `shell --read-only`, `history`, `blame`, `diff` and
/// `dump` of FILE fetch what they need, and keep it in FILE.partial, up to 256 MiB. The same command without --lazy
/// fetches the rest: then FILE appears, whole, and FILE.partial goes.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals clone http://127.0.0.1:8080/v1/library library.annals
  annals clone https://example.org/data/library.annals library.annals --lazy
  annals history library.annals book 3")]
pub(crate) struct Arguments {
    /// The URL of the database
    url: String,
    /// The copy
    file: PathBuf,
    /// Fetch only what is read
    #[arg(long)]
    lazy: bool,
    #[command(flatten)]
    access: Access,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let (url, file) = (&arguments.url, &arguments.file);
    if remote::url(url.as_ref()).is_none() {
        let message = format!("{url:?} isn't a URL: to copy a file, use `annals backup`");
        return Err(Error::invalid(message));
    }
    let exists = file.try_exists().unwrap_or(true);
    let place = arguments.access.place(url)?;
    if arguments.lazy {
        return begin(file, exists, place.ranges());
    }
    let before =
        if exists { annals_tools::inspect(&annals::Options::new(), file)?.end.txid.0 } else { 0 };
    if !exists && lazy::origin(file)?.is_some() {
        return finish(file, place.ranges());
    }
    let end = match place {
        Place::Server(server) => pull(server, file)?,
        Place::Archive(archive) => pull(archive, file)?,
        Place::Web(web) => copy(web, file, exists)?,
    };
    if lazy::origin(file)?.is_some() {
        // It was whole already, and only the folder was left.
        lazy::remove(file)?;
    }
    tell(file, end.saturating_sub(before), end)
}

fn tell(file: &Path, fetched: u64, end: u64) -> Result<Outcome> {
    let fetched = count(fetched, "transaction");
    let mut output = Output::new();
    let file = file.display();
    output.line(&plain(&format!("{file}: fetched {fetched}, up to transaction {end}")))?;
    output.flush()?;
    Ok(Outcome::Done)
}

/// Begins a replica, or fetches what is new; returns its last transaction.
fn pull(server: Arc<dyn Connection>, file: &Path) -> Result<u64> {
    let options = progress::options();
    let replica = Replica::connect_with(server, file, &options, Patience::default())?;
    // Its end may be older than the answer to a server that couldn't be reached.
    replica.pull()?;
    let end = replica.cursor();
    replica.close()?;
    Ok(end.txid.0)
}

/// Copies files from a web server, or what is new of them; returns the last transaction.
fn copy(web: Arc<dyn Ranges>, file: &Path, exists: bool) -> Result<u64> {
    let options = progress::options();
    let lazy = remote::lazily(web, &options)?;
    match exists {
        false => remote::copy_all(&lazy, file)?,
        true => {
            let (from, name) = lazy.files();
            let (to, new_name) = FileDirectory::split(file)
                .map_err(|error| Error::io(format!("the path {file:?} can't be used"), error))?;
            let clock = Arc::new(SystemClock);
            let mut push = annals_tools::push_in(&options, from, &name, to, &new_name, clock);
            push.bring_up()?;
            push.close()?;
        }
    }
    Ok(annals_tools::inspect(&annals::Options::new(), file)?.end.txid.0)
}

/// Begins a lazy replica.
fn begin(file: &Path, exists: bool, ranges: Arc<dyn Ranges>) -> Result<Outcome> {
    if exists {
        let message = format!(
            "{}: is there already, and whole; without --lazy what is new is fetched",
            file.display()
        );
        return Err(Error::new(ErrorKind::InUse, message));
    }
    let lazy = Lazy::open_with(ranges, file, &progress::options(), Fetching::default())?;
    let (fetched, txid) = (lazy.fetched(), lazy.cursor().txid);
    let mut output = Output::new();
    output.line(&plain(&format!(
        "{}: transactions up to {txid} can be read; fetched {} of {} bytes in {}",
        lazy::folder(file).display(),
        fetched.bytes,
        lazy.size(),
        count(fetched.requests, "request")
    )))?;
    output.flush()?;
    Ok(Outcome::Done)
}

/// Makes a lazy replica whole.
fn finish(file: &Path, ranges: Arc<dyn Ranges>) -> Result<Outcome> {
    let lazy = Lazy::open_with(ranges, file, &progress::options(), Fetching::default())?;
    lazy.pull()?;
    let end = lazy.cursor().txid.0;
    remote::copy_all(&lazy, file)?;
    drop(lazy);
    lazy::remove(file)?;
    tell(file, end, end)
}
