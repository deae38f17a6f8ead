//! The rows of a table as record batches.

use std::io::Read;
use std::sync::Arc;

use annals::{
    Blob, Error, ErrorKind, Field, Result, Row, RowId, Schema, Snapshot, Table, TableNumber,
};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader, UInt64Array};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{ArrowError, SchemaRef};

use crate::column::{Column, fixed, named, note_nulls, place, with_primitive};
use crate::pinned::{Place, first_part};
use crate::shape::{Layout, columns_of, data_type};

/// The most rows of a batch.
const MOST: u64 = 64 * 1024;
/// The bytes of strings after which a batch ends.
const MOST_BYTES: usize = 4 << 20;
/// The fewest consecutive rows that get a batch of their own, which needs no copy.
const FEWEST_PINNED: u64 = 512;

/// How batches are made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    pub(crate) layout: Layout,
    pub(crate) copies: bool,
}

impl Options {
    /// Batches for programs in this process: numbers are handed over without a copy where rows have consecutive ids,
    /// in batches of a page; strings are views.
    #[must_use]
    pub const fn for_memory() -> Self {
        Self { layout: Layout::Views, copies: false }
    }

    /// The same with copies of all values, in batches of up to 65,536 rows, which pin no page.
    #[must_use]
    pub const fn copied() -> Self {
        Self { layout: Layout::Views, copies: true }
    }

    /// Batches for files and for the network: copies, with strings in the form that every reader knows.
    #[must_use]
    pub const fn for_transport() -> Self {
        Self { layout: Layout::Offsets, copies: true }
    }
}

/// Record batches of one schema.
pub type Batches = Box<dyn RecordBatchReader + Send>;

/// The rows that are asked for.
enum Asked {
    /// Those with ids of a range, of which the first was not read yet.
    Ids(std::ops::Range<u64>),
    /// These, in this order.
    Rows(std::vec::IntoIter<RowId>),
}

/// The rows of a table, as record batches: `id`, then the fields.
///
/// Numbers, times, days, UUIDs and references of rows with consecutive ids are handed over as they are in the pages of
/// the snapshot, which then lives as long as the batch. All else is copied once. Memory: that of one batch.
pub struct TableBatches {
    snapshot: Snapshot,
    /// The table, with the fields that are read.
    table: Table,
    columns: SchemaRef,
    options: Options,
    asked: Asked,
    is_over: bool,
}

impl std::fmt::Debug for TableBatches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableBatches").field("table", &self.table.name).finish_non_exhaustive()
    }
}

impl TableBatches {
    /// Returns all rows of a table, in order of their ids.
    ///
    /// # Errors
    /// `NotFound`: there is no such table.
    pub fn of(snapshot: &Snapshot, table: TableNumber) -> Result<Self> {
        Self::range(snapshot, table, 0..u64::MAX, Options::default())
    }

    /// Returns the rows whose ids are in a range, in their order.
    ///
    /// # Errors
    /// `NotFound`: there is no such table.
    pub fn range(
        snapshot: &Snapshot,
        table: TableNumber,
        ids: std::ops::Range<u64>,
        options: Options,
    ) -> Result<Self> {
        Self::new(snapshot, table, Asked::Ids(ids), options)
    }

    /// Returns these rows, in this order, as an index gives them.
    ///
    /// # Errors
    /// `NotFound`: there is no such table.
    pub fn rows(
        snapshot: &Snapshot,
        table: TableNumber,
        rows: Vec<RowId>,
        options: Options,
    ) -> Result<Self> {
        Self::new(snapshot, table, Asked::Rows(rows.into_iter()), options)
    }

    fn new(
        snapshot: &Snapshot,
        table: TableNumber,
        asked: Asked,
        options: Options,
    ) -> Result<Self> {
        let rows = snapshot.table(table)?;
        let table = rows.schema().clone();
        let columns = columns_of(snapshot.schema(), &rows, &table, options.layout);
        Ok(Self { snapshot: snapshot.clone(), table, columns, options, asked, is_over: false })
    }

