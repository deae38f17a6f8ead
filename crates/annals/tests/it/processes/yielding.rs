//! A directory and a clock that let other threads go first, at random, around everything they do.

use std::io;
use std::sync::Arc;
use std::sync::Mutex;
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

/// What is to be done at a flush.
#[derive(Default)]
struct Hook(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hook")
    }
}

#[derive(Debug)]
pub(super) struct Yielding {
    inner: Arc<dyn Directory>,
    dice: Arc<Dice>,
    hook: Arc<Hook>,
}

impl Yielding {
    pub(super) fn new(inner: Arc<dyn Directory>, seed: u64) -> Self {
        let dice = Arc::new(Dice(Mutex::new(Rng::new(seed))));
        Self { inner, dice, hook: Arc::default() }
    }

    /// Lets the thread do something that flushes a file next, before it does so.
    pub(super) fn at_the_next_flush(&self, act: impl FnOnce() + Send + 'static) {
        *self.hook.0.lock().unwrap() = Some(Box::new(act));
    }

    fn file(&self, inner: Arc<dyn Storage>) -> Arc<dyn Storage> {
        Arc::new(File { inner, dice: Arc::clone(&self.dice), hook: Arc::clone(&self.hook) })
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
    hook: Arc<Hook>,
}

impl Storage for File {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read_at(offset, buffer)
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.dice.around(|| self.inner.write_at(offset, data))
    }
    fn flush(&self) -> io::Result<()> {
        let act = self.hook.0.lock().unwrap().take();
        if let Some(act) = act {
            act();
        }
        self.dice.around(|| self.inner.flush())
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
