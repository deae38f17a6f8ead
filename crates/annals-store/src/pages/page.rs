//! A page: 16 KiB of cells, shared by reference count, written by at most one writer.
//!
//! Pages are in the [arena](crate::arena). This file and [`crate::pages::cells`], which wraps it, are the only ones
//! in the store with `unsafe` code (and one line in [`crate::columns::strings`] that trusts checked UTF-8).
//!
//! Invariants
//! 1. There is one writer: who holds the store's [`Epoch`]. It moves on at each commit and rollback.
//! 2. A page whose tag is the current epoch was made by the current transaction and is reached from
//!    the working view alone; a view is published only by moving the epoch on.
//! 3. In a page with another tag the writer writes only cells that no published view refers to (they are after every
//!    published length). It writes nothing at all in a page tagged as shared.
//! 4. A reader reads only cells that its view refers to. So a reader and the writer never meet in a cell; where they
//!    may meet in a word (bitmaps), both sides use atomics.
//! 5. The contents of a page are little-endian on every machine.
#![allow(
    unsafe_code,
    reason = "a page is shared with readers while the writer fills the cells that they can't see"
)]

use std::cell::Cell;
use std::ptr::{copy_nonoverlapping, write_bytes};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::arena::{PAGE_MEMORY, Taken};
use crate::image::{Packed, Source, Stored};
use crate::pages::packing::Packing;
use crate::pages::refresh::Refresh;
use crate::pages::reserve::{ArrayId, Reserve};
use crate::{Error, Result};

pub(crate) use crate::arena::{PAGE, PageRef};

/// The tag of pages that are in many places at once and are never written.
const SHARED: u64 = u64::MAX;
/// The tag of the page that replaces a removed one of an image: shared, and all zeros.
const GONE: u64 = u64::MAX - 1;
/// The tag of pages that were loaded from an image, which no transaction made.
const LOADED: u64 = 0;

/// The right to write, and the tag of the pages that the current transaction makes (invariant 1).
#[derive(Debug)]
pub(crate) struct Epoch {
    number: u64,
    reserve: Reserve,
    /// How many bytes of pages and long values were made since this was last taken.
    made: Cell<usize>,
}

impl Epoch {
    /// Makes the first epoch of a store.
    pub(crate) fn first() -> Self {
        Self { number: 1, reserve: Reserve::default(), made: Cell::new(0) }
    }

    /// Adds this many bytes to the count of made bytes.
    #[inline]
    pub(crate) fn note_made(&self, bytes: usize) {
        self.made.set(self.made.get().saturating_add(bytes));
    }

    /// Returns how many bytes were made since that was last forgotten.
    #[inline]
    pub(crate) const fn made(&self) -> usize {
        self.made.get()
    }

    /// Begins to count again.
    pub(crate) fn forget_made(&self) {
        self.made.set(0);
    }

    /// Makes an epoch that no store has: a store that continues from pages made in it copies them first.
    pub(crate) fn apart() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1 << 63);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { number, reserve: Reserve::default(), made: Cell::new(0) }
    }

    /// Moves on: existing pages are no longer the transaction's own.
    pub(crate) fn advance(&mut self) {
        self.number += 1;
    }

    /// Returns how a cell is written that no published view refers to.
    #[cfg(test)]
    pub(crate) const fn fresh(&self) -> Write<'_> {
        Write { fresh: true, epoch: self }
    }

    /// Returns how a cell is written that a published view may refer to.
    #[inline]
    pub(crate) const fn seen(&self) -> Write<'_> {
        Write { fresh: false, epoch: self }
    }

    /// Returns the number, for structures that record when they were last prepared.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }
}

/// How a cell is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write<'e> {
    /// Whether no published view refers to the cell: then its page may be shared.
    pub(crate) fresh: bool,
    /// The epoch of the transaction that writes it.
    pub(crate) epoch: &'e Epoch,
}

/// A page's bytes are reached through raw pointers only, a cell at a time.
impl PageRef {
    /// Makes a page of zeros that belongs to the current transaction.
    pub(crate) fn zeroed(epoch: &Epoch) -> Self {
        epoch.note_made(PAGE_MEMORY);
        Self::tagged(epoch.number)
    }

