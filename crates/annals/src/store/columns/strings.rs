//! A column of strings or bytes: short ones in the cell, others in the column's heap.
//!
//! ```text
//! cell:  | length u32 | up to 12 bytes                                 |
//!        | length u32 | first 4 bytes | page u32     | offset u32      |   in a heap page
//!        | length u32 | first 4 bytes | number u32   | LARGE or PINNED |   a long value, or one of the first
//! entry: | slot u64 | length u32 | bytes |                                in a heap page
//! ```
//!
//! Invariants
//! 1. An entry of a heap page is alive if the cell of its slot leads to it. The cell of a row that
//!    is gone leads nowhere: `clear` is called before a slot is given back.
//! 2. Entries are appended to the tail page only. Behind the last entry of a page is a length of 0,
//!    or less room than an entry's head: what a rolled back transaction left there is never read.
//! 3. `dead` counts for each heap page the bytes of dead entries and, but in the tail, the unused
//!    ones. A page other than the tail is rewritten as soon as more than half of it is dead.
//! 4. A large value has one owner, one cell; but a pinned one, a default, is never freed.
//! 5. The bytes of a column of strings came from `&str`, whole: they are UTF-8.

use std::sync::Arc;

use crate::store::pages::cells::{Cells, Heap};
use crate::store::pages::directory::Directory;
use crate::store::pages::page::{Epoch, PAGE};

/// The longest value that fits in its cell.
const INLINE: usize = 12;
/// The head of an entry in a heap page.
const HEAD: usize = 12;
/// The longest value that goes into a heap page with others. A longer one has memory of its own, so
/// that at most a quarter of a page stays empty at its end.
const LONGEST: usize = PAGE / 4 - HEAD;

/// As long as a column never had more values outside their cells than this, each has memory of its
/// own, so that a column of one row takes no page.
const FEW: u32 = 8;

/// How many cells of short values are put together before they are written.
const SHORT_RUN: usize = 64;

/// The largest value, in bytes: 1 GiB.
pub(in crate::store) const MAX_LEN: usize = 1 << 30;

const LARGE: u32 = u32::MAX;
const PINNED: u32 = u32::MAX - 1;
const NO_PAGE: u32 = u32::MAX;

type Cell = [u8; 16];

/// A column of strings or bytes.
#[derive(Clone, Debug)]
pub(in crate::store) struct Strings {
    cells: Cells<16>,
    heap: Heap,
    tail: u32,
    tail_used: usize,
    dead: Cells<4>,
    pages_end: u32,
    free_pages: Arc<Vec<u32>>,
    large: Directory<Arc<[u8]>>,
    large_end: u32,
    free_large: Arc<Vec<u32>>,
}

#[expect(clippy::cast_possible_truncation, reason = "lengths are at most 1 GiB, offsets 16 KiB")]
const fn word(number: usize) -> u32 {
    number as u32
}

fn word_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(<[u8]>::first_chunk).map_or(0, |four| u32::from_le_bytes(*four))
}

/// Makes the cell of a value that stands elsewhere.
fn cell_to(bytes: &[u8], number: u32, offset: u32) -> Cell {
    let mut cell = [0; 16];
    cell[..4].copy_from_slice(&word(bytes.len()).to_le_bytes());
    cell[4..8].copy_from_slice(&bytes[..4]);
    cell[8..12].copy_from_slice(&number.to_le_bytes());
    cell[12..].copy_from_slice(&offset.to_le_bytes());
    cell
}

/// Makes the cell of a short value.
#[inline]
fn cell_of(bytes: &[u8]) -> Cell {
    // Put together in registers: copied piece by piece to memory and loaded as a whole, it would
    // have to wait until the pieces have arrived there.
    let text = match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(head), Some(tail)) => {
            let (head, tail) = (u64::from_le_bytes(*head), u64::from_le_bytes(*tail));
            u128::from(head) | u128::from(tail) << (8 * (bytes.len() - 8))
        }
        _ => u128::from(short_word(bytes)),
    };
    (text << 32 | u128::from(word(bytes.len()))).to_le_bytes()
}

/// Gives up to 7 bytes as a number.
#[inline]
fn short_word(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(head), Some(tail)) => {
            let (head, tail) = (u32::from_le_bytes(*head), u32::from_le_bytes(*tail));
            u64::from(head) | u64::from(tail) << (8 * (bytes.len() - 4))
        }
        _ => bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

