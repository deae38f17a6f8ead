//! A directory and a clock that let other threads go first, at random, around everything they do.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use annals::storage::{Clock, Directory};
use annals_simulated::{Rng, SimulatedClock};

use crate::watched::{Watched, Watcher};

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
#[derive(Debug)]
pub(super) struct Watch {
    dice: Dice,
    reads: Hook,
    flushes: Hook,
    flushing: AtomicU64,
}

/// A directory whose files let other threads go first.
pub(super) type Yielding = Watched<Watch>;

impl Yielding {
    pub(super) fn yielding(inner: Arc<dyn Directory>, seed: u64) -> Self {
        let dice = Dice(Mutex::new(Rng::new(seed)));
        let (reads, flushes, flushing) = (Hook::default(), Hook::default(), AtomicU64::new(0));
        Self::new(inner, Arc::new(Watch { dice, reads, flushes, flushing }))
    }

    /// Lets the thread do something that flushes a file next, before it does so.
    pub(super) fn at_the_next_flush(&self, act: impl FnOnce() + Send + 'static) {
        self.watcher.flushes.set(0, act);
    }

    /// Lets whoever reads a file do something first, after so many other reads.
    pub(super) fn at_read(&self, number: u64, act: impl FnOnce() + Send + 'static) {
        self.watcher.reads.set(number, act);
    }

    /// True if everything was done that was to be done at reads.
    pub(super) fn has_read(&self) -> bool {
        self.watcher.reads.0.lock().unwrap().is_none()
    }
}

impl Watcher for Watch {
    fn before_read(&self) {
        self.reads.pass();
    }
    fn before_flush(&self) {
        self.flushes.pass();
        let others = self.flushing.fetch_add(1, Ordering::SeqCst);
        assert_eq!(others, 0, "what one flush dropped that failed, another would seem to cover");
    }
    fn after_flush(&self) {
        self.flushing.fetch_sub(1, Ordering::SeqCst);
    }
    fn give_way(&self) {
        self.dice.roll();
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