    /// Makes a page of zeros that belongs to the current transaction, for a place of an array: after the
    /// page of the place before, if possible.
    pub(crate) fn zeroed_for(array: ArrayId, index: usize, epoch: &Epoch) -> Self {
        epoch.note_made(PAGE_MEMORY);
        let mut page = Self::of_zeros(epoch.reserve.take(array, index, epoch.number));
        page.set_tag(epoch.number);
        page
    }

    /// Makes a page that repeats a cell and is never written: it may be in many places.
    pub(crate) fn filled<const W: usize>(cell: [u8; W]) -> Self {
        let mut page = Self::take(SHARED).page;
        for place in page.new_bytes().chunks_exact_mut(W) {
            place.copy_from_slice(&cell);
        }
        page
    }

    /// Loads a page from an image; zeros follow the stored part.
    pub(crate) fn stored(stored: &Stored, packing: Packing, source: &dyn Source) -> Result<Self> {
        let len = usize::try_from(stored.len).ok().filter(|&len| len <= PAGE).ok_or_else(|| {
            Error::corrupt(format!("a page of {} bytes in the image is too long", stored.len))
        })?;
        // All of it is written here.
        let mut page = Self::take(LOADED).page;
        let bytes = page.new_bytes();
        if stored.packed == Packed::Not {
            let (part, rest) = bytes.split_at_mut(len);
            source.read(stored, part)?;
            rest.fill(0);
        } else {
            let mut packed = vec![0; len];
            source.read(stored, &mut packed)?;
            bytes.fill(0);
            packing.unpack(stored, &packed, bytes)?;
        }
        Ok(page)
    }

    /// Returns the page that replaces a removed one of an image.
    pub(crate) fn gone() -> Self {
        static PAGE: OnceLock<PageRef> = OnceLock::new();
        PAGE.get_or_init(|| Self::tagged(GONE)).clone()
    }

    /// True if it is that page.
    pub(crate) fn is_gone(&self) -> bool {
        self.tag() == GONE
    }

    /// Makes a page of zeros.
    fn tagged(tag: u64) -> Self {
        Self::of_zeros(Self::take(tag))
    }

    fn of_zeros(taken: Taken) -> Self {
        let Taken { page, is_zeros } = taken;
        if !is_zeros {
            // SAFETY: the page is new, and has no other user.
            unsafe { write_bytes(page.place(0), 0, PAGE) };
        }
        page
    }

    /// Borrows all of a page that was just made, and that has no other user.
    pub(crate) fn new_bytes(&mut self) -> &mut [u8; PAGE] {
        // SAFETY: the page has no other user, and this borrow of the only reference is the unique one.
        unsafe { &mut *self.place(0).cast() }
    }

    /// Copies the page into one that belongs to the current transaction.
    pub(crate) fn copy(&self, epoch: &Epoch) -> Self {
        epoch.note_made(PAGE_MEMORY);
        let copy = Self::take(epoch.number).page;
        // SAFETY: both sides are whole pages, and the copy is a new one. Only the writer, who is running this
        // (invariant 1), ever writes to the original.
        unsafe { copy_nonoverlapping(self.place(0).cast_const(), copy.place(0), PAGE) };
        copy
    }

    /// Loads a page from an image into one that belongs to the current transaction.
    pub(crate) fn stored_as_own(
        stored: &Stored,
        packing: Packing,
        source: &dyn Source,
        epoch: &Epoch,
    ) -> Result<Self> {
        epoch.note_made(PAGE_MEMORY);
        let mut page = Self::stored(stored, packing, source)?;
        page.set_tag(epoch.number);
        Ok(page)
    }

    /// Returns how much memory it takes, in bytes: nothing if it is in many places.
    pub(crate) fn memory(&self) -> usize {
        if self.is_shared() { 0 } else { PAGE_MEMORY }
    }

