//! Views of past states that are made when they are read.
//!
//! A row by its id, and the first row in a range of ids, come from a [`Past`]. Any other read makes the whole state,
//! and so do too many of these.
//!
//! Invariants
//! 1. A lazy view has the tables of its schema, without rows: what isn't found there is looked for in the past.
//! 2. Indexes that it returns are those of the whole state. If that can't be made, each read is the error.

use std::ops::Range as Ids;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use annals_schema::{RowId, TableNumber};

use crate::Result;
use crate::pages::numbered::Numbered;
use crate::past::{Lazy, Past, PastRow};
use crate::row::Row;
use crate::row_walk::Rows;
use crate::rows::RowMap;
use crate::table::Table;
use crate::view::{TableView, View};

/// The number of rows that are looked up one by one before the whole state is made. Making it takes as long as a few
/// hundred lookups.
const MOST_ROWS: u32 = 64;
/// A step to the next row counts as this many lookups: a program that reads rows in sequence is likely to read many.
const STEP: u32 = 8;

impl View {
    /// Makes a view of a past state of a database, which is read through the present schema.
    #[doc(hidden)]
    #[must_use]
    pub fn lazily(present: &Arc<Self>, past: Arc<dyn Past>) -> Self {
        let mut tables = Numbered::new();
        for number in 0..present.tables.next() {
            let of_present = present.tables.get(number);
            let number = u32::try_from(number).map(TableNumber).ok();
            match number.and_then(|number| present.schema.table(number)).zip(of_present) {
                Some((schema, of_present)) => {
                    let rows = RowMap::new(of_present.rows.next_id());
                    let mut table = Table::new();
                    (table.rows, table.single) = (rows, of_present.single);
                    schema.fields.iter().for_each(|field| table.add_field(field));
                    tables.push(table);
                }
                None => tables.skip(),
            }
        }
        let (whole, failed, rows) = (OnceLock::new(), OnceLock::new(), AtomicU32::new(0));
        let unreadable = OnceLock::new();
        Self {
            schema: Arc::clone(&present.schema),
            tables,
            blobs: present.blobs.share(),
            lazy: Some(Arc::new(Lazy { past, whole, failed, unreadable, rows })),
            ..Self::new()
        }
    }
}

impl Lazy {
    /// Returns the first row of a table in a range of ids.
    fn row(&self, table: TableNumber, ids: &Ids<u64>, weight: u32) -> Result<PastRow> {
        let is_cheap = self.rows.fetch_add(weight, Ordering::Relaxed) < MOST_ROWS;
        match is_cheap && self.whole.get().is_none() {
            true => self.past.row(table, ids),
            false => Ok(PastRow::Unknown),
        }
    }
}

impl<'a> TableView<'a> {
    /// Returns the table with all of its rows; without any, if the whole state can't be made.
    #[inline]
    pub(super) fn whole(&self) -> Self {
        let whole = self.view.whole().ok().flatten();
        whole.and_then(|whole| whole.table(self.number).ok()).unwrap_or(*self)
    }

    /// Returns a row that a lazy view hasn't got, if there is one with that id.
    #[cold]
    pub(super) fn past_row(&self, id: RowId) -> Result<Option<Row<'a>>> {
        let Some(lazy) = &self.view.lazy else { return Ok(None) };
        match lazy.row(self.number, &(id.0..id.0.saturating_add(1)), 1)? {
            PastRow::Absent => Ok(None),
            PastRow::There(id, values) => Ok(Some(Row::holding(*self, id, values))),
            PastRow::Unknown => lazy.whole()?.table(self.number)?.find(id),
        }
    }
}

impl<'a> Rows<'a> {
    /// Continues after the rows of a view: with the next one of the past, if the view is lazy.
    #[cold]
    pub(super) fn next_past_row(&mut self) -> Option<Result<Row<'a>>> {
        let (lazy, ids) = (self.table.view.lazy.as_ref()?, self.rows.rest());
        if ids.is_empty() {
            return None;
        }
        match lazy.row(self.table.number, &ids, STEP) {
            Ok(PastRow::Absent) => self.rows.skip_to(ids.end),
            Ok(PastRow::There(id, values)) => {
                self.rows.skip_to(id.0 + 1);
                return Some(Ok(Row::holding(self.table, id, values)));
            }
            Ok(PastRow::Unknown) => {
                return match self.continue_in_whole()? {
                    Ok(()) => self.next(),
                    Err(error) => Some(Err(error)),
                };
            }
            Err(error) => {
                self.rows.skip_to(ids.end);
                return Some(Err(error));
            }
        }
        None
    }

    /// Continues in the whole state, if the view is lazy. Nothing follows an error.
    #[cold]
    pub(super) fn continue_in_whole(&mut self) -> Option<Result<()>> {
        let (lazy, ids) = (self.table.view.lazy.as_ref()?, self.rows.rest());
        if ids.is_empty() {
            return None;
        }
        Some(match lazy.whole().and_then(|whole| whole.table(self.table.number)) {
            Ok(table) => {
                *self = table.rows_in(ids);
                Ok(())
            }
            Err(error) => {
                self.rows.skip_to(ids.end);
                Err(error)
            }
        })
    }
}