impl Strings {
    /// Makes a column in which the first `len` slots have this value.
    pub(in crate::store) fn filled(value: &[u8], len: usize) -> Self {
        let mut large = Directory::default();
        let cell = if value.len() <= INLINE {
            cell_of(value)
        } else {
            large.set(0, Some(Arc::from(value)));
            cell_to(value, 0, PINNED)
        };
        let cells = if value.is_empty() { Cells::default() } else { Cells::filled(cell, len) };
        Self {
            cells,
            heap: Heap::default(),
            tail: NO_PAGE,
            tail_used: PAGE,
            dead: Cells::default(),
            pages_end: 0,
            free_pages: Arc::default(),
            large,
            large_end: 1,
            free_large: Arc::default(),
        }
    }

    /// Borrows the value of a slot.
    #[inline]
    pub(in crate::store) fn get(&self, slot: usize) -> &[u8] {
        let cell = self.cells.get(slot);
        let len = word_at(&cell, 0) as usize;
        if len <= INLINE {
            return self.cells.slice(slot, 4, len);
        }
        let (number, offset) = (word_at(&cell, 8) as usize, word_at(&cell, 12));
        if offset >= PINNED {
            self.large.get(number).map_or(&[], |value| value)
        } else {
            self.heap.slice(number, offset as usize + HEAD, len)
        }
    }

    /// Borrows the value of a slot of a column of strings.
    #[inline]
    #[allow(unsafe_code, reason = "checking every string again would cost more than reading it")]
    pub(in crate::store) fn get_str(&self, slot: usize) -> &str {
        // SAFETY: invariant 5: columns of strings are given `&str` only.
        unsafe { std::str::from_utf8_unchecked(self.get(slot)) }
    }

    /// Writes the value of a slot that has none (what its cell holds means nothing).
    #[inline]
    pub(in crate::store) fn insert(
        &mut self,
        slot: usize,
        value: &[u8],
        fresh: bool,
        epoch: &Epoch,
    ) {
        if value.len() <= INLINE {
            // Apart from the other case, so that the cell stays in registers.
            self.cells.set(slot, cell_of(value), fresh, epoch);
        } else {
            let cell = self.store(slot, value, epoch);
            self.cells.set(slot, cell, fresh, epoch);
        }
    }