    /// Returns the address of a byte, which is within the page or at its end.
    #[inline]
    const fn place(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset <= PAGE, "a cell lies within its page");
        // SAFETY: within the page, or at its end, as all callers make sure.
        unsafe { self.bytes().as_ptr().add(offset) }
    }

    /// True if the current transaction made the page.
    #[inline]
    pub(crate) fn is_owned(&self, epoch: &Epoch) -> bool {
        self.tag() == epoch.number
    }

    /// True if the page is in many places.
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        self.tag() >= GONE
    }

    /// True if the writer may write a cell of the page: in its own page, or a cell that is `fresh`, that is, that no
    /// published view refers to.
    #[inline]
    pub(crate) fn may_write(&self, write: Write<'_>) -> bool {
        self.is_owned(write.epoch) || (write.fresh && !self.is_shared())
    }

    /// Reads a cell.
    ///
    /// # Safety
    /// The caller's view refers to the cell, or the caller is the writer (invariant 4).
    #[inline]
    pub(crate) unsafe fn read<const W: usize>(&self, offset: usize) -> [u8; W] {
        assert!(offset <= PAGE - W, "a cell lies within its page");
        // SAFETY: within the page, by the assertion; it isn't written meanwhile (invariant 4).
        unsafe { self.place(offset).cast::<[u8; W]>().read_unaligned() }
    }

    /// Prefetches the bytes around a byte of the page, if the processor can, without waiting.
    #[inline]
    pub(crate) fn fetch(&self, offset: usize) {
        assert!(offset < PAGE, "a cell lies within its page");
        ask_for_line(self.place(offset).cast_const());
    }

    /// Borrows a range of bytes.
    ///
    /// # Safety
    /// The caller's view refers to all of them, and they are not written as long as the borrow lasts (invariants 3
    /// and 4).
    #[inline]
    pub(crate) unsafe fn slice(&self, offset: usize, len: usize) -> &[u8] {
        assert!(offset <= PAGE && len <= PAGE - offset, "a cell lies within its page");
        // SAFETY: within the page, by the assertion; not written meanwhile, by the contract.
        unsafe { std::slice::from_raw_parts(self.place(offset), len) }
    }

    /// Writes a cell.
    ///
    /// # Safety
    /// As for [`Self::write`].
    #[inline]
    pub(crate) unsafe fn put<const W: usize>(&self, offset: usize, cell: [u8; W]) {
        assert!(offset <= PAGE - W, "a cell lies within its page");
        // SAFETY: within the page, by the assertion; it isn't read meanwhile, by the contract.
        unsafe { self.place(offset).cast::<[u8; W]>().write_unaligned(cell) }
    }

    /// Writes a range of bytes.
    ///
    /// # Safety
    /// The caller is the writer. Either the page is its own and nothing borrows the range, or no published view
    /// refers to any of these bytes and the page isn't shared (invariant 3).
    #[inline]
    pub(crate) unsafe fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset <= PAGE && bytes.len() <= PAGE - offset, "a cell lies within its page");
        // SAFETY: within the page, by the assertion; it isn't read meanwhile, by the contract.
        unsafe { copy_nonoverlapping(bytes.as_ptr(), self.place(offset), bytes.len()) };
    }

    /// Borrows the whole page.
    ///
    /// # Safety
    /// The page is one of those that are written only while they are owned, and it isn't written as
    /// long as the borrow lasts (invariant 2).
    #[inline]
    pub(crate) unsafe fn whole(&self) -> &[u8; PAGE] {
        // SAFETY: by the contract the page isn't written meanwhile.
        unsafe { &*self.place(0).cast() }
    }

    /// Borrows the whole page for writing.
    ///
    /// # Safety
    /// The caller is the writer, owns the page, and reaches it through a `&mut` of the structure
    /// that it belongs to, which lasts as long as this borrow (invariant 2).
    #[inline]
    #[allow(
        clippy::mut_from_ref,
        reason = "the caller's borrow of the structure is the unique one"
    )]
    pub(crate) unsafe fn whole_mut(&self) -> &mut [u8; PAGE] {
        // SAFETY: by the contract the page has no other reader meanwhile.
        unsafe { &mut *self.place(0).cast() }
    }

    /// Returns a word of a bitmap.
    #[inline]
    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < PAGE / 8, "a word lies within its page");
        // SAFETY: within the page, by the assertion, and aligned, as a page is. Bitmap pages are accessed by atomics
        // alone, except for copies that the writer itself makes (invariant 4).
        unsafe { AtomicU64::from_ptr(self.place(index * 8).cast()) }
    }

    /// Loads a word of a bitmap.
    #[inline]
    pub(crate) fn load(&self, index: usize) -> u64 {
        u64::from_le(self.word(index).load(Ordering::Relaxed))
    }

    /// Stores a word of a bitmap; the caller is the writer (a load and a store lose nothing then).
    #[inline]
    pub(crate) fn store(&self, index: usize, word: u64) {
        self.word(index).store(word.to_le(), Ordering::Relaxed);
    }
}

