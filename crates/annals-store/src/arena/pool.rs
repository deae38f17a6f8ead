//! The pool: the chunks that have room, and which pages of each are free.
//!
//! The chunk that became available last is used first, and empty ones are last: so they may stay empty and be freed.
#![allow(unsafe_code, reason = "what is to be known of a chunk lies in the chunk itself")]

use super::{ChunkPlace, PAGES};
use annals_storage::Chunk;

/// How many chunks there may be without a page in use.
pub(super) const KEPT: usize = 2;
/// The number of chunks before huge pages are requested: a small database takes no more memory than its pages.
pub(super) const SMALL: usize = 4;
/// The number of chunks before the next attempt, after a slow huge page; doubled each time.
const PAUSE: usize = 16;

/// Which pages of a chunk are free.
pub(super) struct Room {
    /// Those that were used before.
    free: u128,
    /// From here on none was ever used.
    fresh: usize,
    used: usize,
    /// Where the chunk is in `open`.
    place: usize,
}

impl Room {
    pub(super) const fn new() -> Self {
        Self { free: 0, fresh: 0, used: 0, place: 0 }
    }
}

/// The chunks that have room.
pub(super) struct Pool {
    open: Vec<ChunkPlace>,
    /// How many of them have no page in use.
    pub(super) empty: usize,
    /// How many there are in all.
    pub(super) chunks: usize,
    /// How many pages of all chunks are in use.
    pub(super) pages: usize,
    /// The number of chunks before the next one that requests a huge page, and before the one after that if this is
    /// slow.
    until_huge: usize,
    pause: usize,
}

impl Pool {
    pub(super) const fn new() -> Self {
        Self { open: Vec::new(), empty: 0, chunks: 0, pages: 0, until_huge: 1, pause: PAUSE }
    }

    /// Returns the chunk from which a page is taken next.
    pub(super) fn next(&self) -> Option<ChunkPlace> {
        self.open.last().copied()
    }

    /// True if the next chunk asks for a huge page.
    pub(super) fn wants_huge(&mut self) -> bool {
        if self.chunks < SMALL {
            return false;
        }
        self.until_huge = self.until_huge.saturating_sub(1);
        self.until_huge == 0
    }

    /// Learns whether a huge page was worth while.
    pub(super) const fn learn(&mut self, pays: bool) {
        if pays {
            (self.until_huge, self.pause) = (1, PAUSE);
        } else {
            self.until_huge = self.pause;
            self.pause = self.pause.saturating_mul(2);
        }
    }

    /// Adds a chunk that has all its pages free.
    pub(super) fn add(&mut self, chunk: ChunkPlace, pays: Option<bool>) {
        if let Some(pays) = pays {
            self.learn(pays);
        }
        self.chunks += 1;
        self.empty += 1;
        self.open(chunk);
    }

    fn room(&mut self, chunk: ChunkPlace) -> &mut Room {
        // SAFETY: the pool is locked, and this borrow of it is the unique one (invariant 2).
        unsafe { &mut *chunk.head().room.get() }
    }

    /// Appends a chunk to those that have room: it is used next.
    fn open(&mut self, chunk: ChunkPlace) {
        self.room(chunk).place = self.open.len();
        self.open.push(chunk);
    }

    /// Removes a chunk from those that have room.
    fn close(&mut self, chunk: ChunkPlace) {
        let place = self.room(chunk).place;
        self.open.swap_remove(place);
        if let Some(&moved) = self.open.get(place) {
            self.room(moved).place = place;
        }
    }

    /// Takes a page of a chunk that has room; returns whether it was never used.
    pub(super) fn take_of(&mut self, chunk: ChunkPlace) -> (usize, bool) {
        let room = self.room(chunk);
        let is_fresh = room.free == 0;
        let index = if is_fresh { room.fresh } else { room.free.trailing_zeros() as usize };
        if is_fresh {
            room.fresh += 1;
        } else {
            room.free &= room.free - 1;
        }
        room.used += 1;
        let used = room.used;
        self.pages += 1;
        self.empty -= usize::from(used == 1);
        if used == PAGES {
            self.close(chunk);
        }
        (index, is_fresh)
    }

    /// Takes a page back; returns the chunk if it is one too many.
    pub(super) fn give_back(&mut self, chunk: ChunkPlace, index: usize) -> Option<Chunk> {
        let room = self.room(chunk);
        room.free |= 1 << index;
        room.used -= 1;
        let used = room.used;
        self.pages -= 1;
        if used + 1 == PAGES {
            self.open(chunk);
        }
        if used > 0 {
            return None;
        }
        self.close(chunk);
        if self.empty < KEPT {
            self.empty += 1;
            self.open(chunk);
            // Others are used first, so that this one can stay empty.
            self.swap_to_front(chunk);
            return None;
        }
        self.chunks -= 1;
        // SAFETY: no page of it is in use, and it isn't in the pool any more: so it has no users.
        Some(unsafe { Chunk::take_back(chunk.0.cast()) })
    }

    fn swap_to_front(&mut self, chunk: ChunkPlace) {
        let last = self.room(chunk).place;
        self.open.swap(0, last);
        let moved = self.open[last];
        self.room(moved).place = last;
        self.room(chunk).place = 0;
    }
}