    /// Writes the values of a run of slots that have none.
    pub(in crate::store) fn write<'v>(
        &mut self,
        slot: usize,
        values: impl Iterator<Item = &'v [u8]>,
        fresh: bool,
        epoch: &Epoch,
    ) {
        let mut cells = [0; SHORT_RUN * 16];
        let (mut begin, mut len) = (slot, 0);
        for (slot, value) in (slot..).zip(values) {
            if value.len() <= INLINE {
                cells[len..len + 16].copy_from_slice(&cell_of(value));
                len += 16;
            }
            if value.len() > INLINE || len == cells.len() {
                // Before a longer value is put away, which may move others: those that it moves are
                // the ones to which their cells lead.
                self.cells.write(begin, &cells[..len], fresh, epoch);
                (begin, len) = (slot + 1, 0);
            }
            if value.len() > INLINE {
                self.insert(slot, value, fresh, epoch);
            }
        }
        self.cells.write(begin, &cells[..len], fresh, epoch);
    }

    /// Makes a run of slots that have no values hold empty ones.
    pub(in crate::store) fn zero(&mut self, slot: usize, len: usize, fresh: bool, epoch: &Epoch) {
        self.cells.zero(slot, len, fresh, epoch);
    }

    /// Gives back what the value of a slot takes outside its cell.
    #[inline]
    pub(in crate::store) fn clear(&mut self, slot: usize, epoch: &Epoch) {
        let cell = self.cells.get(slot);
        if word_at(&cell, 0) as usize > INLINE {
            self.release(slot, cell, epoch);
        }
    }

    fn release(&mut self, slot: usize, cell: Cell, epoch: &Epoch) {
        self.cells.set(slot, [0; 16], false, epoch);
        let (number, offset) = (word_at(&cell, 8), word_at(&cell, 12));
        match offset {
            PINNED => {}
            LARGE => {
                self.large.set(number as usize, None);
                Arc::make_mut(&mut self.free_large).push(number);
            }
            _ => {
                self.bury(number, HEAD + word_at(&cell, 0) as usize, epoch);
            }
        }
    }

    /// Moves a value to a slot that has none; its own slot has none afterwards.
    pub(in crate::store) fn move_cell(
        &mut self,
        from: usize,
        to: usize,
        fresh: bool,
        epoch: &Epoch,
    ) {
        let cell = self.cells.get(from);
        let in_heap = word_at(&cell, 0) as usize > INLINE && word_at(&cell, 12) < PINNED;
        if in_heap {
            let value = self.get(from).to_vec();
            self.clear(from, epoch);
            self.insert(to, &value, fresh, epoch);
        } else {
            self.cells.set(to, cell, fresh, epoch);
            self.cells.set(from, [0; 16], false, epoch);
        }
    }

    /// Puts a value outside its cell, and gives the cell.
    fn store(&mut self, slot: usize, value: &[u8], epoch: &Epoch) -> Cell {
        let few = self.large_end <= FEW && self.tail == NO_PAGE;
        if value.len() > LONGEST || few {
            let number = take(&mut self.free_large, &mut self.large_end);
            self.large.set(number as usize, Some(Arc::from(value)));
            return cell_to(value, number, LARGE);
        }
        let size = HEAD + value.len();
        // Beginning a page may move values from the last one into it.
        while size > PAGE - self.tail_used {
            self.begin_page(epoch);
        }
        let (page, offset) = (self.tail as usize, self.tail_used);
        self.heap.append(page, offset, &(slot as u64).to_le_bytes());
        self.heap.append(page, offset + 8, &word(value.len()).to_le_bytes());
        self.heap.append(page, offset + HEAD, value);
        self.tail_used += size;
        if PAGE - self.tail_used >= HEAD {
            self.heap.append(page, self.tail_used, &[0; HEAD]);
        }
        cell_to(value, self.tail, word(offset))
    }

    fn begin_page(&mut self, epoch: &Epoch) {
        let (full, unused) = (self.tail, PAGE - self.tail_used);
        if full != NO_PAGE && unused >= HEAD {
            // What a rolled back transaction put here would else be taken for an entry.
            self.heap.append(full as usize, self.tail_used, &[0; HEAD]);
        }
        self.tail = take(&mut self.free_pages, &mut self.pages_end);
        self.heap.add(self.tail as usize, epoch);
        self.dead.set(self.tail as usize, [0; 4], false, epoch);
        self.tail_used = 0;
        if full != NO_PAGE {
            self.bury(full, unused, epoch);
        }
    }

    /// Counts bytes of a page as dead.
    fn bury(&mut self, number: u32, bytes: usize, epoch: &Epoch) {
        let page = number as usize;
        let dead = u32::from_le_bytes(self.dead.get(page)) + word(bytes);
        self.dead.set(page, dead.to_le_bytes(), false, epoch);
        self.rewrite_if_dead(number, epoch);
    }

    /// Moves what is alive in a page to the tail, if more than half of the page is dead.
    fn rewrite_if_dead(&mut self, number: u32, epoch: &Epoch) {
        let page = number as usize;
        if number == self.tail || u32::from_le_bytes(self.dead.get(page)) as usize <= PAGE / 2 {
            return;
        }
        let bytes = self.heap.slice(page, 0, PAGE).to_vec();
        self.heap.remove(page);
        let mut at = 0;
        while let Some(entry) = bytes.get(at..).filter(|rest| rest.len() >= HEAD) {
            let len = word_at(entry, 8) as usize;
            let (Some(slot), Some(value)) = (entry.first_chunk(), entry.get(HEAD..HEAD + len))
            else {
                break;
            };
            if len == 0 {
                break;
            }
            let slot = crate::store::pages::cells::place(u64::from_le_bytes(*slot));
            if self.cells.get(slot) == cell_to(value, number, word(at)) {
                let cell = self.store(slot, value, epoch);
                self.cells.set(slot, cell, false, epoch);
            }
            at += HEAD + len;
        }
        Arc::make_mut(&mut self.free_pages).push(number);
    }

    /// Tells how much memory it takes, in bytes.
    pub(in crate::store) fn memory(&self) -> usize {
        let large = self.large.memory(|value| value.len());
        self.cells.memory() + self.heap.memory() + self.dead.memory() + large
    }
}

