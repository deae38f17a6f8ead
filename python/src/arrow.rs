//! Arrow's interface for Python: streams of record batches in capsules.
#![allow(unsafe_code, reason = "a capsule is an address, and Arrow's C interface is made of them")]

use std::sync::Arc;

use annals::{FieldNumber, Schema, Snapshot, Table, TableNumber, Txid, Type};
use annals_arrow::{Incoming, Options, PastBatches};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, FieldRef, Schema as Columns, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyDict};

use crate::errors::{OrRaise as _, invalid};
use crate::values::whole_id;
use crate::wait::blocking;

/// Returns a stream of batches as a capsule. Who takes it owns it; if nobody does, the capsule's destructor drops it.
pub(crate) fn stream<'py>(
    py: Python<'py>,
    batches: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'py, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(Box::new(batches));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// Returns the schema of batches as a capsule.
pub(crate) fn schema<'py>(
    py: Python<'py>,
    batches: &impl RecordBatchReader,
) -> PyResult<Bound<'py, PyCapsule>> {
    let made = FFI_ArrowSchema::try_from(batches.schema().as_ref());
    let made = made.map_err(annals_arrow::from_arrow).or_raise()?;
    PyCapsule::new_with_value(py, made, c"arrow_schema")
}

/// The rows of a DataFrame, or of another Arrow stream.
pub(crate) struct Frame {
    stream: ArrowArrayStreamReader,
    columns: SchemaRef,
    /// The places of these columns, if the stream has others, too.
    kept: Option<Vec<usize>>,
}

impl Frame {
    /// Takes the stream of an object; `None` if it has none.
    pub(crate) fn of(data: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if !data.hasattr("__arrow_c_stream__")? {
            return Ok(None);
        }
        let capsule = with_types(data)?.call_method0("__arrow_c_stream__")?;
        let capsule = capsule
            .cast::<PyCapsule>()
            .map_err(|_| invalid("__arrow_c_stream__ returned no capsule"))?;
        let address = capsule
            .pointer_checked(Some(c"arrow_array_stream"))
            .map_err(|_| invalid("__arrow_c_stream__ returned a capsule of something else"))?;
        // SAFETY: a capsule of that name holds an initialised stream, which is moved out of it: Arrow's interface for
        // Python says so. What is left in its place is a released one.
        let reader = unsafe { ArrowArrayStreamReader::from_raw(address.cast().as_ptr()) };
        let stream = reader.map_err(|error| {
            let kind = data.get_type();
            let kind = kind.name().map_or_else(|_| "it".to_owned(), |name| name.to_string());
            invalid(format!(
                "{kind}: the Arrow stream has no columns that can be read: of a Series, .to_frame() has one, and \
                 .to_list() the values ({error})"
            ))
        })?;
        let all = stream.schema();
        // An index without a name, which pandas adds to a frame whose rows were chosen.
        let is_column = |place: &usize| !all.field(*place).name().starts_with("__index_level_");
        let kept: Vec<usize> = (0..all.fields().len()).filter(is_column).collect();
        let kept = (kept.len() < all.fields().len()).then_some(kept);
        let columns = match &kept {
            None => all,
            Some(kept) => Arc::new(all.project(kept).map_err(annals_arrow::from_arrow).or_raise()?),
        };
        Ok(Some(Self { stream, columns, kept }))
    }

    /// Calls a column `id` as that field is called beside the ids of the rows, if the table has such a field, and the column is
    /// alone.
    pub(crate) fn name_field_id(&mut self, table: &Table) {
        let Some(whole) = whole_id(table) else { return };
        let (Ok(place), Err(_)) = (self.columns.index_of("id"), self.columns.index_of(&whole))
        else {
            return;
        };
        let mut columns: Vec<FieldRef> = self.columns.fields().iter().cloned().collect();
        if let Some(column) = columns.get_mut(place) {
            *column = Arc::new(column.as_ref().clone().with_name(whole));
        }
        self.columns = Arc::new(Columns::new(columns));
    }

