//! The pager: loads items that a store's views don't have in memory, and caches them.
//!
//! As long as the whole image fits into the budget, loaded items stay in place, and are as fast as if they had never
//! been elsewhere. If it doesn't fit, only the nodes of the directories stay; pages and long values go through a
//! cache of that size.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use annals_storage::Origin;

use crate::image::{Source, Stored};
use crate::pages::item::{Cached, Item};
use crate::pages::packing::Packing;
use crate::pages::page::{Epoch, PAGE, PageRef};
use crate::{Error, ErrorKind, Result};

/// The least size of a part of the cache, in bytes: a page, else each step of a walk would load one again.
const LEAST: usize = PAGE + 256;

/// How many parts the cache has, so that threads seldom meet in one.
const SHARDS: usize = 16;

/// Items up to this length are read without checking first whether the image has them, in bytes.
const SMALL: u32 = 1 << 20;

/// An item to be loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'s> {
    pub(crate) stored: &'s Stored,
    /// How its array packs pages.
    pub(crate) packing: Packing,
    /// True if nothing but speed depends on it.
    pub(crate) is_spare: bool,
}

/// What a cached item is: two arrays of different forms may refer to the same bytes only in a hostile image, but then
/// the one mustn't get what the other has checked, or unpacked.
type Identity = (Stored, usize);

impl Wanted<'_> {
    fn identity(&self) -> Identity {
        (*self.stored, self.packing.code())
    }
}

/// Loads stored items of an image.
pub struct Pager {
    source: Arc<dyn Source>,
    /// The process that made it.
    origin: Origin,
    /// True if loaded items stay.
    keeps: AtomicBool,
    shards: [Mutex<Shard>; SHARDS],
    budget: usize,
    /// How many bytes each part of the cache may have: what changes in memory alone leave of the budget.
    room: AtomicUsize,
    /// How many items and bytes were read from the image.
    loads: AtomicU64,
    loaded: AtomicU64,
}

/// What a pager has done, and what it holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct PagerUse {
    /// How many items were found in the cache.
    pub hits: u64,
    /// How many items were read from the image.
    pub loads: u64,
    /// How many bytes were read from the image.
    pub loaded_bytes: u64,
    /// How many bytes the cache has.
    pub cached_bytes: u64,
}

impl fmt::Debug for Pager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pager").field("keeps", &self.keeps()).finish_non_exhaustive()
    }
}

/// A part of the cache: a clock of places, each with a bit that says whether it was used since the
/// hand went by. (Corbató, "A paging experiment with the Multics system", 1968.)
#[derive(Debug, Default)]
struct Shard {
    known: HashMap<u64, usize, BuildHasherDefault<PlaceHasher>>,
    clock: Vec<(Identity, Cached, bool)>,
    hand: usize,
    bytes: usize,
    /// How many items were found in it.
    hits: u64,
}

/// Spreads places, which are multiples of the unit.
#[derive(Debug, Default)]
struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

impl Pager {
    /// Makes a pager with a budget, in bytes; `keeps` says whether all of the image fits into it.
    #[inline]
    pub fn new(source: Arc<dyn Source>, budget: u64, keeps: bool) -> Self {
        let budget = usize::try_from(budget).unwrap_or(usize::MAX);
        Self {
            source,
            origin: Origin::here(),
            keeps: AtomicBool::new(keeps),
            shards: std::array::from_fn(|_| Mutex::default()),
            budget,
            room: AtomicUsize::new(room_in(budget)),
            loads: AtomicU64::new(0),
            loaded: AtomicU64::new(0),
        }
    }

    /// Returns how much memory what it loads may take, in bytes.
    pub(crate) const fn budget(&self) -> usize {
        self.budget
    }

    /// Leaves so many bytes of the budget to changes that are in memory alone: the cache takes the rest.
    pub fn make_way(&self, changes: usize) {
        let room = room_in(self.budget.saturating_sub(changes));
        if room < self.room.swap(room, Ordering::Relaxed) {
            for shard in &self.shards {
                shard.lock().unwrap_or_else(PoisonError::into_inner).shrink(room);
            }
        }
    }

    /// True if loaded items stay in place.
    #[inline]
    pub fn keeps(&self) -> bool {
        self.keeps.load(Ordering::Relaxed)
    }

    /// Changes that for later loads.
    #[inline]
    pub fn set_keeps(&self, keeps: bool) {
        self.keeps.store(keeps, Ordering::Relaxed);
    }

    /// Returns how many bytes were read from the image.
    #[cfg(test)]
    pub(crate) fn loaded(&self) -> u64 {
        self.loaded.load(Ordering::Relaxed)
    }

    /// Counts an item that is read from the image.
    fn count(&self, stored: &Stored) {
        self.loads.fetch_add(1, Ordering::Relaxed);
        self.loaded.fetch_add(u64::from(stored.len), Ordering::Relaxed);
    }

