//! Rows that are loaded ahead. Where pages of a view don't stay in memory, the rows that a walk gives next are copied
//! together, column by column and in the order of their slots. So each page is asked for once for many rows, though
//! rows in the order of an index are scattered over all pages.
//!
//! The first row is loaded alone, and each time four times as many as before: a walk that ends early reads little.

use std::sync::Arc;

use annals_event::width;
use annals_schema::{FieldNumber, RowId, Value, ValueRef};

use crate::columns::column::Column;
use crate::columns::column::reader::ColumnReader;
use crate::columns::copied::CopiedColumn;
use crate::row::Row;
use crate::table::Table;
use crate::view::TableView;
use crate::{Error, Result};

/// How many rows share their memory: one that a program keeps holds so many.
const SHARED: usize = 64;

/// The values of some rows of a table.
#[derive(Debug)]
pub(super) enum CopiedRows {
    /// By the places of the table's columns.
    Columns(Box<[CopiedColumn]>),
    /// Those of one row.
    Values(Box<[Value]>),
}

impl CopiedRows {
    /// Copies the values of one slot.
    ///
    /// # Errors
    /// They can't be loaded.
    pub(super) fn of_slot(table: &Table, slot: usize) -> Result<Self> {
        let copied = table.columns.iter().map(|column| {
            let mut copied = CopiedColumn::new(column.ty(), 1);
            copied.put(0, column.reader().get(slot)?);
            Ok(copied)
        });
        copied.collect::<Result<_>>().map(Self::Columns)
    }

    /// Returns a value of a row.
    #[inline]
    pub(super) fn value(&self, place: usize, at: usize) -> ValueRef<'_> {
        let value = match self {
            Self::Columns(columns) => columns.get(place).map(|column| column.get(at)),
            Self::Values(values) => values.get(place).map(Value::as_ref),
        };
        value.unwrap_or(ValueRef::Null)
    }
}

/// The fields that a walk's rows are read for: all of them, or only some.
#[derive(Clone, Debug, Default)]
pub(super) struct Read(Option<Arc<[FieldNumber]>>);

impl Read {
    /// Only these fields.
    pub(super) fn only(fields: &[FieldNumber]) -> Self {
        Self(Some(fields.into()))
    }

    /// True if rows needn't have all of their values.
    #[inline]
    pub(super) const fn is_partial(&self) -> bool {
        self.0.is_some()
    }

    fn has(&self, column: &Column) -> bool {
        self.0.as_ref().is_none_or(|fields| fields.contains(&column.field()))
    }
}

/// How many rows are loaded together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) rows: usize,
    /// The most bytes of strings, and so of all values: those of other types are counted with the rows.
    pub(super) bytes: usize,
}

impl Limit {
    /// For rows in the order of their ids: the next pages are those of the next rows.
    pub(super) const IN_ORDER: Self = Self { rows: 1024, bytes: 1 << 20 };

    /// For rows in any order, of which each is `width` bytes wide, with a budget for all memory: the more are loaded
    /// together, the more of them are in one page.
    pub(super) fn scattered(budget: usize, width: usize) -> Self {
        let bytes = (budget / 16).clamp(1 << 20, 32 << 20);
        Self { rows: (bytes / width.max(1)).min(u32::MAX as usize), bytes }
    }
}

/// Rows that a walk gives next, in its order.
#[derive(Debug, Default)]
struct Ahead {
    rows: Vec<RowId>,
    /// How many of them were given.
    begin: usize,
    /// The values of the rows, [`SHARED`] together; none if each row must be loaded by itself.
    copied: Vec<Arc<CopiedRows>>,
    /// How many rows were loaded together.
    loaded: usize,
    /// What the walk met after the rows.
    error: Option<Error>,
}

impl Clone for Ahead {
    fn clone(&self) -> Self {
        let (rows, copied) = (self.rows.clone(), self.copied.clone());
        let error = self.error.as_ref().map(Error::again);
        Self { rows, begin: self.begin, copied, loaded: self.loaded, error }
    }
}

impl Ahead {
    /// Takes the rows that are loaded together next.
    fn take(&mut self, rows: impl Iterator<Item = Result<RowId>>, limit: Limit) {
        self.loaded = self.loaded.saturating_mul(4).clamp(1, limit.rows.max(1));
        (self.begin, self.copied) = Default::default();
        self.rows.clear();
        for row in rows.take(self.loaded) {
            match row {
                Ok(row) => self.rows.push(row),
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
    }

    /// Copies the values of the rows, which are in these slots. What can't be loaded together is loaded again one by
    /// one, and says then what is wrong with it.
    fn copy(&mut self, table: &Table, read: &Read, slots: &[usize], limit: Limit) {
        match copy(table, read, slots, limit.bytes) {
            Ok(Some(copied)) => self.copied = copied,
            _ => self.loaded = 0,
        }
    }

    /// Returns how many rows are left.
    fn len(&self) -> usize {
        self.rows.len() - self.begin + usize::from(self.error.is_some())
    }

    /// Gives the first row.
    fn next<'a>(&mut self, table: TableView<'a>) -> Option<Result<Row<'a>>> {
        if self.begin == self.rows.len() {
            return self.error.take().map(Err);
        }
        self.begin += 1;
        self.row(table, self.begin - 1)
    }

