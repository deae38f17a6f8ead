//! A command that reads all of a database gets a copy of it in a temporary folder, verified while it is fetched: so every
//! command does the same with it as with a file.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use annals::storage::{Clock as _, SystemClock};
use annals::{Error, ErrorKind, Result, Txid};
use annals_replica::{Patience, Replica};
use std::time::Duration;
use tempfile::TempDir;

use super::INTERVAL;
use super::access::{Access, Place};
use crate::progress;

/// How long a server is asked to wait for news.
const PATIENCE: Duration = Duration::from_secs(50);
/// The pause after it couldn't be reached.
const PAUSE: Duration = Duration::from_secs(1);

impl Access {
    /// Returns a file with what a path or a URL names: the file itself, or a copy.
    pub(crate) fn fetch(&self, path: &Path) -> Result<Local> {
        let Some(url) = super::url(path) else {
            super::refuse_partial(path)?;
            return Ok(Local { path: path.to_owned(), copy: None });
        };
        let folder = tempfile::tempdir();
        let folder =
            folder.map_err(|error| Error::io("cannot create a temporary folder", error))?;
        let place = self.place(url)?;
        let name = url.trim_end_matches(".annals").rsplit('/').find(|name| !name.is_empty());
        let path = folder.path().join(format!("{}.annals", name.unwrap_or("database")));
        let replica = match place {
            Place::Server(server) => {
                let options = progress::options();
                Some(Replica::connect_with(server, &path, &options, Patience::default())?)
            }
            Place::Archive(archive) => {
                let options = progress::options();
                Some(Replica::connect_with(archive, &path, &options, Patience::default())?)
            }
            Place::Web(web) => {
                let lazy = super::lazily(web, &progress::options())?;
                super::copy_all(&lazy, &path)?;
                None
            }
        };
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
    /// What fetches more of it; `None` if it is of files on a web server.
    replica: Option<Replica>,
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
        let replica = replica.as_ref().ok_or_else(|| {
            let message = "files on a web server can't be followed: name a server, as http://HOST:PORT/v1/NAME";
            Error::new(ErrorKind::Unsupported, message)
        })?;
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
