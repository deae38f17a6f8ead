//! Pins: which roots of the image the views of this process read.
//!
//! A view that lies over the base of a root holds that root's pin. What only such a root reaches is not
//! written over before its last view is gone.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use super::report::OldestReader;
use crate::image::RootPin;
use crate::journal::lock;

/// The roots that may still be read.
#[derive(Debug, Default)]
pub(super) struct Pins {
    known: Mutex<Vec<Known>>,
}

#[derive(Debug)]
struct Known {
    pin: Weak<RootPin>,
    number: u64,
    /// When a newer root came.
    replaced: Option<Duration>,
}

impl Pins {
    /// Makes the pin of a new root; `now` is when.
    pub(super) fn add(&self, number: u64, now: Duration) -> Arc<RootPin> {
        let pin = Arc::new(RootPin { number });
        let mut known = lock(&self.known);
        known.retain(|known| known.pin.strong_count() > 0);
        known.iter_mut().for_each(|known| _ = known.replaced.get_or_insert(now));
        known.push(Known { pin: Arc::downgrade(&pin), number, replaced: None });
        pin
    }

    /// Gives the number of the oldest root that is read.
    pub(super) fn oldest(&self) -> Option<u64> {
        let known = lock(&self.known);
        known.iter().find(|known| known.pin.strong_count() > 0).map(|known| known.number)
    }

    /// Tells who reads the oldest root that was replaced.
    pub(super) fn oldest_reader(&self, now: Duration) -> Option<OldestReader> {
        let known = lock(&self.known);
        let oldest = known.iter().find(|known| known.pin.strong_count() > 0)?;
        let age = oldest.replaced.map(|then| now.saturating_sub(then));
        age.map(|age| OldestReader { pid: std::process::id(), root: oldest.number, age: Some(age) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_root_that_is_read_is_told() {
        let pins = Pins::default();
        assert_eq!(pins.oldest(), None);
        let first = pins.add(1, Duration::from_secs(1));
        let second = pins.add(2, Duration::from_secs(5));
        assert_eq!(pins.oldest(), Some(1));
        let reader = pins.oldest_reader(Duration::from_secs(9)).unwrap();
        assert_eq!((reader.root, reader.age), (1, Some(Duration::from_secs(4))));
        drop(first);
        assert_eq!((pins.oldest(), pins.oldest_reader(Duration::from_secs(9))), (Some(2), None));
        drop(second);
        assert_eq!(pins.oldest(), None);
    }
}
