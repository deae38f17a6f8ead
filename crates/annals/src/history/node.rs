//! Pages above others: a record of each page below, with its hash.

use super::format::{CHILD_LEN, PAGE};
use crate::bytes::{Fields, Layout};

/// A row of a table, or a place between two. Tables sort before rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) table: u64,
    pub(crate) row: u64,
}

/// The record of a page, or of all pages below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Child {
    /// The first key.
    pub(crate) first: Key,
    /// The greatest key that is the end of something.
    pub(crate) end: Key,
    /// The hash of the page.
    pub(crate) sum: u64,
}

impl Child {
    pub(crate) fn encode(&self) -> [u8; CHILD_LEN] {
        let mut to = Layout([0; CHILD_LEN]);
        let table = |key: Key| u32::try_from(key.table).unwrap_or(u32::MAX).to_le_bytes();
        to.put(0, table(self.first));
        to.put(4, table(self.end));
        to.put(8, self.first.row.to_le_bytes());
        to.put(16, self.end.row.to_le_bytes());
        to.put(24, self.sum.to_le_bytes());
        to.0
    }

    pub(crate) fn decode(bytes: &[u8; CHILD_LEN]) -> Self {
        let from = Fields(bytes);
        let key = |table, row| Key { table: u64::from(from.u32(table)), row: from.u64(row) };
        Self { first: key(0, 8), end: key(4, 16), sum: from.u64(24) }
    }
}

/// Returns a page's record of one page below it.
pub(crate) fn child(page: &[u8], place: u64) -> Option<Child> {
    let at = usize::try_from(place).ok()?.checked_mul(CHILD_LEN)?;
    let bytes = page.get(at..)?.first_chunk()?;
    Some(Child::decode(bytes))
}

/// Makes a page of the records of its child pages; returns it, with its own record for the level above.
pub(crate) fn page_of(children: &[Child]) -> (Vec<u8>, Child) {
    let mut page = Vec::with_capacity(PAGE);
    children.iter().for_each(|child| page.extend_from_slice(&child.encode()));
    page.resize(PAGE, 0);
    let first = children.iter().map(|child| child.first).min().unwrap_or_default();
    let end = children.iter().map(|child| child.end).max().unwrap_or_default();
    let sum = crate::bytes::hash(&page);
    (page, Child { first, end, sum })
}
