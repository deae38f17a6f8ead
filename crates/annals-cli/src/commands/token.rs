//! `annals token`: who may do what with a database that is served.

use std::path::PathBuf;

use annals::storage::{Clock as _, SystemClock};
use annals::{Error, ErrorKind, Result, Timestamp};
use annals_server::{NewToken, Role, Tokens};
use clap::{Args, Subcommand};

use crate::Outcome;
use crate::output::{Output, plain};

/// Store, list or revoke the tokens of a database that is served
///
/// A token says who asks, and its role what that allows: `read` reads all, `write` also pushes, `admin` also sees the
/// server's own numbers. Only hashes are stored, in FILE-tokens, which nobody else may read and which is never sent to
/// replicas. A running server sees a change within a second.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals token add library.annals --role write
  annals token add library.annals --role read --until 2030-01-01T00:00:00Z
  annals token list library.annals
  annals token revoke library.annals 1f0c9a44")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Store a new token, and print it: this is the only time that it is shown
    #[command(after_help = "Example:
  annals token add library.annals --role write
  annals token add library.annals --role read --until 2030-01-01T00:00:00Z")]
    Add {
        /// The database
        file: PathBuf,
        /// read, write or admin
        #[arg(long)]
        role: Role,
        /// When it ends, as 2030-01-01T00:00:00Z; never, if nothing is said
        #[arg(long, value_name = "TIME")]
        until: Option<Timestamp>,
    },
    /// Print the stored tokens: the id, role and end of each
    #[command(after_help = "Example:
  annals token list library.annals")]
    List {
        /// The database
        file: PathBuf,
    },
    /// Remove a token
    #[command(after_help = "Example:
  annals token revoke library.annals 1f0c9a44")]
    Revoke {
        /// The database
        file: PathBuf,
        /// The id that `list` shows
        id: String,
    },
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let mut output = Output::new();
    match &arguments.what {
        What::Add { file, role, until } => {
            if !file.exists() {
                let message = format!("{}: there is no such database", file.display());
                return Err(Error::new(ErrorKind::NotFound, message));
            }
            if let Some(end) = until
                && end.0 <= SystemClock.now()
            {
                let message =
                    format!("--until {end}: that is past, so the token would never be valid");
                return Err(Error::invalid(message));
            }
            let new = NewToken::random(*role, *until);
            Tokens::of(file)?.add(&new.stored)?;
            output.line(&new.token)?;
        }
        What::List { file } => {
            for token in Tokens::of(file)?.list()? {
                let until = token.until.as_deref().unwrap_or("never");
                output.line(&plain(&format!("{} {} until {until}", token.id, token.role)))?;
            }
        }
        What::Revoke { file, id } => {
            let tokens = Tokens::of(file)?;
            if !tokens.revoke(id)? {
                let shown = tokens.path();
                let message = format!(
                    "{}: has no token {id:?}; `annals token list` shows their ids",
                    shown.display()
                );
                return Err(Error::new(ErrorKind::NotFound, message));
            }
        }
    }
    output.flush()?;
    Ok(Outcome::Done)
}
