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
//! 1. An entry of a heap page is live if the cell of its slot refers to it. The cell of a deleted row refers to
//!    nothing: `clear` is called before a slot is freed.
//! 2. Entries are appended to the tail page only. After the last entry of a page is a length of 0, or less room than
//!    an entry's head: the remains of a rolled back transaction there are never read.
//! 3. `dead` counts for each heap page the bytes of dead entries and, but in the tail, the unused
//!    ones. A page other than the tail is rewritten as soon as more than half of it is dead.
//! 4. A large value has one owner, one cell; but a pinned one, a default, is never freed, and has
//!    number 0.
//! 5. The bytes of a column of strings were whole `&str` values: they are UTF-8. Only values in an image may have
//!    another source.
//! 6. All arrays of a column are loaded from an image together, empty ones, too, and continue from one together: either each has
//!    a base, or none has.

use std::borrow::Cow;

use crate::pages::cells::{Cells, FreeNumbers, Heap, Longs};
use crate::pages::item::Held;
use crate::pages::load::Loader;
use crate::pages::page::{Epoch, PAGE, Write};
use crate::pages::paged::Counted;
use crate::pages::refresh::refresh;
use crate::pages::save::{Blanks, Saved, Saver};
use crate::{Error, Result};

/// The longest value that fits in its cell.
const INLINE: usize = 12;
/// A string up to this length is first checked for ASCII.
const SHORT_TEXT: usize = 64;
/// The head of an entry in a heap page.
const HEAD: usize = 12;
/// The longest value that is stored in a heap page with others. A longer one has separate memory, so that at most a
/// quarter of a page stays empty at its end.
const LONGEST: usize = PAGE / 4 - HEAD;

/// As long as a column never had more values outside their cells than this, each has separate memory. So a column of
/// one row needs no page.
const FEW: u32 = 8;

/// The number of cells of short values that are collected before they are written.
const SHORT_RUN: usize = 64;

/// The largest value, in bytes: 1 GiB.
pub(crate) const MAX_LEN: usize = 1 << 30;

const LARGE: u32 = u32::MAX;
const PINNED: u32 = u32::MAX - 1;
const NO_PAGE: u32 = u32::MAX;

/// The limit on pages or large values of a column: an image that claims more is invalid.
const MOST: u32 = u32::MAX / 2;

type Cell = [u8; 16];

mod at_hand;
pub(crate) mod reader;

/// A column of strings or bytes.
#[derive(Clone, Debug)]
pub(crate) struct Strings {
    cells: Cells<16>,
    heap: Heap,
    tail: u32,
    tail_used: usize,
    dead: Cells<4>,
    pages: FreeNumbers,
    large: Longs,
    large_numbers: FreeNumbers,
}

refresh!(Strings { cells, heap, dead, pages, large, large_numbers; tail, tail_used });

#[expect(clippy::cast_possible_truncation, reason = "lengths are at most 1 GiB, offsets 16 KiB")]
const fn word(number: usize) -> u32 {
    number as u32
}

#[inline]
fn word_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(<[u8]>::first_chunk).map_or(0, |four| u32::from_le_bytes(*four))
}

/// Makes the cell of a value that is stored elsewhere.
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