/// Takes a number from a list of free ones, or else a new one.
fn take(free: &mut Arc<Vec<u32>>, end: &mut u32) -> u32 {
    if free.is_empty() {
        *end += 1;
        return *end - 1;
    }
    Arc::make_mut(free).pop().expect("the list isn't empty")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(slot: usize, round: usize) -> Vec<u8> {
        let len = match (slot + round) % 7 {
            0 => 0,
            1 => 12,
            2 => 13,
            3 => 500,
            4 => LONGEST,
            5 => LONGEST + 1,
            _ => 100,
        };
        (0..len).map(|i| b'a' + u8::try_from((i + slot * 3 + round) % 26).unwrap()).collect()
    }

    fn replace(strings: &mut Strings, slot: usize, value: &[u8], epoch: &Epoch) {
        strings.clear(slot, epoch);
        strings.insert(slot, value, false, epoch);
    }

    #[test]
    fn values_of_all_lengths_survive_rewriting() {
        let mut epoch = Epoch::first();
        let mut strings = Strings::filled(b"", 0);
        let count = 300;
        for slot in 0..count {
            strings.insert(slot, &value(slot, 0), true, &epoch);
        }
        let mut kept = Vec::new();
        for round in 1..12 {
            epoch.advance();
            kept.push(strings.clone());
            (0..count).for_each(|s| replace(&mut strings, s, &value(s, round), &epoch));
        }
        kept.push(strings.clone());
        for (round, kept) in kept.iter().enumerate() {
            (0..count).for_each(|s| assert_eq!(kept.get(s), value(s, round), "{s} in {round}"));
        }
        let live: usize = (0..count).map(|slot| value(slot, 11).len() + HEAD).sum();
        assert!(strings.memory() < live * 3 + 10 * PAGE, "{} for {live}", strings.memory());
        (0..count).for_each(|slot| strings.clear(slot, &epoch));
        assert!(strings.memory() < 10 * PAGE);
    }

    #[test]
    fn a_rolled_back_append_is_never_seen() {
        let mut epoch = Epoch::first();
        let mut strings = Strings::filled(b"a long default value", 2);
        strings.insert(2, &[b'x'; 40], true, &epoch);
        let published = strings.clone();
        epoch.advance();
        strings.insert(3, &[b'y'; 60], true, &epoch);
        strings = published.clone();
        epoch.advance();
        strings.insert(3, &[b'z'; 20], true, &epoch);
        assert_eq!((strings.get(2), strings.get(3)), (&[b'x'; 40][..], &[b'z'; 20][..]));
        assert_eq!(
            (published.get(2), strings.get_str(1)),
            (&[b'x'; 40][..], "a long default value")
        );
        replace(&mut strings, 1, b"other", &epoch);
        strings.move_cell(2, 7, true, &epoch);
        assert_eq!((strings.get(0), strings.get(1)), (&b"a long default value"[..], &b"other"[..]));
        assert_eq!((strings.get(7), strings.get(2)), (&[b'x'; 40][..], &b""[..]));
    }

    #[test]
    fn what_was_rolled_back_behind_a_full_page_is_not_moved() {
        let mut epoch = Epoch::first();
        let mut strings = Strings::filled(b"", 0);
        // Behind the cells that are copied whole with each transaction.
        let (first, count) = (100, 130);
        (first..count).for_each(|slot| strings.insert(slot, &[b'x'; 600], true, &epoch));
        assert!((100..LONGEST).contains(&(PAGE - strings.tail_used)), "{}", strings.tail_used);
        let published = strings.clone();
        epoch.advance();
        strings.insert(count, &[b'y'; 60], true, &epoch);
        strings = published.clone();
        epoch.advance();
        let left = strings.cells.get(count);
        strings.insert(count + 1, &[b'z'; LONGEST], true, &epoch); // begins another page
        (first..count).for_each(|slot| strings.clear(slot, &epoch));
        assert_eq!(strings.cells.get(count), left);
        assert_eq!(
            (strings.get(count + 1), published.get(first)),
            (&[b'z'; LONGEST][..], &[b'x'; 600][..])
        );
    }
}
