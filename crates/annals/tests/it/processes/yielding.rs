//! A directory and a clock that let other threads go first, at random, around everything they do.

use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use annals::storage::simulated::{Rng, SimulatedClock};
use annals::storage::{Access, Clock, Directory, Hold, Lock, Storage};

/// Lets other threads go first, as a seed has it.
#[derive(Debug)]
struct Dice(Mutex<Rng>);

impl Dice {
    fn roll(&self) {
        let times = {
            let mut rng = self.0.lock().unwrap();
            if rng.percent(50) { 0 } else { rng.below(12) }
        };
        for _ in 0..times {
            std::thread::yield_now();
        }
    }

    /// Does something between two throws.
    fn around<T>(&self, act: impl FnOnce() -> T) -> T {
        self.roll();
        let result = act();
        self.roll();
        result
    }
}

type Act = Box<dyn FnOnce() + Send>;

/// What is to be done after so many calls.
#[derive(Default)]
struct Hook(Mutex<Option<(u64, Act)>>);

impl Hook {
    fn set(&self, calls: u64, act: impl FnOnce() + Send + 'static) {
        *self.0.lock().unwrap() = Some((calls, Box::new(act)));
    }

    fn pass(&self) {
        let mut planned = self.0.lock().unwrap();
        match planned.take() {
            Some((0, act)) => {
                drop(planned);
                act();
            }
            Some((calls, act)) => *planned = Some((calls - 1, act)),
            None => {}
        }
    }
}

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hook")
    }
}

/// What is done at reads and flushes, and how many flushes are under way.
#[derive(Debug, Default)]
struct Watch {
    reads: Hook,
    flushes: Hook,
    flushing: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Yielding {
    inner: Arc<dyn Directory>,
    dice: Arc<Dice>,
    watch: Arc<Watch>,
}

impl Yielding {
    pub(super) fn new(inner: Arc<dyn Directory>, seed: u64) -> Self {
        let dice = Arc::new(Dice(Mutex::new(Rng::new(seed))));
        Self { inner, dice, watch: Arc::default() }
    }

    /// Lets the thread do something that flushes a file next, before it does so.
    pub(super) fn at_the_next_flush(&self, act: impl FnOnce() + Send + 'static) {
        self.watch.flushes.set(0, act);
    }

    /// Lets whoever reads a file do something first, after so many other reads.
    pub(super) fn at_read(&self, number: u64, act: impl FnOnce() + Send + 'static) {
        self.watch.reads.set(number, act);
    }

    /// Tells whether everything was done that was to be done at reads.
    pub(super) fn has_read(&self) -> bool {
        self.watch.reads.0.lock().unwrap().is_none()
    }

    fn file(&self, inner: Arc<dyn Storage>) -> Arc<dyn Storage> {
        Arc::new(File { inner, dice: Arc::clone(&self.dice), watch: Arc::clone(&self.watch) })
    }
}

impl Directory for Yielding {
    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn Storage>> {
        self.inner.open(name, access).map(|inner| self.file(inner))
    }
    fn create(&self, name: &str) -> io::Result<Arc<dyn Storage>> {
        self.inner.create(name).map(|inner| self.file(inner))
    }
    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.link(from, to)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }
    fn flush(&self) -> io::Result<()> {
        self.inner.flush()
    }
    fn display(&self, name: &str) -> String {
        self.inner.display(name)
    }
}

#[derive(Debug)]
struct File {
    inner: Arc<dyn Storage>,
    dice: Arc<Dice>,
    watch: Arc<Watch>,
}

impl Storage for File {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.watch.reads.pass();
        self.inner.read_at(offset, buffer)
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.dice.around(|| self.inner.write_at(offset, data))
    }
    fn flush(&self) -> io::Result<()> {
        self.watch.flushes.pass();
        let others = self.watch.flushing.fetch_add(1, Ordering::SeqCst);
        assert_eq!(others, 0, "what one flush dropped that failed, another would seem to cover");
        let flushed = self.dice.around(|| self.inner.flush());
        self.watch.flushing.fetch_sub(1, Ordering::SeqCst);
        flushed
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.dice.around(|| self.inner.set_len(len))
    }
    fn try_lock(&self, lock: Lock, hold: Hold) -> io::Result<bool> {
        self.dice.around(|| self.inner.try_lock(lock, hold))
    }
    fn unlock(&self, lock: Lock) -> io::Result<()> {
        self.dice.around(|| self.inner.unlock(lock))
    }
    fn is_linked(&self) -> io::Result<bool> {
        self.inner.is_linked()
    }
}

/// A simulated clock, at which threads take turns.
#[derive(Debug)]
pub(super) struct YieldingClock {
    inner: SimulatedClock,
    dice: Dice,
}

impl YieldingClock {
    pub(super) fn new(seed: u64) -> Self {
        Self { inner: SimulatedClock::new(seed), dice: Dice(Mutex::new(Rng::new(seed))) }
    }
}

impl Clock for YieldingClock {
    fn now(&self) -> i64 {
        self.dice.around(|| self.inner.now())
    }
    fn elapsed(&self) -> Duration {
        self.dice.around(|| self.inner.elapsed())
    }
    fn random(&self) -> u64 {
        self.inner.random()
    }
    fn pause(&self, time: Duration) {
        self.dice.around(|| self.inner.pause(time));
    }
}
