//! Opening a database.

use crate::db::api::erasure;
use crate::db::follow::acquire;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use annals_schema::Schema;
use annals_storage::step;

use crate::db::follow::acquire::Acquired;
use crate::db::follow::continuation;
use crate::db::follow::image_state::ImageState;
use crate::db::follow::opening::{OpenRequest, OpenedImage};
use crate::db::follow::options::{Options, locate};
use crate::db::follow::recovery::Repair;
use crate::db::follow::segments::Past;
use crate::db::follow::source::looks_wrong;
use crate::db::follow::state::State;
use crate::db::present::segment::{Current, Segment};
use crate::db::present::turns::Turns;
use crate::db::progress::Watched;
use crate::db::write::core::{Core, Writing};
use crate::db::write::database::Database;
use crate::db::write::group::Group;
use crate::db::write::sharing::Sharing;
use crate::db::write::upgrade;
use crate::db::write::upgrade::Customs;
use crate::db::write::uuids::NewUuids;
use crate::journal::segments::Maker;
use crate::journal::{self, Checkpoints, Recovered, Recovery, Survey, Verdict, segments};
use crate::storage::{Access, Clock, Directory, Storage, SystemClock};
use crate::trace::{event, span};
use crate::{Error, ErrorKind, Result};

impl Options {
    /// Opens or creates a database for reading and writing, whatever its schema.
    ///
    /// Cost: reads the head of the image and the journal after it; without an image all of the journal, once: all
    /// segments of it from the last one on that begins with the state.
    ///
    /// # Errors
    /// `Busy`, naming the process that has it open; `NotFound`; `NotAJournal`; `Unsupported`; `Corrupt` if something
    /// is missing that was durable; `NeedsRecovery` with [`Recovery::Refuse`]; `Io`. The file is then unchanged.
    ///
    /// `Unsupported` too if an index has a collation that the library was built without. If it has one of another
    /// version, the index is dropped and created again, and an error of that is one of this.
    ///
    /// A commit that doesn't apply is none: the database can be read then, as [`Database::unapplied`] says.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Database> {
        let (directory, name) = locate(path.as_ref())?;
        self.open_in(directory, &name, Arc::new(SystemClock))
    }

    /// Opens or creates a database that has just this schema, which has no custom functions. An
    /// older file is upgraded, a new one from nothing; see [`Database::upgrade`].
    ///
    /// # Errors
    /// As [`Self::open`] and [`Database::upgrade`]; `Invalid` if the upgrade has a custom function.
    pub fn open_schema(&self, path: impl AsRef<Path>, schema: &Schema) -> Result<Database> {
        self.open_schema_with(path, schema, &mut upgrade::none)
    }

    /// Opens or creates a database that has just this schema. An older file is upgraded, a new one
    /// from nothing, in one transaction, which runs the custom functions of the new commands.
    ///
    /// ```
    /// # fn main() -> annals::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("tutorial.annals");
    /// let schema = "create_table city\nadd_field city name string\ncustom add_cities";
    /// let schema = annals_schema::parse(schema).unwrap().schema;
    /// let table = schema.tables()[0].number;
    /// let database = annals::Options::new().open_schema_with(&path, &schema, &mut |custom, tx| {
    ///     match custom.name {
    ///         "add_cities" => tx.insert(table, &[annals::ValueRef::String("Lille")]).map(drop),
    ///         _ => Ok(()),
    ///     }
    /// })?;
    /// assert_eq!(database.read().table(table)?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Self::open`] and [`Database::upgrade`].
    pub fn open_schema_with(
        &self,
        path: impl AsRef<Path>,
        schema: &Schema,
        customs: &mut Customs<'_>,
    ) -> Result<Database> {
        let (directory, name) = locate(path.as_ref())?;
        let database = self.open_any(directory, &name, Arc::new(SystemClock))?;
        let place = path.as_ref().display();
        database.upgrade(schema, customs).map_err(|error| error.within(place))?;
        Ok(database.fix_schema())
    }

    /// Makes a database in memory that has just this schema: see [`Database::in_memory`].
    ///
    /// # Errors
    /// As [`Database::upgrade`].
    pub(crate) fn in_memory(
        schema: &Schema,
        customs: Option<&mut Customs<'_>>,
    ) -> Result<Database> {
        let database = Database::in_memory()?;
        database.upgrade(schema, customs.unwrap_or(&mut upgrade::none))?;
        Ok(database.fix_schema())
    }

    /// Opens a database in any directory, with any clock.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_in(
        &self,
        directory: Arc<dyn Directory>,
        name: &str,
        clock: Arc<dyn Clock>,
    ) -> Result<Database> {
        let shown = directory.display(name);
        let database = self.open_any(directory, name, clock)?;
        upgrade::sort_again(&database).map_err(|error| error.within(shown))?;
        Ok(database)
    }

    /// Opens a database, which may have unavailable indexes: an upgrade follows.
    pub(in crate::db) fn open_any(
        &self,
        directory: Arc<dyn Directory>,
        name: &str,
        clock: Arc<dyn Clock>,
    ) -> Result<Database> {
        span!(INFO, "open", file = directory.display(name).as_str(), shared = self.shared);
        let database = self.open_there(directory, name, clock)?;
        note_opening(&database);
        Ok(database)
    }

    fn open_there(
        &self,
        directory: Arc<dyn Directory>,
        name: &str,
        clock: Arc<dyn Clock>,
    ) -> Result<Database> {
        self.check()?;
        let directory = directory.for_journal(name, None).unwrap_or(directory);
        let shown = directory.display(name);
        let Newest { acquired, mut found, survey, state, image_state, recovery } =
            self.open_newest(&directory, name, &clock)?;
        let Acquired { storage, is_new, others } = acquired;
        let joins = others && survey.is_told() && survey.verdict() == Verdict::Whole;
        let repair = Repair { directory: &*directory, name, survey: &survey, recovery, others };
        let stopped = found.stopped.take().filter(|_| step!(UnappliedIgnored, true, else false));
        let settled = match &stopped {
            Some(stopped) => repair.leave(&stopped.unapplied)?,
            None if joins => journal::join(&survey),
            None => repair.settle(self, &*storage, is_new, clock.secret())?,
        };
        if !is_new && stopped.is_none() {
            repair.keep_names(&*storage, found.is_in(&survey))?;
        }
        let State { store, file, .. } = state;
        let view = Arc::clone(store.published());
        let mut checkpoints = Checkpoints::new(
            Arc::clone(&storage),
            &shown,
            survey.head.hash,
            annals_storage::process_id(),
            stopped.as_ref().map_or(survey.end, |stopped| stopped.point),
            &settled,
        );
        let sharing = self.sharing(&directory, name);
        if sharing.is_some() {
            let hard = survey.head.newest_slot().filter(|_| joins).map(|slot| slot.point);
            checkpoints = checkpoints.share(hard.unwrap_or(survey.end));
        }
        let mut recovered = settled.recovered;
        recovered.findings.append(&mut found.notes);
        match &stopped {
            None => drop(checkpoints.tell()?),
            Some(it) => checkpoints.refuse(ErrorKind::Unapplied, it.unapplied.explain(&shown)),
        }
        let turns = self.shared.then(|| Turns::new(&storage, &clock, &shown, self.lock_timeout));
        if !self.shared {
            file.images.last_past.begin();
        }
        let checkpoints = Arc::new(checkpoints);
        let segment = Segment {
            checkpoints: Arc::clone(&checkpoints),
            file: Arc::clone(&file),
            turns,
            is_named: AtomicBool::new(true),
        };
        segment.end_turn();
        let last_clock_time = survey.last_clock_time.max(found.last_clock_time());
        let writer =
            journal::Writer::new(checkpoints, Arc::clone(&clock), last_clock_time, self.sector);
        let writing = Writing { writer, store, file, uuids: NewUuids::default() };
        let segment = Arc::new(Current::from_pointee(segment));
        // One turn, one commit: in shared mode no other can join while one is waited for.
        let group = Group::new(segment, clock, view, !self.shared);
        let image_state = image_state.filter(|_| stopped.is_none() && self.roots_until.is_none());
        // A process may not write outside of its turn, not even in the background.
        let works_in_background = self.background && !self.shared && stopped.is_none();
        let core = Core::new(self, group, writing, image_state);
        let database = Database::new(core, self.level, sharing, recovered, works_in_background);
        let _ = stopped.map(|stopped| database.inner().unapplied.set(stopped.unapplied));
        Ok(database)
    }

    /// True if no other handle writes the image.
    const fn writes_image(&self) -> bool {
        !self.shared && self.roots_until.is_none()
    }

    /// Returns the state for shared mode, if the database is shared.
    fn sharing(&self, directory: &Arc<dyn Directory>, name: &str) -> Option<Sharing> {
        self.shared.then(|| Sharing {
            directory: Arc::clone(directory),
            file: name.to_owned(),
            recovery: self.recovery.among_others(),
            is_outdated: AtomicBool::new(false),
        })
    }

    /// Gets hold of the newest segment and reads all that is needed to know its state; ends a restart
    /// before that was interrupted.
    fn open_newest(
        &self,
        directory: &Arc<dyn Directory>,
        name: &str,
        clock: &Arc<dyn Clock>,
    ) -> Result<Newest> {
        const TRIES: usize = 100; // each finds that another segment follows
        let (shown, damage) = (directory.display(name), Arc::default());
        for _ in 0..TRIES {
            let acquired = acquire::acquire(self, &**directory, name, clock)?;
            let Acquired { storage, others, .. } = &acquired;
            let watched = Watched::new(&**storage, self.watch.as_ref());
            // Nothing is cut, or called damaged, for one wrong read.
            let recovery = if *others { self.recovery.among_others() } else { self.recovery };
            let request = OpenRequest {
                directory,
                name,
                storage,
                // Files that others may be writing are left to the holder of the lock.
                access: if self.writes_image() { Access::Write } else { Access::Read },
                clock: Arc::clone(clock),
                budget: self.budget(),
                // Between the turns of one process others advance the image.
                spills: self.writes_image(),
                key_frames: self.key_frames,
                damage: Some(&damage),
                is_whole: self.verify_image,
                roots_until: self.roots_until,
                hard_only: false,
            };
            let mut found = request.find()?;
            if !storage.has_fixed_len() {
                erasure::finish(&**directory, name, &found.head.header)?;
                Past::check_there(&**directory, name, &found.head.header, &shown)?;
            }
            let (survey, state, image_state) =
                request.open(&mut found, &watched, recovery, looks_wrong)?;
            let seal = survey.sealed.as_ref().filter(|_| found.stopped.is_none());
            let Some(seal) = seal else {
                // The last one that wrote it may have been killed.
                let was_closed = survey.head.live.is_some_and(|live| live.pid == 0);
                if !acquired.is_new && !was_closed && self.writes_image() {
                    continuation::remove_orphans(&**directory, name);
                }
                return Ok(Newest { acquired, found, survey, state, image_state, recovery });
            };
            journal::refuse(&shown, &survey, recovery)?;
            let by = Maker { clock: &**clock, shared: self.shared };
            segments::finish(&**directory, name, &**storage, &survey, seal, by)?;
        }
        let message = format!(
            "{shown}: other processes continued it in another segment during each attempt; try again later"
        );
        Err(Error::new(ErrorKind::Busy, message))
    }
}

