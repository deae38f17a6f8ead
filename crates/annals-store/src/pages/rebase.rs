//! Letting an array continue from the new base of a backfill.
//!
//! All slow work is done when the base is made, while no thread waits. When a view continues from it, the cost
//! depends only on the changes since, because the view shares the rest with the saved one.

use std::ops::Range;
use std::sync::Arc;

use crate::pages::base::Base;
use crate::pages::directory::Directory;
use crate::pages::item::Item;
use crate::pages::paged::{ArrayVersion, Paged};
use annals_storage::step;

/// The new base of an array, and the parts of the saved array in it.
pub(super) struct Rebase<T> {
    pub(super) base: Arc<Base<T>>,
    /// The items of the overlay that the base has, the identical ones, and the removed ones.
    known: Directory<T>,
    /// The places of which the base has a copy, or a part of one: the item may have been written since.
    parts: Vec<usize>,
    /// True if there was no base before: removals since then left nothing.
    is_first: bool,
}

/// Which places of an overlay a base hasn't got as they are.
#[derive(Default)]
pub(super) struct Exceptions {
    /// Where it has a copy of a part.
    pub(super) parts: Vec<usize>,
    /// The places that are empty, because no view refers to them. The writer may fill them at any time.
    pub(super) blanks: Vec<Range<usize>>,
}

impl<T: Item> Rebase<T> {
    /// Prepares for the base that has all of an array except some exceptions.
    pub(super) fn new(array: &Paged<T>, base: Arc<Base<T>>, but: Exceptions) -> Self {
        let Exceptions { parts, blanks } = but;
        let mut known = array.overlay().clone();
        blanks.into_iter().for_each(|places| known.clear(places));
        parts.iter().for_each(|place| known.set(*place, None));
        Self { base, known, parts, is_first: array.base().is_none() }
    }

    /// Drops the items that the base has in memory.
    pub(super) fn unload(&mut self) {
        self.base = Arc::new(self.base.unloaded());
    }

    /// Returns the remaining overlay of an array that grew from the saved one.
    fn left_of(&self, overlay: &Directory<T>) -> Directory<T> {
        let gone = self.is_first.then(T::gone);
        let is_same = |own: &T, known: &T| {
            let is_same = own.is_same(known);
            step!(ChangedPageDropped, is_same, else is_same || !known.is_gone())
        };
        let mut left = overlay.without(&self.known, is_same, gone.as_ref());
        for place in self.parts.iter().filter(|_| self.is_first) {
            if left.get(*place).is_none() {
                left.set(*place, Some(T::gone()));
            }
        }
        left
    }
}

impl<T: Item> Paged<T> {
    /// Continues from a newer base of the same array: its items leave the overlay. Costs time for the changes since
    /// it was saved.
    pub(super) fn rebase(&mut self, rebase: &Rebase<T>) {
        if self.base.as_ref().is_some_and(|base| Arc::ptr_eq(base, &rebase.base)) {
            return;
        }
        self.version = ArrayVersion::next();
        self.overlay = rebase.left_of(&self.overlay);
        self.base = Some(Arc::clone(&rebase.base));
    }
}
