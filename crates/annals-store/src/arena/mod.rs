//! The arena: the memory of pages, and their reference counts.
//!
//! A chunk of 2 MiB has 127 pages, and before them a head with the state of each: its reference count, its tag,
//! whether it is free. The head is found by the address of the page. So copying 64 references to neighbours touches a
//! few lines of the processor's cache, not one for each. There are 64 bytes between two pages: if all began at
//! multiples of 16 KiB, the same cell of many columns would map to the same few places of that cache.
//!
//! Invariants
//! 1. A page with a count above 0 is at the address that its references have, and its chunk stays allocated. The holder
//!    that decrements the count to 0 frees the page, and it has no users then.
//! 2. A head's `room` is read only with the pool locked. A chunk is in `open`, at the index that it stores, if it has
//!    room; of those without a page in use only [`pool::KEPT`] are kept.
//! 3. A forked child doesn't touch the chunks of its parent: it has a separate pool, since another thread may have
//!    held the lock of the parent's pool.
#![allow(unsafe_code, reason = "references are counted, and memory is given out, by hand")]

mod pool;

use std::cell::UnsafeCell;
use std::fmt;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

use self::pool::{Pool, Room};
use annals_storage::{CHUNK, Chunk, Origin};

/// The size of a page, in bytes.
pub(crate) const PAGE: usize = 16 * 1024;
/// The distance of neighbouring pages.
const STRIDE: usize = PAGE + 64;
/// How many pages a chunk has.
const PAGES: usize = CHUNK / STRIDE;
/// Where the first page of a chunk is.
const FIRST: usize = CHUNK - PAGES * STRIDE;
/// How much memory a page takes, in bytes, with its part of the head.
pub(crate) const PAGE_MEMORY: usize = CHUNK.div_ceil(PAGES);

/// The limit on a page's references: more are possible only if references are leaked.
const MOST: u32 = u32::MAX / 2;

/// The pool of a process. It is leaked: a forked child makes another, whose lock is certainly free.
struct Own {
    process: u32,
    pool: Mutex<Pool>,
}

/// The one that was made last; null, or leaked.
static OWN: AtomicPtr<Own> = AtomicPtr::new(null_mut());

/// The state of the pages of a chunk.
#[repr(C)]
struct Head {
    counts: [AtomicU32; PAGES],
    /// A tag is written before the second reference is made.
    tags: [AtomicU64; PAGES],
    /// The id of the process that made the chunk.
    process: u32,
    room: UnsafeCell<Room>,
}

const _: () = assert!(size_of::<Head>() <= FIRST && FIRST.is_multiple_of(64) && PAGES <= 128);

/// A chunk, by its head, from which all of it may be reached.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ChunkPlace(NonNull<Head>);

// SAFETY: fields of a head that aren't atomic are read only with the pool locked, or never change.
unsafe impl Send for ChunkPlace {}

/// A page that was just allocated, with a single reference.
pub(crate) struct Taken {
    pub(crate) page: PageRef,
    /// True if the page is known to be zeros. Otherwise it has arbitrary bytes, all of which are written before they
    /// are read.
    pub(crate) is_zeros: bool,
}

/// A reference to a page. A clone is another reference to the same.
pub(crate) struct PageRef(NonNull<u8>);

// SAFETY: counts and tags are atomics; holders are responsible for their accesses to the bytes (`pages::page`).
unsafe impl Send for PageRef {}
// SAFETY: as before.
unsafe impl Sync for PageRef {}

impl PageRef {
    /// Takes a page, and returns it a tag.
    pub(crate) fn take(tag: u64) -> Taken {
        let process = Origin::here().process();
        let mut pool = lock(process);
        let chunk = match pool.next() {
            Some(chunk) => chunk,
            None => {
                let is_huge = pool.wants_huge();
                drop(pool);
                let (chunk, pays) = ChunkPlace::new(process, is_huge);
                pool = lock(process);
                pool.add(chunk, pays);
                chunk
            }
        };
        let (index, is_fresh) = pool.take_of(chunk);
        drop(pool);
        let head = chunk.head();
        head.tags[index].store(tag, Ordering::Relaxed);
        head.counts[index].store(1, Ordering::Relaxed);
        Taken { page: chunk.page(index), is_zeros: is_fresh && Chunk::is_zeros() }
    }

    /// Returns where its bytes are, as memory that may be written where `pages::page` allows it.
    #[inline]
    pub(crate) const fn bytes(&self) -> NonNull<u8> {
        self.0
    }

    /// Returns its tag.
    #[inline]
    pub(crate) fn tag(&self) -> u64 {
        self.chunk().head().tags[self.index()].load(Ordering::Relaxed)
    }

    /// Changes its tag. The page has no other user yet.
    pub(crate) fn set_tag(&mut self, tag: u64) {
        debug_assert_eq!(self.count().load(Ordering::Relaxed), 1, "nobody else has it");
        self.chunk().head().tags[self.index()].store(tag, Ordering::Relaxed);
    }