    /// Returns the way from the columns to the fields of a table.
    pub(crate) fn way(&self, schema: &Schema, table: &Table) -> PyResult<Incoming> {
        let way = Incoming::new(schema, table.number, &self.columns).or_raise()?;
        let name = &table.name;
        for column in self.columns.fields() {
            let field = table.field_named(column.name()).map(|field| field.ty);
            if let (Some(Type::Timestamp), DataType::Timestamp(_, None)) =
                (field, column.data_type())
            {
                return Err(invalid(format!(
                    "table `{name}`, field `{}`: the times of the frame have no time zone; polars: \
                     .dt.replace_time_zone(\"UTC\"), pandas: .dt.tz_localize(\"UTC\")",
                    column.name()
                )));
            }
        }
        Ok(way)
    }

    /// Returns the fields of a table that the frame has.
    pub(crate) fn present(&self, table: &Table) -> Vec<FieldNumber> {
        let has = |name: &str| self.columns.index_of(name).is_ok();
        let whole = whole_id(table).unwrap_or_default();
        let fields = table.fields.iter().filter(|field| match field.name.as_str() {
            "id" => has(&whole),
            name => has(name),
        });
        fields.map(|field| field.number).collect()
    }

    /// Returns the next rows. Others may make texts that aren't UTF-8, and places in dictionaries that aren't there.
    pub(crate) fn next(&mut self) -> Option<annals::Result<RecordBatch>> {
        // One without rows may be a part of longer columns, whose first place isn't in it: that would look wrong.
        let is_empty = |batch: &RecordBatch| batch.num_rows() == 0;
        let batch = self.stream.by_ref().find(|batch| !batch.as_ref().is_ok_and(is_empty))?;
        let batch = batch.and_then(|batch| match &self.kept {
            None => Ok(batch),
            Some(kept) => batch.project(kept),
        });
        let verified = batch.and_then(|batch| {
            let columns = batch.columns().iter();
            columns.map(|column| column.to_data()).try_for_each(|data| data.validate_full())?;
            Ok(batch)
        });
        Some(verified.map_err(annals_arrow::from_arrow))
    }
}

/// Gives a type to the columns of polars that have none: it exports them with a buffer that Arrow's format doesn't have.
fn with_types<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let class = data.get_type();
    if !class.module()?.to_str()?.starts_with("polars.") || class.name()? != "DataFrame" {
        return Ok(data.clone());
    }
    let polars = data.py().import("polars")?;
    let types = PyDict::new(data.py());
    types.set_item(polars.getattr("Null")?, polars.getattr("Int8")?)?;
    data.call_method1("cast", (types,))
}

/// Changes of one table's rows, as an Arrow stream.
#[pyclass(frozen, module = "annals")]
pub(crate) struct Changeset {
    snapshot: Snapshot,
    table: TableNumber,
    /// The first and the last transaction.
    of: [Txid; 2],
}

impl Changeset {
    /// Finds the changes, which may take long.
    pub(crate) fn new(
        py: Python<'_>,
        snapshot: &Snapshot,
        table: TableNumber,
        of: [Txid; 2],
    ) -> PyResult<Self> {
        let made = Self { snapshot: snapshot.clone(), table, of };
        // What isn't kept is an error now.
        made.batches(py).map(|_| made)
    }

    /// Returns the changes from the first one on: some readers ask twice, first for the schema.
    fn batches(&self, py: Python<'_>) -> PyResult<PastBatches> {
        let (snapshot, table, [first, last]) = (self.snapshot.clone(), self.table, self.of);
        let batches = blocking(py, move || {
            let changes = match first {
                Txid(0) => snapshot.changes(..=last)?,
                first => snapshot.changes(first..=last)?,
            };
            PastBatches::changes(&snapshot, table, changes, Options::for_memory())
        });
        batches?.or_raise()
    }
}

#[pymethods]
impl Changeset {
    /// The Arrow stream: `txid`, `time`, `comment`, `kind`, `id`, and the structs `old` and `new`.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        stream(py, self.batches(py)?)
    }

    /// The Arrow schema of the stream.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema(py, &self.batches(py)?)
    }
}