    /// Returns what it has done, and what it holds.
    pub fn usage(&self) -> PagerUse {
        let (loads, loaded_bytes) =
            (self.loads.load(Ordering::Relaxed), self.loaded.load(Ordering::Relaxed));
        let mut usage = PagerUse { loads, loaded_bytes, ..PagerUse::default() };
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            usage.hits += shard.hits;
            usage.cached_bytes += shard.bytes as u64;
        }
        usage
    }

    /// Returns where it reads from.
    pub(crate) fn source(&self) -> &dyn Source {
        &*self.source
    }

    /// Loads an item, bypassing the cache.
    pub(crate) fn load<T: Item>(&self, wanted: &Wanted<'_>) -> Result<T> {
        let Wanted { stored, packing, is_spare } = *wanted;
        self.count(stored);
        // Not believed, though its checksum agreed: no more memory is taken than the image has bytes.
        if stored.len > SMALL {
            self.source.holds(stored)?;
        }
        match is_spare {
            true => T::load(stored, packing, &Spare(self.source())),
            false => T::load(stored, packing, self.source()),
        }
    }

    /// Loads a page that belongs to the current transaction.
    pub(crate) fn load_own(&self, wanted: &Wanted<'_>, epoch: &Epoch) -> Result<PageRef> {
        self.count(wanted.stored);
        PageRef::stored_as_own(wanted.stored, wanted.packing, self.source(), epoch)
    }

    /// Waits for another thread; in a forked child there is none, and its lock stays locked.
    #[cold]
    fn wait_for<'s>(&self, shard: &'s Mutex<Shard>) -> Result<MutexGuard<'s, Shard>> {
        self.origin.check().map_err(|error| Error::new(ErrorKind::Poisoned, error.to_string()))?;
        Ok(shard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns an item from the cache, or loads it there; `check` refuses invalid ones.
    pub(crate) fn through_cache<T: Item>(
        &self,
        wanted: &Wanted<'_>,
        check: impl FnOnce(&T) -> Result<()>,
    ) -> Result<T> {
        let mut hasher = PlaceHasher::default();
        hasher.write_u64(wanted.stored.place);
        let shard = &self.shards[usize::from(hasher.finish().to_le_bytes()[7]) % SHARDS];
        let identity = wanted.identity();
        let lock = || match shard.try_lock() {
            Ok(locked) => Ok(locked),
            Err(TryLockError::Poisoned(locked)) => Ok(locked.into_inner()),
            Err(TryLockError::WouldBlock) => self.wait_for(shard),
        };
        if let Some(item) = lock()?.find(&identity).and_then(|cached| T::from_cached(&cached)) {
            return Ok(item);
        }
        let item: T = self.load(wanted)?;
        check(&item)?;
        let room = self.room.load(Ordering::Relaxed);
        lock()?.keep(identity, item.clone().into_cached(), room);
        Ok(item)
    }
}

/// Returns how many bytes each part of a cache of so many bytes may have.
fn room_in(bytes: usize) -> usize {
    (bytes / SHARDS).max(LEAST)
}

/// A source of items on which nothing but speed depends.
#[derive(Debug)]
struct Spare<'s>(&'s dyn Source);

impl Source for Spare<'_> {
    fn read(&self, stored: &Stored, out: &mut [u8]) -> Result<()> {
        self.0.read_spare(stored, out)
    }

    fn holds(&self, stored: &Stored) -> Result<()> {
        self.0.holds(stored)
    }
}

impl Shard {
    fn find(&mut self, identity: &Identity) -> Option<Cached> {
        let (at, cached, used) = self.clock.get_mut(*self.known.get(&identity.0.place)?)?;
        // Its place may have been used again since.
        (at == identity).then(|| {
            self.hits += 1;
            *used = true;
            cached.clone()
        })
    }

    fn keep(&mut self, identity: Identity, cached: Cached, room: usize) {
        let place = identity.0.place;
        if let Some(&at) = self.known.get(&place) {
            self.drop_at(at);
        }
        if cached.memory() > room {
            return; // whoever looks at it has it as long as they do
        }
        self.bytes += cached.memory();
        self.shrink(room);
        self.known.insert(place, self.clock.len());
        self.clock.push((identity, cached, false));
    }

    /// Drops items until it has no more than its room.
    fn shrink(&mut self, room: usize) {
        while self.bytes > room && !self.clock.is_empty() {
            self.hand %= self.clock.len();
            match self.clock.get_mut(self.hand) {
                Some((.., used @ true)) => {
                    *used = false;
                    self.hand += 1;
                }
                _ => self.drop_at(self.hand),
            }
        }
    }

    fn drop_at(&mut self, at: usize) {
        let ((stored, _), cached, _) = self.clock.swap_remove(at);
        self.bytes -= cached.memory();
        self.known.remove(&stored.place);
        if let Some(((moved, _), ..)) = self.clock.get(at) {
            self.known.insert(moved.place, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(place: u64, len: u32) -> Identity {
        let stored = Stored { place, len, txid: 1, backfill: 1, ..Stored::default() };
        (stored, Packing::Bytes.code())
    }

    #[test]
    fn the_cache_has_no_more_than_its_room() {
        let mut shard = Shard::default();
        let value = |len: usize| Cached::Long(vec![0; len].into());
        for place in 1..100 {
            shard.keep(stored(place, 100), value(100), 1000);
            assert!((100..=1000).contains(&shard.bytes), "{}", shard.bytes);
        }
        let before = shard.bytes;
        // An item of the cache's size or more isn't cached.
        shard.keep(stored(200, 2000), value(2000), 1000);
        assert!(shard.find(&stored(200, 2000)).is_none() && shard.bytes == before);
        assert!(shard.find(&stored(99, 100)).is_some());
        // It replaces the item at its place nevertheless.
        shard.keep(stored(99, 2000), value(2000), 1000);
        assert!(shard.find(&stored(99, 100)).is_none() && shard.bytes < before);
    }

    #[test]
    fn an_item_is_not_found_where_its_place_is_used_again() {
        let mut shard = Shard::default();
        let value = |byte| Cached::Long(vec![byte; 100].into());
        let (old, new) = (stored(1, 100), stored(1, 100));
        let new = (Stored { backfill: 2, ..new.0 }, new.1);
        shard.keep(old, value(1), 1000);
        assert!(shard.find(&new).is_none(), "what was at its place before");
        shard.keep(new, value(2), 1000);
        assert!(matches!(shard.find(&new), Some(Cached::Long(bytes)) if bytes[0] == 2));
        assert!(shard.find(&old).is_none());
    }
}