impl Refresh for PageRef {
    #[inline]
    fn refresh(&mut self, newer: &Self) {
        if !self.is(newer) {
            *self = newer.clone();
        }
    }
}

/// Prefetches bytes that are about to be read, without waiting for them. Without effect on readers.
#[inline]
pub(crate) fn ask_for(bytes: &[u8]) {
    let last = bytes.last().map(std::ptr::from_ref);
    bytes.chunks(64).map(<[u8]>::as_ptr).chain(last).for_each(ask_for_line);
}

/// Prefetches the bytes around an address, if the processor can.
#[inline]
fn ask_for_line(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: any address may be asked for, and every processor of this kind knows the instruction.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// A page of a published view that isn't written any more, as the bytes to store.
#[derive(Debug)]
pub struct Frozen {
    page: PageRef,
    len: usize,
    packing: Packing,
}

impl Frozen {
    /// Takes a page. The caller guarantees that the page is never written again (invariants 2 and 3). Either a
    /// published view refers to every slot of it, or it is one of the pages that are written only while they are
    /// owned, and a published view has it.
    pub(crate) fn new(page: PageRef, packing: Packing) -> Self {
        let mut frozen = Self { page, len: PAGE, packing };
        frozen.len = used(frozen.as_ref());
        frozen
    }

    /// Packs the bytes, if that saves enough.
    pub(super) fn pack(&self) -> Option<(Vec<u8>, Packed)> {
        self.packing.pack(self.as_ref())
    }
}

impl AsRef<[u8]> for Frozen {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: within the page; it isn't written, as `new` requires.
        unsafe { self.page.slice(0, self.len) }
    }
}

/// Returns how many bytes there are before the zeros at the end: at least one.
pub(super) fn used(bytes: &[u8]) -> usize {
    let zeros = bytes.iter().rev().take_while(|&&byte| byte == 0).count();
    (bytes.len() - zeros).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_cells_are_written_while_others_are_read() {
        let mut epoch = Epoch::first();
        let page = PageRef::zeroed(&epoch);
        // SAFETY: the page is owned and has no other reader.
        unsafe { page.write(0, &7_u64.to_le_bytes()) };
        page.store(100, 1);
        epoch.advance();
        let reader = page.clone();
        let thread = std::thread::spawn(move || {
            // SAFETY: the cell was written before the thread began, and isn't written again.
            let borrowed = unsafe { reader.slice(0, 8) };
            (0..50).all(|_| borrowed == 7_u64.to_le_bytes() && reader.load(100) & 1 == 1)
        });
        for cell in 1..50_usize {
            assert!(page.may_write(epoch.fresh()) && !page.may_write(epoch.seen()));
            // SAFETY: the other thread reads cell 0 only.
            unsafe { page.write(cell * 8, &9_u64.to_le_bytes()) };
            page.store(100, page.load(100) | 1 << cell);
        }
        assert!(thread.join().unwrap());
    }

    #[test]
    fn a_copy_belongs_to_the_transaction_and_leaves_the_original() {
        let mut epoch = Epoch::first();
        let page = PageRef::filled([1, 2]);
        assert!(!page.may_write(epoch.fresh()) && page.is_shared());
        epoch.advance();
        let copy = page.copy(&epoch);
        assert!(copy.may_write(epoch.seen()));
        // SAFETY: the copy is owned; nothing borrows it.
        unsafe { copy.write(PAGE - 2, &[3, 4]) };
        // SAFETY: there are no more writes.
        unsafe {
            assert_eq!(page.read::<2>(PAGE - 2), [1, 2]);
            assert_eq!(copy.read::<4>(PAGE - 4), [1, 2, 3, 4]);
            copy.whole_mut()[0] = 9;
            assert_eq!(copy.whole()[..2], [9, 2]);
        }
    }

    #[test]
    #[should_panic(expected = "a cell lies within its page")]
    fn a_cell_outside_is_refused() {
        let page = PageRef::zeroed(&Epoch::first());
        // SAFETY: there are no writes; the range is refused.
        let _ = unsafe { page.read::<8>(PAGE - 7) };
    }
}
