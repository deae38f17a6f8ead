//! Reading a database without being able to write it.

use annals_schema::{Schema, Txid};
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwap;

use crate::db::handle::upgrade::check_readable;
use crate::db::image::{Beginning, Reading, Replayed, hard_position};
use crate::db::options::Options;
use crate::db::present::segment::JournalFile;
use crate::db::present::snapshot::{Published, Snapshot};
use crate::db::progress::Watched;
use crate::db::replay::catch_up::{self, Found};
use crate::db::replay::forward::{Caught, replay_between};
use crate::db::replay::segments::{Since, open_moving};
use crate::db::replay::unapplied::Unapplied;
use crate::db::replay::witness::identity;
use crate::debug::brief;
use crate::image::Identity;
use crate::journal::{Head, Point, Survey, lock};
use crate::storage::{Access, Directory, Storage};
use crate::store::{Store, View};
use crate::{Error, ErrorKind, Result};

/// A database opened for reading only: as of its last commit when it was opened, or at the last
/// [`pull`](Reader::pull). Its clones share that.
#[derive(Clone)]
pub struct Reader {
    pulling: Arc<Pulling>,
}

brief!(Reader, "Reader", "txid": |it| it.read().txid());

/// The state of a reader, and loading newer commits.
#[derive(Debug)]
pub(super) struct Pulling {
    published: ArcSwap<Published>,
    following: Mutex<Following>,
    pub(super) reading: Reading,
    findings: Vec<String>,
    /// The commit that doesn't apply, as of the last load.
    unapplied: Mutex<Option<Unapplied>>,
    /// True if only hard commits are shown.
    hard_only: bool,
    /// The schema of the program, if it has one.
    expected: OnceLock<Schema>,
    /// Why the program can't read what was committed after the shown state: an upgrade took something of its schema.
    outdated: OnceLock<String>,
}

/// The next load continues from this.
#[derive(Debug)]
struct Following {
    store: Store,
    /// The commit of the store.
    point: Point,
    file: Arc<JournalFile>,
    /// Which segment of which journal that is.
    identity: Identity,
    /// The end of the image's root under the store, in bytes of the journal as [`JournalFile::reach`] counts them; 0:
    /// there is none.
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
        let begin = |storage: &Arc<dyn Storage>, shown: &str| {
            let watched = Watched::new(&**storage, options.watch.as_ref());
            Reading::open(directory.again(), name, &watched, options)
                .map_err(|error| watched.explain(error, shown))
        };
        let is_whole = |(_, beginning): &(_, Beginning)| beginning.findings.is_empty();
        let (storage, _, (reading, beginning)) = open_moving(directory, name, begin, is_whole)?;
        let Beginning { survey, replayed, identity, before, findings, unapplied } = beginning;
        let Replayed { store, view, point, began } = replayed;
        let segment = survey.head.header.segment;
        let file = JournalFile::new(storage, segment, directory.again(), name).behind(before);
        let file = Arc::new(file.noting_in(reading.damage()));
        let published = Published { view, point, file: Arc::clone(&file) };
        let pulling = Arc::new(Pulling {
            published: ArcSwap::from_pointee(published),
            following: Mutex::new(Following { store, point, file, identity, began }),
            reading,
            findings,
            unapplied: Mutex::new(unapplied),
            hard_only,
            expected: OnceLock::new(),
            outdated: OnceLock::new(),
        });
        Ok(Self { pulling })
    }

    /// Lets it load no state that lacks something of this schema: the program's code relies on it.
    ///
    /// # Errors
    /// `SchemaMismatch`: the present state does.
    pub(super) fn expect(self, schema: &Schema) -> Result<Self> {
        check_readable(self.read().schema(), schema)?;
        let _ = self.pulling.expected.set(schema.clone());
        Ok(self)
    }

    /// Returns the end of the last loaded commit in the journal.
    pub(super) fn end(&self) -> u64 {
        self.pulling.published().point.position
    }

    pub(super) const fn pulling(&self) -> &Arc<Pulling> {
        &self.pulling
    }

    /// Returns the state as of the last loaded commit. Never waits, unless a read has failed with
    /// [`PageLost`](crate::ErrorKind::PageLost) since: then it opens the state again, without that page.
    #[must_use]
    pub fn read(&self) -> Snapshot {
        if self.pulling.check_origin().is_err() {
            return Snapshot::elsewhere(&self.pulling.published());
        }
        if self.pulling.reading.is_state_lost() {
            self.pulling.leave_lost(&mut lock(&self.pulling.following));
        }
        Snapshot::new(self.pulling.published())
    }

    /// Returns the findings of opening it: a sentence for each fact of interest to a person, such as why the image
    /// couldn't be used.
    #[must_use]
    pub fn findings(&self) -> &[String] {
        &self.pulling.findings
    }

    /// Returns the commit that doesn't apply, if the journal holds one: the shown state is the one before it.
    #[must_use]
    pub fn unapplied(&self) -> Option<Unapplied> {
        lock(&self.pulling.unapplied).clone()
    }

    /// Returns the damage of the image, the page file beside the journal, found since it was opened: one sentence
    /// each, at most a hundred. A read that needs a damaged page fails with kind
    /// [`ErrorKind::PageLost`](crate::ErrorKind::PageLost). The next [`read`](Self::read) or [`pull`](Self::pull)
    /// begins again without it.
    #[must_use]
    pub fn image_damage(&self) -> Vec<String> {
        self.pulling.reading.damage().findings()
    }

    /// Loads newer commits, and returns the state after them. Takes no lock of the file: a concurrent commit is seen
    /// the next time.
    ///
    /// Cost: reads the new part of the journal, and replays it. Once the image has advanced by 1 MiB of the journal,
    /// and by more than there is after it, the reader starts again from there. So it pins little space of the image.
    ///
    /// # Errors
    /// `Poisoned` in a forked child; `NotFound` if the file was removed or replaced; `Unapplied` if a commit doesn't apply: all before it was
    /// loaded; `SchemaMismatch` if it was opened with a schema, and another program's upgrade took something of that away; `Corrupt`;
    /// `Unsupported`; `Io`. The shown state stays unchanged otherwise.
    pub fn pull(&self) -> Result<Snapshot> {
        self.pulling.pull()?;
        Ok(self.read())
    }
}

