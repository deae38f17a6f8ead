//! Changes of the rows of a table, and the history of one row, as record batches.

use std::sync::Arc;

use annals::{
    Changes, Error, Field, History, Result, Snapshot, TableNumber, Timestamp, Txid, Type, Value,
    ValueRef, Version,
};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, Field as Column, Fields, Schema as Columns, SchemaRef};

use crate::batches::{Options, read_blob, table_of};
use crate::column::{self, Column as Filled, value_of};
use crate::shape::{Layout, column_of, data_type, named};

/// The most rows of a batch.
const MOST: usize = 8192;
/// The bytes of strings after which a batch ends.
const MOST_BYTES: usize = 4 << 20;

/// The columns before the values.
const HEAD: [(&str, Type, bool); 5] = [
    ("txid", Type::UInt64, false),
    ("time", Type::Timestamp, false),
    ("comment", Type::String, true),
    ("kind", Type::String, false),
    ("id", Type::UInt64, false),
];

/// Changes of rows as record batches: `txid`, `time`, `comment` (several are lines of one), `kind` (`insert`, `update`,
/// `delete` or `state`), `id`, and the values `old` and `new`, structs that are null where there was no row.
pub struct PastBatches {
    snapshot: Snapshot,
    table: String,
    fields: Vec<Field>,
    columns: SchemaRef,
    sides: Fields,
    layout: Layout,
    versions: Box<dyn Iterator<Item = Result<Version>> + Send>,
    is_over: bool,
}

impl std::fmt::Debug for PastBatches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PastBatches").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl PastBatches {
    /// Returns the changes of a table's rows, of these transactions.
    ///
    /// # Errors
    /// `NotFound`: there is no such table.
    pub fn changes(
        snapshot: &Snapshot,
        table: TableNumber,
        changes: Changes,
        options: Options,
    ) -> Result<Self> {
        let versions = changes.flat_map(move |changed| {
            let (mut changed, error) = match changed {
                Ok(changed) => (Some(changed), None),
                Err(error) => (None, Some(Err(error))),
            };
            let rows = changed.as_mut().map(|changed| std::mem::take(&mut changed.rows));
            let rows = rows.unwrap_or_default().into_iter().filter(move |row| row.table == table);
            let of = changed.map(|changed| (changed.txid, changed.time, changed.comments));
            let (txid, time, comments) = of.unwrap_or((Txid(0), Timestamp(0), Vec::new()));
            let versions = rows.map(move |change| {
                let comments = comments.clone();
                Ok(Version { txid, time, comments, change, is_beginning: false })
            });
            versions.chain(error)
        });
        Self::new(snapshot, table, Box::new(versions), options)
    }

    /// Returns the versions of a row, the oldest first.
    ///
    /// # Errors
    /// `NotFound`: there is no such table.
    pub fn history(
        snapshot: &Snapshot,
        table: TableNumber,
        history: History,
        options: Options,
    ) -> Result<Self> {
        Self::new(snapshot, table, Box::new(history), options)
    }

    fn new(
        snapshot: &Snapshot,
        number: TableNumber,
        versions: Box<dyn Iterator<Item = Result<Version>> + Send>,
        options: Options,
    ) -> Result<Self> {
        let layout = options.layout;
        let table = table_of(snapshot.schema(), number)?;
        let fields = table.fields.iter();
        let sides: Fields =
            fields.map(|field| column_of(snapshot.schema(), table, field, layout)).collect();
        let mut columns: Vec<Column> = HEAD
            .iter()
            .map(|&(name, ty, nullable)| Column::new(name, data_type(ty, layout), nullable))
            .collect();
        for side in ["old", "new"] {
            columns.push(Column::new(side, DataType::Struct(sides.clone()), true));
        }
        let columns = Arc::new(Columns::new_with_metadata(columns, named(table)));
        let (snapshot, fields) = (snapshot.clone(), table.fields.clone());
        let table = table.name.clone();
        Ok(Self { snapshot, table, fields, columns, sides, layout, versions, is_over: false })
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let mut head = HEAD.map(|(_, ty, _)| Filled::new(ty, self.layout));
        let mut sides = [(); 2].map(|()| Side::new(&self.fields, self.layout));
        let snapshot = self.snapshot.clone();
        let blobs = |blob| read_blob(&snapshot, blob);
        let (mut count, mut bytes) = (0, 0);
        while count < MOST && bytes < MOST_BYTES {
            let Some(version) = self.versions.next().transpose()? else { break };
            let comments = (!version.comments.is_empty()).then(|| version.comments.join("\n"));
            let values = [
                ValueRef::UInt64(version.txid.0),
                ValueRef::Timestamp(version.time.0),
                comments.as_deref().map_or(ValueRef::Null, ValueRef::String),
                ValueRef::String(version.kind().name()),
                ValueRef::UInt64(version.change.id.0),
            ];
            for (column, value) in head.iter_mut().zip(values) {
                bytes += column.push(value, &blobs)?;
            }
            let both = [&version.change.before, &version.change.after];
            for (side, values) in sides.iter_mut().zip(both) {
                let size = side.push(&self.fields, values.as_deref(), &blobs);
                bytes += size.map_err(|(error, field)| {
                    column::named(error, &self.table, field, version.change.id.0)
                })?;
            }
            count += 1;
        }
        if count == 0 {
            return Ok(None);
        }
        let mut arrays = head.map(Filled::finish).into_iter().collect::<Result<Vec<_>>>()?;
        for side in sides {
            arrays.push(side.finish(&self.sides, count)?);
        }
        RecordBatch::try_new(Arc::clone(&self.columns), arrays).map(Some).map_err(crate::from_arrow)
    }
}

/// The values before or after, as a struct.
struct Side {
    columns: Vec<Filled>,
    is_there: Vec<bool>,
}

impl Side {
    fn new(fields: &[Field], layout: Layout) -> Self {
        let columns = fields.iter().map(|field| Filled::new(field.ty, layout)).collect();
        Self { columns, is_there: Vec::new() }
    }

    /// Adds the values; an error has the field.
    fn push<'f>(
        &mut self,
        fields: &'f [Field],
        values: Option<&[Value]>,
        blobs: column::Blobs<'_>,
    ) -> Result<usize, (Error, &'f Field)> {
        self.is_there.push(values.is_some());
        let mut bytes = 0;
        for (field, column) in fields.iter().zip(&mut self.columns) {
            let value = values.map_or(ValueRef::Null, |values| value_of(values, field.number));
            bytes += column.push(value, blobs).map_err(|error| (error, field))?;
        }
        Ok(bytes)
    }

    fn finish(self, fields: &Fields, len: usize) -> Result<ArrayRef> {
        let nulls = Some(NullBuffer::from(self.is_there));
        if fields.is_empty() {
            return Ok(Arc::new(StructArray::new_empty_fields(len, nulls)));
        }
        let arrays = self.columns.into_iter().map(Filled::finish).collect::<Result<_>>()?;
        let made = StructArray::try_new(fields.clone(), arrays, nulls);
        made.map(|array| Arc::new(array) as ArrayRef).map_err(crate::from_arrow)
    }
}

impl Iterator for PastBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        crate::step(self.next_batch(), &mut self.is_over)
    }
}

impl RecordBatchReader for PastBatches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.columns)
    }
}
