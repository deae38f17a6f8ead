//! Entries: the rows that a zone changes; and their pages, sorted and compact.
//!
//! ```text
//! page:   number of bytes that are used (4), then groups
//! group:  a compact number: how far the first row is behind that of the group before, times 4, plus
//!         0  one row, one zone:     zone
//!         1  one row, some zones:   how many, the first zone, how far each is behind the one before
//!         2  some rows, some zones: how many rows; zones as in 1
//!         3  another table: the number is its key; rows are counted from 0 again
//! ```
//!
//! Zones are counted from the first of the run.

use super::format::PAGE;
use super::node::Key;
use crate::bytes::hash;
use crate::event::compact;
use annals_schema::TableNumber;

/// The key of the comments, which are no table: their rows are the hashes.
pub(crate) const COMMENTS: u64 = 0;

/// The bits of a comment's hash that are kept: with fewer, more zones would be searched in vain.
const COMMENT_BITS: u32 = 32;

/// Length of a page's start.
const START: usize = 4;

/// Consecutive ids of rows that a zone changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// Which table: [`table_key`].
    pub(crate) table: u64,
    /// The first row.
    pub(crate) first: u64,
    /// How many.
    pub(crate) count: u64,
    /// Which zone.
    pub(crate) zone: u64,
}

/// Returns the key of a table.
pub(crate) fn table_key(table: TableNumber) -> u64 {
    u64::from(table.0) + 1
}

/// Returns the key of a comment. Few other comments have the same key.
pub(crate) fn comment_key(comment: &str) -> u64 {
    hash(comment.as_bytes()) >> (u64::BITS - COMMENT_BITS)
}

impl Entry {
    /// Returns the key after the last row.
    pub(crate) const fn end(&self) -> Key {
        Key { table: self.table, row: self.first.saturating_add(self.count) }
    }

    const fn key(&self) -> Key {
        Key { table: self.table, row: self.first }
    }

    const fn is_of_same_rows(&self, other: &Self) -> bool {
        self.table == other.table && self.first == other.first && self.count == other.count
    }
}

/// A page that is being made.
#[derive(Debug, Default)]
pub(crate) struct PageBuilder {
    bytes: Vec<u8>,
    /// The zones of the last group, which isn't among the bytes yet.
    group: Vec<u64>,
    of: Option<Entry>,
    /// The last row in the bytes.
    last: Option<Key>,
    first: Option<Key>,
    end: Option<Key>,
}

/// The bytes that a group takes at most beside its zones, including the start of a new table.
const GROUP_AT_MOST: usize = 4 * 9;
/// The bytes that a zone takes at most.
const ZONE_AT_MOST: usize = 9;

impl PageBuilder {
    /// Adds an entry, which sorts after the earlier ones; `false` if the page is full.
    pub(crate) fn push(&mut self, entry: &Entry, base: u64) -> bool {
        let is_same = self.of.is_some_and(|of| of.is_of_same_rows(entry));
        let zones = self.group.len() + 1;
        let needed = START + self.bytes.len() + GROUP_AT_MOST + zones * ZONE_AT_MOST;
        // A completed group needs at most its present size; so does the one after it.
        let needed = needed + if is_same { 0 } else { GROUP_AT_MOST + ZONE_AT_MOST };
        if needed > PAGE {
            return false;
        }
        if !is_same {
            self.end_group(base);
            self.of = Some(*entry);
        }
        self.group.push(entry.zone);
        self.first.get_or_insert(entry.key());
        self.end = self.end.max(Some(entry.end()));
        true
    }

    fn end_group(&mut self, base: u64) {
        let Some(of) = self.of.take() else { return };
        let last = self.last.filter(|last| last.table == of.table);
        if last.is_none() {
            compact::put(&mut self.bytes, of.table << 2 | 3);
        }
        let behind = of.first - last.map_or(0, |last| last.row);
        let kind = match (of.count, self.group.len()) {
            (1, 1) => 0,
            (1, _) => 1,
            _ => 2,
        };
        // A row's number has 63 bits, so the two lowest bits of the encoding may need a separate number.
        put_wide(&mut self.bytes, behind, kind);
        if kind == 2 {
            compact::put(&mut self.bytes, of.count);
        }
        if kind > 0 {
            compact::put(&mut self.bytes, self.group.len() as u64);
        }
        let mut before = base;
        for zone in self.group.drain(..) {
            compact::put(&mut self.bytes, zone - before);
            before = zone;
        }
        self.last = Some(of.key());
    }

    /// True if it has nothing.
    pub(crate) const fn is_empty(&self) -> bool {
        self.of.is_none() && self.bytes.is_empty()
    }

    /// Returns the page, its first key and the one after its last, and begins another.
    pub(crate) fn finish(&mut self, base: u64) -> (Vec<u8>, Key, Key) {
        self.end_group(base);
        let len = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        let mut page = Vec::with_capacity(PAGE);
        page.extend_from_slice(&len.to_le_bytes());
        page.extend_from_slice(&self.bytes);
        page.resize(PAGE, 0);
        let (first, end) = (self.first.unwrap_or_default(), self.end.unwrap_or_default());
        *self = Self::default();
        (page, first, end)
    }
}

/// Marks that the kind of a group doesn't fit into the lowest bits of a row's number.
const WIDE: u64 = 1 << 61;

fn put_wide(bytes: &mut Vec<u8>, behind: u64, kind: u64) {
    if behind < WIDE {
        compact::put(bytes, behind << 2 | kind);
        return;
    }
    compact::put(bytes, WIDE << 2 | kind);
    compact::put(bytes, behind);
}

/// Reads the entries of a page, in order.
#[derive(Debug)]
pub(crate) struct PageReader<'p> {
    bytes: &'p [u8],
    base: u64,
    /// The table of the next group, and the first row of the one before.
    table: u64,
    row: u64,
    /// The rest of a group: its rows, the number of zones, and the last one.
    group: (u64, u64, u64),
}

impl<'p> PageReader<'p> {
    pub(crate) fn new(page: &'p [u8], base: u64) -> Self {
        let len = page.first_chunk::<START>().map_or(0, |len| u32::from_le_bytes(*len));
        let bytes = page.get(START..).and_then(|rest| rest.get(..usize::try_from(len).ok()?));
        let bytes = bytes.unwrap_or_default();
        Self { bytes, base, table: 0, row: 0, group: (0, 0, 0) }
    }

    fn take(&mut self) -> Option<u64> {
        compact::take(&mut self.bytes).ok()
    }

    fn begin_group(&mut self) -> Option<()> {
        let mut number = self.take()?;
        if number & 3 == 3 {
            (self.table, self.row) = (number >> 2, 0);
            number = self.take()?;
        }
        let behind = match number >> 2 {
            WIDE => self.take()?,
            behind => behind,
        };
        self.row = self.row.checked_add(behind)?;
        let count = if number & 3 == 2 { self.take()? } else { 1 };
        let zones = if number & 3 == 0 { 1 } else { self.take()? };
        self.group = (count, zones, self.base);
        Some(())
    }
}

impl Iterator for PageReader<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        if self.group.1 == 0 {
            if self.bytes.is_empty() {
                return None;
            }
            self.begin_group()?;
        }
        let zone = self.group.2.checked_add(self.take()?)?;
        let left = self.group.1.checked_sub(1)?;
        self.group = (self.group.0, left, zone);
        Some(Entry { table: self.table, first: self.row, count: self.group.0, zone })
    }
}
