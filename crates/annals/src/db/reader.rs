//! Reading a database without being able to write it.

use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;

use super::follow::{self, Found};
use super::options::Options;
use super::past::{Opened, Past, Since};
use super::progress::Watched;
use super::scan::{Replay, survey_moving};
use super::segment::JournalFile;
use super::shared::replay_between;
use super::snapshot::{Published, Snapshot};
use crate::journal::{Point, Survey, lock};
use crate::storage::{Access, Directory};
use crate::store::{Store, View};
use crate::{Error, Result};

/// A database opened for reading only: as of its last commit when it was opened, or at the last
/// [`pull`](Reader::pull).
#[derive(Debug)]
pub struct Reader {
    published: ArcSwap<Published>,
    following: Mutex<Following>,
    /// Whether only hard commits are shown.
    hard_only: bool,
}

/// What is brought in next goes on from this.
#[derive(Debug)]
struct Following {
    store: Store,
    /// The commit that the store stands at.
    point: Point,
    file: Arc<JournalFile>,
    /// The journal's id.
    id: [u8; 16],
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
        let Opened { storage, shown, past } = Opened::new(directory, name, Past::needed)?;
        let past = past?;
        let header = *past.header();
        let watched = Watched::new(&*storage, options.watch.as_ref());
        let begin = || {
            let mut replay = Replay::default();
            past.replay(&mut replay, options.watch.as_ref()).map(|()| replay)
        };
        let file = JournalFile::new(Arc::clone(&storage), header.segment, directory.again(), name);
        let file = Arc::new(file);
        let (point, is_doubtful, (store, view)) = if hard_only {
            let (survey, ()) = survey_moving(&watched, &shown, || Ok(()), |(), _, _| Ok(()))?;
            let (start, to) = (survey.head.start(), hard_position(&survey));
            let (store, replayed) = replay_between(&file, begin()?.finish().0, (start, to));
            let (view, point) = replayed?;
            (point, !survey.doubtful.is_empty(), (store, view))
        } else {
            let (survey, replay) =
                survey_moving(&watched, &shown, begin, |replay: &mut Replay, frame, end| {
                    replay.frame(frame, end, &shown).map(drop)
                })?;
            (survey.end, !survey.doubtful.is_empty(), replay.finish())
        };
        let published = Published { view, point, file: Arc::clone(&file) };
        let reader = Self {
            published: ArcSwap::from_pointee(published),
            following: Mutex::new(Following { store, point, file, id: header.journal_id }),
            hard_only,
        };
        if is_doubtful {
            // Perhaps only because somebody was writing meanwhile.
            reader.bring_in(&mut lock(&reader.following))?;
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
        let mut following = lock(&self.following);
        let JournalFile { storage, name, .. } = &*following.file;
        let io = |error| Error::io(format!("{name}: can't read the journal"), error);
        match storage.is_linked().map_err(io)? {
            true => self.bring_in(&mut following)?,
            false => self.follow(&mut following)?,
        }
        Ok(self.read())
    }

    fn bring_in(&self, following: &mut Following) -> Result<()> {
        let (file, from) = (Arc::clone(&following.file), following.point);
        let survey = Survey::since_moving(&*file.storage, &file.name, from)?;
        let to = if self.hard_only { hard_position(&survey) } else { survey.end.position };
        if to > from.position {
            let store = std::mem::take(&mut following.store);
            let (store, replayed) = replay_between(&file, store, (from, to));
            following.store = store;
            let (view, point) = replayed?;
            self.show(following, view, point);
        }
        Ok(())
    }

    /// Goes on in the segment that the path leads to by now.
    fn follow(&self, following: &mut Following) -> Result<()> {
        let mut tries = 0;
        loop {
            let (is_newest, followed) = self.follow_once(following)?;
            tries += 1;
            // It may have gone on again, and forgotten what was needed.
            if followed.is_ok() || is_newest || tries == follow::TRIES {
                return followed;
            }
        }
    }

    fn follow_once(&self, following: &mut Following) -> Result<(bool, Result<()>)> {
        let old = Arc::clone(&following.file);
        let known = (following.id, following.point.txid);
        let Some(Found { storage, head }) = follow::find(&old, known, Access::Read)? else {
            return Ok((true, Ok(())));
        };
        let since = Since { segment: old.segment, point: following.point };
        let found = Found { storage: Arc::clone(&storage), head };
        // A state that the segment begins with is part of its beginning.
        let first = Survey::since_moving(&*storage, &old.name, found.head.start())?;
        let to = if self.hard_only { hard_position(&first) } else { first.end.position };
        let store = std::mem::take(&mut following.store);
        let place = (&*old.directory, old.journal.as_str());
        let (store, followed) = follow::catch_up(place, &found, since, to, store);
        following.store = store;
        let (view, end) = match followed {
            Ok(followed) => followed,
            Err(error) => return Ok((storage.is_linked().unwrap_or(true), Err(error))),
        };
        following.file = Arc::new(old.next(storage, found.head.header.segment));
        self.show(following, view, end);
        Ok((true, Ok(())))
    }

    fn show(&self, following: &mut Following, view: Arc<View>, point: Point) {
        following.point = point;
        let published = Published { view, point, file: Arc::clone(&following.file) };
        self.published.store(Arc::new(published));
    }
}

/// Gives how far the journal is known to be on permanent storage, by what its writers tell too.
fn hard_position(survey: &Survey) -> u64 {
    let told = survey.head.live.filter(|live| !live.suspect).map_or(0, |live| live.hard);
    survey.hard.max(told).min(survey.end.position)
}
