//! Reading a database without being able to write it.

use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;

use super::image::{Reading, Replayed, hard_position};
use super::options::Options;
use super::progress::Watched;
use super::scan::open_to_read;
use super::shared::replay_between;
use super::snapshot::{JournalFile, Published, Snapshot};
use crate::journal::{Point, Survey, lock};
use crate::storage::Directory;
use crate::store::Store;
use crate::{Error, ErrorKind, Result};

/// A database opened for reading only: as of its last commit when it was opened, or at the last
/// [`pull`](Reader::pull).
#[derive(Debug)]
pub struct Reader {
    published: ArcSwap<Published>,
    file: Arc<JournalFile>,
    following: Mutex<Following>,
    reading: Reading,
    findings: Vec<String>,
    /// Whether only hard commits are shown.
    hard_only: bool,
}

/// What is brought in next goes on from this.
#[derive(Debug)]
struct Following {
    store: Store,
    /// The commit that the store stands at.
    point: Point,
    /// The position of the root of the image that the store lies over; 0: there is none.
    began: u64,
}

impl Reader {
    /// Opens for reading only in any directory, with the default [`Options`](crate::Options); see
    /// [`Options::open_read_only`](crate::Options::open_read_only).
    ///
    /// # Errors
    /// `NotFound`, `NotAJournal`, `Unsupported`, `Corrupt`, `Io`.
    pub fn open(directory: &dyn Directory, name: &str) -> Result<Self> {
        Options::new().open_read_only_in(directory, name)
    }

    /// Opens for reading only as the options say.
    pub(super) fn open_with(
        options: &Options,
        directory: &dyn Directory,
        name: &str,
    ) -> Result<Self> {
        let hard_only = options.hard_only;
        let (storage, shown) = open_to_read(directory, name)?;
        let watched = Watched::new(&*storage, options.watch.as_ref());
        let (reading, beginning) =
            Reading::open((directory.again(), name), &watched, (options.budget(), hard_only))
                .map_err(|error| watched.explain(error, &shown))?;
        let is_doubtful = !beginning.survey.doubtful.is_empty();
        let Replayed { store, view, point, began } = beginning.replayed;
        let file = Arc::new(JournalFile { storage, name: shown });
        let published = Published { view, point, file: Arc::clone(&file) };
        let reader = Self {
            published: ArcSwap::from_pointee(published),
            file,
            following: Mutex::new(Following { store, point, began }),
            reading,
            findings: beginning.findings,
            hard_only,
        };
        if is_doubtful {
            // Perhaps only because somebody was writing meanwhile.
            reader.bring_in()?;
        }
        Ok(reader)
    }

    /// Gives the state as of the last commit that was brought in. Never waits.
    #[must_use]
    pub fn read(&self) -> Snapshot {
        Snapshot::new(self.published.load_full())
    }

    /// Tells what was found when it was opened: a sentence for each thing worth telling a person, such as why
    /// the image couldn't be used.
    #[must_use]
    pub fn findings(&self) -> &[String] {
        &self.findings
    }

    /// Brings in what was committed since, and gives the state after it. Takes no lock of the file: what
    /// is being written at the moment is seen next time.
    ///
    /// Cost: reads what was added to the journal, and replays it. Once the image has come forward by 1 MiB
    /// of the journal, and by more than there is behind it, the reader begins anew from there: it keeps no
    /// more than it must of what the image would otherwise use again.
    ///
    /// # Errors
    /// `NotFound` if the file was removed or replaced; `Corrupt`; `Unsupported`; `Io`. What was shown
    /// stays as it is.
    pub fn pull(&self) -> Result<Snapshot> {
        let JournalFile { storage, name } = &*self.file;
        let io = |error| Error::io(format!("{name}: can't read the journal"), error);
        if !storage.is_linked().map_err(io)? {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("{name}: the file was removed or replaced meanwhile: open it again"),
            ));
        }
        self.bring_in()?;
        Ok(self.read())
    }

    fn bring_in(&self) -> Result<()> {
        let mut following = lock(&self.following);
        let JournalFile { storage, name } = &*self.file;
        let from = following.point;
        let survey = Survey::since_moving(&**storage, name, from)?;
        let to = if self.hard_only { hard_position(&survey) } else { survey.end.position };
        let to = to.max(from.position);
        let anew = self.reading.begin_anew(&**storage, following.began, (to, survey.end));
        let (view, point) = match anew {
            Some(Replayed { store, view, point, began }) => {
                *following = Following { store, point, began };
                (view, point)
            }
            None if to == from.position => return Ok(()),
            None => {
                let store = std::mem::take(&mut following.store);
                let (store, replayed) = replay_between(&**storage, store, (from, to), name);
                following.store = store;
                let (view, point) = replayed?;
                following.point = point;
                (view, point)
            }
        };
        let published = Published { view, point, file: Arc::clone(&self.file) };
        self.published.store(Arc::new(published));
        Ok(())
    }
}
