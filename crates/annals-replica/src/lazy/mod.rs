//! Lazy replicas: a database elsewhere is read before it is here. Pages of its image and parts of its journal are
//! fetched by ranges when they are needed, verified as those of a file are, and kept in a bounded cache.
//!
//! ```text
//! Lazy ── Reader (as of any file) ── RemoteDirectory ── Cache (blocks that are here)
//!                                          └── Fetch (again, until a deadline) ── Ranges: a server │ any web server │ ..
//! ```
//!
//! `ranges` is the source, which others may implement; `server` and `web` are two of them, over `request`.

mod cache;
mod directory;
mod fetch;
mod ranges;
#[cfg(feature = "http")]
mod request;
#[cfg(feature = "http")]
mod server;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
mod typed;
#[cfg(feature = "http")]
mod web;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use annals::{Cursor, Error, ErrorKind, Options, Reader, Result, Snapshot};
use annals_storage::sync::lock;
use annals_storage::{Access, Directory, FileDirectory};

use crate::Patience;
use cache::Cache;
use directory::{News, Remote, RemoteDirectory};
use fetch::Fetch;

pub use fetch::Fetched;
pub use ranges::{Contents, IntoRanges, Object, Piece, Ranges};
pub use typed::TypedLazy;
#[cfg(feature = "http")]
pub use web::Web;

/// How often it starts over if the source has another state each time.
const TRIES: usize = 5;
/// The file in the folder that names the source.
const ORIGIN: &str = "origin";

/// How a lazy replica fetches, and how much it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetching {
    /// The most bytes that are kept here.
    pub cache: u64,
    /// How long a read that needs the network tries to get an answer.
    pub patience: Patience,
}

impl Default for Fetching {
    fn default() -> Self {
        Self { cache: 256 << 20, patience: Patience::default() }
    }
}

/// A database elsewhere, for reading. The first question is answered before the history, or even the image, is here:
/// each fetches what it needs, and that is kept.
///
/// It shows the state of its last look, until [`pull`](Self::pull). A read that needs the network and gets no answer is
/// an error of kind [`Unreachable`](ErrorKind::Unreachable), never a wrong answer. If the source has replaced the state
/// meanwhile, a read of what isn't here is an error of kind [`Forgotten`](ErrorKind::Forgotten): then
/// [`pull`](Self::pull), and read again, or let [`ask`](Self::ask) do that.
///
/// A page that is damaged there is an error of kind [`PageLost`](ErrorKind::PageLost), until [`pull`](Self::pull) finds a
/// newer state of the image there: to do without the page, up to the whole journal would be fetched.
#[derive(Debug)]
pub struct Lazy {
    remote: Arc<Remote>,
    journal: String,
    options: Options,
    reader: Mutex<Arc<Reader>>,
}

impl Lazy {
    /// Opens the lazy replica of a source, which is kept in the folder `PATH.partial`, or begins it there. There is no
    /// file at `path` itself before all is here. `from` is a source, or a URL: see [`IntoRanges`].
    ///
    /// # Errors
    /// Those of the source: `NotFound`, `Unreachable`, `Unauthenticated`, `Forbidden`, `Unsupported`; those of opening a
    /// database; `Io`: the folder can't be made; `Invalid`: it is of another source.
    pub fn open(from: impl IntoRanges, path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(from, path, &Options::new(), Fetching::default())
    }

    /// Does what [`open`](Self::open) does, with options of the database and of fetching.
    ///
    /// # Errors
    /// As there.
    pub fn open_with(
        from: impl IntoRanges,
        path: impl AsRef<Path>,
        options: &Options,
        fetching: Fetching,
    ) -> Result<Self> {
        let ranges = from.into_ranges()?;
        let (path, name) = (path.as_ref(), ranges.place());
        let folder = folder(path);
        let io = |error| Error::io(format!("{}: can't make this folder", folder.display()), error);
        // The source is asked first: nothing is made for one that isn't there.
        let fetch = Fetch::new(ranges, fetching.patience);
        fetch.ask(|ranges| ranges.look().map(drop))?;
        std::fs::create_dir_all(&folder).map_err(io)?;
        if let Some(other) = origin(path)?.filter(|origin| *origin != name) {
            let message = format!(
                "{} is of {other}, not of {name}: choose another file, or remove that folder",
                folder.display()
            );
            return Err(Error::invalid(message));
        }
        let directory = FileDirectory::new(&folder);
        note_origin(&directory, &name).map_err(io)?;
        let cache = Cache::open(&directory, fetching.cache);
        Self::begin(fetch, cache, options)
    }

    /// Opens a source without a folder: what was fetched is kept in memory.
    ///
    /// # Errors
    /// Those of the source, and those of opening a database.
    pub fn in_memory(
        ranges: Arc<dyn Ranges>,
        options: &Options,
        fetching: Fetching,
    ) -> Result<Self> {
        let cache = Cache::in_memory(fetching.cache);
        Self::begin(Fetch::new(ranges, fetching.patience), cache, options)
    }

    fn begin(fetch: Fetch, cache: Cache, options: &Options) -> Result<Self> {
        let journal = "journal".to_owned();
        let remote = Arc::new(Remote::new(fetch, cache, &journal)?);
        let reader = Mutex::new(Arc::new(read(&remote, &journal, options)?));
        Ok(Self { remote, journal, options: options.clone(), reader })
    }