    /// Gives the last row: a walk from the other end has met this one.
    fn next_back<'a>(&mut self, table: TableView<'a>) -> Option<Result<Row<'a>>> {
        if let Some(error) = self.error.take() {
            return Some(Err(error));
        }
        let last = self.rows.len().checked_sub(1).filter(|&last| last >= self.begin)?;
        let row = self.row(table, last);
        self.rows.truncate(last);
        row
    }

    /// Leaves out up to `n` rows at the front, and returns how many it were.
    fn skip(&mut self, n: usize) -> usize {
        let skipped = n.min(self.rows.len() - self.begin);
        self.begin += skipped;
        skipped
    }

    /// Leaves out up to `n` rows at the back.
    fn skip_back(&mut self, n: usize) {
        let end = self.rows.len().saturating_sub(n);
        self.rows.truncate(end.max(self.begin));
    }

    fn row<'a>(&self, table: TableView<'a>, at: usize) -> Option<Result<Row<'a>>> {
        let &id = self.rows.get(at)?;
        Some(match self.copied.get(at / SHARED) {
            Some(copied) => Ok(Row::copied(table, id, (Arc::clone(copied), at % SHARED))),
            None => Row::get(table, id),
        })
    }
}

/// The rows that were loaded ahead at both ends of a walk.
#[derive(Clone, Debug, Default)]
pub(super) struct LoadedAhead(Option<Box<[Ahead; 2]>>);

/// An end of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Front,
    Back,
}

impl End {
    const fn other(self) -> Self {
        match self {
            Self::Front => Self::Back,
            Self::Back => Self::Front,
        }
    }
}

impl LoadedAhead {
    /// True if nothing was loaded ahead yet.
    #[inline]
    pub(super) const fn is_unused(&self) -> bool {
        self.0.is_none()
    }

    /// Returns how many rows are left.
    pub(super) fn len(&self) -> usize {
        self.0.iter().flat_map(|ends| ends.iter()).map(Ahead::len).sum()
    }

    /// Gives the next row of an end.
    #[inline(never)] // so that walks over what stays in memory stay short
    pub(super) fn next<'a>(&mut self, end: End, table: TableView<'a>) -> Option<Result<Row<'a>>> {
        self.end(end).next(table)
    }

    /// Gives a row of the other end, when there are no others between.
    #[cold]
    pub(super) fn rest<'a>(&mut self, end: End, table: TableView<'a>) -> Option<Result<Row<'a>>> {
        let other = if self.is_unused() { return None } else { self.end(end.other()) };
        other.next_back(table)
    }

    /// Gives the id of the next row of an end.
    pub(super) fn next_id(&mut self, end: End) -> Option<Result<RowId>> {
        let ahead = self.end(end);
        let id = ahead.rows.get(ahead.begin).copied();
        ahead.begin += usize::from(id.is_some());
        id.map(Ok).or_else(|| ahead.error.take().map(Err))
    }

    /// Gives the id of a row of the other end, when there are no others between.
    #[cold]
    pub(super) fn rest_id(&mut self, end: End) -> Option<Result<RowId>> {
        let other = if self.is_unused() { return None } else { self.end(end.other()) };
        let error = other.error.take().map(Err);
        error.or_else(|| {
            let id = other.rows.get(other.begin..)?.last().copied();
            other.skip_back(1);
            id.map(Ok)
        })
    }

    /// Returns the first row that is left at each end; nothing if nothing was loaded ahead.
    pub(super) fn bounds(&self) -> Option<(Option<RowId>, Option<RowId>)> {
        let [front, back] = &**self.0.as_ref()?;
        let first = |ahead: &Ahead| ahead.rows.get(ahead.begin).copied();
        Some((first(front), first(back)))
    }

    /// Forgets all rows that are left; returns how many it were at each end.
    pub(super) fn forget(&mut self) -> (usize, usize) {
        let left = |ahead: &Ahead| ahead.rows.len() - ahead.begin;
        let ends = self.0.take();
        ends.map_or((0, 0), |ends| (left(&ends[0]), left(&ends[1])))
    }

    /// Leaves out up to `n` rows of an end, and returns how many it were.
    pub(super) fn skip(&mut self, end: End, n: usize) -> usize {
        self.end(end).skip(n)
    }

    /// Leaves out up to `n` rows of the other end, when there are no others between.
    pub(super) fn skip_at_other(&mut self, end: End, n: usize) {
        self.end(end.other()).skip_back(n);
    }

    /// True if all was given that an end has loaded.
    pub(super) fn is_at_end(&mut self, end: End) -> bool {
        self.end(end).len() == 0
    }

    fn end(&mut self, end: End) -> &mut Ahead {
        let [front, back] = &mut **self.0.get_or_insert_default();
        if end == End::Front { front } else { back }
    }

    /// Loads rows that are given in the order of their slots.
    #[cold]
    pub(super) fn load_in_order(
        &mut self,
        end: End,
        table: &Table,
        read: &Read,
        rows: impl Iterator<Item = Result<(RowId, usize)>>,
    ) {
        let mut slots = Vec::new();
        let rows = rows.map(|row| {
            let (id, slot) = row?;
            slots.push(slot);
            Ok(id)
        });
        let ahead = self.end(end);
        ahead.take(rows, Limit::IN_ORDER);
        ahead.copy(table, read, &slots, Limit::IN_ORDER);
    }

    /// Loads rows that are given in any order.
    #[cold]
    pub(super) fn load_scattered(
        &mut self,
        end: End,
        table: &Table,
        read: &Read,
        rows: impl Iterator<Item = Result<RowId>>,
    ) {
        let columns = table.columns.iter().filter(|column| read.has(column));
        let width: usize = columns.map(|column| width(column.ty()).unwrap_or(32)).sum();
        let limit = Limit::scattered(table.rows.budget(), width);
        let ahead = self.end(end);
        ahead.take(rows, limit);
        match slots_of(table, &ahead.rows) {
            Ok(slots) => ahead.copy(table, read, &slots, limit),
            Err(_) => ahead.loaded = 0,
        }
    }
}

