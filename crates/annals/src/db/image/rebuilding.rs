//! Rebuilding a handle's state after damage of the image: the state of that.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::db::image::image_state::ImageState;
use crate::db::image::opening::Found;
use crate::db::present::segment::JournalFile;
use crate::journal::{Point, lock};
use crate::storage::{Clock as _, Origin, SystemClock};
use crate::store::Store;
use crate::{Error, ErrorKind, Result};

/// The interval of polling: by the system's clock, as it is for a thread.
const PAUSE: Duration = Duration::from_millis(1);

/// The rebuild of a handle, if there is one.
#[derive(Debug)]
pub(in crate::db) struct Rebuilding {
    pub(in crate::db) state: Mutex<State>,
    /// True if a rebuilt state waits for the writer's lock: as `ready`, for those without its lock.
    pub(in crate::db) is_ready: AtomicBool,
    pub(in crate::db) ready: Mutex<Option<Ready>>,
    pub(in crate::db) is_stopping: Arc<AtomicBool>,
    /// How much damage was known when the last one began.
    pub(in crate::db) seen: AtomicUsize,
    pub(in crate::db) origin: Origin,
}

#[derive(Debug, Default)]
pub(in crate::db) struct State {
    pub(in crate::db) is_running: bool,
    /// Why the last one failed.
    pub(in crate::db) failure: Option<Error>,
    pub(in crate::db) thread: Option<JoinHandle<()>>,
}

/// A rebuilt state, a little before the end of the journal.
#[derive(Debug)]
pub(in crate::db) struct Ready {
    pub(in crate::db) found: Found,
    /// The state of a new image, to which the replay spilled; `None` if the old one stays.
    pub(in crate::db) fresh: Option<Arc<ImageState>>,
    pub(in crate::db) store: Store,
    pub(in crate::db) point: Point,
    pub(in crate::db) file: Arc<JournalFile>,
}

/// The reason that a rebuild gave no new state.
pub(in crate::db) enum NotRebuilt {
    /// The newest root isn't concerned.
    NotNeeded,
    /// The image or the journal continues in another file by now.
    Moved,
    Failed(Error),
}

impl From<Error> for NotRebuilt {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Default for Rebuilding {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            is_ready: AtomicBool::new(false),
            ready: Mutex::default(),
            is_stopping: Arc::default(),
            seen: AtomicUsize::new(0),
            origin: Origin::here(),
        }
    }
}

impl Rebuilding {
    /// Returns true if a rebuild runs, or waits for the writer's lock.
    pub(in crate::db) fn is_running(&self) -> bool {
        lock(&self.state).is_running
    }

    /// Returns true if a rebuilt state waits for the writer's lock. A load.
    #[inline]
    pub(in crate::db) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire)
    }

    /// Waits up to `patience` for a running rebuild; then stops it, and prevents further ones.
    pub(in crate::db) fn stop(&self, patience: Duration) {
        if self.origin.is_elsewhere() {
            return;
        }
        let deadline = SystemClock.elapsed().saturating_add(patience);
        let runs = || lock(&self.state).thread.as_ref().is_some_and(|it| !it.is_finished());
        while runs() && SystemClock.elapsed() < deadline {
            SystemClock.pause(PAUSE);
        }
        self.is_stopping.store(true, Ordering::Release);
        let thread = lock(&self.state).thread.take();
        if let Some(thread) = thread {
            let _ = thread.join(); // it changes nothing but under the writer's lock
        }
        *lock(&self.ready) = None;
    }

    pub(in crate::db) fn put(&self, ready: &mut Option<Ready>, value: Option<Ready>) {
        self.is_ready.store(value.is_some(), Ordering::Release);
        *ready = value;
    }

    pub(in crate::db) fn check_going_on(&self) -> Result<()> {
        match self.is_stopping.load(Ordering::Acquire) {
            true => Err(Error::new(ErrorKind::Cancelled, "the database is being closed")),
            false => Ok(()),
        }
    }
}