/// Returns the position up to which a segment is known to be acknowledged, from its live block and its slots.
pub(super) fn acknowledged_in(head: &Head) -> u64 {
    let told = head.live.map_or(0, |live| live.soft.position);
    head.newest_slot().map_or(told, |slot| told.max(slot.point.position))
}

impl Pulling {
    /// Returns the last loaded state.
    pub(super) fn published(&self) -> Arc<Published> {
        self.published.load_full()
    }

    /// Loads newer commits; returns the state, and the acknowledged part of it. A commit that doesn't apply is an
    /// error once all that is before it was read: the caller has read up to transaction `read`.
    pub(super) fn acknowledged(&self, read: u64) -> Result<(Arc<Published>, u64)> {
        match self.pull() {
            Err(error)
                if error.kind() != ErrorKind::Unapplied
                    || self.published().point.txid <= Txid(read) =>
            {
                return Err(error);
            }
            _ => {}
        }
        let published = self.published();
        let JournalFile { storage, name, .. } = &*published.file;
        let told = acknowledged_in(&Head::read(&**storage, name)?);
        let position = told.min(published.point.position);
        Ok((published, position))
    }

    /// Fails in a process that was forked since.
    fn check_origin(&self) -> Result<()> {
        self.published.load().file.check_origin()
    }

    fn pull(&self) -> Result<()> {
        self.check_origin()?;
        let mut following = lock(&self.following);
        self.leave_lost(&mut following);
        let JournalFile { storage, name, .. } = &*following.file;
        let io = |error| Error::io(format!("{name}: can't read the journal"), error);
        let pulled = match storage.is_linked().map_err(io)? {
            true => self.bring_in(&mut following),
            false => self.follow(&mut following),
        };
        let outdated = |why: &String| Err(Error::new(ErrorKind::SchemaMismatch, why.clone()));
        self.outdated.get().map_or(pulled, outdated)
    }

