//! How a database is opened.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use annals_schema::Schema;

use super::acquire::Acquired;
use super::careful::{Before, Careful};
use super::database::{Database, Setup};
use super::erase;
use super::history::Sizes;
use super::image::{self, Found, Imager, KeyFrames, Looking};
use super::past::Past;
use super::progress::{Watch, Watched};
use super::reader::Reader;
use super::scan::{self, Replay};
use super::segment::{JournalFile, Segment};
use super::shared::Sharing;
use super::turns::{Turns, Users};
use super::upgrade::{self, Customs};
use crate::journal::segments::Maker;
use crate::journal::{self, Checkpoints, Level, Recovery, Retention, Survey, Verdict, segments};
use crate::mistakes::{Mistake, is_made};
use crate::storage::{self, Access, Clock, Directory, FileDirectory, SystemClock};
use crate::{Error, ErrorKind, Result};

/// How to open a database: the commit level, what to do after an unclean end, and whether to create
/// what is missing.
#[derive(Clone, Debug)]
pub struct Options {
    level: Level,
    pub(super) recovery: Recovery,
    pub(super) create: bool,
    background: bool,
    sector: u64,
    pub(super) watch: Option<Watch>,
    pub(super) before: Option<Before>,
    pub(super) copy_first: bool,
    pub(super) unproven: bool,
    pub(super) shared: bool,
    pub(super) lock_timeout: Duration,
    pub(super) rebuild_timeout: Duration,
    pub(super) hard_only: bool,
    /// How much of an image may be kept in memory, in bytes; 0: half of what the machine has.
    pub(super) memory: u64,
    /// How many key frames an image keeps.
    pub(super) key_frames: KeyFrames,
    retention: Retention,
    history: Option<Sizes>,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

/// The sectors of a disk whose writes damage nothing outside: frames are aligned to 8 bytes anyway.
const NO_PADDING: u64 = 8;
/// How long a process waits for its turn unless told otherwise.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

impl Options {
    /// Gives the defaults: commits at [`Level::Checksummed`], [`Recovery::Checked`], create if
    /// missing, work in the background.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            level: Level::Checksummed,
            recovery: Recovery::Checked,
            create: true,
            background: true,
            sector: NO_PADDING,
            watch: None,
            before: None,
            copy_first: false,
            unproven: false,
            shared: false,
            lock_timeout: LOCK_TIMEOUT,
            rebuild_timeout: image::REBUILD_TIMEOUT,
            hard_only: false,
            memory: 0,
            key_frames: KeyFrames::new(),
            retention: Retention { bytes: None, time: None, transactions: None },
            history: Some(Sizes::USUAL),
        }
    }

    /// Sets the level of commits that don't say another.
    #[must_use]
    pub const fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Sets what to do with a journal that wasn't closed properly.
    #[must_use]
    pub const fn recovery(mut self, recovery: Recovery) -> Self {
        self.recovery = recovery;
        self
    }

    /// Sets whether a missing file is created, or an error.
    #[must_use]
    pub const fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Sets whether a thread zero-fills space ahead and advances the checkpoints on disk while
    /// nobody waits. Without it, nothing happens but what the caller asks for.
    #[must_use]
    pub const fn background(mut self, background: bool) -> Self {
        self.background = background;
        self
    }

    /// Lets each commit end where a sector of this many bytes does, so that no later write touches the
    /// sectors of an earlier commit: for disks that may damage the sector in which a write is
    /// interrupted. A power of two from 512 to 65,536; 4096 fits all common disks. Costs that much
    /// space for each small commit. Commits that were made without it keep their places.
    #[must_use]
    pub const fn sector_padding(mut self, bytes: u32) -> Self {
        self.sector = bytes as u64;
        self
    }

    /// Sets whether other processes on this machine may write the file too, in turn. All that write it
    /// must open it so. Each transaction first brings in what the others committed;
    /// [`Database::pull`] does so without writing.
    ///
    /// Costs a few system calls for each transaction, a small write to tell the others, and that commits
    /// of several threads don't share flushes; nothing is done in the background. On Linux and Windows.
    #[must_use]
    pub const fn shared(mut self, shared: bool) -> Self {
        self.shared = shared;
        self
    }

    /// Sets how long a transaction in shared mode waits for its turn, before it is `Busy`: 10 s unless
    /// set.
    #[must_use]
    pub const fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Sets whether those who open for reading only see just what was flushed to permanent storage, rather
    /// than all that was committed. (A half commit was flushed as well; a power cut may undo it all the
    /// same, if the second copy of its slot wasn't.)
    #[must_use]
    pub const fn hard_only(mut self, hard_only: bool) -> Self {
        self.hard_only = hard_only;
        self
    }

    /// Sets how many bytes of the image, the page file beside the journal, are kept in memory once they
    /// were read: half of the machine's memory unless set. As long as the whole image is no larger,
    /// everything that was read stays, and is read as fast as if it had never been on a disk. From a larger
    /// one pages come through a cache of this size. What was written since the last backfill is in memory
    /// besides, at most half as much again: a backfill is begun at a quarter, and a transaction that fills
    /// a half writes its pages ahead. So is the image's directory, about 1/500 of its size.
    #[must_use]
    pub const fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Sets how much of the history is kept. Without a rule, which is the default, it is all kept.
    ///
    /// The rules are kept behind the backfills that happen by themselves, in the background and when the
    /// database is closed, and only where what is forgotten is at least as large as the live state
    /// ([`Database::live_bytes`]). So somewhat more is there than they ask for. Where somebody reads what could
    /// go, it stays until the next time. [`Database::forgotten`] tells what went, and
    /// [`Database::image_error`] what went wrong.
    ///
    /// They belong to the program, and aren't stored: whoever opens the database without them keeps all
    /// that there is then.
    ///
    /// Costs, each time that as much was written as the live state has, that the state is written to the
    /// journal once more; commits wait meanwhile, as for [`Database::restart`].
    #[must_use]
    pub const fn retention(mut self, rules: Retention) -> Self {
        self.retention = rules;
        self
    }

    /// Sets whether the history index is kept, the file beside the journal that tells in which parts of it a row was
    /// changed, so that [`Database::history_of`] reads no more than those. It is, unless told otherwise, of
    /// journals of 1 MiB or more.
    ///
    /// Costs, behind each backfill, that what the journal has got is read once more, and a few bytes for each change
    /// that isn't one of a run of rows; no commit waits for it. One that is there is used also without this, and
    /// deleting it loses nothing.
    #[must_use]
    pub const fn history_index(mut self, kept: bool) -> Self {
        self.history = if kept { Some(Sizes::USUAL) } else { None };
        self
    }

    /// Keeps a history index of any journal, with zones and steps of so many bytes.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    #[must_use]
    pub const fn small_history_index(mut self, zone: u64, step: u64) -> Self {
        self.history = Some(Sizes::small(zone, step));
        self
    }

    /// Opens or creates a database for reading and writing, whatever its schema.
    ///
    /// Cost: reads the head of the image and what the journal has behind it; without an image all of the
    /// journal, once: all segments of it from the last one on that begins with the state.
    ///
    /// # Errors
    /// `Busy`, naming the process that has it open; `NotFound`; `NotAJournal`; `Unsupported`;
    /// `Corrupt` if something is missing that was durable; `NeedsRecovery` with
    /// [`Recovery::Refuse`]; `Io`. The file is then as it was.
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
    /// As [`Self::open`] and [`Database::upgrade`]; `Invalid` if the upgrade comes to a custom
    /// function.
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
        let database = self.open(&path)?;
        let place = path.as_ref().display();
        database.upgrade(schema, customs).map_err(|error| error.within(place))?;
        Ok(database.fix_schema())
    }

    /// Opens an existing database for reading only, as [`Self::open_read_only`] does. Its schema is
    /// this one or a newer one that still has all tables, fields, indexes and single rows of this.
    ///
    /// # Errors
    /// As [`Self::open_read_only`]; `SchemaMismatch`, which says what is missing, or that the file's
    /// schema is older.
    pub fn open_schema_read_only(&self, path: impl AsRef<Path>, schema: &Schema) -> Result<Reader> {
        let reader = self.open_read_only(&path)?;
        let place = path.as_ref().display();
        upgrade::check_readable(reader.read().schema(), schema)
            .map_err(|error| error.within(place))?;
        Ok(reader)
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
        self.check()?;
        let directory = directory.for_journal(name, None).unwrap_or(directory);
        let shown = directory.display(name);
        let Newest { acquired, mut found, survey, replay, imager, recovery } =
            self.open_newest(&directory, name, &clock)?;
        let Acquired { storage, is_new, others } = acquired;
        let joins = others && survey.is_told() && survey.verdict() == Verdict::Whole;
        let careful = Careful { directory: &*directory, name, survey: &survey, recovery, others };
        let stopped = found.stopped.take().filter(|_| !is_made(Mistake::UnappliedIgnored));
        let settled = match &stopped {
            Some(stopped) => careful.leave(&stopped.unapplied)?,
            None if joins => journal::join(&survey),
            None => careful.settle(self, &*storage, is_new, clock.secret())?,
        };
        if !is_new && stopped.is_none() {
            careful.keep_names(&*storage, found.is_in(&survey))?;
        }
        let (store, view) = replay.finish();
        let mut checkpoints = Checkpoints::new(
            Arc::clone(&storage),
            &shown,
            (survey.head.hash, std::process::id()),
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
            Some(stopped) => checkpoints.refuse(stopped.unapplied.explain(&shown)),
        }
        let turns = self.shared.then(|| Turns::new(&storage, &clock, &shown, self.lock_timeout));
        let file =
            JournalFile::new(storage, survey.head.header.segment, Arc::clone(&directory), name);
        let checkpoints = Arc::new(checkpoints);
        let segment = Segment {
            checkpoints: Arc::clone(&checkpoints),
            file: Arc::new(file.behind(found.before)),
            turns,
            is_named: AtomicBool::new(true),
        };
        segment.end_turn();
        let database = Database::new(Setup {
            writer: journal::Writer::new(
                checkpoints,
                Arc::clone(&clock),
                survey.last_clock_time.max(found.last_clock_time()),
                self.sector,
            ),
            clock,
            segment,
            store,
            view,
            recovered,
            imager: imager.filter(|_| stopped.is_none()),
            level: self.level,
            background: self.background && stopped.is_none(),
            rebuild_timeout: self.rebuild_timeout,
            retention: self.retention,
            history: self.history,
            sharing,
        });
        let _ = stopped.map(|stopped| database.unapplied.set(stopped.unapplied));
        Ok(database)
    }

    /// Returns what a database needs that shares its file, if it does.
    fn sharing(&self, directory: &Arc<dyn Directory>, name: &str) -> Option<Sharing> {
        self.shared.then(|| Sharing {
            directory: Arc::clone(directory),
            file: name.to_owned(),
            recovery: self.recovery.among_others(),
            is_outdated: AtomicBool::new(false),
            users: Users::default(),
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
            let acquired = self.acquire(&**directory, name, clock)?;
            let Acquired { storage, others, .. } = &acquired;
            let watched = Watched::new(&**storage, self.watch.as_ref());
            // Nothing is cut, or called damaged, for one wrong read.
            let recovery = if *others { self.recovery.among_others() } else { self.recovery };
            let looking = Looking {
                directory,
                name,
                storage: &**storage,
                // What others may be writing is left to whoever has the right to.
                access: if self.shared { Access::Read } else { Access::Write },
                clock: Arc::clone(clock),
                budget: self.budget(),
                // Between the turns of one process others advance the image.
                spills: !self.shared,
                key_frames: self.key_frames,
                damage: Some(&damage),
                is_whole: false,
            };
            let mut found = looking.find()?;
            if !storage.has_fixed_len() {
                erase::finish(&**directory, name, &found.head.header)?;
                Past::check_there(&**directory, name, &found.head.header, &shown)?;
            }
            let (survey, replay, imager) =
                looking.survey(&mut found, &watched, recovery, scan::looks_wrong)?;
            let seal = survey.sealed.as_ref().filter(|_| found.stopped.is_none());
            let Some(seal) = seal else {
                return Ok(Newest { acquired, found, survey, replay, imager, recovery });
            };
            journal::refuse(&shown, &survey, recovery)?;
            let by = Maker { clock: &**clock, shared: self.shared };
            segments::finish(&**directory, name, &**storage, &survey, seal, by)?;
        }
        let message = format!("{shown}: it is restarted again and again; try later");
        Err(Error::new(ErrorKind::Busy, message))
    }

    /// Opens an existing database for reading only: writes nothing, and takes no lock but one on the root of
    /// the image that it reads, and one on each older segment that it reads. What is being written meanwhile
    /// is not seen.
    ///
    /// Cost: as [`Self::open`].
    ///
    /// # Errors
    /// As [`Self::open`], except that nothing is busy and nothing needs recovery.
    pub fn open_read_only(&self, path: impl AsRef<Path>) -> Result<Reader> {
        let (directory, name) = locate(path.as_ref())?;
        self.open_read_only_in(&*directory, &name)
    }

    /// Opens an existing database for reading only, in any directory.
    ///
    /// # Errors
    /// As [`Self::open_read_only`].
    pub fn open_read_only_in(&self, directory: &dyn Directory, name: &str) -> Result<Reader> {
        Reader::open_with(self, directory, name)
    }

    /// Gives how much of an image may be kept in memory, in bytes.
    pub(super) fn budget(&self) -> u64 {
        if self.memory == 0 { storage::memory() / 2 } else { self.memory }
    }

    /// Refuses settings that make no sense.
    fn check(&self) -> Result<()> {
        if self.shared && self.retention != Retention::default() {
            return Err(Error::invalid(
                "retention in shared mode: nothing is done in the background there, so no rule would be kept: \
                 let one of the programs call `Database::retain` now and then",
            ));
        }
        let is_sector = self.sector.is_power_of_two() && (512..=65_536).contains(&self.sector);
        if is_sector || self.sector == NO_PADDING {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "sector_padding({}): a sector has 512 to 65536 bytes, a power of two; 4096 fits all common \
             disks",
            self.sector
        )))
    }
}

/// The newest segment, read.
struct Newest {
    acquired: Acquired,
    found: Found,
    survey: Survey,
    replay: Replay,
    imager: Option<Arc<Imager>>,
    recovery: Recovery,
}

/// Splits a path into a directory and a name in it.
pub(crate) fn locate(path: &Path) -> Result<(Arc<dyn Directory>, String)> {
    if path == Path::new(":memory:") {
        let message = "`:memory:` is no file: use `Options::open_in` with a `MemoryDirectory`, or write `./:memory:`";
        return Err(Error::invalid(message));
    }
    FileDirectory::split(path)
        .map_err(|error| Error::io(format!("the path {path:?} can't be used"), error))
}