/// Records what opening found.
fn note_opening(database: &Database) {
    let Recovered { unclean, cut, findings, .. } = database.recovered();
    if *unclean {
        let (bytes, commits) = cut.as_ref().map_or((0, 0), |cut| (cut.bytes, cut.commits));
        event!(INFO, "recovered after an unclean end", cut_bytes = bytes, cut_commits = commits);
    }
    for finding in findings {
        event!(WARN, "a finding of recovery", finding = finding.as_str());
    }
    if let Some(unapplied) = database.unapplied() {
        event!(ERROR, "a commit doesn't apply: nothing can be written", txid = unapplied.txid.0);
    }
    event!(INFO, "opened", txid = database.read().txid().0);
}

/// The newest segment, read.
struct Newest {
    acquired: Acquired,
    found: OpenedImage,
    survey: Survey,
    state: State,
    image_state: Option<Arc<ImageState>>,
    recovery: Recovery,
}

/// Opens a journal alone, recovers it, and ends what was interrupted, so that its files can be replaced. Returns its
/// newest segment, which is locked.
///
/// # Errors
/// As [`Options::open_in`]; `Unsupported`: a raw device.
pub fn open_to_replace(
    options: &Options,
    directory: &Arc<dyn Directory>,
    name: &str,
    clock: &Arc<dyn Clock>,
) -> Result<(Arc<dyn Storage>, Survey)> {
    let options = options.clone().create(false).shared(false);
    let Newest { acquired, found, survey, recovery, .. } =
        options.open_newest(directory, name, clock)?;
    let (storage, shown) = (acquired.storage, directory.display(name));
    if storage.has_fixed_len() {
        let message = format!("{shown}: a device can't be rewritten: copy what it holds");
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    if let Some(stopped) = found.stopped.filter(|_| survey.sealed.is_some()) {
        return Err(Error::corrupt(stopped.unapplied.explain(&shown)));
    }
    let repair = Repair { directory: &**directory, name, survey: &survey, recovery, others: false };
    repair.settle(&options, &*storage, false, clock.secret())?;
    Ok((storage, survey))
}