    fn bring_in(&self, following: &mut Following) -> Result<()> {
        let (file, from) = (Arc::clone(&following.file), following.point);
        let survey = Survey::since_now(&*file.storage, &file.name, from)?;
        let to = if self.hard_only { hard_position(&survey) } else { survey.end.position };
        let to = to.max(from.position);
        let (began, identity) = (following.began, following.identity);
        match self.reading.restart_from_root(&file, began, identity, to, survey.end) {
            Some(anew) => self.restart(following, anew),
            None if to == from.position => {}
            None => {
                let store = std::mem::take(&mut following.store);
                let (store, replayed) = replay_between(&file, store, from, to);
                following.store = store;
                let Caught { view, point, unapplied } = replayed?;
                self.show(following, view, point);
                let refused = unapplied.as_ref().map(|unapplied| unapplied.error(&file.name));
                *lock(&self.unapplied) = unapplied;
                return refused.map_or(Ok(()), Err);
            }
        }
        *lock(&self.unapplied) = None;
        Ok(())
    }

    /// Begins again at the same commit if a read found a page lost.
    fn leave_lost(&self, following: &mut Following) {
        if self.reading.is_state_lost()
            && let Some(anew) = self.reading.reopen(&following.file, following.point)
        {
            self.restart(following, anew);
        }
    }

    fn restart(&self, following: &mut Following, anew: Replayed) {
        let Replayed { store, view, point, began } = anew;
        (following.store, following.began) = (store, began);
        self.show(following, view, point);
    }

    /// Continues in the segment at the path now.
    fn follow(&self, following: &mut Following) -> Result<()> {
        let mut tries = 0;
        loop {
            let (is_newest, followed) = self.follow_once(following)?;
            tries += 1;
            // The journal may have continued again, and forgotten history that was needed.
            if followed.is_ok() || is_newest || tries == catch_up::TRIES {
                return followed;
            }
        }
    }

    fn follow_once(&self, following: &mut Following) -> Result<(bool, Result<()>)> {
        let old = Arc::clone(&following.file);
        let (id, txid) = (following.identity.journal_id, following.point.txid.0);
        let Some(Found { storage, head }) = catch_up::find(&old, id, txid, Access::Read)? else {
            return Ok((true, Ok(())));
        };
        let since = Since { segment: old.segment, point: following.point };
        let found = Found { storage: Arc::clone(&storage), head };
        // A state that the segment begins with is part of its beginning.
        let first = Survey::since_now(&*storage, &old.name, found.head.start())?;
        let to = if self.hard_only { hard_position(&first) } else { first.end.position };
        let store = std::mem::take(&mut following.store);
        let (store, followed) =
            catch_up::catch_up(&*old.directory, &old.journal, &found, since, to, store);
        following.store = store;
        let (view, end) = match followed {
            Ok(followed) => followed,
            Err(error) => return Ok((storage.is_linked().unwrap_or(true), Err(error))),
        };
        let next = old.next(storage, found.head.header.segment, following.point.position);
        following.file = Arc::new(next);
        following.identity = identity(&found.head);
        self.show(following, view, end);
        Ok((true, Ok(())))
    }

    fn show(&self, following: &mut Following, view: Arc<View>, point: Point) {
        following.point = point;
        if !self.is_readable(&view, &following.file.name) {
            return;
        }
        let published = Published { view, point, file: Arc::clone(&following.file) };
        self.published.store(Arc::new(published));
    }

    /// True if a state has all of the program's schema. From the first one on that hasn't, nothing is shown any more.
    fn is_readable(&self, view: &View, name: &str) -> bool {
        let is_same = |shown: &Published| {
            view.schema().commands().len() == shown.view.schema().commands().len()
        };
        let Some(expected) = self.expected.get().filter(|_| !is_same(&self.published.load()))
        else {
            return self.outdated.get().is_none();
        };
        if let Err(error) = check_readable(view.schema(), expected) {
            let why = format!("another program upgraded the schema meanwhile: {error}");
            let _ = self.outdated.set(format!("{name}: {why}"));
        }
        self.outdated.get().is_none()
    }
}
