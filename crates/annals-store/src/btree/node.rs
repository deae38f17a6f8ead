//! One node of a tree: a page of sorted entries.
//!
//! ```text
//! 0      2       4       6      8        10     12    16      128
//! | size | count | floor | dead | prefix | next | run | hints | slot 0 | slot 1 | ..  ->     <- .. | cell 1 | cell 0 |
//!                                                                slot: head u32, offset u16, key length u16
//!                                                                cell: key, [number of the long key u32], value
//! ```
//!
//! All numbers are little-endian. `size` is the size of a value, the same in all entries.
//!
//! Invariants
//! 1. Slots are in the order of their keys; cells are anywhere from `floor` on.
//! 2. All keys of a node share their first `prefix` bytes. A slot's head is the four bytes after that (zeros after
//!    the key's end), so that most comparisons don't touch the cell.
//! 3. A key longer than [`LIMIT`] has its first `LIMIT` bytes in the cell and the top bit of its length set; the
//!    whole key is among the tree's long keys.
//! 4. The [`hints`](super::hints) are the heads of some slots.
//! 5. `dead` counts the bytes from `floor` on that belong to no cell.
//! 6. The last `run` entries were inserted in the order of their keys, the last one before slot `next`. Nothing but
//!    where a node splits depends on it.
//! 7. A loaded page is well formed: [`is_node`] checked it. So no offset here can leave a page, whatever an image
//!    contains.

use std::ops::{Deref, Range};
use std::sync::Arc;

use super::{HEADER, SLOT, get16, get32};
use super::{NONE, hints};
use crate::Result;
use crate::pages::cells::{Longs, NodePage};
use crate::pages::item::Held;
use crate::pages::page::{PAGE, PageRef};

/// Where `next` and `run` are.
const NEXT: usize = 10;
const RUN: usize = 12;

/// The longest key that is kept in a node, in bytes.
pub(super) const LIMIT: usize = 1024;

/// A bit in the length of a key that marks a long one.
pub(super) const LONG: usize = 1 << 15;

/// The largest value, in bytes.
pub(super) const MAX_VALUE: usize = 16;

const _: () = assert!(PAGE <= 1 << 15, "offsets and sizes fit in 16 bits");
const _: () =
    assert!(4 * (LIMIT + 4 + MAX_VALUE + SLOT) < PAGE - HEADER, "a node holds four entries");

/// A key: borrowed from its node, or one of the long ones.
pub(super) enum Key<'a> {
    /// The form stored in the node.
    Part(&'a [u8]),
    /// One that is too long for a node.
    Long(Held<'a, Arc<[u8]>>),
}

impl Deref for Key<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Part(key) => key,
            Self::Long(key) => key,
        }
    }
}

/// An entry to be written.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    /// The key, or its first `LIMIT` bytes.
    pub(super) part: &'a [u8],
    /// Where the whole key is, if it is longer.
    pub(super) long: Option<u32>,
    /// The value.
    pub(super) value: &'a [u8],
}

#[expect(clippy::cast_possible_truncation, reason = "a page is smaller than 64 KiB")]
const fn short(number: usize) -> u16 {
    number as u16
}

fn put16(bytes: &mut [u8; PAGE], at: usize, number: usize) {
    bytes[at..at + 2].copy_from_slice(&short(number).to_le_bytes());
}

/// True if a loaded page is a node: everything in it is within its bounds.
pub(super) fn is_node(page: &PageRef) -> bool {
    Node::new(&NodePage::loaded(page)).is_well_formed()
}

/// Returns the four bytes of a key after the prefix, as a number that compares as they do.
#[inline]
#[expect(clippy::big_endian_bytes, reason = "it is the order of the bytes that counts")]
pub(super) fn head_of(key: &[u8], prefix: usize) -> u32 {
    let rest = key.get(prefix..).unwrap_or_default();
    match rest.first_chunk::<4>() {
        Some(four) => u32::from_be_bytes(*four),
        None => {
            let mut four = [0; 4];
            four[..rest.len()].copy_from_slice(rest);
            u32::from_be_bytes(four)
        }
    }
}

/// Returns how many bytes two keys share at their beginning.
pub(super) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// A node, for reading.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) bytes: &'a [u8; PAGE],
}

