//! Places in the order of an index, where a page of its rows ends and the next one begins.

use annals_schema::RowId;

use super::{IndexRows, IndexView};
use crate::Result;
use crate::index::key;

impl IndexView<'_> {
    /// Returns the place of a row in the order of the index, as bytes that compare as the places do: for
    /// [`IndexRows::after_key`], which continues there also once the row was changed or deleted.
    ///
    /// # Errors
    /// There is no such row, or it or the index can't be loaded.
    pub fn key_of(&self, id: RowId) -> Result<Vec<u8>> {
        let slot = self.table.get(id)?.slot;
        let (table, mut key) = (self.table.data, Vec::new());
        self.data.key(table, |field| table.value(field, slot), &mut key)?;
        key::encode_id(&mut key, id);
        Ok(key)
    }
}

impl IndexRows<'_> {
    /// Returns those of the rows that come after a row in the order of the index: the next page of a list that
    /// ended there. It takes logarithmic time, and what was stepped over may come again. If the row doesn't exist,
    /// that error is the only item.
    #[must_use]
    pub fn after(self, id: RowId) -> Self {
        match self.index.key_of(id) {
            Ok(key) => self.after_key(&key),
            Err(error) => self.index.failed(error),
        }
    }

    /// Returns those of the rows that come after a place in the order of the index, which
    /// [`key_of`](IndexView::key_of) returned, maybe in an earlier state. Other bytes are a place, too.
    #[must_use]
    pub fn after_key(self, key: &[u8]) -> Self {
        match key::successor(key.to_vec()) {
            Some(key) => self.index.between(self.low.max(key), self.high),
            None => self.index.between(vec![0], Some(Vec::new())),
        }
    }

    /// Returns those of the rows that come before a row in the order of the index, as [`after`](Self::after).
    #[must_use]
    pub fn before(self, id: RowId) -> Self {
        match self.index.key_of(id) {
            Ok(key) => {
                let high = self.high.map_or_else(|| key.clone(), |high| high.min(key.clone()));
                self.index.between(self.low, Some(high))
            }
            Err(error) => self.index.failed(error),
        }
    }
}
