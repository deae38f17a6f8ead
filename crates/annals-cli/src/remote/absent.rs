//! In a program that was built without connections, a URL is an error.

use std::ops::Deref;
use std::path::Path;

use annals::storage::{Clock as _, SystemClock};
use annals::{Error, ErrorKind, Options, Reader, Result, Snapshot, Txid};
use clap::Args;

use super::INTERVAL;

/// A file to read.
pub(crate) struct Local<'p>(&'p Path);

impl Local<'_> {
    /// Waits a moment, in which others may commit.
    pub(crate) fn keep_up(&self, _seen: Txid) -> Result<()> {
        SystemClock.pause(INTERVAL);
        Ok(())
    }
}

impl Deref for Local<'_> {
    type Target = Path;

    fn deref(&self) -> &Path {
        self.0
    }
}

/// How to reach a database on a server: there is no way.
#[derive(Debug, Args)]
pub(crate) struct Access {}

impl Access {
    /// Returns the file that a path names.
    pub(crate) fn fetch<'p>(&self, path: &'p Path) -> Result<Local<'p>> {
        match super::url(path) {
            None => Ok(Local(path)),
            Some(url) => {
                let message = format!(
                    "{url}: this program was built without the feature `net`, which knows URLs"
                );
                Err(Error::new(ErrorKind::Unsupported, message))
            }
        }
    }
}

impl Access {
    /// Opens for reading the file that a path names.
    pub(crate) fn open(&self, options: &Options, path: &Path) -> Result<Opened> {
        let reader = options.open_read_only(&*self.fetch(path)?)?;
        crate::notes::note_unapplied(&reader, path);
        Ok(Opened(reader))
    }
}

/// Without connections there are no lazy replicas.
pub(crate) fn refuse_partial(_path: &Path) -> Result<()> {
    Ok(())
}

/// A database that is open for reading.
pub(crate) struct Opened(Reader);

impl Opened {
    /// Returns the state as of the last load.
    pub(crate) fn read(&self) -> Snapshot {
        self.0.read()
    }

    /// Loads newer commits.
    pub(crate) fn pull(&self) -> Result<Snapshot> {
        self.0.pull()
    }
}

impl Deref for Opened {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        &self.0
    }
}