/// Finds the slots of rows.
///
/// # Errors
/// A row doesn't exist, or where it is can't be loaded.
pub(super) fn slots_of(table: &Table, rows: &[RowId]) -> Result<Vec<usize>> {
    let mut slots = vec![0; rows.len()];
    let mut finder = table.rows.finder();
    for at in in_order(rows) {
        let at = at as usize;
        if let (Some(id), Some(slot)) = (rows.get(at), slots.get_mut(at)) {
            *slot = finder.find(id.0)?.ok_or_else(no_entry)?;
        }
    }
    Ok(slots)
}

/// Says that a row that must exist doesn't; the caller looks for it again by itself, and says more.
#[cold]
fn no_entry() -> Error {
    Error::ill_written("an index has an entry without a row")
}

/// Copies the values of slots, [`SHARED`] of them together; nothing if their strings have more bytes than `most`.
fn copy(
    table: &Table,
    read: &Read,
    slots: &[usize],
    most: usize,
) -> Result<Option<Vec<Arc<CopiedRows>>>> {
    let order = in_order(slots);
    let parts = || slots.chunks(SHARED).map(<[usize]>::len);
    let mut copied: Vec<Vec<CopiedColumn>> = parts().map(|_| Vec::new()).collect();
    let mut bytes = 0;
    for column in &table.columns {
        let is_read = read.has(column);
        for (copied, len) in copied.iter_mut().zip(parts()) {
            copied.push(CopiedColumn::new(column.ty(), if is_read { len } else { 0 }));
        }
        if !is_read {
            continue;
        }
        let fits = each(&mut column.reader(), slots, &order, |at, value| {
            if let Some(column) = copied.get_mut(at / SHARED).and_then(|part| part.last_mut()) {
                column.put(at % SHARED, value);
            }
            bytes += len_of(value);
            bytes <= most || slots.len() == 1
        });
        if !fits? {
            return Ok(None);
        }
    }
    let shared = |columns: Vec<_>| Arc::new(CopiedRows::Columns(columns.into()));
    Ok(Some(copied.into_iter().map(shared).collect()))
}

/// Returns the places of slots, or of rows, in their order.
pub(super) fn in_order<T: Ord>(slots: &[T]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..).take(slots.len()).collect();
    if !slots.is_sorted() {
        order.sort_unstable_by_key(|&at| slots.get(at as usize));
    }
    order
}

/// Passes the values of a column in some slots to `take`, with the places of the slots, in an order of these. Ends,
/// with false, where `take` says so.
///
/// # Errors
/// A value can't be loaded.
pub(super) fn each(
    reader: &mut ColumnReader<'_>,
    slots: &[usize],
    order: &[u32],
    mut take: impl FnMut(usize, ValueRef<'_>) -> bool,
) -> Result<bool> {
    for &at in order {
        let Some(&slot) = slots.get(at as usize) else { continue };
        if !take(at as usize, reader.get(slot)?) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns how many bytes a value takes besides its cell.
#[inline]
pub(super) const fn len_of(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::String(text) => text.len(),
        ValueRef::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}
