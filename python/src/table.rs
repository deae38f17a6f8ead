//! Tables and indexes of a snapshot.

use std::ops::Bound as Limit;
use std::sync::{Arc, Mutex};

use annals::{IndexNumber, RowId, Snapshot, Table as Schema, Value, ValueRef};
use annals_arrow::{Options, PastBatches, TableBatches};
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::arrow::{self, Changeset};
use crate::errors::{OrRaise as _, invalid, not_found};
use crate::rows::{Rest, Row, RowIterator, Rows, read_blob};
use crate::values::{Given, of_python};

/// A table of a snapshot: rows by id, iterable, and an Arrow stream. Its indexes are attributes.
///
/// >>> import annals
/// >>> text = "create_table city\nadd_field city name string\ncreate_unique_index city_by_name city name\n"
/// >>> with annals.in_memory(text) as db:
/// ...     with db.write() as tx:
/// ...         _ = tx.city.insert_all([{"name": "Lille"}, {"name": "Lyon"}, {"name": "Nantes"}])
/// ...     cities = db.read().city
/// ...     len(cities), [row.name for row in cities], 7 in cities
/// ...     cities.by_name["Lyon"].id, [row.name for row in cities.by_name.prefix("L")]
/// (3, ['Lille', 'Lyon', 'Nantes'], False)
/// (1, ['Lille', 'Lyon'])
#[pyclass(frozen, module = "annals")]
pub(crate) struct Table {
    pub(crate) snapshot: Snapshot,
    pub(crate) table: Arc<Schema>,
}

/// Finds an index of a table, by its name or by the part after the table's.
pub(crate) fn index_named(snapshot: &Snapshot, table: &Schema, name: &str) -> Option<IndexNumber> {
    let schema = snapshot.schema();
    let full = format!("{}_{name}", table.name);
    let mut of_table = schema.indexes_of(table);
    of_table.find(|index| index.name == name || index.name == full).map(|index| index.number)
}

#[pymethods]
impl Table {
    /// The name of the table.
    #[getter]
    fn name(&self) -> &str {
        &self.table.name
    }

    fn __len__(&self) -> PyResult<usize> {
        let len = self.snapshot.table(self.table.number).or_raise()?.len();
        usize::try_from(len).map_err(|_| invalid("so many rows have no len()"))
    }

    fn __iter__(&self) -> RowIterator {
        let rest = Rest::Ids(0, RowId::MAX.0 + 1);
        RowIterator::new(self.snapshot.clone(), Arc::clone(&self.table), rest)
    }

    fn __contains__(&self, id: u64) -> PyResult<bool> {
        self.snapshot.table(self.table.number).or_raise()?.contains(RowId(id)).or_raise()
    }

    fn __getitem__(&self, py: Python<'_>, id: u64) -> PyResult<Row> {
        self.get(py, id)?
            .ok_or_else(|| not_found(format!("table `{}` has no row {id}", self.table.name)))
    }

    /// Returns the row of an id, or None.
    fn get(&self, py: Python<'_>, id: u64) -> PyResult<Option<Row>> {
        let view = self.snapshot.table(self.table.number).or_raise()?;
        let blobs = |blob| read_blob(&self.snapshot, blob);
        let row = view.find(RowId(id)).or_raise()?;
        row.map(|row| Row::of(py, &self.table, &row, &blobs)).transpose()
    }

    /// Returns the rows whose ids are in a range.
    #[pyo3(signature = (first = 0, end = None))]
    fn range(&self, py: Python<'_>, first: u64, end: Option<u64>) -> PyResult<Rows> {
        let end = RowId(end.unwrap_or(RowId::MAX.0 + 1));
        let ids = py.detach(|| {
            let view = self.snapshot.table(self.table.number)?;
            view.range(RowId(first)..end).map(|row| row.map(|row| row.id())).collect()
        });
        let (snapshot, table) = (self.snapshot.clone(), Arc::clone(&self.table));
        Ok(Rows { snapshot, table, ids: annals::Result::or_raise(ids)? })
    }

    /// Returns the changes of the table's rows, of a range of transactions, as an Arrow stream.
    #[pyo3(signature = (first = 0, last = None))]
    fn changes(&self, py: Python<'_>, first: u64, last: Option<u64>) -> PyResult<Changeset> {
        let last = last.map_or(self.snapshot.txid(), annals::Txid);
        let batches = py.detach(|| {
            let changes = match first {
                0 => self.snapshot.changes(..=last)?,
                first => self.snapshot.changes(annals::Txid(first)..=last)?,
            };
            PastBatches::changes(&self.snapshot, self.table.number, changes, Options::for_memory())
        });
        Ok(Changeset(Mutex::new(Some(Box::new(annals::Result::or_raise(batches)?)))))
    }

    fn __getattr__(&self, name: &str) -> PyResult<Index> {
        let number = index_named(&self.snapshot, &self.table, name).ok_or_else(|| {
            let table = &self.table.name;
            PyAttributeError::new_err(format!("table `{table}` has no index {name:?}"))
        })?;
        Ok(Index { snapshot: self.snapshot.clone(), table: Arc::clone(&self.table), number })
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<table {} of {} rows>", self.table.name, self.__len__()?))
    }

    /// The table as an Arrow stream: `id`, then the fields. Numbers aren't copied where ids are consecutive.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        arrow::stream(py, TableBatches::of(&self.snapshot, self.table.number).or_raise()?)
    }

    /// The Arrow schema of the table.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema(py, &TableBatches::of(&self.snapshot, self.table.number).or_raise()?)
    }
}

