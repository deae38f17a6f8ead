//! What a handle keeps of the images of its journal, beside the state that it published.

use std::sync::{Arc, Mutex, OnceLock, Weak};

use annals_schema::Txid;

use crate::image::{Damage, ExposedPin};
use crate::journal::lock;
use crate::store::View;
use crate::store::history::HistoryIndex;

/// What a handle keeps of images: what it read over their roots, which of them it may use, and who else reads them.
#[derive(Debug, Default)]
pub(in crate::db) struct ImageUse {
    /// The history index as far as somebody asked for it, if that is farther than the image's.
    pub(in crate::db) index: Mutex<Option<Noted>>,
    pub(in crate::db) last_past: LastPast,
    /// The last transaction whose roots of the image are of this journal; `None`: all are.
    pub(in crate::db) roots_until: Option<Txid>,
    pub(in crate::db) exposed: ExposedRoots,
    /// The damage that the handle found in images.
    pub(in crate::db) damage: Arc<Damage>,
}

impl ImageUse {
    /// Uses roots up to a transaction, and records their damage in the list of the handle.
    pub(in crate::db) fn new(damage: &Arc<Damage>, roots_until: Option<Txid>) -> Self {
        Self { damage: Arc::clone(damage), roots_until, ..Self::default() }
    }

    /// Returns how the next segment uses images: all of them, and without what was read over the present ones.
    pub(in crate::db) fn of_next(&self) -> Self {
        let next = Self::new(&self.damage, None);
        if self.last_past.0.get().is_some() {
            next.last_past.begin();
        }
        next
    }

    /// Returns how an earlier segment uses them.
    pub(in crate::db) fn of_earlier(&self) -> Self {
        Self::new(&self.damage, self.roots_until)
    }
}

/// The roots of the image that other machines read. They begin again with a newer one if a pin is released, so nothing
/// waits for them.
#[derive(Debug, Default)]
pub(in crate::db) struct ExposedRoots(Mutex<Vec<Weak<ExposedPin>>>);

impl ExposedRoots {
    /// Adds a pin.
    pub(in crate::db) fn add(&self, pin: &Arc<ExposedPin>) {
        let mut pins = lock(&self.0);
        pins.retain(|pin| pin.strong_count() > 0);
        pins.push(Arc::downgrade(pin));
    }

    /// Releases all pins.
    pub(in crate::db) fn release(&self) {
        for pin in lock(&self.0).drain(..).filter_map(|pin| pin.upgrade()) {
            *lock(&pin) = None;
        }
    }
}

/// The past state that was made last, with its transaction: until the next backfill. A database of one process keeps
/// it; else another process may wait for the root of the image under it.
#[derive(Debug, Default)]
pub(in crate::db) struct LastPast(OnceLock<Mutex<Option<State>>>);

/// A transaction, and how many commands the schema has through which the state after it is read.
type Read = (u64, usize);
type State = (Read, Arc<View>);

impl LastPast {
    /// Begins to keep the last state.
    pub(in crate::db) fn begin(&self) {
        self.0.get_or_init(Mutex::default);
    }

    /// Returns the state after a transaction, if it is the last one.
    pub(in crate::db) fn after(&self, read: Read) -> Option<Arc<View>> {
        let last = lock(self.0.get()?);
        last.as_ref().filter(|(of, _)| *of == read).map(|(_, view)| Arc::clone(view))
    }

    /// Keeps a state in place of the last one, if any is kept.
    pub(in crate::db) fn keep(&self, read: Read, view: &Arc<View>) {
        if let Some(last) = self.0.get() {
            *lock(last) = Some((read, Arc::clone(view)));
        }
    }

    /// Drops the state, and the root under it.
    pub(in crate::db) fn forget(&self) {
        if let Some(last) = self.0.get() {
            *lock(last) = None;
        }
    }
}

/// A history index that goes farther than the image's.
#[derive(Clone, Debug)]
pub(in crate::db) struct Noted {
    pub(in crate::db) index: Arc<HistoryIndex>,
    /// The root of the image whose index it replaces, because that can't be used.
    pub(in crate::db) instead_of: Option<u64>,
}

impl Noted {
    /// True if it replaces the index of a root.
    pub(in crate::db) fn instead_of(&self, root: u64) -> bool {
        self.instead_of.is_some_and(|until| root <= until)
    }
}