/// Returns up to 7 bytes as a number.
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
    pub(crate) fn filled(value: &[u8], len: usize) -> Self {
        let mut large = Longs::default();
        let cell = if value.len() <= INLINE {
            cell_of(value)
        } else {
            large.begin_with(0, value);
            cell_to(value, 0, PINNED)
        };
        let cells = if value.is_empty() { Cells::default() } else { Cells::filled(cell, len) };
        Self {
            cells,
            heap: Heap::default(),
            tail: NO_PAGE,
            tail_used: PAGE,
            dead: Cells::default(),
            pages: FreeNumbers::default(),
            large,
            large_numbers: FreeNumbers::from(1),
        }
    }

    /// Borrows the value of a slot, or copies it if only a cache has it.
    ///
    /// # Errors
    /// It can't be loaded, or the cell is dangling.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Result<Cow<'_, [u8]>> {
        let cell = self.cells.get(slot)?;
        let len = word_at(&cell, 0) as usize;
        if len <= INLINE {
            return self.cells.slice(slot, 4, len);
        }
        self.get_outside(&cell)
    }

    /// Returns the value that a cell refers to.
    #[inline]
    fn get_outside(&self, cell: &Cell) -> Result<Cow<'_, [u8]>> {
        let len = word_at(cell, 0) as usize;
        let (number, offset) = (word_at(cell, 8), word_at(cell, 12));
        if offset >= PINNED {
            return match self.large.get(number)? {
                value if value.len() != len => Err(leads_nowhere()),
                Held::Here(value) => Ok(Cow::Borrowed(value)),
                Held::Kept(value) => Ok(Cow::Owned(value.to_vec())),
            };
        }
        let begin = (offset as usize).saturating_add(HEAD);
        if self.is_beyond_tail(number, begin, len) {
            return Err(leads_nowhere());
        }
        self.heap.slice(number as usize, begin, len)
    }

    /// True if bytes are after the used part of the tail, where the writer may be writing.
    #[inline]
    const fn is_beyond_tail(&self, number: u32, begin: usize, len: usize) -> bool {
        number == self.tail && begin.saturating_add(len) > self.tail_used
    }

    /// Borrows the value of a slot of a column of strings, or copies it if only a cache has it.
    ///
    /// # Errors
    /// As [`get`](Self::get); `Corrupt` if the value is from an image and isn't UTF-8.
    #[inline]
    #[allow(unsafe_code, reason = "checking every string again would cost more than reading it")]
    pub(crate) fn get_str(&self, slot: usize) -> Result<Cow<'_, str>> {
        match self.get(slot)? {
            // By invariant 6 the heap speaks for the cells and the long values, too.
            Cow::Borrowed(bytes) if !self.heap.has_base() => {
                // SAFETY: invariant 5: columns of strings are given `&str` only, and this value isn't from an image.
                Ok(Cow::Borrowed(unsafe { std::str::from_utf8_unchecked(bytes) }))
            }
            Cow::Borrowed(bytes) => text(bytes).map(Cow::Borrowed),
            Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).map_err(|_| no_text()),
        }
    }

    /// Returns true if the cell of a slot can be read again without loading anything. Loads it, if that wasn't
    /// done yet.
    ///
    /// # Errors
    /// Its page can't be loaded.
    pub(crate) fn stays(&self, slot: usize) -> Result<bool> {
        self.cells.stays(slot)
    }

    /// True if a cell that stays does so for all views over the same base.
    pub(crate) fn stays_below(&self, slot: usize) -> bool {
        self.cells.stays_below(slot)
    }

    /// Returns true if the value of a slot, whose cell stays, can be read again without loading anything, and
    /// without an error; `is_text`: by [`get_str`](Self::get_str), too. Loads it, if that wasn't done yet.
    ///
    /// # Errors
    /// Those of reading it.
    pub(crate) fn value_stays(&self, slot: usize, is_text: bool) -> Result<bool> {
        Ok(match is_text {
            true => matches!(self.get_str(slot)?, Cow::Borrowed(_)),
            false => matches!(self.get(slot)?, Cow::Borrowed(_)),
        })
    }

    /// Writes the value of a slot that has none (the contents of its cell are ignored).
    #[inline]
    pub(crate) fn insert(&mut self, slot: usize, value: &[u8], write: Write<'_>) -> Result<()> {
        if value.len() <= INLINE {
            // Apart from the other case, so that the cell stays in registers.
            self.cells.set(slot, cell_of(value), write)
        } else {
            let cell = self.store(slot, value, write.epoch)?;
            self.cells.set(slot, cell, write)
        }
    }

    /// Writes the values of a run of slots that have none.
    pub(crate) fn write<'v>(
        &mut self,
        slot: usize,
        values: impl Iterator<Item = &'v [u8]>,
        write: Write<'_>,
    ) -> Result<()> {
        let mut cells = [0; SHORT_RUN * 16];
        let (mut begin, mut len) = (slot, 0);
        for (slot, value) in (slot..).zip(values) {
            if value.len() <= INLINE {
                cells[len..len + 16].copy_from_slice(&cell_of(value));
                len += 16;
            }
            if value.len() > INLINE || len == cells.len() {
                // Before a longer value is stored, which may move others: the cells of the moved ones refer to them.
                self.cells.write(begin, &cells[..len], write)?;
                (begin, len) = (slot + 1, 0);
            }
            if value.len() > INLINE {
                self.insert(slot, value, write)?;
            }
        }
        self.cells.write(begin, &cells[..len], write)
    }

    /// Makes a run of slots that have no values hold empty ones.
    pub(crate) fn zero(&mut self, slot: usize, len: usize, write: Write<'_>) -> Result<()> {
        self.cells.zero(slot, len, write)
    }

    /// Frees the memory of a slot's value outside its cell.
    #[inline]
    pub(crate) fn clear(&mut self, slot: usize, epoch: &Epoch) -> Result<()> {
        let cell = self.cells.get(slot)?;
        if word_at(&cell, 0) as usize > INLINE { self.release(slot, cell, epoch) } else { Ok(()) }
    }

    fn release(&mut self, slot: usize, cell: Cell, epoch: &Epoch) -> Result<()> {
        self.cells.set(slot, [0; 16], epoch.seen())?;
        let (number, offset) = (word_at(&cell, 8), word_at(&cell, 12));
        match offset {
            PINNED => Ok(()),
            LARGE => {
                self.large.remove(number);
                self.large_numbers.give(number, epoch)
            }
            _ => self.bury(number, HEAD + word_at(&cell, 0) as usize, epoch),
        }
    }

    /// Moves a value to a slot without a value. The slot that it came from has no value afterwards.
    pub(crate) fn move_cell(&mut self, from: usize, to: usize, write: Write<'_>) -> Result<()> {
        let cell = self.cells.get(from)?;
        let in_heap = word_at(&cell, 0) as usize > INLINE && word_at(&cell, 12) < PINNED;
        if in_heap {
            let value = self.get_outside(&cell)?.into_owned();
            self.clear(from, write.epoch)?;
            self.insert(to, &value, write)
        } else {
            self.cells.set(to, cell, write)?;
            self.cells.set(from, [0; 16], write.epoch.seen())
        }
    }

    /// Puts a value outside its cell, and returns the cell.
    fn store(&mut self, slot: usize, value: &[u8], epoch: &Epoch) -> Result<Cell> {
        let few = self.large_numbers.end() <= FEW && self.tail == NO_PAGE;
        if value.len() > LONGEST || few {
            let number = self.large_numbers.take()?;
            self.large.put(number, value, epoch);
            return Ok(cell_to(value, number, LARGE));
        }
        let size = HEAD + value.len();
        // Beginning a page may move values from the last one into it.
        while size > PAGE - self.tail_used {
            self.begin_page(epoch)?;
        }
        let (page, offset) = (self.tail as usize, self.tail_used);
        self.heap.append(page, offset, &(slot as u64).to_le_bytes(), epoch)?;
        self.heap.append(page, offset + 8, &word(value.len()).to_le_bytes(), epoch)?;
        self.heap.append(page, offset + HEAD, value, epoch)?;
        self.tail_used += size;
        if PAGE - self.tail_used >= HEAD {
            self.heap.append(page, self.tail_used, &[0; HEAD], epoch)?;
        }
        Ok(cell_to(value, self.tail, word(offset)))
    }

    fn begin_page(&mut self, epoch: &Epoch) -> Result<()> {
        let (full, unused) = (self.tail, PAGE - self.tail_used);
        if full != NO_PAGE && unused > 0 {
            // Bytes of a rolled back transaction here would otherwise be taken for an entry. And a replay, without
            // that transaction, makes the same page only if nothing is left of it.
            self.heap.append(full as usize, self.tail_used, &[0; PAGE][..unused], epoch)?;
        }
        self.tail = self.pages.take()?;
        self.heap.add(self.tail as usize, epoch);
        self.dead.set(self.tail as usize, [0; 4], epoch.seen())?;
        self.tail_used = 0;
        if full == NO_PAGE { Ok(()) } else { self.bury(full, unused, epoch) }
    }

    /// Counts bytes of a page as dead.
    fn bury(&mut self, number: u32, bytes: usize, epoch: &Epoch) -> Result<()> {
        let page = number as usize;
        let dead = u32::from_le_bytes(self.dead.get(page)?).saturating_add(word(bytes));
        self.dead.set(page, dead.to_le_bytes(), epoch.seen())?;
        self.rewrite_if_dead(number, epoch)
    }

    /// Moves the live entries of a page to the tail, if more than half of the page is dead.
    fn rewrite_if_dead(&mut self, number: u32, epoch: &Epoch) -> Result<()> {
        let page = number as usize;
        if number == self.tail || u32::from_le_bytes(self.dead.get(page)?) as usize <= PAGE / 2 {
            return Ok(());
        }
        let bytes = self.heap.slice(page, 0, PAGE)?.into_owned();
        self.heap.remove(page);
        let mut at = 0;
        while let Some(entry) = bytes.get(at..).filter(|rest| rest.len() >= HEAD) {
            let len = word_at(entry, 8) as usize;
            let value = entry.get(HEAD..).and_then(|rest| rest.get(..len));
            // Short values are in their cells: here one means the end.
            let (Some(slot), Some(value), true) = (entry.first_chunk(), value, len > INLINE) else {
                break;
            };
            let slot = crate::pages::cells::place(u64::from_le_bytes(*slot));
            if self.cells.get(slot)? == cell_to(value, number, word(at)) {
                let cell = self.store(slot, value, epoch)?;
                self.cells.set(slot, cell, epoch.seen())?;
            }
            at += HEAD + len;
        }
        self.pages.give(number, epoch)
    }

    /// Passes the column on to be saved; `blanks` lists the cells that no view refers to.
    pub(crate) fn save(&self, out: &mut Saver, blanks: &Blanks) {
        out.number(u64::from(self.tail));
        out.count(self.tail_used);
        self.cells.save(out, blanks);
        self.heap.save(out, self.tail as usize, self.tail_used);
        self.dead.save(out, &Blanks::NONE);
        self.pages.save(out);
        self.large.save(out);
        self.large_numbers.save(out);
    }

    /// Loads the output of `save`.
    pub(crate) fn load(input: &mut Loader<'_>) -> Result<Self> {
        let strings = Self {
            tail: input.word()?,
            tail_used: input.count()?,
            cells: Cells::load(input)?,
            heap: Heap::load(input)?,
            dead: Cells::load(input)?,
            pages: FreeNumbers::load(input)?,
            large: Longs::load(input)?,
            large_numbers: FreeNumbers::load(input)?,
        };
        let (pages, larges) = (strings.pages.end(), strings.large_numbers.end());
        let has_tail = strings.tail < pages && strings.tail_used <= PAGE;
        let has_none = strings.tail == NO_PAGE && strings.tail_used == PAGE;
        if (has_tail || has_none) && pages <= MOST && (1..=MOST).contains(&larges) {
            return Ok(strings);
        }
        Err(Error::corrupt(format!(
            "a column can't have {pages} pages and {larges} long values, and end in page {}",
            strings.tail
        )))
    }

    /// Continues from the stored base.
    pub(crate) fn rebase(&mut self, saved: &Saved) {
        self.cells.rebase(saved);
        self.heap.rebase(saved);
        self.dead.rebase(saved);
        self.pages.rebase(saved);
        self.large.rebase(saved);
        self.large_numbers.rebase(saved);
    }

    /// Returns how much memory it takes, in bytes.
    pub(crate) fn memory(&self, what: Counted) -> usize {
        let numbers = self.pages.memory(what) + self.large_numbers.memory(what);
        let outside = self.heap.memory(what) + self.large.memory(what) + self.dead.memory(what);
        self.cells.memory(what) + outside + numbers
    }
}

/// Takes bytes as a string. Most strings are short and ASCII, for which the general check takes ten times as long.
#[inline]
#[allow(unsafe_code, reason = "ASCII is UTF-8")]
fn text(bytes: &[u8]) -> Result<&str> {
    if bytes.len() <= SHORT_TEXT && bytes.is_ascii() {
        // SAFETY: all of it is ASCII, which is UTF-8.
        return Ok(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes).map_err(|_| no_text())
}

#[cold]
fn leads_nowhere() -> Error {
    Error::ill_written("a string refers to bytes that aren't there")
}

#[cold]
fn no_text() -> Error {
    Error::ill_written("a string is not UTF-8")
}

#[cfg(test)]
mod tests;
