//! Reporting the progress of reading a journal to a program, which may stop it; and reading the past for somebody who may
//! leave.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::storage::Storage;
use crate::{Error, ErrorKind, Result};

/// The current phase of work on a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// It is read, verified and, where the state is wanted, replayed.
    Reading,
    /// It is read once more: for events, after all was verified; or because something seemed wrong.
    ReadingAgain,
    /// It is copied, and verified meanwhile.
    Copying,
}

/// The progress of reading a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The current phase.
    pub phase: Phase,
    /// The bytes of the file that were read in this phase.
    pub done: u64,
    /// How many there are.
    pub total: u64,
}

/// Whom an operation reports its progress to.
#[derive(Clone)]
pub struct Watch(pub(crate) Arc<dyn Fn(Progress) -> ControlFlow<()> + Send + Sync>);

impl Watch {
    /// Reports progress; `Break` stops the operation.
    pub fn tell(&self, progress: Progress) -> ControlFlow<()> {
        (self.0)(progress)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

/// The interval of looks at who reads, in frames or places of the journal.
const FRAMES: u32 = 32;

thread_local! {
    /// For whom this thread reads the past, if they may leave.
    static READER: RefCell<Option<Reader>> = const { RefCell::new(None) };
    static READ: Cell<u32> = const { Cell::new(0) };
}

/// True as long as somebody waits for what is read.
type Reader = Arc<dyn Fn() -> bool + Send + Sync>;

/// Runs something on this thread whose reading of the past ends with `Cancelled` soon after `is_wanted` returns false: of a
/// state, of versions, changes and differences. What others need, too, goes on: making an index of the history.
pub fn read_while<T>(
    is_wanted: impl Fn() -> bool + Send + Sync + 'static,
    read: impl FnOnce() -> T,
) -> T {
    /// Puts the reader before back, also after a panic.
    struct ReaderBefore(Option<Reader>);
    impl Drop for ReaderBefore {
        fn drop(&mut self) {
            READER.set(self.0.take());
        }
    }
    let _before = ReaderBefore(READER.replace(Some(Arc::new(is_wanted))));
    READ.set(0);
    read()
}

/// Fails if nobody waits any more for what this thread reads.
///
/// # Errors
/// `Cancelled`.
pub(crate) fn check_wanted() -> Result<()> {
    READER.with_borrow(|reader| {
        let Some(is_wanted) = reader else { return Ok(()) };
        let read = READ.replace((READ.get() + 1) % FRAMES);
        match read > 0 || is_wanted() {
            true => Ok(()),
            false => {
                let message = "nobody waits for this any more; nothing was changed";
                Err(Error::new(ErrorKind::Cancelled, message))
            }
        }
    })
}

/// Returns what watches the reading of a file by this thread.
pub(crate) fn watch_of_reader() -> Option<Watch> {
    let is_wanted = READER.with_borrow(Clone::clone)?;
    Some(Watch(Arc::new(move |_| match is_wanted() {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    })))
}

/// The interval of reports, in bytes.
const STEP: u64 = 1 << 20;

/// A file that counts the bytes read of it. Once the program wants to stop, every read fails.
#[derive(Debug)]
pub struct Watched<'s> {
    storage: &'s dyn Storage,
    watch: Option<&'s Watch>,
    again: AtomicBool,
    stopped: AtomicBool,
    done: AtomicU64,
    next: AtomicU64,
}

impl<'s> Watched<'s> {
    /// Begins to watch the reading of a file.
    #[must_use]
    pub fn new(storage: &'s dyn Storage, watch: Option<&'s Watch>) -> Self {
        let (again, stopped) = (AtomicBool::new(false), AtomicBool::new(false));
        let (done, next) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { storage, watch, again, stopped, done, next }
    }

    /// Returns the callback.
    pub(crate) const fn watch(&self) -> Option<&'s Watch> {
        self.watch
    }

    /// Begins the phase in which the file is read once more.
    pub fn read_again(&self) {
        self.again.store(true, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
        self.next.store(0, Ordering::Relaxed);
    }

    /// Replaces the error if the program stopped the operation.
    #[must_use]
    pub fn explain(&self, error: Error, shown: &str) -> Error {
        if !self.stopped.load(Ordering::Relaxed) {
            return error;
        }
        let message = format!("{shown}: the program stopped reading it; nothing was changed");
        Error::new(ErrorKind::Cancelled, message)
    }

    /// Returns the end of the part that was read, which is sequential except for the head.
    fn tell(&self, watch: &Watch, end: u64) -> io::Result<()> {
        let done = self.done.fetch_max(end, Ordering::Relaxed).max(end);
        if done < self.next.load(Ordering::Relaxed) {
            return Ok(());
        }
        let total = self.storage.len()?;
        // The end is reported, too.
        let next = if done < total { total.min(done + STEP) } else { u64::MAX };
        self.next.store(next, Ordering::Relaxed);
        let again = self.again.load(Ordering::Relaxed);
        let phase = if again { Phase::ReadingAgain } else { Phase::Reading };
        if (watch.0)(Progress { phase, done: done.min(total), total }).is_break() {
            self.stopped.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Storage for Watched<'_> {
    fn beneath(&self) -> Option<&dyn Storage> {
        Some(self.storage)
    }

    fn len(&self) -> io::Result<u64> {
        self.storage.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.storage.read_at(offset, buffer)?;
        if let Some(watch) = self.watch {
            self.tell(watch, offset + read as u64)?;
        }
        match self.stopped.load(Ordering::Relaxed) {
            true => Err(io::Error::other("stopped")),
            false => Ok(read),
        }
    }
}
