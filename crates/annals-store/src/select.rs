//! Selected fields of rows: no others are read. Those that an index has in its keys come from there, and the others
//! from their columns: in the order of slots, many rows together.

use annals_event::width;
use annals_schema::{FieldNumber, RowId, ValueRef};

use crate::ahead::{End, Limit, each, in_order, len_of, slots_of};
use crate::columns::column::reader::ColumnReader;
use crate::columns::copied::CopiedColumn;
use crate::index::decode::{KeyField, has_values};
use crate::index::key;
use crate::lookup::{IndexRows, IndexView};
use crate::row_walk::Rows;
use crate::rows::RowIter;
use crate::view::TableView;
use crate::{Error, ErrorKind, Result};
use annals_storage::debug::brief;

/// How many rows in the order of an index are read together at first.
const FIRST: usize = 16;

/// The most fields that are selected at once.
const MOST: usize = 64;

/// Fields of rows, in an order of these.
///
/// Each row's values are passed to a closure: they are borrowed from pages that needn't stay in memory. The first
/// error is the last item.
pub struct Selected<'a> {
    table: TableView<'a>,
    source: Source<'a>,
    len: usize,
    is_done: bool,
}

brief!(Selected<'_>, "Selected", "table": |it| it.table, "fields": |it| it.len);

enum Source<'a> {
    /// In the order of ids.
    Rows(RowIter<'a>, Vec<ColumnReader<'a>>, bool),
    /// All of the fields are in the keys of an index.
    Keys(IndexRows<'a>, KeyFields, bool),
    /// In the order of an index.
    Index(Box<Batches<'a>>, bool),
    /// Rows of a past state that are made one by one.
    Past(Rows<'a>, Vec<FieldNumber>, bool),
    /// Only an error.
    Failed(Option<Error>),
}

/// The fields of a key up to the last one that is asked for, each with its place among what is asked.
type KeyFields = Vec<(KeyField, Option<usize>)>;

impl<'a> Rows<'a> {
    /// Returns some fields of the rows that neither end has given: only these are read. That the table hasn't such
    /// fields, or that they are more than 64, is the only item.
    #[must_use]
    pub fn select(self, fields: &[FieldNumber]) -> Selected<'a> {
        let table = self.table;
        let source = match readers(table, fields) {
            Err(error) => Source::Failed(Some(error)),
            Ok(_) if table.view.lazy.is_some() => Source::Past(self, fields.to_vec(), false),
            Ok(readers) => Source::Rows(self.into_rest(), readers, false),
        };
        Selected { table, source, len: fields.len(), is_done: false }
    }
}

impl<'a> IndexRows<'a> {
    /// Returns some fields of the rows that neither end has given, in the order of the index: only these are read,
    /// and no row if all of them are in the index. A float is read from its row, as is a string with a collation.
    /// That the table hasn't such fields, or that they are more than 64, is the only item.
    #[must_use]
    pub fn select(mut self, fields: &[FieldNumber]) -> Selected<'a> {
        let table = self.index.table;
        let readers = self.forget_ahead().and_then(|()| readers(table, fields));
        let source = match readers {
            Ok(readers) => {
                let keys = key_fields(self.index, fields);
                self.source(readers, keys)
            }
            Err(error) => Source::Failed(Some(error)),
        };
        Selected { table, source, len: fields.len(), is_done: false }
    }

    fn source(self, readers: Vec<ColumnReader<'a>>, keys: KeyFields) -> Source<'a> {
        let is_in_key = |place: usize| keys.iter().any(|(_, asked)| *asked == Some(place));
        if (0..readers.len()).all(is_in_key) {
            return Source::Keys(self, keys, false);
        }
        let parts = readers.into_iter().enumerate();
        let parts = parts.map(|(place, reader)| Part {
            copied: CopiedColumn::new(reader.column().ty(), 0),
            reader: (!is_in_key(place)).then_some(reader),
        });
        let parts = parts.collect();
        Source::Index(Box::new(Batches::new(self, keys, parts)), false)
    }
}

/// Begins to read the columns of fields.
fn readers<'a>(table: TableView<'a>, fields: &[FieldNumber]) -> Result<Vec<ColumnReader<'a>>> {
    if fields.len() > MOST {
        let len = fields.len();
        let what = format!("{len} fields can't be selected at once, at most {MOST}: read the rows");
        return Err(Error::invalid(what));
    }
    let reader = |&field| match table.data.column(field) {
        Some(column) => Ok(column.reader()),
        None => {
            let what = format!("table `{}` has no field number {}", table.schema().name, field.0);
            Err(Error::new(ErrorKind::NotFound, what))
        }
    };
    fields.iter().map(reader).collect()
}