impl<'a> Node<'a> {
    pub(super) const fn new(bytes: &'a [u8; PAGE]) -> Self {
        Self { bytes }
    }

    /// Returns the number of entries.
    #[inline]
    pub(super) fn count(self) -> usize {
        get16(self.bytes, 2)
    }

    pub(super) fn size(self) -> usize {
        get16(self.bytes, 0)
    }

    #[inline]
    pub(super) fn prefix(self) -> usize {
        get16(self.bytes, 8)
    }

    /// True if a new entry at place `i` continues a run of entries that came in the order of their keys, and at least
    /// two fifths of all are of that run. (A run that begins in a node of half the size fills it to nearly a half.)
    pub(super) fn is_in_order(self, i: usize) -> bool {
        let run = get16(self.bytes, RUN);
        get16(self.bytes, NEXT) == i && run <= i && run * 5 >= self.count() * 2
    }

    /// Returns the head of entry `i`, the offset of its cell, and its length with the long bit.
    #[inline]
    pub(super) fn slot(self, i: usize) -> (u32, usize, usize) {
        let at = HEADER + i * SLOT;
        (get32(self.bytes, at), get16(self.bytes, at + 4), get16(self.bytes, at + 6))
    }

    /// Returns the head of entry `i`.
    #[inline]
    pub(super) fn head(self, i: usize) -> u32 {
        get32(self.bytes, HEADER + i * SLOT)
    }

    /// Returns the bytes of the key that are in the cell.
    #[inline]
    pub(super) fn part(self, i: usize) -> &'a [u8] {
        let (_, offset, len) = self.slot(i);
        &self.bytes[offset..offset + len % LONG]
    }

    /// Returns the number of a long key; `None` for a short one.
    #[inline]
    pub(super) fn long(self, i: usize) -> Option<u32> {
        let (_, offset, len) = self.slot(i);
        (len >= LONG).then(|| get32(self.bytes, offset + len % LONG))
    }

    /// Returns the value of entry `i`.
    #[inline]
    pub(super) fn value(self, i: usize) -> &'a [u8] {
        let (_, offset, len) = self.slot(i);
        let at = offset + len % LONG + if len >= LONG { 4 } else { 0 };
        &self.bytes[at..at + self.size()]
    }

    /// Returns the value of entry `i` of an inner node: the child's number.
    #[inline]
    pub(super) fn child(self, i: usize) -> u32 {
        self.value(i).first_chunk().map_or(NONE, |number| u32::from_le_bytes(*number))
    }

    /// True if its values have that size. The placeholder for a missing page is no node of any size.
    #[inline]
    pub(super) fn is_of(self, size: usize) -> bool {
        self.size() == size && get16(self.bytes, 4) > 0
    }

    /// Returns the whole key of entry `i`.
    ///
    /// # Errors
    /// It is a long one that can't be loaded.
    #[inline]
    pub(super) fn key(self, i: usize, long: &'a Longs) -> Result<Key<'a>> {
        match self.long(i) {
            None => Ok(Key::Part(self.part(i))),
            Some(number) => Ok(Key::Long(long.get(number)?)),
        }
    }

    /// Returns entry `i` as it is.
    pub(super) fn entry(self, i: usize) -> Entry<'a> {
        Entry { part: self.part(i), long: self.long(i), value: self.value(i) }
    }

    /// Returns how many bytes entries `range` take, slots included.
    pub(super) fn bytes_of(self, range: std::ops::Range<usize>) -> usize {
        range.map(|i| SLOT + self.cell_len(i)).sum()
    }

    /// Returns how many bytes the keys of some entries share at their beginning.
    fn shared(self, entries: std::ops::Range<usize>) -> usize {
        let Some(last) = entries.clone().last() else { return 0 };
        let Some(next) = entries.clone().nth(1) else { return self.part(last).len() };
        // They are in order, except the first key of an inner node.
        let of_others = common(self.part(next), self.part(last));
        of_others.min(common(self.part(entries.start), self.part(next)))
    }

    fn cell_len(self, i: usize) -> usize {
        let len = self.slot(i).2;
        len % LONG + if len >= LONG { 4 } else { 0 } + self.size()
    }

    /// Returns how many bytes all entries take, slots included.
    pub(super) fn used(self) -> usize {
        let (floor, dead) = (get16(self.bytes, 4), get16(self.bytes, 6));
        self.count() * SLOT + PAGE - floor - dead
    }

    /// True if everything is within the page: the invariants of positions and lengths.
    fn is_well_formed(self) -> bool {
        let count = self.count();
        let (floor, dead) = (get16(self.bytes, 4), get16(self.bytes, 6));
        let is_cell = |i| {
            let (_, offset, len) = self.slot(i);
            let part = len % LONG;
            let is_part = if len < LONG { part <= LIMIT } else { part == LIMIT };
            is_part && part >= self.prefix() && offset >= floor && offset + self.cell_len(i) <= PAGE
        };
        // No node that is stored is empty.
        count > 0
            && self.size() <= MAX_VALUE
            && HEADER + count * SLOT <= floor
            && floor + dead <= PAGE
            && (0..count).all(is_cell)
            && self.used() == self.bytes_of(0..count)
            && hints::are_right(self.bytes)
    }

    /// Executes the invariants that a node alone can show.
    pub(super) fn check(self, first: usize, long: &Longs) -> Result<bool> {
        let n = self.count();
        let prefix = self.prefix();
        for i in first + 1..n {
            if *self.key(i - 1, long)? >= *self.key(i, long)? {
                return Ok(false);
            }
        }
        let heads = (0..n).all(|i| {
            self.part(i).len() >= prefix
                && self.part(i)[..prefix] == self.part(0)[..prefix]
                && self.slot(i).0 == head_of(self.part(i), prefix)
        });
        Ok(heads && (n == 0 || self.is_well_formed()))
    }
}

