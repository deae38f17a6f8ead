//! The state that threads of an open database share: the writer's side, the published view, the image.
//!
//! ```text
//! order of locks:   claim ─► writing ─► turn ─► working ─► what is inside of image and group
//! ```
//!
//! `working` (of `ImageState`) is held by what writes the image; claim and turn are of shared mode, among processes
//! and threads. A transaction that spills has the writer's side, and waits for `working`. So no holder of that waits
//! for a transaction: a full backfill and a restart take the writer's side first, a passive backfill only tries to.
//! Who needs a lock out of this order tries it, or waits for a moment. In shared mode nothing spills: there who has
//! the claim finds `working` free, and waits for the other processes before the threads of this one wait for it.

use annals_storage::sync::{MovableGuard, MovableMutex, try_lock};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use crate::db::follow::image_state::ImageState;
use crate::db::follow::image_state::Working;
use crate::db::follow::options::Options;
use crate::db::follow::state::State;
use crate::db::present::outcome::Forgotten;
use crate::db::present::segment::{Current, JournalFile, Segment};
use crate::db::write::group::Group;
use crate::db::write::keeping::Keeping;
use crate::db::write::uuids::NewUuids;
use crate::image::image_name;
use crate::journal::{Checkpoints, Retention, Writer, lock};
use crate::storage::{Access, Clock};
use crate::store::Store;
use crate::{Error, ErrorKind, Result};

/// The interval of polling for another thread.
const PAUSE: Duration = Duration::from_millis(1);

/// The state that only the writer uses.
#[derive(Debug)]
pub(in crate::db) struct Writing {
    pub(in crate::db) writer: Writer,
    pub(in crate::db) store: Store,
    /// The file that `writer` writes, with those before it.
    pub(in crate::db) file: Arc<JournalFile>,
    /// What makes new UUIDs.
    pub(in crate::db) uuids: NewUuids,
}

impl Writing {
    /// Lets the store, in which nothing is pending, follow the journal.
    pub(in crate::db) fn follow<T>(
        &mut self,
        follow: impl FnOnce(&mut State) -> Result<T>,
    ) -> Result<T> {
        let (point, file) = (self.writer.committed(), Arc::clone(&self.file));
        let mut state = State { store: std::mem::take(&mut self.store), point, file };
        let followed = follow(&mut state);
        self.store = state.store;
        followed
    }
}

/// The state that threads of an open database share.
#[derive(Debug)]
pub(in crate::db) struct Core {
    pub(in crate::db) group: Group,
    pub(in crate::db) writing: MovableMutex<Writing>,
    /// The segment that is written now. It changes only while the writer's lock is held.
    pub(in crate::db) segment: Arc<Current>,
    /// None where there can be no image.
    image_state: Option<Arc<ImageState>>,
    /// The last problem of the image in the background.
    image_error: Mutex<Option<String>>,
    /// The state of the history index.
    pub(in crate::db) history: Keeping,
    /// The files of earlier segments, as long as snapshots have them.
    pub(in crate::db) retired: Mutex<Vec<Weak<JournalFile>>>,
    /// Held while something is done to the segment in the background, and while the journal continues in
    /// another one.
    pub(in crate::db) keeping: Arc<Mutex<()>>,
    /// The rules of retention; without a rule all history is kept.
    pub(in crate::db) retention: Retention,
    /// The history that these rules have forgotten.
    pub(in crate::db) forgotten: Mutex<Option<Forgotten>>,
    /// True if no other process may write.
    pub(in crate::db) works_alone: bool,
}