    /// Reads no other fields than those of this table, which is [`only`](Table::only) some of the whole one.
    ///
    /// # Errors
    /// `NotFound`: it isn't a table of the snapshot.
    pub fn of_fields(mut self, only: &Table) -> Result<Self> {
        let rows = self.snapshot.table(only.number)?;
        self.columns = columns_of(self.snapshot.schema(), &rows, only, self.options.layout);
        self.table = only.clone();
        Ok(self)
    }

    /// Returns the schema of the batches.
    #[must_use]
    pub fn columns(&self) -> SchemaRef {
        Arc::clone(&self.columns)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let snapshot = self.snapshot.clone();
        let view = snapshot.table(self.table.number)?;
        let mut filling = Filling::new(&self.table, self.options.layout);
        let fields: Vec<_> = self.table.fields.iter().map(|field| field.number).collect();
        let blobs = |blob| read_blob(&snapshot, blob);
        loop {
            if filling.is_full() {
                break;
            }
            let run = match &mut self.asked {
                Asked::Rows(rows) => match rows.next() {
                    Some(id) => {
                        let row = match fields.len() < view.schema().fields.len() {
                            true => view.range(id..=id).reading(&fields).next().transpose()?,
                            false => None,
                        };
                        filling.push(&row.map_or_else(|| view.get(id), Ok)?, &blobs)?;
                        continue;
                    }
                    None => break,
                },
                Asked::Ids(ids) => {
                    let most = (ids.end.saturating_sub(ids.start)).min(MOST - filling.count());
                    match view.dense(RowId(ids.start), most)? {
                        Some(run) if run.start < ids.end => run.start..run.end.min(ids.end),
                        _ => break,
                    }
                }
            };
            let pins = !self.options.copies && run.end - run.start >= FEWEST_PINNED;
            if pins && filling.count() > 0 {
                break;
            }
            let done = match pins {
                true => {
                    let (arrays, count) = pinned(&snapshot, &self.table, &run, &blobs)?;
                    return self.step_to(run.start + count).finish(arrays).map(Some);
                }
                false => filling.extend(&view, &run, &blobs)?,
            };
            self.step_to(done);
        }
        match filling.count() {
            0 => Ok(None),
            _ => self.finish(filling.finish()?).map(Some),
        }
    }

    /// Continues after the row before this id.
    const fn step_to(&mut self, id: u64) -> &Self {
        if let Asked::Ids(ids) = &mut self.asked {
            ids.start = id;
        }
        self
    }

    fn finish(&self, arrays: Vec<ArrayRef>) -> Result<RecordBatch> {
        RecordBatch::try_new(self.columns(), arrays).map_err(crate::from_arrow)
    }
}

impl Iterator for TableBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        crate::step(self.next_batch(), &mut self.is_over)
    }
}

impl RecordBatchReader for TableBatches {
    fn schema(&self) -> SchemaRef {
        self.columns()
    }
}

/// A batch that is being filled.
struct Filling {
    table: String,
    ids: Vec<u64>,
    columns: Vec<(Field, Column)>,
    bytes: usize,
}

impl Filling {
    fn new(table: &Table, layout: Layout) -> Self {
        let columns = table.fields.iter();
        let columns = columns.map(|field| (field.clone(), Column::new(field.ty, layout))).collect();
        Self { table: table.name.clone(), ids: Vec::new(), columns, bytes: 0 }
    }

    const fn count(&self) -> u64 {
        self.ids.len() as u64
    }

    const fn is_full(&self) -> bool {
        self.count() >= MOST || self.bytes >= MOST_BYTES
    }

    fn push(&mut self, row: &Row<'_>, blobs: crate::column::Blobs<'_>) -> Result<()> {
        self.ids.push(row.id().0);
        for (field, column) in &mut self.columns {
            let size = column.push(row.value(field.number), blobs);
            self.bytes += size.map_err(|error| named(error, &self.table, field, row.id().0))?;
        }
        Ok(())
    }

