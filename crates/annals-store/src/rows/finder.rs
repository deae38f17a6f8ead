//! Finding the slots of many rows.

use super::RowMap;
use crate::Result;
use crate::pages::cells::BitReader;

impl RowMap {
    /// Begins to find the slots of many rows.
    pub(crate) const fn finder(&self) -> RowFinder<'_> {
        RowFinder { map: self, live: self.live.reader() }
    }
}

/// Finds the slots of rows whose ids are near one another.
#[derive(Debug)]
pub(crate) struct RowFinder<'a> {
    map: &'a RowMap,
    live: BitReader<'a>,
}

impl RowFinder<'_> {
    /// Finds the slot of a row.
    ///
    /// # Errors
    /// A page can't be loaded.
    #[inline]
    pub(crate) fn find(&mut self, id: u64) -> Result<Option<usize>> {
        match self.map.slot_in_tail(id) {
            Some(slot) => Ok(self.live.get(slot)?.then_some(slot)),
            None => self.map.find(id),
        }
    }
}