    /// True if it is a reference to the same page.
    #[inline]
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    #[inline]
    fn chunk(&self) -> ChunkPlace {
        let head = self.0.as_ptr().map_addr(|at| at & !(CHUNK - 1));
        // SAFETY: a chunk isn't at address 0, and a page is in one.
        ChunkPlace(unsafe { NonNull::new_unchecked(head) }.cast())
    }

    #[inline]
    fn index(&self) -> usize {
        ((self.0.addr().get() & (CHUNK - 1)) - FIRST) / STRIDE
    }

    #[inline]
    fn count(&self) -> &AtomicU32 {
        // SAFETY: the chunk stays as long as this reference (invariant 1); the shared parts of a head are atomic or
        // never change.
        unsafe { &(*self.chunk().0.as_ptr()).counts[self.index()] }
    }

    /// Frees the page, to which there is no reference any more.
    #[cold]
    fn give_back(&self) {
        // All accesses of other holders happen before the next use of the page.
        fence(Ordering::Acquire);
        let (chunk, index) = (self.chunk(), self.index());
        let process = Origin::here().process();
        if chunk.head().process != process {
            return; // the parent's
        }
        let left = lock(process).give_back(chunk, index);
        drop(left);
    }
}

impl Clone for PageRef {
    #[inline]
    fn clone(&self) -> Self {
        // As for `Arc`: the holder of a reference can make another without synchronization.
        if self.count().fetch_add(1, Ordering::Relaxed) > MOST {
            std::process::abort();
        }
        Self(self.0)
    }
}

impl Drop for PageRef {
    #[inline]
    fn drop(&mut self) {
        if self.count().fetch_sub(1, Ordering::Release) == 1 {
            self.give_back();
        }
    }
}

impl fmt::Debug for PageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageRef").field("tag", &self.tag()).finish_non_exhaustive()
    }
}

/// The pages of all databases of this process.
#[derive(Clone, Copy, Debug)]
pub struct PagesOfProcess {
    /// How many bytes the pages in use take.
    pub used: u64,
    /// How many bytes are free for other pages.
    pub free: u64,
}

/// Returns how much memory the pages of this process take.
#[must_use]
pub fn pages_of_process() -> PagesOfProcess {
    let pool = lock(Origin::here().process());
    let used = (pool.pages * PAGE_MEMORY) as u64;
    PagesOfProcess { used, free: ((pool.chunks * CHUNK) as u64).saturating_sub(used) }
}

fn lock(process: u32) -> MutexGuard<'static, Pool> {
    let last = OWN.load(Ordering::Acquire);
    // SAFETY: it is null, or was leaked by `own`, which made it whole before.
    let own = match unsafe { last.as_ref() } {
        Some(own) if own.process == process => own,
        _ => own(last, process),
    };
    own.pool.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the pool of this process, in the place of the one of its parent.
#[cold]
fn own(last: *mut Own, process: u32) -> &'static Own {
    let new = Box::into_raw(Box::new(Own { process, pool: Mutex::new(Pool::new()) }));
    let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
    let own = match OWN.compare_exchange(last, new, success, failure) {
        Ok(_) => new,
        Err(others) => {
            // Another thread was faster. SAFETY: it was made just now, and no other thread has seen it.
            drop(unsafe { Box::from_raw(new) });
            others
        }
    };
    // SAFETY: both are complete, and pages that were seen stay.
    unsafe { &*own }
}

impl ChunkPlace {
    /// Makes a chunk; returns whether it was worth while to ask for a huge page, if that was done.
    fn new(process: u32, is_huge: bool) -> (Self, Option<bool>) {
        let chunk = Chunk::allocate();
        let pays = is_huge.then(|| chunk.make_huge());
        let head = Head {
            counts: [const { AtomicU32::new(0) }; PAGES],
            tags: [const { AtomicU64::new(0) }; PAGES],
            process,
            room: UnsafeCell::new(Room::new()),
        };
        let at = chunk.leave().cast();
        // SAFETY: the chunk is new, and long enough.
        unsafe { at.write(head) };
        (Self(at), pays)
    }

    fn head<'h>(self) -> &'h Head {
        // SAFETY: the caller has a reference to a page of it, or the pool's lock: so it stays meanwhile (invariants 1
        // and 2). The shared parts of a head are atomic, never change, or are in a cell.
        unsafe { self.0.as_ref() }
    }

    fn page(self, index: usize) -> PageRef {
        debug_assert!(index < PAGES, "a chunk has so many pages");
        // SAFETY: the page is in the chunk.
        PageRef(unsafe { self.0.cast::<u8>().add(FIRST + index * STRIDE) })
    }
}

#[cfg(test)]
mod tests;
