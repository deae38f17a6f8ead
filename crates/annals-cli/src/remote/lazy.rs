//! A command that reads a part of a database elsewhere fetches only that part.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use annals::storage::{FileDirectory, SystemClock};
use annals::{Error, ErrorKind, Options, Reader, Result, Snapshot};
use annals_replica::{Fetching, Lazy, Ranges, lazy};

use super::access::Access;
use crate::progress;

/// How much of what was fetched is kept in memory, where there is no folder for it, in bytes.
const IN_MEMORY: u64 = 64 << 20;

impl Access {
    /// Opens for reading what a path or a URL names: a file, a lazy replica that isn't whole yet, or a database
    /// elsewhere, of which only what is needed is fetched.
    pub(crate) fn open(&self, options: &Options, path: &Path) -> Result<Opened> {
        let (reader, lazy) = match (super::url(path), origin(path)?) {
            (Some(url), _) => {
                let lazy = lazily(self.place(url)?.ranges(), options)?;
                (lazy.reader(), Some(lazy))
            }
            (None, Some(url)) => {
                let ranges = self.place(&url)?.ranges();
                let lazy = Lazy::open_with(ranges, path, options, Fetching::default())?;
                (lazy.reader(), Some(lazy))
            }
            (None, None) => (Arc::new(options.open_read_only(path)?), None),
        };
        crate::notes::note_unapplied(&reader, path);
        Ok(Opened { reader, lazy })
    }
}

/// Opens a database elsewhere, of which nothing is kept when the command ends.
pub(crate) fn lazily(ranges: Arc<dyn Ranges>, options: &Options) -> Result<Lazy> {
    // A place that can't be reached at all is reported at once; a connection that breaks later is waited for.
    ranges.look()?;
    Lazy::in_memory(ranges, options, Fetching { cache: IN_MEMORY, ..Fetching::default() })
}

/// Returns the URL of the lazy replica that isn't the file at a path yet; `None` if there is none, or the file.
pub(crate) fn origin(path: &Path) -> Result<Option<String>> {
    if super::url(path).is_some() || path.try_exists().unwrap_or(true) {
        return Ok(None);
    }
    lazy::origin(path)
}

/// Refuses a lazy replica where a whole file is needed.
pub(crate) fn refuse_partial(path: &Path) -> Result<()> {
    let Some(url) = origin(path)? else { return Ok(()) };
    let shown = path.display();
    Err(Error::new(
        ErrorKind::NotFound,
        format!(
            "{shown}: isn't here yet, but for the parts in {}, and this needs all of it: `annals clone {url} {shown}` \
             fetches the rest (`shell --read-only`, `history`, `blame`, `diff` and `dump` fetch what they need)",
            lazy::folder(path).display()
        ),
    ))
}

/// Copies all of a database elsewhere to a new file; what was fetched before isn't fetched again.
pub(crate) fn copy_all(lazy: &Lazy, path: &Path) -> Result<()> {
    let (from, name) = lazy.files();
    let (to, new_name) = FileDirectory::split(path)
        .map_err(|error| Error::io(format!("the path {path:?} can't be used"), error))?;
    let (options, clock) = (progress::options(), Arc::new(SystemClock));
    annals_tools::backup_in(&options, from, &name, to.again(), &new_name, clock).map(drop)
}

/// A database that is open for reading.
pub(crate) struct Opened {
    reader: Arc<Reader>,
    lazy: Option<Lazy>,
}

impl Opened {
    /// Returns the state as of the last load.
    pub(crate) fn read(&self) -> Snapshot {
        self.lazy.as_ref().map_or_else(|| self.reader.read(), Lazy::read)
    }

    /// Loads newer commits.
    pub(crate) fn pull(&self) -> Result<Snapshot> {
        self.lazy.as_ref().map_or_else(|| self.reader.pull(), Lazy::pull)
    }
}

impl Deref for Opened {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        &self.reader
    }
}
