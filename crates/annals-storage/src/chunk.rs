//! Memory in large aligned pieces, for objects smaller than the machine's largest pages and bigger than an
//! allocator's.
//!
//! On Linux a chunk is mapped; elsewhere it is from the allocator. A chunk can be asked to be one huge page: one
//! fault instead of 512, and one entry of the processor's address cache. But some machines lend free large pieces of
//! their memory to others, and must then fetch them back page by page. There a huge page can take longer than small
//! ones, which tend to be recently used memory. So [`Chunk`] reports whether it paid.
#![allow(
    unsafe_code,
    reason = "memory is mapped by calls of the system, or comes from the allocator"
)]

use std::ptr::NonNull;

/// The length of a chunk in bytes, and its alignment: a huge page of most processors.
pub const CHUNK: usize = 2 << 20;

/// A piece of memory with a single owner. It is freed when this is dropped.
#[derive(Debug)]
pub struct Chunk(NonNull<u8>);

// SAFETY: it is memory with a single owner.
unsafe impl Send for Chunk {}

impl Chunk {
    /// Gets a chunk. If there is no memory, the process ends as it does for any other allocation.
    pub fn allocate() -> Self {
        match system::get() {
            Some(at) => Self(at),
            None => std::alloc::handle_alloc_error(LAYOUT),
        }
    }

    /// True if untouched memory is zeros.
    pub const fn is_zeros() -> bool {
        system::ZEROS
    }

    /// Leaks the chunk and returns its address. All of the chunk may be used.
    pub fn leave(self) -> NonNull<u8> {
        std::mem::ManuallyDrop::new(self).0
    }

    /// Takes it back.
    ///
    /// # Safety
    /// It was leaked, isn't taken back twice, and isn't used any more.
    pub const unsafe fn take_back(at: NonNull<u8>) -> Self {
        Self(at)
    }

    /// Requests one huge page, and touches it; returns true if that took less time than small pages would. The chunk
    /// wasn't written yet.
    pub fn make_huge(&self) -> bool {
        system::make_huge(self.0)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: `new` got it, and this was the only handle.
        unsafe { system::give_back(self.0) }
    }
}

const LAYOUT: std::alloc::Layout = match std::alloc::Layout::from_size_align(CHUNK, CHUNK) {
    Ok(layout) => layout,
    Err(_) => panic!("a chunk's length is a power of two"),
};

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use std::ptr::{NonNull, null_mut};

    use super::CHUNK;

    pub(super) const ZEROS: bool = true;

    /// The limit on the processor time of the first touch of a huge page, in nanoseconds: twice that of 512 small
    /// ones on most machines. A huge page that must be fetched back takes 4 ms.
    const PATIENCE: i64 = 1_000_000;

    pub(super) fn get() -> Option<NonNull<u8>> {
        let at = map(CHUNK)?;
        if at.addr().get().is_multiple_of(CHUNK) {
            return Some(at);
        }
        // Newer systems align long maps themselves; on others the excess is unmapped. SAFETY: it was mapped just now,
        // and has no other user.
        unsafe { unmap(at, CHUNK) };
        let at = map(2 * CHUNK)?;
        let before = at.addr().get().wrapping_neg() % CHUNK;
        // SAFETY: both parts and the range between are in the mapping, and have no users.
        unsafe {
            let aligned = at.add(before);
            unmap(at, before);
            unmap(aligned.add(CHUNK), CHUNK - before);
            Some(aligned)
        }
    }

    fn map(len: usize) -> Option<NonNull<u8>> {
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new memory, where the system likes.
        let at = unsafe { libc::mmap(null_mut(), len, access, kind, -1, 0) };
        if at == libc::MAP_FAILED { None } else { NonNull::new(at.cast()) }
    }

    unsafe fn unmap(at: NonNull<u8>, len: usize) {
        if len > 0 {
            // SAFETY: by the caller's contract it is mapped and unused. If the system refuses, it stays mapped, which
            // only costs memory.
            unsafe { libc::munmap(at.as_ptr().cast(), len) };
        }
    }

    pub(super) unsafe fn give_back(at: NonNull<u8>) {
        // SAFETY: by the contract it is a chunk that isn't used any more.
        unsafe { unmap(at, CHUNK) }
    }

    pub(super) fn make_huge(at: NonNull<u8>) -> bool {
        // SAFETY: the chunk is mapped; the advice changes only how it is backed.
        let advised = unsafe { libc::madvise(at.as_ptr().cast(), CHUNK, libc::MADV_HUGEPAGE) } == 0;
        if !advised {
            return false; // a system that has none
        }
        let begun = processor_time();
        // SAFETY: the chunk is mapped, and the caller has it alone.
        unsafe { at.as_ptr().write_volatile(0) };
        processor_time() - begun < PATIENCE
    }

    /// Returns the processor time of this thread, in nanoseconds: time of other programs doesn't count.
    #[allow(clippy::useless_conversion, reason = "the numbers are narrower on 32-bit machines")]
    fn processor_time() -> i64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the structure is whole, and only written.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        i64::from(time.tv_sec) * 1_000_000_000 + i64::from(time.tv_nsec)
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod system {
    use std::ptr::NonNull;

    use super::LAYOUT;

    /// Zeros would all be written at once.
    pub(super) const ZEROS: bool = false;

    pub(super) fn get() -> Option<NonNull<u8>> {
        // SAFETY: the layout has a length.
        NonNull::new(unsafe { std::alloc::alloc(LAYOUT) })
    }

    pub(super) unsafe fn give_back(at: NonNull<u8>) {
        // SAFETY: by the contract `get` returned it, and it isn't used any more.
        unsafe { std::alloc::dealloc(at.as_ptr(), LAYOUT) }
    }

    pub(super) const fn make_huge(_at: NonNull<u8>) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_aligned_memory_for_writing() {
        let chunks: Vec<_> = (0..5).map(|_| Chunk::allocate()).collect();
        for (number, chunk) in (1..).zip(&chunks) {
            assert!(chunk.0.addr().get().is_multiple_of(CHUNK));
            if number > 2 {
                chunk.make_huge();
            }
            let (first, last) = (chunk.0, chunk.0.map_addr(|at| at | (CHUNK - 1)));
            // SAFETY: within the chunk, which has no other user.
            unsafe {
                assert!(!Chunk::is_zeros() || (*first.as_ptr() == 0 && *last.as_ptr() == 0));
                first.write(number);
                last.write(number);
            }
        }
        for (number, chunk) in (1..).zip(chunks) {
            let at = chunk.leave();
            // SAFETY: it was left just now.
            let chunk = unsafe { Chunk::take_back(at) };
            // SAFETY: both were written.
            let read = unsafe { (at.read(), at.map_addr(|at| at | (CHUNK - 1)).read()) };
            assert_eq!(read, (number, number));
            drop(chunk);
        }
    }
}