/// The entries of a node all of whose cells have the same size.
#[derive(Clone, Copy)]
pub(super) struct EqualCells {
    pub(super) count: usize,
    pub(super) key_len: usize,
    /// The size of a value.
    pub(super) size: usize,
}

/// Makes a page of zeros a node: all but its cells, which lie in the order of their keys from the end of the page
/// backwards.
pub(super) fn lay_out(bytes: &mut [u8; PAGE], cells: EqualCells) {
    let EqualCells { count, key_len, size } = cells;
    let width = key_len + size;
    let floor = PAGE - count * width;
    put16(bytes, 0, size);
    put16(bytes, 2, count);
    put16(bytes, 4, floor);
    let (slots, _) = bytes[HEADER..HEADER + count * SLOT].as_chunks_mut::<SLOT>();
    let mut offset = PAGE;
    for slot in slots {
        offset -= width;
        let ([a, b], [c, d]) = (short(offset).to_le_bytes(), short(key_len).to_le_bytes());
        *slot = [0, 0, 0, 0, a, b, c, d];
    }
    let prefix = Node::new(bytes).shared(0..count);
    put16(bytes, 8, prefix);
    // As `set_prefix`, but without a look at where each cell is.
    let (front, cells) = bytes.split_at_mut(floor);
    let (slots, _) = front[HEADER..].as_chunks_mut::<SLOT>();
    for (slot, cell) in slots.iter_mut().zip(cells.rchunks_exact(width)) {
        slot[..4].copy_from_slice(&head_of(&cell[..key_len], prefix).to_le_bytes());
    }
    hints::write(bytes);
}

/// Makes a page an empty node.
pub(super) fn clear(bytes: &mut [u8; PAGE], size: usize) {
    bytes[..HEADER].fill(0);
    put16(bytes, 0, size);
    put16(bytes, 4, PAGE);
    hints::clear(bytes);
}

