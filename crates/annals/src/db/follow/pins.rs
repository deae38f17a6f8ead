//! Pins: which roots of the image are read, by the views of this process and by others.
//!
//! A view that lies over the base of a root holds that root's pin. Space that only such a root reaches is not
//! overwritten before its last view is dropped. Other processes see the pin as a lock on the image; where there are
//! no such locks, no other process has the image open.

use crate::db::follow::report::OldestReader;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::image::{Image, RootPin};
use crate::journal::lock;

/// Of how many roots it is known when they were replaced: of the oldest one, and the last ones.
const REPLACED: usize = 64;

/// The roots of one image that may still be read.
#[derive(Debug, Default)]
pub(in crate::db) struct Pins {
    known: Mutex<KnownPins>,
}

#[derive(Debug, Default)]
struct KnownPins {
    pins: Vec<(u64, Weak<RootPin>)>,
    newest: Option<u64>,
    /// When which root was replaced by a newer one, in order.
    replaced: VecDeque<(u64, Duration)>,
}

impl KnownPins {
    /// Returns the roots that views of this handle read, in order.
    fn here(&self) -> impl Iterator<Item = u64> {
        self.pins.iter().filter(|(_, pin)| pin.strong_count() > 0).map(|(number, _)| *number)
    }

    /// Returns the numbers by which backfills of this handle are pinned that have no root yet, or had none when
    /// they were seen.
    fn early(&self) -> impl Iterator<Item = u64> {
        self.pins.iter().filter_map(|(_, pin)| pin.upgrade()?.early())
    }
}

impl Pins {
    /// Adds the pin of a new root; `now` is when.
    pub(in crate::db) fn add(&self, pin: RootPin, now: Duration) -> Arc<RootPin> {
        let (number, pin) = (pin.number, Arc::new(pin));
        let mut known = lock(&self.known);
        known.pins.retain(|(_, pin)| pin.strong_count() > 0);
        known.pins.push((number, Arc::downgrade(&pin)));
        if let Some(before) = known.newest.replace(number) {
            known.replaced.push_back((before, now));
        }
        if known.replaced.len() > REPLACED {
            known.replaced.remove(1);
        }
        pin
    }

    /// Adds the pin of a backfill of this handle that has no root yet.
    pub(in crate::db) fn add_early(&self, pin: RootPin) -> Arc<RootPin> {
        let pin = Arc::new(pin);
        let mut known = lock(&self.known);
        known.pins.retain(|(_, pin)| pin.strong_count() > 0);
        known.pins.push((pin.number, Arc::downgrade(&pin)));
        pin
    }

    /// Returns the numbers of all roots with readers, and those of other handles' backfills without a root.
    ///
    /// # Errors
    /// Those of querying locks.
    pub(in crate::db) fn all(&self, image: &Image) -> io::Result<Vec<u64>> {
        let mut all = image.pinned(0..u64::MAX, usize::MAX)?;
        let known = lock(&self.known);
        let own: Vec<_> = known.early().collect();
        all.retain(|number| !own.contains(number));
        all.extend(known.here());
        drop(known);
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    /// Returns the reader of the oldest replaced root.
    pub(in crate::db) fn oldest_reader(
        &self,
        image: &Image,
        now: Duration,
    ) -> Option<OldestReader> {
        let known = lock(&self.known);
        let newest = known.newest?;
        // A failed query isn't an error: the result is for a report.
        let elsewhere = image.pinned(0..newest, 1).unwrap_or_default();
        let own = known.here().find(|root| *root < newest);
        let root = own.into_iter().chain(elsewhere).min()?;
        let replaced = known.replaced.iter().find(|(replaced, _)| *replaced >= root);
        let age = replaced.map(|(_, then)| now.saturating_sub(*then));
        drop(known);
        let pid = if own == Some(root) {
            Some(annals_storage::process_id())
        } else {
            image.pinned_by(root)
        };
        Some(OldestReader { pid, root, age })
    }
}
