//! Views of past states that are made when they are read.
//!
//! A row by its id is asked of whoever knows the past. Any other read, and too many of these, makes the whole state.
//!
//! Invariants
//! 1. A lazy view has the tables of its schema, without rows: nothing is read from them.
//! 2. Tables and indexes that it returns are those of the whole state. If that can't be made, they are of a view
//!    whose every read is the error.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use annals_schema::{RowId, TableNumber};

use crate::Result;
use crate::pages::numbered::Numbered;
use crate::past::{Lazy, Past, PastRow};
use crate::row::Row;
use crate::table::Table;
use crate::view::{TableView, View, no_table};

/// So many rows are looked up one by one before the whole state is made, which takes as long as some hundred.
const MOST_ROWS: u32 = 64;

impl View {
    /// Makes a view of a past state of a database, which is read through the present schema.
    #[doc(hidden)]
    #[must_use]
    pub fn lazily(present: &Arc<Self>, past: Arc<dyn Past>) -> Self {
        let mut tables = Numbered::new();
        for number in 0..present.tables.next() {
            let number = u32::try_from(number).map(TableNumber).ok();
            match number.and_then(|number| present.schema.table(number)) {
                Some(schema) => {
                    let mut table = Table::new();
                    schema.fields.iter().for_each(|field| table.add_field(field));
                    tables.push(table);
                }
                None => tables.skip(),
            }
        }
        let (present, whole, rows) = (Arc::clone(present), OnceLock::new(), AtomicU32::new(0));
        Self {
            schema: Arc::clone(&present.schema),
            tables,
            blobs: present.blobs.share(),
            lazy: Some(Arc::new(Lazy { past, present, whole, rows })),
            ..Self::new()
        }
    }

    /// True if its rows are looked up one by one.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn is_lazy(&self) -> bool {
        self.lazy.as_ref().is_some_and(|lazy| lazy.whole.get().is_none())
    }

    /// Returns the row of a table, if there is one with that id.
    ///
    /// Cost: of a past state, some reads of the journal; the whole state isn't made.
    ///
    /// # Errors
    /// `NotFound`: no such table. The row can't be loaded.
    pub fn find_row(&self, table: TableNumber, id: RowId) -> Result<Option<Row<'_>>> {
        let Some(lazy) = self.lazy.as_ref().filter(|lazy| lazy.whole.get().is_none()) else {
            return self.table(table)?.find(id);
        };
        let data = self.tables.get(table.0 as usize).ok_or_else(|| no_table(table))?;
        let is_cheap = lazy.rows.fetch_add(1, Ordering::Relaxed) < MOST_ROWS;
        match if is_cheap { lazy.past.row(table, id)? } else { PastRow::Unknown } {
            PastRow::Absent => Ok(None),
            PastRow::There(values) => {
                let table = TableView { view: self, data, number: table };
                Ok(Some(Row::holding(table, id, values)))
            }
            PastRow::Unknown => self.table(table)?.find(id),
        }
    }
}