/// Inserts an entry at place `i`; false if there is no room.
pub(super) fn insert(bytes: &mut [u8; PAGE], i: usize, entry: Entry<'_>) -> bool {
    let count = get16(bytes, 2);
    let i = i.min(count);
    let size = entry.part.len() + if entry.long.is_some() { 4 } else { 0 } + entry.value.len();
    let slots_end = HEADER + count * SLOT;
    let (floor, dead) = (get16(bytes, 4), get16(bytes, 6));
    if SLOT + size > floor - slots_end + dead {
        return false;
    }
    if SLOT + size > floor - slots_end {
        compact(bytes);
    }
    fit_prefix(bytes, i, count, entry.part);
    let offset = get16(bytes, 4) - size;
    put16(bytes, 4, offset);
    put16(bytes, 2, count + 1);
    let run = if get16(bytes, NEXT) == i { get16(bytes, RUN) } else { 0 };
    put16(bytes, NEXT, i + 1);
    put16(bytes, RUN, (run + 1).min(count + 1));
    let at = HEADER + i * SLOT;
    bytes.copy_within(at..slots_end, at + SLOT);
    let head = head_of(entry.part, get16(bytes, 8));
    bytes[at..at + 4].copy_from_slice(&head.to_le_bytes());
    put16(bytes, at + 4, offset);
    put16(bytes, at + 6, entry.part.len() + if entry.long.is_some() { LONG } else { 0 });
    let mut to = offset + entry.part.len();
    bytes[offset..to].copy_from_slice(entry.part);
    if let Some(number) = entry.long {
        bytes[to..to + 4].copy_from_slice(&number.to_le_bytes());
        to += 4;
    }
    bytes[to..to + entry.value.len()].copy_from_slice(entry.value);
    hints::renew(bytes, count, i);
    true
}

/// Shortens the prefix so that a new key at place `i` shares it too.
fn fit_prefix(bytes: &mut [u8; PAGE], i: usize, count: usize, part: &[u8]) {
    if count == 0 {
        return set_prefix(bytes, part.len());
    }
    let node = Node::new(bytes);
    let prefix = node.prefix();
    // All keys have the prefix. The cell of this one was just read, to find the place.
    let shared = common(&node.part(i.min(count - 1))[..prefix], part);
    if shared < prefix {
        set_prefix(bytes, shared);
    }
}

/// Sets the prefix; writes all heads and hints.
fn set_prefix(bytes: &mut [u8; PAGE], prefix: usize) {
    put16(bytes, 8, prefix);
    for i in 0..get16(bytes, 2) {
        let head = head_of(Node::new(bytes).part(i), prefix);
        let at = HEADER + i * SLOT;
        bytes[at..at + 4].copy_from_slice(&head.to_le_bytes());
    }
    hints::write(bytes);
}

/// Overwrites the value of entry `i`.
pub(super) fn set_value(bytes: &mut [u8; PAGE], i: usize, value: &[u8]) {
    let (_, offset, len) = Node::new(bytes).slot(i);
    let at = offset + len % LONG + if len >= LONG { 4 } else { 0 };
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Removes entry `i`.
pub(super) fn remove(bytes: &mut [u8; PAGE], i: usize) {
    let node = Node::new(bytes);
    let (count, size) = (node.count(), node.cell_len(i));
    let dead = get16(bytes, 6) + size;
    put16(bytes, 6, dead);
    put16(bytes, 2, count - 1);
    put16(bytes, RUN, 0);
    let at = HEADER + i * SLOT;
    bytes.copy_within(at + SLOT..HEADER + count * SLOT, at);
    hints::renew(bytes, count, i);
}

/// Notes that these entries came last, in the order of their keys.
pub(super) fn note_run(bytes: &mut [u8; PAGE], run: Range<usize>) {
    put16(bytes, NEXT, run.end);
    put16(bytes, RUN, run.len());
}

/// Moves the entries from `at` on to the empty node `right`.
pub(super) fn split(left: &mut [u8; PAGE], right: &mut [u8; PAGE], at: usize) {
    let old = *left;
    let node = Node::new(&old);
    clear(right, node.size());
    gather(right, node, at..node.count());
    gather(left, node, 0..at);
}

/// Writes the cells again, without dead bytes, and with the longest prefix.
fn compact(bytes: &mut [u8; PAGE]) {
    let old = *bytes;
    let node = Node::new(&old);
    gather(bytes, node, 0..node.count());
}

/// Makes a node have some entries of another, and no others.
fn gather(bytes: &mut [u8; PAGE], from: Node<'_>, entries: std::ops::Range<usize>) {
    let mut floor = PAGE;
    for (place, i) in entries.clone().enumerate() {
        let (len, (_, offset, key)) = (from.cell_len(i), from.slot(i));
        floor -= len;
        bytes[floor..floor + len].copy_from_slice(&from.bytes[offset..offset + len]);
        let at = HEADER + place * SLOT;
        put16(bytes, at + 4, floor);
        put16(bytes, at + 6, key);
    }
    put16(bytes, 2, entries.len());
    put16(bytes, 4, floor);
    put16(bytes, 6, 0);
    set_prefix(bytes, from.shared(entries));
}