/// Returns how to read from the keys of an index what they have of some fields.
fn key_fields(index: IndexView<'_>, asked: &[FieldNumber]) -> KeyFields {
    let data = index.table.data;
    let columns = index.data.fields.iter().map_while(|&place| data.columns.get(place)).enumerate();
    let readable =
        columns.take_while(|(at, column)| has_values(column.ty()) && !index.data.is_collated(*at));
    let mut fields: KeyFields = readable
        .map(|(at, column)| {
            let is_descending = index.data.is_descending(at);
            let field = KeyField::new(column.ty(), column.is_nullable(), is_descending);
            (field, asked.iter().position(|&asked| asked == column.field()))
        })
        .collect();
    let needed = fields.iter().rposition(|(_, asked)| asked.is_some()).map_or(0, |last| last + 1);
    fields.truncate(needed);
    fields
}

impl Selected<'_> {
    /// Goes from the end to the beginning instead. It must come before the first row.
    #[must_use]
    pub fn rev(mut self) -> Self {
        match &mut self.source {
            Source::Rows(.., is_back)
            | Source::Keys(.., is_back)
            | Source::Index(_, is_back)
            | Source::Past(.., is_back) => *is_back = !*is_back,
            Source::Failed(_) => {}
        }
        self
    }

    /// Passes the next row's id, and its values in the order in which the fields were asked for, to `take`. An error
    /// is the last item.
    ///
    /// Cost: a field in the key of the index some 10 ns; each other one a part of the load of its page, which is
    /// asked for once for all rows that are read together.
    #[inline]
    pub fn next_with<T>(
        &mut self,
        take: impl FnOnce(RowId, &[ValueRef<'_>]) -> T,
    ) -> Option<Result<T>> {
        if self.is_done {
            return None;
        }
        let next = match self.len {
            0..=2 => self.next_of::<2, T>(take),
            3..=4 => self.next_of::<4, T>(take),
            5..=16 => self.next_of::<16, T>(take),
            _ => self.next_of::<MOST, T>(take),
        };
        self.is_done = !matches!(next, Ok(Some(_)));
        next.transpose()
    }

    fn next_of<const N: usize, T>(
        &mut self,
        take: impl FnOnce(RowId, &[ValueRef<'_>]) -> T,
    ) -> Result<Option<T>> {
        let len = self.len;
        let mut values = [ValueRef::Null; N];
        let values = values.get_mut(..len).unwrap_or_default();
        match &mut self.source {
            Source::Rows(rows, columns, is_back) => {
                let next = if *is_back { rows.next_back() } else { rows.next() };
                let Some((id, slot)) = next.transpose()? else { return Ok(None) };
                for (value, column) in values.iter_mut().zip(columns) {
                    *value = column.get(slot)?;
                }
                Ok(Some(take(id, values)))
            }
            Source::Keys(rows, fields, is_back) => {
                let take = |entry: &[u8]| {
                    let (mut rest, mut values) = (entry, [ValueRef::Null; N]);
                    for (field, asked) in fields {
                        let value = field.take(&mut rest).ok_or_else(no_key)?;
                        if let Some(place) = asked.and_then(|place| values.get_mut(place)) {
                            *place = value;
                        }
                    }
                    Ok(take(key::id_of(entry), values.get(..len).unwrap_or_default()))
                };
                rows.next_entry(end(*is_back), take).transpose()?.transpose()
            }
            Source::Index(batches, is_back) => {
                let Some((id, at)) = batches.next(*is_back)? else { return Ok(None) };
                for (value, part) in values.iter_mut().zip(&batches.parts) {
                    *value = part.copied.get(if part.reader.is_some() { at.1 } else { at.0 });
                }
                Ok(Some(take(id, values)))
            }
            Source::Past(rows, fields, is_back) => {
                let next = if *is_back { rows.next_back() } else { rows.next() };
                let Some(row) = next.transpose()? else { return Ok(None) };
                for (value, &field) in values.iter_mut().zip(&*fields) {
                    *value = row.value(field);
                }
                Ok(Some(take(row.id(), values)))
            }
            Source::Failed(error) => error.take().map_or(Ok(None), Err),
        }
    }
}

/// Rows in the order of an index that are read together.
struct Batches<'a> {
    rows: IndexRows<'a>,
    keys: KeyFields,
    parts: Vec<Part<'a>>,
    limit: Limit,
    /// The rows of a batch, and how many of them were given.
    ids: Vec<RowId>,
    slots: Vec<usize>,
    begin: usize,
    /// Of which of them the columns were read: all of them, unless their strings take too much memory.
    read: std::ops::Range<usize>,
    /// What ended the batch.
    error: Option<Error>,
}

/// The values of one field in a batch.
struct Part<'a> {
    /// None if they are from keys.
    reader: Option<ColumnReader<'a>>,
    copied: CopiedColumn,
}

impl<'a> Batches<'a> {
    fn new(rows: IndexRows<'a>, keys: KeyFields, parts: Vec<Part<'a>>) -> Self {
        let each = |part: &Part<'_>| width(part.copied.ty()).unwrap_or(32);
        let row = 2 * size_of::<usize>() + parts.iter().map(each).sum::<usize>();
        let limit = Limit::scattered(rows.index.table.data.rows.budget(), row);
        let (ids, slots, begin, read) = Default::default();
        Self { rows, keys, parts, limit, ids, slots, begin, read, error: None }
    }

    /// Returns the next row, and its places among those of the batch and those whose columns were read.
    #[inline]
    fn next(&mut self, is_back: bool) -> Result<Option<(RowId, (usize, usize))>> {
        if self.begin == self.read.end && !self.read_more(end(is_back))? {
            return Ok(None);
        }
        let at = self.begin;
        self.begin += 1;
        Ok(self.ids.get(at).map(|&id| (id, (at, at - self.read.start))))
    }

    #[inline(never)] // so that giving a row stays short
    fn read_more(&mut self, end: End) -> Result<bool> {
        if self.begin == self.ids.len() {
            self.take_batch(end)?;
        }
        if self.ids.is_empty() { Ok(false) } else { self.read_columns().map(|()| true) }
    }

    /// Takes the next entries of the index, four times as many as before.
    fn take_batch(&mut self, end: End) -> Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let len = self.ids.len().saturating_mul(4).clamp(FIRST, self.limit.rows.max(FIRST));
        self.ids.clear();
        (self.begin, self.read) = (0, 0..0);
        let Self { rows, keys, parts, ids, .. } = self;
        for part in parts.iter_mut().filter(|part| part.reader.is_none()) {
            part.copied = CopiedColumn::new(part.copied.ty(), len);
        }
        while ids.len() < len {
            let take = |entry: &[u8]| {
                let mut rest = entry;
                for (field, asked) in &mut *keys {
                    let value = field.take(&mut rest).ok_or_else(no_key)?;
                    if let Some(part) = asked.and_then(|place| parts.get_mut(place)) {
                        part.copied.put(ids.len(), value);
                    }
                }
                Ok(key::id_of(entry))
            };
            match rows.next_entry(end, take) {
                Some(Ok(Ok(id))) => ids.push(id),
                None => break,
                Some(Ok(Err(error)) | Err(error)) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        self.slots = slots_of(self.rows.index.table.data, &self.ids)?;
        match self.error.take_if(|_| self.ids.is_empty()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Reads the columns of the rows of the batch; of fewer, if their strings take too much memory.
    fn read_columns(&mut self) -> Result<()> {
        let left = self.slots.len() - self.begin;
        let mut len = if self.read.is_empty() { left } else { left.min(2 * self.read.len()) };
        loop {
            let slots = self.slots.get(self.begin..self.begin + len).unwrap_or_default();
            let order = in_order(slots);
            let (mut bytes, mut fits) = (0, true);
            for Part { reader, copied } in &mut self.parts {
                let Some(reader) = reader.as_mut().filter(|_| fits) else { continue };
                *copied = CopiedColumn::new(copied.ty(), len);
                fits = each(reader, slots, &order, |at, value| {
                    copied.put(at, value);
                    bytes += len_of(value);
                    bytes <= self.limit.bytes || len == 1
                })?;
            }
            if fits {
                self.read = self.begin..self.begin + len;
                return Ok(());
            }
            len = len.div_ceil(2);
        }
    }
}

const fn end(is_back: bool) -> End {
    if is_back { End::Back } else { End::Front }
}

#[cold]
fn no_key() -> Error {
    Error::ill_written("an entry of an index is no key of its fields")
}

#[cfg(test)]
mod tests;
