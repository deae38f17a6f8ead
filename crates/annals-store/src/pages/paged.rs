//! A paged array: changes in memory, over the items in an image.
//!
//! Invariants
//! 1. The item at a place is that of the overlay; where the overlay has none, that of the base. The base has the items
//!    in memory that were in the overlay before it was stored: a store that was never closed loads nothing.
//! 2. An item of the base is never changed: it is copied into the overlay first. So a view, which has
//!    both, stays as it is.
//! 3. Without a base, a removal leaves nothing. With one, it leaves an item that is *gone*, which reads as zeros or
//!    as nothing, and covers the base's item.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Result;
use crate::image::Stored;
use crate::pages::base::Base;
use crate::pages::directory::Directory;
use crate::pages::item::{Held, Item};
use crate::pages::refresh::Refresh;
use crate::pages::reserve::ArrayId;

/// The identity of an array's contents: two with the same one are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ArrayVersion(u64);

impl ArrayVersion {
    pub(super) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The part of the memory to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// All.
    All,
    /// Items that no image has.
    Changes,
}

/// An array of items.
#[derive(Debug)]
pub(crate) struct Paged<T> {
    id: ArrayId,
    /// Another one after each change.
    pub(super) version: ArrayVersion,
    pub(super) overlay: Directory<T>,
    pub(super) base: Option<Arc<Base<T>>>,
}

impl<T: Clone> Refresh for Paged<T> {
    #[inline(always)]
    fn refresh(&mut self, newer: &Self) {
        if self.version != newer.version {
            self.refresh_changed(newer);
        }
    }
}

impl<T: Clone> Paged<T> {
    #[inline(never)]
    fn refresh_changed(&mut self, newer: &Self) {
        let Self { id, version, overlay, base } = self;
        (*id, *version) = (newer.id, newer.version);
        overlay.refresh(&newer.overlay);
        base.refresh(&newer.base);
    }
}

impl<T: Clone> Clone for Paged<T> {
    /// Makes another view of the same array: it has the same id.
    fn clone(&self) -> Self {
        Self {
            id: self.id,
            version: self.version,
            overlay: self.overlay.clone(),
            base: self.base.clone(),
        }
    }
}

impl<T> Default for Paged<T> {
    fn default() -> Self {
        let (id, version) = (ArrayId::next(), ArrayVersion::next());
        Self { id, version, overlay: Directory::default(), base: None }
    }
}

impl<T: Item> Paged<T> {
    /// Makes an array that has the same item in at least the first `len` places.
    pub(crate) fn filled(item: &T, len: usize) -> Self {
        Self { overlay: Directory::filled(item, len), ..Self::default() }
    }

    /// Begins with the items in an image.
    pub(crate) fn on(base: Arc<Base<T>>) -> Self {
        Self { base: Some(base), ..Self::default() }
    }

    /// Returns which array it is.
    pub(crate) const fn id(&self) -> ArrayId {
        self.id
    }

    /// Returns its entry in an image.
    pub(crate) const fn base(&self) -> Option<&Arc<Base<T>>> {
        self.base.as_ref()
    }

    /// Returns the changes since.
    pub(crate) const fn overlay(&self) -> &Directory<T> {
        &self.overlay
    }

    /// Returns the item at a place, if it is in the overlay: it may be written if `Page::may_write` says so.
    #[inline]
    pub(crate) fn here(&self, index: usize) -> Option<&T> {
        self.overlay.get(index)
    }

    /// Returns the item at a place, if that needs no lookup: it is a change, or was loaded before and stays.
    #[inline(always)]
    pub(crate) fn at_hand(&self, index: usize) -> Option<&T> {
        match self.overlay.get(index) {
            None => self.base.as_ref()?.known(index),
            item => item,
        }
    }

    /// Returns the item at a place.
    ///
    /// # Errors
    /// It can't be loaded.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Result<Option<Held<'_, T>>> {
        match self.overlay.get(index) {
            Some(item) => Ok(Some(Held::Here(item))),
            None => self.below(index),
        }
    }

    /// Returns the base's item at a place.
    ///
    /// # Errors
    /// It can't be loaded.
    #[inline]
    pub(crate) fn below(&self, index: usize) -> Result<Option<Held<'_, T>>> {
        if let Some(item) = self.base.as_ref().and_then(|base| base.known(index)) {
            return Ok(Some(Held::Here(item)));
        }
        self.find_below(index)
    }

    #[inline(never)] // so that reading what was looked at before stays short
    fn find_below(&self, index: usize) -> Result<Option<Held<'_, T>>> {
        self.base.as_ref().map_or(Ok(None), |base| base.get(index))
    }

    /// Returns where something is stored that is nowhere in memory, and returns the base that has it.
    ///
    /// # Errors
    /// A node above it can't be loaded.
    pub(crate) fn unseen(&self, index: usize) -> Result<Option<(&Base<T>, &Stored)>> {
        let is_changed = self.overlay.get(index).is_some();
        match self.base.as_ref().filter(|base| !is_changed && base.keeps()) {
            Some(base) => Ok(base.unseen(index)?.map(|stored| (&**base, stored))),
            None => Ok(None),
        }
    }

    /// True if the item at a place, which stays in memory, does so for all views over the same base, whatever those
    /// have changed: then the item below a change does, too.
    pub(crate) fn stays_below(&self, index: usize) -> bool {
        let Some(base) = &self.base else { return true };
        self.overlay.get(index).is_none() || base.has_loaded(index)
    }

    /// Puts something at a place.
    pub(crate) fn put(&mut self, index: usize, item: T) {
        self.version = ArrayVersion::next();
        self.overlay.set(index, Some(item));
    }

    /// Removes the item at a place.
    pub(crate) fn remove(&mut self, index: usize) {
        self.version = ArrayVersion::next();
        self.overlay.set(index, self.base.is_some().then(T::gone));
    }

    /// Returns how much memory its items take that are in memory, in bytes. Walks over them.
    pub(crate) fn memory(&self, what: Counted) -> usize {
        let loaded = match (what, &self.base) {
            (Counted::All, Some(base)) => base.memory(),
            _ => 0,
        };
        self.overlay.memory(Item::memory) + loaded
    }
}
