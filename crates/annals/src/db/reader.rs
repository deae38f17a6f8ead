//! Reading a database without being able to write it.

use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;

use super::options::Options;
use super::progress::Watched;
use super::scan::{Replay, open_to_read, survey_moving};
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
    /// The store, for what follows, and the commit that it stands at.
    following: Mutex<(Store, Point)>,
    /// Whether only hard commits are shown.
    hard_only: bool,
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
        let (point, is_doubtful, (store, view)) = if hard_only {
            let (survey, ()) = survey_moving(&watched, &shown, |(), _, _| Ok(()))?;
            let (start, to) = (survey.head.start(), hard_position(&survey));
            let (store, replayed) = replay_between(&*storage, Store::new(), (start, to), &shown);
            let (view, point) = replayed?;
            (point, !survey.doubtful.is_empty(), (store, view))
        } else {
            let (survey, replay) =
                survey_moving(&watched, &shown, |replay: &mut Replay, frame, end| {
                    replay.frame(frame, end, &shown).map(drop)
                })?;
            (survey.end, !survey.doubtful.is_empty(), replay.finish())
        };
        let file = Arc::new(JournalFile { storage, name: shown });
        let published = Published { view, point, file: Arc::clone(&file) };
        let reader = Self {
            published: ArcSwap::from_pointee(published),
            file,
            following: Mutex::new((store, point)),
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

    /// Brings in what was committed since, and gives the state after it. Takes no lock of the file: what
    /// is being written at the moment is seen next time.
    ///
    /// Cost: reads what was added to the journal, and replays it.
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
        let from = following.1;
        let survey = Survey::since_moving(&**storage, name, from)?;
        let to = if self.hard_only { hard_position(&survey) } else { survey.end.position };
        if to > from.position {
            let store = std::mem::take(&mut following.0);
            let (store, replayed) = replay_between(&**storage, store, (from, to), name);
            following.0 = store;
            let (view, point) = replayed?;
            following.1 = point;
            let published = Published { view, point, file: Arc::clone(&self.file) };
            self.published.store(Arc::new(published));
        }
        Ok(())
    }
}

/// Gives how far the journal is known to be on permanent storage, by what its writers tell too.
fn hard_position(survey: &Survey) -> u64 {
    let told = survey.head.live.filter(|live| !live.suspect).map_or(0, |live| live.hard);
    survey.hard.max(told).min(survey.end.position)
}
