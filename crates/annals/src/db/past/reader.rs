//! Reading a database without being able to write it.

use annals_schema::{Schema, Txid};
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwap;

use crate::db::follow::options::Options;
use crate::db::follow::reading::{Beginning, Follower, Reading};
use crate::db::follow::segments::{TRIES, find_successor, open_moving};
use crate::db::follow::state::State;
use crate::db::follow::survey::hard_position;
use crate::db::follow::unapplied::Unapplied;
use crate::db::present::segment::JournalFile;
use crate::db::present::snapshot::{Published, Snapshot};
use crate::db::progress::Watched;
use crate::db::write::upgrade::check_readable;
use crate::debug::brief;
use crate::journal::{Head, Survey, lock};
use crate::storage::{Access, Directory, Storage};
use crate::store::View;
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
pub(in crate::db) struct Pulling {
    published: ArcSwap<Published>,
    follower: Mutex<Follower>,
    pub(in crate::db) reading: Reading,
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
    pub(in crate::db) fn open_with(
        options: &Options,
        directory: &dyn Directory,
        name: &str,
    ) -> Result<Self> {
        let begin = |storage: &Arc<dyn Storage>, shown: &str| {
            let watched = Watched::new(&**storage, options.watch.as_ref());
            Reading::open(directory.again(), name, storage, &watched, options)
                .map_err(|error| watched.explain(error, shown))
        };
        let is_whole = |beginning: &Beginning| beginning.findings.is_empty();
        let (_, _, beginning) = open_moving(directory, name, begin, is_whole)?;
        let Beginning { reading, follower, findings, unapplied } = beginning;
        let pulling = Arc::new(Pulling {
            published: ArcSwap::from_pointee(follower.state.published()),
            follower: Mutex::new(follower),
            reading,
            findings,
            unapplied: Mutex::new(unapplied),
            hard_only: options.hard_only,
            expected: OnceLock::new(),
            outdated: OnceLock::new(),
        });
        Ok(Self { pulling })
    }

    /// Lets it load no state that lacks something of this schema: the program's code relies on it.
    ///
    /// # Errors
    /// `SchemaMismatch`: the present state does.
    pub(in crate::db) fn expect(self, schema: &Schema) -> Result<Self> {
        check_readable(self.read().schema(), schema)?;
        let _ = self.pulling.expected.set(schema.clone());
        Ok(self)
    }

    /// Returns the end of the last loaded commit in the journal.
    pub(in crate::db) fn end(&self) -> u64 {
        self.pulling.published().point.position
    }

    pub(in crate::db) const fn pulling(&self) -> &Arc<Pulling> {
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
            self.pulling.leave_lost(&mut lock(&self.pulling.follower));
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
pub(in crate::db) fn acknowledged_in(head: &Head) -> u64 {
    let told = head.live.map_or(0, |live| live.soft.position);
    head.newest_slot().map_or(told, |slot| told.max(slot.point.position))
}

impl Pulling {
    /// Returns the last loaded state.
    pub(in crate::db) fn published(&self) -> Arc<Published> {
        self.published.load_full()
    }

    /// Loads newer commits; returns the state, and the acknowledged part of it. A commit that doesn't apply is an
    /// error once all that is before it was read: the caller has read up to transaction `read`.
    pub(in crate::db) fn acknowledged(&self, read: u64) -> Result<(Arc<Published>, u64)> {
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
        let mut follower = lock(&self.follower);
        self.leave_lost(&mut follower);
        let JournalFile { storage, name, .. } = &*follower.state.file;
        let io = |error| Error::io(format!("{name}: can't read the journal"), error);
        let pulled = match storage.is_linked().map_err(io)? {
            true => self.bring_in(&mut follower),
            false => self.follow(&mut follower.state),
        };
        let outdated = |why: &String| Err(Error::new(ErrorKind::SchemaMismatch, why.clone()));
        self.outdated.get().map_or(pulled, outdated)
    }

    fn bring_in(&self, follower: &mut Follower) -> Result<()> {
        let (file, from) = (Arc::clone(&follower.state.file), follower.state.point);
        let survey = Survey::since_now(&*file.storage, &file.name, from)?;
        let to = if self.hard_only { hard_position(&survey) } else { survey.end.position };
        let to = to.max(from.position);
        let mut unapplied = None;
        match self.reading.restart_from_root(follower, to, survey.end) {
            Some(restarted) => *follower = restarted,
            None if to == from.position => {
                *lock(&self.unapplied) = None;
                return Ok(());
            }
            None => unapplied = follower.state.advance(to)?,
        }
        self.show(&follower.state);
        let refused = unapplied.as_ref().map(|unapplied| unapplied.error(&file.name));
        *lock(&self.unapplied) = unapplied;
        refused.map_or(Ok(()), Err)
    }

    /// Begins again at the same commit if a read found a page lost.
    fn leave_lost(&self, follower: &mut Follower) {
        if self.reading.is_state_lost()
            && let Some(reopened) = self.reading.reopen(&follower.state)
        {
            *follower = reopened;
            self.show(&follower.state);
        }
    }

    /// Continues in the segment at the path now.
    fn follow(&self, state: &mut State) -> Result<()> {
        let mut tries = 0;
        loop {
            let (is_newest, followed) = self.follow_once(state)?;
            tries += 1;
            // The journal may have continued again, and forgotten history that was needed.
            if followed.is_ok() || is_newest || tries == TRIES {
                return followed;
            }
        }
    }

    fn follow_once(&self, state: &mut State) -> Result<(bool, Result<()>)> {
        let old = Arc::clone(&state.file);
        let (id, txid) = (old.head()?.header.journal_id, state.point.txid.0);
        let Some(found) = find_successor(&old, id, txid, Access::Read)? else {
            return Ok((true, Ok(())));
        };
        // A state that the segment begins with is part of its beginning.
        let first = Survey::since_now(&*found.storage, &old.name, found.head.start())?;
        let to = if self.hard_only { hard_position(&first) } else { first.end.position };
        if let Err(error) = state.enter(&found, to) {
            return Ok((found.storage.is_linked().unwrap_or(true), Err(error)));
        }
        self.show(state);
        Ok((true, Ok(())))
    }

    fn show(&self, state: &State) {
        if self.is_readable(state.store.published(), &state.file.name) {
            self.published.store(Arc::new(state.published()));
        }
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