impl Core {
    /// Makes it of the published side, the writer's, and the image's, which is `None` where there can be none.
    pub(in crate::db) fn new(
        options: &Options,
        group: Group,
        writing: Writing,
        image_state: Option<Arc<ImageState>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            segment: Arc::clone(&group.segment),
            group,
            writing: MovableMutex::new(writing),
            image_state,
            image_error: Mutex::default(),
            history: Keeping::new(options.history),
            retired: Mutex::default(),
            keeping: Arc::default(),
            retention: options.retention,
            forgotten: Mutex::default(),
            works_alone: !options.shared,
        })
    }

    /// Returns the clock.
    pub(in crate::db) fn clock(&self) -> &Arc<dyn Clock> {
        &self.group.clock
    }

    /// Returns the file that is written now.
    pub(in crate::db) fn file(&self) -> Arc<JournalFile> {
        Arc::clone(&self.segment.load().file)
    }

    /// Continues everything in another segment.
    pub(in crate::db) fn enter(&self, writing: &mut Writing, segment: Segment, writer: Writer) {
        let old = std::mem::replace(&mut writing.file, Arc::clone(&segment.file));
        let mut retired = lock(&self.retired);
        retired.retain(|file| file.strong_count() > 0);
        retired.push(Arc::downgrade(&old));
        drop(retired);
        writing.writer = writer;
        self.segment.store(Arc::new(segment));
    }

    /// Waits, up to `timeout`, until no thread has a transaction open.
    pub(in crate::db) fn writer_within(
        &self,
        timeout: Duration,
    ) -> Result<MovableGuard<'_, Writing>> {
        self.wait_for(|| self.writing.try_lock(), timeout, "had a transaction open")
    }

    /// Waits, up to `timeout`, for a lock of another thread; `what` describes its work.
    pub(in crate::db) fn wait_for<G>(
        &self,
        try_lock: impl Fn() -> Option<G>,
        timeout: Duration,
        what: &str,
    ) -> Result<G> {
        let begun = self.clock().elapsed();
        loop {
            if let Some(held) = try_lock() {
                return Ok(held);
            }
            if self.clock().elapsed().saturating_sub(begun) >= timeout {
                let name = &self.segment.load().file.name;
                let message =
                    format!("{name}: another thread {what} for all of {timeout:?}: try again");
                return Err(Error::new(ErrorKind::Busy, message));
            }
            self.clock().pause(PAUSE);
        }
    }

    /// Waits until no thread runs a backfill, for `timeout` at most. No backfill begins while the returned guard is
    /// held.
    pub(in crate::db) fn wait_for_backfill<'i>(
        &self,
        image_state: &'i ImageState,
        timeout: Duration,
    ) -> Result<MutexGuard<'i, Working>> {
        self.wait_for(|| try_lock(&image_state.working), timeout, "was bringing the image forward")
    }

    /// Lets the unchanged store and the published view continue from the newest root.
    pub(in crate::db) fn install_now(&self, image_state: &ImageState, writing: &mut Writing) {
        image_state.install(&mut writing.store);
        self.group.replace(writing.store.republish());
        image_state.note_published(&self.group.published().view);
    }

    /// Returns the checkpoints of the current segment.
    pub(in crate::db) fn checkpoints(&self) -> Arc<Checkpoints> {
        Arc::clone(&self.segment.load().checkpoints)
    }

    /// Adds to an error which says that the disk is full how much of it the image takes, which is a cache.
    #[cold]
    pub(in crate::db) fn advise_space(&self, error: Error) -> Error {
        if !error.is_want_of_space() {
            return error;
        }
        let file = self.file();
        let name = image_name(&file.journal);
        let image = file.directory.open(&name, Access::Read);
        match image.and_then(|image| image.len()).unwrap_or(0) {
            0 => error,
            bytes => error.advising(format_args!(
                "{} takes {bytes} bytes, and is only a cache: close the database and delete it to make room; \
                 nothing is lost by that",
                file.directory.display(&name)
            )),
        }
    }

    /// Returns the state of the image.
    ///
    /// # Errors
    /// `Unsupported`: there can be none.
    pub(in crate::db) fn image_state(&self) -> Result<&ImageState> {
        self.image().ok_or_else(|| {
            let name = &self.segment.load().file.name;
            Error::new(
                ErrorKind::Unsupported,
                match self.segment.load().file.images.roots_until {
                    None => format!(
                        "{name}: a raw device has no image to update: each opening replays the whole journal; use a \
                         regular file to have one"
                    ),
                    Some(_) => format!(
                        "{name}: changes that were made offline have no image of their own: push them first"
                    ),
                },
            )
        })
    }

    /// Returns the state of the image, if there can be one.
    #[inline]
    pub(in crate::db) fn image(&self) -> Option<&ImageState> {
        self.image_state.as_deref()
    }

    /// Records a problem of the image in the background.
    pub(in crate::db) fn note_image_error(&self, error: &Error) {
        *lock(&self.image_error) = Some(error.to_string());
    }

    /// Returns the problem of the image in the background since the last backfill, if there was one.
    pub(in crate::db) fn image_error(&self) -> Option<String> {
        lock(&self.image_error).clone()
    }

    /// Forgets it.
    pub(in crate::db) fn forget_image_error(&self) {
        *lock(&self.image_error) = None;
    }
}
