//! The settings for opening a database.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use annals_schema::Txid;

use crate::db::progress::{Progress, Watch};
use crate::image::KeyFrames;
use crate::journal::{Level, Recovery, Retention, Survey};
use crate::storage::{self, Directory, FileDirectory};
use crate::{Error, Result};

/// The type of `before_recovery`.
type Ask = dyn Fn(&Survey) -> ControlFlow<()> + Send + Sync;

/// Whom to ask.
#[derive(Clone)]
pub(in crate::db) struct Before(Arc<Ask>);

impl Before {
    pub(in crate::db) fn ask(&self, survey: &Survey) -> ControlFlow<()> {
        (self.0)(survey)
    }
}

impl fmt::Debug for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Before")
    }
}

/// How to open a database: the commit level, the recovery after an unclean end, and whether to create a missing file.
#[derive(Clone, Debug)]
pub struct Options {
    pub(in crate::db) level: Level,
    pub(in crate::db) recovery: Recovery,
    pub(in crate::db) create: bool,
    pub(in crate::db) background: bool,
    pub(in crate::db) sector: u64,
    pub(in crate::db) watch: Option<Watch>,
    pub(in crate::db) before: Option<Before>,
    pub(in crate::db) copy_first: bool,
    pub(in crate::db) unproven: bool,
    pub(in crate::db) shared: bool,
    pub(in crate::db) lock_timeout: Duration,
    pub(in crate::db) hard_only: bool,
    /// How much of an image may be cached in memory, in bytes; 0: the default.
    pub(in crate::db) memory: u64,
    /// True if a root of an image is read as a whole before it is used.
    pub(in crate::db) verify_image: bool,
    /// How many key frames an image keeps.
    pub(in crate::db) key_frames: KeyFrames,
    pub(in crate::db) retention: Retention,
    pub(in crate::db) history: bool,
    pub(in crate::db) upgrade_in_memory: bool,
    /// The image is another journal's, which has the same history up to this transaction: it is only read.
    pub(in crate::db) roots_until: Option<Txid>,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

/// The sectors of a disk whose writes damage nothing outside: frames are aligned to 8 bytes anyway.
const NO_PADDING: u64 = 8;
/// The default timeout for the turn.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

impl Options {
    /// Returns the defaults: commits at [`Level::Checksummed`], [`Recovery::Checked`], create if
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
            hard_only: false,
            memory: 0,
            verify_image: false,
            key_frames: KeyFrames::new(),
            retention: Retention { bytes: None, time: None, transactions: None },
            history: true,
            upgrade_in_memory: false,
            roots_until: None,
        }
    }

    /// Sets the level of commits that don't say another.
    #[must_use]
    pub const fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Sets the recovery of a journal that wasn't closed properly.
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

    /// Sets whether a background thread zero-fills space ahead and advances the checkpoints on disk. Without it, the
    /// only work is that which the caller requests.
    #[must_use]
    pub const fn background(mut self, background: bool) -> Self {
        self.background = background;
        self
    }

    /// Makes each commit end at the end of a sector of this many bytes. So no later write touches the sectors of an
    /// earlier commit. This is for disks that may damage the sector in which a write is interrupted. A power of two
    /// from 512 to 65,536; 4096 fits all common disks. Costs that much space for each small commit. Commits that were
    /// made without it keep their places.
    #[must_use]
    pub const fn sector_padding(mut self, bytes: u32) -> Self {
        self.sector = bytes as u64;
        self
    }

    /// Sets whether other processes on this machine may write the file too, in turn. All that write it must open it
    /// so. Each transaction first loads the commits of the others; [`Database::pull`](crate::Database::pull) does so
    /// without writing.
    ///
    /// Costs a few system calls for each transaction, a small write to notify the others, and that processes don't
    /// share flushes; nothing is done in the background. On Linux and Windows.
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

    /// Sets whether read-only handles see only commits that were flushed to permanent storage, rather than all
    /// commits. (A half commit was flushed as well; a power cut may undo it all the same, if the second copy of its
    /// slot wasn't.)
    #[must_use]
    pub const fn hard_only(mut self, hard_only: bool) -> Self {
        self.hard_only = hard_only;
        self
    }

    /// Sets how many bytes of the image, the page file beside the journal, are kept in memory once they were read:
    /// 1 GiB unless set, or a quarter of the memory of the machine (or of the process's control group) if that is
    /// less. If the whole image fits, everything that was read stays cached, and
    /// is read as fast as if it had never been on a disk. Pages of a larger one are cached up to this size. Changes
    /// since the last backfill are in memory besides, at most a quarter as much again: a backfill begins at an eighth,
    /// and a transaction that fills a quarter writes its pages ahead. So is the image's directory, about 1/500 of its size.
    #[must_use]
    pub const fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Sets whether opening reads all of the image, the page file beside the journal, and uses only what verifies. By
    /// default a page is verified when it is first read, and the read of a damaged one fails with kind
    /// [`ErrorKind::PageLost`](crate::ErrorKind::PageLost): what is opened then from the same handle does without it,
    /// but a handle that was opened for reading can't remove the damage for the next one. A program that opens the
    /// database, asks once and ends may try again with this.
    ///
    /// Costs one pass over the image.
    #[must_use]
    pub const fn verify_image(mut self, verify: bool) -> Self {
        self.verify_image = verify;
        self
    }

    /// Sets how much of the history is kept. Without a rule, which is the default, it is all kept.
    ///
    /// The rules are applied after backfills in the background and when the database is closed. They are applied only
    /// if the forgotten part is at least as large as the live state
    /// ([`Database::live_bytes`](crate::Database::live_bytes)). So somewhat more history exists than they keep.
    /// History with readers is kept until the next time. [`Database::forgotten`](crate::Database::forgotten) returns
    /// the removed history, and [`Database::image_error`](crate::Database::image_error) problems.
    ///
    /// They belong to the program, and aren't stored: opening the database without them keeps all existing history.
    ///
    /// Costs, each time that as much was written as the live state has, that the state is written to the
    /// journal once more; commits wait meanwhile, as for [`Database::restart`](crate::Database::restart).
    #[must_use]
    pub const fn retention(mut self, rules: Retention) -> Self {
        self.retention = rules;
        self
    }

    /// Sets whether a backfill extends the history index: the tree in the image that leads from a row to each of its
    /// changes in the journal. [`Database::history_of`](crate::Database::history_of) reads only those. By default it
    /// does. Without it, the first such question reads the journal after the index.
    ///
    /// Costs another read of the journal's new part at each backfill, and up to 13 bytes for each change outside a
    /// run of rows, or 1% of the bytes of a bulk load. No commit waits for it.
    #[must_use]
    pub const fn history_index(mut self, kept: bool) -> Self {
        self.history = kept;
        self
    }

    /// Sets whether a file with an older schema than the program's can be opened for reading only: it is upgraded in
    /// memory, and nothing is written to it.
    ///
    /// The upgrade is one more transaction, the last one of the reader's history. It exists in memory only. The next
    /// opening makes it again, and the next commit to the file has the same number: don't store that number, nor the
    /// ids of rows that a custom function inserts. The reader doesn't see later commits.
    ///
    /// Costs a second reading of the journal's tail, and memory for what the upgrade changes.
    #[must_use]
    pub const fn upgrade_in_memory(mut self, upgrade: bool) -> Self {
        self.upgrade_in_memory = upgrade;
        self
    }

    /// Calls `watch` with the bytes of a file that were read: when reading begins and about every MiB. If it answers
    /// [`ControlFlow::Break`], the operation fails with kind `Cancelled`, and nothing was changed.
    #[must_use]
    pub fn on_progress(
        mut self,
        watch: impl Fn(Progress) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> Self {
        self.watch = Some(Watch(Arc::new(watch)));
        self
    }

    /// Calls `ask` with the findings in an existing file, and the end that [`recovery`](Self::recovery) chooses. It
    /// is called after the file was read and judged, and before anything is changed. Meanwhile the file is locked. If
    /// it answers [`ControlFlow::Break`], opening for writing is an error of kind `Cancelled`, and nothing was
    /// changed.
    #[must_use]
    pub fn before_recovery(
        mut self,
        ask: impl Fn(&Survey) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> Self {
        self.before = Some(Before(Arc::new(ask)));
        self
    }

    /// Sets whether the whole file is copied beside itself before anything is cut off it, as
    /// `NAME.before-recovery-TXID-CHAIN`. Without space for that, opening is an error.
    #[must_use]
    pub const fn copy_first(mut self, copy: bool) -> Self {
        self.copy_first = copy;
        self
    }

    /// Sets whether `annals_tools::salvage` also takes transactions after damage that aren't proven to be of this
    /// history: a value may contain bytes that look like frames.
    #[must_use]
    pub const fn unproven(mut self, unproven: bool) -> Self {
        self.unproven = unproven;
        self
    }

    /// Sets how many bytes of the image key frames may take: older states that are kept in it, sharing all that
    /// hasn't changed since, so that [`Database::at`](crate::Database::at) replays little. They divide the
    /// journal evenly, at least 256 KiB of it from one to the next, and are thinned to stay within this; 0: none
    /// are kept. Unless set they may take half of what the newest state takes, a single one all of that, and
    /// 4 MiB in any case. Without enough of them the past is only slower to read.
    #[must_use]
    pub const fn key_frames(mut self, bytes: u64) -> Self {
        self.key_frames.budget = Some(bytes);
        self
    }

    /// Sets the least distance of two key frames, in bytes of the journal: tests have short journals.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    #[must_use]
    pub const fn key_frame_spacing(mut self, bytes: u64) -> Self {
        self.key_frames.spacing = bytes;
        self
    }

    /// Returns how much of an image is kept in memory at most, in bytes.
    #[must_use]
    pub fn budget(&self) -> u64 {
        if self.memory == 0 { storage::memory_for_pages() } else { self.memory }
    }

    /// Refuses settings that make no sense.
    pub(in crate::db) fn check(&self) -> Result<()> {
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

/// Returns the progress callback of an operation with these options.
#[must_use]
pub fn watch(options: &Options) -> Option<Watch> {
    options.watch.clone()
}

/// Returns how a journal with an unclean end is recovered.
#[must_use]
pub const fn recovery(options: &Options) -> Recovery {
    options.recovery
}

/// True if a salvage with these options takes transactions that aren't proven.
#[must_use]
pub const fn takes_unproven(options: &Options) -> bool {
    options.unproven
}

/// Splits a path into a directory and a name in it.
///
/// # Errors
/// `Invalid`: it is `:memory:`, which is no file; `Io` if the path can't be used.
pub fn locate(path: &Path) -> Result<(Arc<dyn Directory>, String)> {
    if path == Path::new(":memory:") {
        let message = "`:memory:` is no file: use `Database::in_memory()`, or write `./:memory:`";
        return Err(Error::invalid(message));
    }
    FileDirectory::split(path)
        .map_err(|error| Error::io(format!("the path {path:?} can't be used"), error))
}