    /// Adds rows with consecutive ids; returns the first id that was not added. Long values end it early.
    fn extend(
        &mut self,
        view: &annals::TableView<'_>,
        run: &std::ops::Range<u64>,
        blobs: crate::column::Blobs<'_>,
    ) -> Result<u64> {
        // A few rows at a time, so that the bytes of a batch are bounded.
        let mut start = run.start;
        while start < run.end && !self.is_full() {
            let end = run.end.min(start + STEP);
            for (field, column) in &mut self.columns {
                let values = view.vector(field.number, RowId(start), end - start)?;
                let before = column.len();
                let size = column.extend(field.ty, &values, blobs);
                self.bytes += size.map_err(|error| {
                    named(error, &self.table, field, start + column.len() - before)
                })?;
            }
            self.ids.extend(start..end);
            start = end;
        }
        Ok(start)
    }

    fn finish(self) -> Result<Vec<ArrayRef>> {
        let ids: ArrayRef = Arc::new(UInt64Array::from(self.ids));
        let columns = self.columns.into_iter().map(|(_, column)| column.finish());
        std::iter::once(Ok(ids)).chain(columns).collect()
    }
}

/// How many rows are added at a time. Values have 1 GiB at most, and Arrow's offsets count 2 GiB.
const STEP: u64 = 1024;

/// Makes the arrays of the first rows of a run: numbers without a copy, as many as each column has in one page.
fn pinned(
    snapshot: &Snapshot,
    table: &Table,
    run: &std::ops::Range<u64>,
    blobs: crate::column::Blobs<'_>,
) -> Result<(Vec<ArrayRef>, u64)> {
    let (first, mut count) = (RowId(run.start), run.end - run.start);
    let mut parts = Vec::with_capacity(table.fields.len());
    for field in &table.fields {
        let at = Place { table: table.number, field: field.number, first, count };
        let part = with_primitive!(field.ty, Cell => first_part::<Cell>(snapshot, at)?, else None);
        count = part.as_ref().map_or(count, |part| part.count.min(count));
        parts.push(part);
    }
    let view = snapshot.table(table.number)?;
    let (mut bytes, mut texts) = (0, Vec::new());
    // Columns that are copied may end the batch earlier.
    let copied = || table.fields.iter().zip(&parts).filter(|(_, part)| part.is_none());
    for (field, _) in copied() {
        texts.push((field, Column::new(field.ty, Layout::Views)));
    }
    let mut done = 0;
    while done < count && bytes < MOST_BYTES {
        let step = STEP.min(count - done);
        for (field, column) in &mut texts {
            let values = view.vector(field.number, RowId(run.start + done), step)?;
            let size = column.extend(field.ty, &values, blobs);
            bytes +=
                size.map_err(|error| named(error, &table.name, field, run.start + column.len()))?;
        }
        done += step;
    }
    let count = if texts.is_empty() { count } else { done };
    let mut texts = texts.into_iter();
    let mut arrays: Vec<ArrayRef> =
        vec![Arc::new(UInt64Array::from_iter_values(run.start..run.start + count))];
    for (field, part) in table.fields.iter().zip(parts) {
        let Some(part) = part else {
            let column = texts.next().map(|(_, column)| column.finish()).transpose()?;
            arrays.extend(column);
            continue;
        };
        let mut nulls = NullBufferBuilder::new(place(count));
        note_nulls(&mut nulls, &view.vector(field.number, first, count)?)?;
        let width = part.buffer.len() / place(part.count);
        let cells = part.buffer.slice_with_length(0, width * place(count));
        let ty = data_type(field.ty, Layout::Views);
        arrays.push(fixed(ty, None, place(count), cells, nulls.finish())?);
    }
    debug_assert!(arrays.iter().all(|array| array.len() == place(count)), "one length");
    Ok((arrays, count))
}

/// Reads all bytes of a blob.
pub(crate) fn read_blob(snapshot: &Snapshot, blob: Blob) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = snapshot.blob(blob)?.read_to_end(&mut bytes);
    read.map_err(|error| {
        Error::new(ErrorKind::Io, format!("the bytes of a blob can't be read: {error}"))
    })?;
    Ok(bytes)
}

/// Returns the table of a schema; `NotFound` if there is none.
pub(crate) fn table_of(schema: &Schema, table: TableNumber) -> Result<&Table> {
    schema.table(table).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("there is no table number {}", table.0))
    })
}