/// An index of a table: rows by key, in the order of the keys.
#[pyclass(frozen, module = "annals")]
pub(crate) struct Index {
    snapshot: Snapshot,
    table: Arc<Schema>,
    number: IndexNumber,
}

impl Index {
    /// Reads values of the first fields of the index.
    fn key(&self, key: &Bound<'_, PyTuple>) -> PyResult<Vec<Value>> {
        let index = self.snapshot.schema().index(self.number);
        let fields = index.map(|index| index.fields.clone()).unwrap_or_default();
        if key.len() > fields.len() {
            return Err(invalid(format!(
                "the index has {} fields, not {}",
                fields.len(),
                key.len()
            )));
        }
        let read = |(value, number): (Bound<'_, PyAny>, &annals::FieldNumber)| {
            let field = self.table.field(*number).ok_or_else(|| invalid("no such field"))?;
            match of_python(field, &value)? {
                Given::Value(value) => Ok(value),
                Given::Blob(_) => Err(invalid("a blob is no key")),
            }
        };
        key.iter().zip(&fields).map(read).collect()
    }

    fn rows(&self, ids: annals::Result<Vec<RowId>>) -> PyResult<Rows> {
        let (snapshot, table) = (self.snapshot.clone(), Arc::clone(&self.table));
        Ok(Rows { snapshot, table, ids: ids.or_raise()? })
    }
}

fn refs(values: &[Value]) -> Vec<ValueRef<'_>> {
    values.iter().map(Value::as_ref).collect()
}

/// Takes a key that is one value, or a tuple of them.
fn parts<'py>(key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    match key.cast::<PyTuple>() {
        Ok(tuple) => Ok(tuple.clone()),
        Err(_) => PyTuple::new(key.py(), [key]),
    }
}

#[pymethods]
impl Index {
    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Row> {
        self.get(py, &parts(key)?)?.ok_or_else(|| {
            let name = self.snapshot.schema().index(self.number).map(|index| index.name.clone());
            not_found(format!("index `{}` has no key {key}", name.unwrap_or_default()))
        })
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.get(py, &parts(key)?)?.is_some())
    }

    /// Returns the first row that has a key, or None.
    #[pyo3(signature = (*key))]
    fn get(&self, py: Python<'_>, key: &Bound<'_, PyTuple>) -> PyResult<Option<Row>> {
        let key = self.key(key)?;
        let row = self.snapshot.index(self.number).and_then(|view| view.first(&refs(&key)));
        let blobs = |blob| read_blob(&self.snapshot, blob);
        row.or_raise()?.map(|row| Row::of(py, &self.table, &row, &blobs)).transpose()
    }

    /// Returns the rows that have a key, or these values in the first fields.
    #[pyo3(signature = (*key))]
    fn equal(&self, py: Python<'_>, key: &Bound<'_, PyTuple>) -> PyResult<Rows> {
        let key = self.key(key)?;
        self.rows(
            py.detach(|| self.snapshot.index(self.number)?.equal(&refs(&key)).ids().collect()),
        )
    }

    /// Returns the rows whose key begins with these values, and then a string that begins with the last of them.
    #[pyo3(signature = (*key))]
    fn prefix(&self, py: Python<'_>, key: &Bound<'_, PyTuple>) -> PyResult<Rows> {
        let mut key = self.key(key)?;
        let last = match key.pop() {
            Some(Value::String(text)) => text.into_bytes(),
            Some(Value::Bytes(bytes)) => bytes,
            _ => return Err(invalid("a prefix is a string or bytes")),
        };
        self.rows(py.detach(|| {
            self.snapshot.index(self.number)?.prefix(&refs(&key), &last).ids().collect()
        }))
    }

    /// Returns the rows that have these values in the first fields, and in the next field one from `first` on and
    /// before `end`.
    #[pyo3(signature = (*key, first = None, end = None))]
    fn range(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyTuple>,
        first: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Rows> {
        let limit = |last: Option<&Bound<'_, PyAny>>| {
            let Some(last) = last else { return Ok(None) };
            let whole = key.to_list();
            whole.append(last)?;
            Ok::<_, PyErr>(self.key(&whole.to_tuple())?.pop())
        };
        let (key, first, end) = (self.key(key)?, limit(first)?, limit(end)?);
        self.rows(py.detach(|| {
            let first =
                first.as_ref().map_or(Limit::Unbounded, |first| Limit::Included(first.as_ref()));
            let end = end.as_ref().map_or(Limit::Unbounded, |end| Limit::Excluded(end.as_ref()));
            self.snapshot.index(self.number)?.range(&refs(&key), first, end).ids().collect()
        }))
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<RowIterator> {
        let ids = py.detach(|| self.snapshot.index(self.number)?.rows().ids().collect());
        Ok(self.rows(ids)?.into_iter())
    }

    fn __len__(&self) -> PyResult<usize> {
        let len = self.snapshot.table(self.table.number).or_raise()?.len();
        usize::try_from(len).map_err(|_| invalid("so many rows have no len()"))
    }
}

impl Rows {
    pub(crate) fn into_iter(self) -> RowIterator {
        RowIterator::new(self.snapshot, self.table, Rest::Rows(self.ids.into_iter()))
    }
}
