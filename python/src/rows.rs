//! Rows, and iterators of them.

use std::sync::{Arc, Mutex};

use annals::{RowId, Snapshot, Table as Schema, TableNumber};
use annals_arrow::{Options, TableBatches};
use pyo3::exceptions::{PyAttributeError, PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::arrow;
use crate::errors::OrRaise as _;
use crate::values::to_python;

/// A row: its fields are attributes, and `id` is its id.
///
/// >>> import annals
/// >>> with annals.in_memory("create_table city\nadd_field city name string\n") as db:
/// ...     with db.write() as tx:
/// ...         _ = tx.city.insert(name="Lille")
/// ...     row = db.read().city[0]
/// >>> row.name, row.id, row.asdict()
/// ('Lille', 0, {'name': 'Lille'})
#[pyclass(frozen, module = "annals")]
pub(crate) struct Row {
    table: Arc<Schema>,
    #[pyo3(get)]
    id: u64,
    values: Vec<Py<PyAny>>,
}

impl Row {
    pub(crate) fn of(
        py: Python<'_>,
        table: &Arc<Schema>,
        row: &annals::Row<'_>,
        blobs: crate::values::Blobs<'_>,
    ) -> PyResult<Self> {
        let values = table.fields.iter();
        let values = values.map(|field| to_python(py, row.value(field.number), blobs));
        Ok(Self {
            table: Arc::clone(table),
            id: row.id().0,
            values: values.collect::<PyResult<_>>()?,
        })
    }

    fn find(&self, name: &str) -> Option<&Py<PyAny>> {
        let at = self.table.fields.iter().position(|field| field.name == name)?;
        self.values.get(at)
    }
}

#[pymethods]
impl Row {
    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        self.find(name).map(|value| value.clone_ref(py)).ok_or_else(|| {
            let table = &self.table.name;
            PyAttributeError::new_err(format!("a row of table `{table}` has no field {name:?}"))
        })
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        self.find(name)
            .map(|value| value.clone_ref(py))
            .ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    fn __dir__(&self) -> Vec<String> {
        let names = self.table.fields.iter().map(|field| field.name.clone());
        names.chain(["id".to_owned(), "asdict".to_owned()]).collect()
    }

    /// Returns the fields as a dictionary, without the id.
    fn asdict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (field, value) in self.table.fields.iter().zip(&self.values) {
            all.set_item(&field.name, value)?;
        }
        Ok(all)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        let other = other.get();
        let same = self.table.name == other.table.name && self.id == other.id;
        Ok(same && self.asdict(py)?.eq(other.asdict(py)?)?)
    }

    fn __hash__(&self) -> u64 {
        self.id
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut text = format!("{}(id={}", self.table.name, self.id);
        for (field, value) in self.table.fields.iter().zip(&self.values) {
            text.push_str(&format!(", {}={}", field.name, value.bind(py).repr()?));
        }
        Ok(text + ")")
    }
}

/// The rows that are read one after the other.
pub(crate) enum Rest {
    Ids(u64, u64),
    Rows(std::vec::IntoIter<RowId>),
}

/// An iterator of rows. It holds its snapshot: closing the database doesn't end it.
#[pyclass(module = "annals")]
pub(crate) struct RowIterator {
    snapshot: Snapshot,
    table: Arc<Schema>,
    rest: Mutex<Rest>,
}

impl RowIterator {
    pub(crate) const fn new(snapshot: Snapshot, table: Arc<Schema>, rest: Rest) -> Self {
        Self { snapshot, table, rest: Mutex::new(rest) }
    }
}

#[pymethods]
impl RowIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Row>> {
        let mut rest = self.rest.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let view = self.snapshot.table(self.table.number).or_raise()?;
        let row = match &mut *rest {
            Rest::Ids(from, to) => {
                let row = view.range(RowId(*from)..RowId(*to)).next().transpose().or_raise()?;
                *from = row.as_ref().map_or(*to, |row| row.id().0 + 1);
                row
            }
            Rest::Rows(rows) => rows.next().map(|id| view.get(id)).transpose().or_raise()?,
        };
        let blobs = |blob| read_blob(&self.snapshot, blob);
        row.map(|row| Row::of(py, &self.table, &row, &blobs)).transpose()
    }
}

/// Reads the bytes of a blob.
pub(crate) fn read_blob(snapshot: &Snapshot, blob: annals::Blob) -> annals::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = std::io::Read::read_to_end(&mut snapshot.blob(blob)?, &mut bytes);
    read.map_err(|error| annals::Error::io("the bytes of a blob", error))?;
    Ok(bytes)
}

/// Some rows of a table, in the order of an index or of their ids.
#[pyclass(frozen, module = "annals")]
pub(crate) struct Rows {
    pub(crate) snapshot: Snapshot,
    pub(crate) table: Arc<Schema>,
    pub(crate) ids: Vec<RowId>,
}

impl Rows {
    fn batches(&self) -> annals::Result<TableBatches> {
        let number: TableNumber = self.table.number;
        TableBatches::rows(&self.snapshot, number, self.ids.clone(), Options::for_memory())
    }
}

#[pymethods]
impl Rows {
    fn __len__(&self) -> usize {
        self.ids.len()
    }

    fn __iter__(&self) -> RowIterator {
        let rest = Rest::Rows(self.ids.clone().into_iter());
        RowIterator::new(self.snapshot.clone(), Arc::clone(&self.table), rest)
    }

    fn __getitem__(&self, py: Python<'_>, place: isize) -> PyResult<Row> {
        let at = if place < 0 {
            self.ids.len().checked_add_signed(place)
        } else {
            place.try_into().ok()
        };
        let id = at.and_then(|at| self.ids.get(at));
        let id = id.ok_or_else(|| {
            PyIndexError::new_err(format!("{place}: there are {}", self.ids.len()))
        })?;
        let view = self.snapshot.table(self.table.number).or_raise()?;
        let blobs = |blob| read_blob(&self.snapshot, blob);
        Row::of(py, &self.table, &view.get(*id).or_raise()?, &blobs)
    }

    fn __repr__(&self) -> String {
        format!("<{} rows of {}>", self.ids.len(), self.table.name)
    }

    /// The rows as an Arrow stream.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        arrow::stream(py, self.batches().or_raise()?)
    }
}
