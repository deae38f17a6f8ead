//! A command that reads a whole database gets a copy of it in a temporary folder, verified while it is fetched: so every
//! command does the same with it as with a file.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};
use annals::{Error, ErrorKind, Options, Result, Txid};
use annals_replica::{Connection, Http, Patience, Replica};
use clap::Args;
use tempfile::TempDir;

use super::INTERVAL;

/// How long a server is asked to wait for news.
const PATIENCE: Duration = Duration::from_secs(50);
/// The pause after it couldn't be reached.
const PAUSE: Duration = Duration::from_secs(1);

/// How to reach a database on a server.
#[derive(Debug, Args)]
pub(crate) struct Access {
    /// The token for a server, where the database is a URL; ANNALS_TOKEN is another way to say it
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

impl Access {
    /// Prepares a connection to a URL.
    pub(crate) fn connect(&self, url: &str) -> Result<Arc<dyn Connection>> {
        Ok(Arc::new(self.http(url)?))
    }

    /// Prepares requests to a URL.
    pub(crate) fn http(&self, url: &str) -> Result<Http> {
        let from_environment =
            || std::env::var("ANNALS_TOKEN").ok().filter(|token| !token.is_empty());
        let token = self.token.clone().or_else(from_environment);
        Http::new(url, token)
    }

    /// Returns a file with what a path or a URL names: the file itself, or a copy.
    pub(crate) fn fetch(&self, path: &Path) -> Result<Local> {
        let Some(url) = super::url(path) else {
            return Ok(Local { path: path.to_owned(), copy: None });
        };
        let folder = tempfile::tempdir();
        let folder =
            folder.map_err(|error| Error::io("cannot create a temporary folder", error))?;
        let connection = self.connect(url)?;
        let name = url.rsplit('/').find(|name| !name.is_empty()).unwrap_or("database");
        let path = folder.path().join(format!("{name}.annals"));
        let options = Options::new();
        let replica = Replica::connect_with(connection, &path, &options, Patience::default())?;
        Ok(Local { path, copy: Some(Copy { replica, _folder: folder }) })
    }
}

/// A file to read: a user's, or a copy of a database on a server, which goes with this.
pub(crate) struct Local {
    path: PathBuf,
    copy: Option<Copy>,
}

/// A copy of a database on a server.
struct Copy {
    replica: Replica,
    _folder: TempDir,
}

impl Local {
    /// Waits until there may be more than the transactions up to `seen`: of a copy, fetches new ones. A server that
    /// can't be reached is tried again, since it may come back.
    pub(crate) fn keep_up(&self, seen: Txid) -> Result<()> {
        let Some(Copy { replica, .. }) = &self.copy else {
            SystemClock.pause(INTERVAL);
            return Ok(());
        };
        // What was fetched is in the file a moment later.
        if replica.cursor().txid > seen {
            SystemClock.pause(INTERVAL);
            return Ok(());
        }
        match replica.pull_for(PATIENCE) {
            Err(error) if error.kind() == ErrorKind::Unreachable => {
                crate::notes::note(&format!("{error}; trying again"));
                SystemClock.pause(PAUSE);
                Ok(())
            }
            pulled => pulled.map(drop),
        }
    }
}

impl Deref for Local {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}
