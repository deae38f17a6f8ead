//! `annals explore`: a page in the browser, in which the whole past of a database can be seen.

use std::path::PathBuf;

use annals::{Error, Result};
use annals_server::{NewToken, Role, Server};
use clap::Args;

use super::serve::{name, run_until_ended};
use crate::output::{Output, say};
use crate::remote::Access;
use crate::{Outcome, notes, progress};

/// See a database through time, in the browser
///
/// Opens a page with a slider over all transactions: tables as they were at each, what changed, every version of a row,
/// since when each value is there. Everything that the page shows has a link. It needs no network: the page is in this
/// program, and only this machine can reach it.
///
/// The file is opened for reading, also while another program writes it. With --write rows can be restored as they were:
/// then no other program may have the file open. Of a database on a server a copy is read.
///
/// It prints the link of the page, with a token that ends with the program. Ctrl-C ends it.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals explore people.annals
  annals explore people.annals --listen 127.0.0.1:9000 --no-open")]
pub(crate) struct Arguments {
    /// The database: a file, or the URL of one on a server
    file: PathBuf,
    /// Where to listen, on this machine; with port 0 at a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: String,
    /// Don't open a browser
    #[arg(long)]
    no_open: bool,
    /// Open the file for writing, so that rows can be restored
    #[arg(long)]
    write: bool,
    #[command(flatten)]
    access: Access,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let file = arguments.access.fetch(&arguments.file)?;
    let shown = name(&file)?.to_owned();
    let role = if arguments.write { Role::Write } else { Role::Read };
    let new = NewToken::random(role, None);
    let server = Server::new().session(new.stored);
    let (server, database) = match arguments.write {
        true if crate::remote::url(&arguments.file).is_some() => {
            let message = "--write is about a file: write to a server by a replica of it";
            return Err(Error::invalid(message));
        }
        true => {
            let database = progress::options().open(&*file)?;
            notes::tell_recovery(&database);
            (server.database(&shown, database.clone())?, Some(database))
        }
        false => {
            let reader = progress::options().open_read_only(&*file)?;
            (server.reader(&shown, reader, None)?.read_only("start it with --write"), None)
        }
    };
    let server = server.file(&shown, &*file)?;
    annals::storage::raise_most_open_files();
    annals::storage::return_freed_memory();
    let served = run_until_ended(server, &arguments.listen, |listening| {
        if !listening.address().ip().is_loopback() {
            let message = "the explorer listens on this machine only: name an address of loopback, or use `annals serve`";
            return Err(Error::invalid(message));
        }
        let link = format!("{}/explore/{shown}?token={}", listening.url(), new.token);
        let mut output = Output::new();
        output.line(&link)?;
        output.flush()?;
        if !arguments.no_open && !open(&link) {
            say("no browser could be opened: open the link above");
        }
        Ok(())
    });
    served.and(database.map_or(Ok(()), annals::Database::close)).map(|()| Outcome::Done)
}

/// Opens a link in the user's browser; false if there is none.
fn open(link: &str) -> bool {
    let program = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    let quiet = std::process::Stdio::null;
    let opened =
        std::process::Command::new(program).arg(link).stdout(quiet()).stderr(quiet()).spawn();
    opened.is_ok()
}