    /// Returns what reads the state of the last look: all that is read from a file that is open for reading.
    #[must_use]
    pub fn reader(&self) -> Arc<Reader> {
        Arc::clone(&lock(&self.reader))
    }

    /// Returns the state of the last look.
    #[must_use]
    pub fn read(&self) -> Snapshot {
        self.reader().read()
    }

    /// Looks what the source has by now, and returns that state. Snapshots from before stay as they are, as long as what
    /// they read is here, or still there.
    ///
    /// Cost: a request; if there is something new, also the new part of the journal, or the head of a newer image.
    ///
    /// # Errors
    /// Those of the source, and those of opening a database: the shown state stays as it was.
    pub fn pull(&self) -> Result<Snapshot> {
        let news = self.remote.look()?;
        let mut reader = lock(&self.reader);
        let is_whole = reader.image_damage().is_empty();
        match news {
            News::Nothing if is_whole => {}
            News::Grown if is_whole => {
                reader.pull()?;
            }
            News::Nothing | News::Grown | News::Replaced => {
                *reader = Arc::new(read(&self.remote, &self.journal, &self.options)?);
            }
        }
        Ok(reader.read())
    }

    /// Asks a question; again, of the newest state, if the source has replaced what is read meanwhile.
    ///
    /// # Errors
    /// Those of the question, and of [`pull`](Self::pull).
    pub fn ask<T>(&self, question: impl Fn(&Reader) -> Result<T>) -> Result<T> {
        for _ in 0..TRIES {
            match question(&self.reader()) {
                Err(error)
                    if matches!(error.kind(), ErrorKind::Forgotten)
                        && self.remote.is_replaced() =>
                {
                    self.pull()?;
                }
                answer => return answer,
            }
        }
        question(&self.reader())
    }

    /// Returns the cursor of the last transaction that is shown.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        self.read().point().into()
    }

    /// Returns what was fetched so far.
    #[must_use]
    pub fn fetched(&self) -> Fetched {
        self.remote.fetch.fetched()
    }

    /// Returns how many bytes are kept here.
    #[must_use]
    pub fn cached(&self) -> u64 {
        self.remote.cache.bytes()
    }

    /// Returns how many bytes the files have there: the image, and the segments that are known.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.remote.bytes()
    }

    /// Returns why nothing more is kept here, such as a full disk; `None` if all is well. Reads fetch again, then.
    #[must_use]
    pub fn cache_problem(&self) -> Option<String> {
        self.remote.cache.broken()
    }

    /// Returns the files elsewhere as a directory that can be read, and the journal's name there: for tools that copy a
    /// database.
    #[must_use]
    pub fn files(&self) -> (Arc<dyn Directory>, String) {
        (Arc::new(RemoteDirectory(Arc::clone(&self.remote))), self.journal.clone())
    }
}

/// Opens the state of the last look; of another look, if that state was replaced while it was opened.
fn read(remote: &Arc<Remote>, journal: &str, options: &Options) -> Result<Reader> {
    let mut tries = 0;
    loop {
        let directory = RemoteDirectory(Arc::clone(remote));
        match options.open_read_only_in(&directory, journal) {
            Err(error) if error.kind() == ErrorKind::Forgotten && tries < TRIES => {
                tries += 1;
                remote.look()?;
            }
            Err(error) => return Err(error),
            Ok(reader) => return check_end(reader, remote),
        }
    }
}

/// Checks that the state is on the history of the source: its end is that history's.
fn check_end(reader: Reader, remote: &Remote) -> Result<Reader> {
    let (here, name) = (Cursor::from(reader.read().point()), remote.fetch.ranges.place());
    match remote.end() {
        Some(there) if there != here && reader.unapplied().is_none() => Err(Error::new(
            ErrorKind::Diverged,
            format!("{name}: its files end with {here}, and its history with {there}"),
        )),
        _ => Ok(reader),
    }
}

/// Returns the folder of the lazy replica that becomes the file at a path.
#[must_use]
pub fn folder(path: &Path) -> PathBuf {
    let mut folder = OsString::from(path);
    folder.push(".partial");
    folder.into()
}

/// Returns the name of the source of the lazy replica that becomes the file at a path; `None` if there is none.
///
/// # Errors
/// `Io`.
pub fn origin(path: &Path) -> Result<Option<String>> {
    let folder = folder(path);
    let io = |error| Error::io(format!("{}: can't read it", folder.join(ORIGIN).display()), error);
    match FileDirectory::new(&folder).open(ORIGIN, Access::Read) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io(error)),
        Ok(file) => {
            let len = usize::try_from(file.len().map_err(io)?).unwrap_or(usize::MAX);
            let mut bytes = vec![0; len.min(1 << 16)];
            let read = file.read_at(0, &mut bytes).map_err(io)?;
            bytes.truncate(read);
            Ok(Some(String::from_utf8_lossy(&bytes).trim_end().to_owned()))
        }
    }
}

/// Removes the lazy replica of a path, once all is here.
///
/// # Errors
/// `Io`.
pub fn remove(path: &Path) -> Result<()> {
    let folder = folder(path);
    std::fs::remove_dir_all(&folder)
        .map_err(|error| Error::io(format!("{}: can't remove it", folder.display()), error))
}

/// Writes down the name of the source.
fn note_origin(directory: &FileDirectory, name: &str) -> std::io::Result<()> {
    match directory.create(ORIGIN) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        created => created?.write_at(0, format!("{name}\n").as_bytes()),
    }
}
