//! Views of past states that are made when they are read.
//!
//! A row by its id is asked of whoever knows the past. Any other read, and too many of these, makes the whole state.
//!
//! Invariants
//! 1. A lazy view has the tables of its schema, without rows: nothing is read from them.
//! 2. Tables and indexes that it returns are those of the whole state. If that can't be made, they are of a view
//!    whose every read is the error.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use annals_schema::{RowId, TableNumber, Value};

use crate::image::{Source, Stored};
use crate::pages::keep::{Keep, Piece};
use crate::pages::numbered::Numbered;
use crate::pages::pager::Pager;
use crate::row::Row;
use crate::table::Table;
use crate::view::{TableView, View, no_table};
use crate::{Error, ErrorKind, Result};

/// So many rows are looked up one by one before the whole state is made, which takes as long as some hundred.
const MOST_ROWS: u32 = 64;

/// Knows a past state.
pub trait Past: Send + Sync + fmt::Debug {
    /// Returns the whole state.
    ///
    /// # Errors
    /// It can't be made any more: the journal or the image can't be read.
    fn whole(&self) -> Result<Arc<View>>;

    /// Returns the values of a row, in the order of the fields; or that making the whole state is better.
    ///
    /// # Errors
    /// The journal or the image can't be read.
    fn row(&self, table: TableNumber, id: RowId) -> Result<PastRow>;
}

/// A row of a past state.
#[derive(Clone, Debug, PartialEq)]
pub enum PastRow {
    /// There was none with that id.
    Absent,
    /// It had these values.
    There(Vec<Value>),
    /// Finding out takes longer than making the whole state.
    Unknown,
}

/// The state that a lazy view shows.
#[derive(Debug)]
pub(super) struct Lazy {
    past: Arc<dyn Past>,
    present: Arc<View>,
    whole: OnceLock<Arc<View>>,
    /// How many rows were looked up.
    rows: AtomicU32,
}

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

    /// Returns the view of the whole state, if this one is lazy.
    #[inline]
    pub(super) fn whole(&self) -> Option<&Self> {
        self.lazy.as_ref().map(|lazy| lazy.whole())
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

impl Lazy {
    fn whole(&self) -> &View {
        self.whole.get_or_init(|| self.past.whole().unwrap_or_else(|error| self.failing(error)))
    }

    /// Returns a view with the tables of the schema, of which every read is an error.
    #[cold]
    fn failing(&self, error: Error) -> Arc<View> {
        let kind = match error.kind() {
            ErrorKind::PageLost => ErrorKind::Corrupt,
            kind => kind,
        };
        let pager = Arc::new(Pager::new(Arc::new(Failing(kind, error.to_string())), 0, false));
        let view = self.present.save(&pager, &mut Nowhere);
        let view = view.and_then(|saved| View::load(&saved.metadata, &saved.roots, &pager));
        Arc::new(
            view.unwrap_or_else(|_| View {
                schema: Arc::clone(&self.present.schema),
                ..View::new()
            }),
        )
    }
}

/// Returns an error for every read.
#[derive(Debug)]
struct Failing(ErrorKind, String);

impl Source for Failing {
    fn read(&self, _: &Stored, _: &mut [u8]) -> Result<()> {
        Err(Error::new(self.0, self.1.clone()))
    }

    fn holds(&self, _: &Stored) -> Result<()> {
        Ok(())
    }
}

/// Keeps nothing.
#[derive(Debug)]
struct Nowhere;

impl Keep for Nowhere {
    fn store(&mut self, piece: Piece) -> Result<Stored> {
        let len = u32::try_from(piece.as_ref().len()).unwrap_or(u32::MAX);
        Ok(Stored { len: len.max(1), ..Stored::default() })
    }

    fn leave(&mut self, _: Stored) {}
}
