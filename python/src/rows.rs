//! Rows, and iterators of them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use annals::{RowId, Table as Schema, TableNumber, TableView, ValueRef};
use annals_arrow::{Options, TableBatches};
use pyo3::exceptions::{PyAttributeError, PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt as _;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PySlice, PyString, PyTuple};

use crate::arrow;
use crate::errors::{OrRaise as _, invalid};
use crate::html::{self, SHOWN};
use crate::source::Source;
use crate::values::{is_keyword, keyword_field, to_python};

/// A row: its fields are attributes, and `id` is its id. As the rows of `sqlite3`, it has the values in order, and by name
/// in brackets; `dict(row)` has all of them. A field whose name is a keyword has an underscore after it: `row.class_`.
///
/// >>> import annals
/// >>> with annals.in_memory("create_table city\nadd_field city name string\n") as db:
/// ...     with db.write() as tx:
/// ...         _ = tx.city.insert(name="Lille")
/// ...     row = db.read().city[0]
/// >>> row.name, row["name"], row.id, dict(row), list(row)
/// ('Lille', 'Lille', 0, {'name': 'Lille'}, ['Lille'])
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

    fn names(&self) -> impl Iterator<Item = &str> {
        self.table.fields.iter().map(|field| field.name.as_str())
    }

    /// Returns the id and the values as texts.
    pub(crate) fn shown(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let values = self.values.iter().map(|value| Ok(value.bind(py).str()?.to_string()));
        std::iter::once(Ok(self.id.to_string())).chain(values).collect()
    }
}

#[pymethods]
impl Row {
    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        let found = match self.find(name) {
            Some(found) => Some(found),
            None => keyword_field(py, &self.table, name)?.and_then(|place| self.values.get(place)),
        };
        found.map(|value| value.clone_ref(py)).ok_or_else(|| {
            let table = &self.table.name;
            PyAttributeError::new_err(format!("a row of table `{table}` has no field {name:?}"))
        })
    }

    /// Returns a value by its name, or by its place; `id` is the row's id, unless a field has that name.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Ok(name) = key.cast::<PyString>() else {
            return PyTuple::new(py, &self.values)?.as_any().get_item(key);
        };
        let name = name.to_str()?;
        match self.find(name) {
            Some(value) => Ok(value.bind(py).clone()),
            None if name == "id" => Ok(self.id.into_pyobject(py)?.into_any()),
            None => Err(PyKeyError::new_err(name.to_owned())),
        }
    }

    fn __len__(&self) -> usize {
        self.values.len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyTuple::new(py, &self.values)?.try_iter()
    }

    /// Returns the names of the fields.
    fn keys(&self) -> Vec<&str> {
        self.names().collect()
    }

    /// The names of the fields, as named tuples have them: pandas names its columns by them.
    #[getter]
    fn _fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.keys())
    }

    fn __dir__(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let attribute = |name: &str| {
            Ok(if is_keyword(py, name)? { format!("{name}_") } else { name.to_owned() })
        };
        self.names().chain(["id", "asdict", "keys"]).map(attribute).collect()
    }

    /// Returns the fields as a dictionary, without the id.
    fn asdict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (name, value) in self.names().zip(&self.values) {
            all.set_item(name, value)?;
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
        for (name, value) in self.names().zip(&self.values) {
            text.push_str(&format!(", {name}={}", value.bind(py).repr()?));
        }
        Ok(text + ")")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Parts<'_, 'py>)> {
        let values = self.values.iter().map(|value| value.bind(py).clone()).collect();
        let make = py.import("annals._core")?.getattr("_row")?;
        Ok((make, (&self.table.name, self.keys(), self.id, values)))
    }
}

/// The parts of a row, as they are pickled: its table, the names of its fields, its id and its values.
type Parts<'r, 'py> = (&'r str, Vec<&'r str>, u64, Vec<Bound<'py, PyAny>>);

/// Returns a row that was pickled.
#[pyfunction]
#[pyo3(name = "_row")]
pub(crate) fn unpickled(
    table: &str,
    names: Vec<String>,
    id: u64,
    values: Vec<Py<PyAny>>,
) -> PyResult<Row> {
    // Their values are there: the types are of no use.
    let fields: String =
        names.iter().map(|name| format!("add_field {table} {name} blob\n")).collect();
    let parsed = annals_schema::parse(&format!("create_table {table}\n{fields}"));
    let table = parsed.ok().and_then(|file| file.schema.table_named(table).cloned());
    let table = table.filter(|table| table.fields.len() == values.len());
    let table = Arc::new(table.ok_or_else(|| invalid("these aren't the parts of a row"))?);
    Ok(Row { table, id, values })
}

/// Has only the fields of a table read, if they aren't all.
fn reading<'v>(rows: annals::Rows<'v>, whole: &Schema, table: &Schema) -> annals::Rows<'v> {
    if table.fields.len() == whole.fields.len() {
        return rows;
    }
    let fields: Vec<_> = table.fields.iter().map(|field| field.number).collect();
    rows.reading(&fields)
}

/// Returns the row of an id, with the fields of a table.
pub(crate) fn find<'v>(
    view: TableView<'v>,
    table: &Schema,
    id: RowId,
) -> annals::Result<Option<annals::Row<'v>>> {
    match table.fields.len() == view.schema().fields.len() {
        true => view.find(id),
        false => reading(view.range(id..=id), view.schema(), table).next().transpose(),
    }
}

/// The rows that are read one after the other: those of a list, or all of a table.
pub(crate) struct Rest {
    ids: Option<Vec<RowId>>,
    /// The next place in the list, or the least id of the next row.
    next: u64,
    end: u64,
    /// Rows that were read and not asked for yet: of a snapshot, which doesn't change.
    ready: VecDeque<Row>,
    /// How many are read together next.
    together: usize,
}

/// The most rows that are read together.
const TOGETHER: usize = 256;

/// No more rows are read together once those before them have so many bytes. A blob may have any number.
const MOST_BYTES: usize = 1 << 20;

/// Returns how many bytes the values of a row have, but for numbers.
fn bytes_of(row: &annals::Row<'_>, table: &Schema) -> usize {
    let bytes = |value| match value {
        ValueRef::String(text) => text.len(),
        ValueRef::Bytes(bytes) => bytes.len(),
        ValueRef::Blob(_) => MOST_BYTES,
        _ => 0,
    };
    table.fields.iter().map(|field| bytes(row.value(field.number))).sum()
}

impl Rest {
    /// Returns all rows of a table whose ids are before `end`.
    pub(crate) const fn all(end: u64) -> Self {
        Self { ids: None, next: 0, end, ready: VecDeque::new(), together: 1 }
    }

    fn of(ids: Vec<RowId>) -> Self {
        Self { end: ids.len() as u64, ids: Some(ids), ..Self::all(0) }
    }

    /// Reads the next rows, at most `most` of them, and few large ones. After an error the same row is the next one.
    fn read(
        &mut self,
        (view, table): (TableView<'_>, &Schema),
        most: usize,
        make: impl Fn(&annals::Row<'_>) -> PyResult<Row>,
    ) -> PyResult<()> {
        let mut bytes = 0;
        let Some(ids) = &self.ids else {
            let rows = view.range(RowId(self.next)..RowId(self.end));
            for row in reading(rows, view.schema(), table).take(most) {
                let row = row.or_raise()?;
                self.ready.push_back(make(&row)?);
                self.next = row.id().0 + 1;
                bytes += bytes_of(&row, table);
                if bytes >= MOST_BYTES {
                    break;
                }
            }
            return Ok(());
        };
        while self.next < self.end && self.ready.len() < most && bytes < MOST_BYTES {
            let id = usize::try_from(self.next).ok().and_then(|place| ids.get(place));
            // A row of a transaction may have been deleted since.
            let row = id.map(|id| find(view, table, *id).or_raise()).transpose()?.flatten();
            if let Some(row) = row {
                self.ready.push_back(make(&row)?);
                bytes += bytes_of(&row, table);
            }
            self.next += 1;
        }
        Ok(())
    }
}

/// An iterator of rows. It holds its snapshot: closing the database doesn't end it.
#[pyclass(module = "annals")]
pub(crate) struct RowIterator {
    source: Source,
    table: Arc<Schema>,
    rest: Mutex<Rest>,
    /// How many were asked for.
    asked: AtomicU32,
}

/// After so many rows signals are handled: `list` asks for all without a look at them.
const SIGNALS_AFTER: u32 = 1024;

impl RowIterator {
    pub(crate) const fn new(source: Source, table: Arc<Schema>, rest: Rest) -> Self {
        Self { source, table, rest: Mutex::new(rest), asked: AtomicU32::new(1) }
    }

    /// Waits for another thread that asks for rows. Python runs meanwhile: that thread may need it to end.
    fn rest(&self, py: Python<'_>) -> MutexGuard<'_, Rest> {
        self.rest.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl RowIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    pub(crate) fn __next__(&self, py: Python<'_>) -> PyResult<Option<Row>> {
        if self.asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(SIGNALS_AFTER) {
            py.check_signals()?;
        }
        if let Some(row) = self.rest(py).ready.pop_front() {
            return Ok(Some(row));
        }
        self.source.look(py, |view, blobs| {
            // Only now: to wait for a transaction takes long, and others may ask for rows meanwhile.
            let mut rest = self.rest(py);
            let read = if rest.ready.is_empty() {
                let most = match self.source {
                    Source::Snapshot(_) => rest.together,
                    Source::Transaction(_) => 1,
                };
                rest.together = (most * 4).min(TOGETHER);
                let view = view.table(self.table.number).or_raise()?;
                rest.read((view, &self.table), most, |row| Row::of(py, &self.table, row, blobs))
            } else {
                Ok(()) // another thread has read them
            };
            match rest.ready.pop_front() {
                // An error after it is met again when that row is asked for.
                Some(row) => Ok(Some(row)),
                None => read.map(|()| None),
            }
        })
    }
}

/// Some rows of a table, in the order of an index or of their ids.
#[pyclass(frozen, module = "annals")]
pub(crate) struct Rows {
    pub(crate) source: Source,
    pub(crate) table: Arc<Schema>,
    pub(crate) ids: Vec<RowId>,
}

impl Rows {
    fn batches(&self) -> PyResult<TableBatches> {
        let Source::Snapshot(snapshot) = &self.source else {
            return Err(invalid("an Arrow stream is of a snapshot: commit, and take db.read()"));
        };
        let number: TableNumber = self.table.number;
        let batches = TableBatches::rows(snapshot, number, self.ids.clone(), Options::for_memory());
        batches.and_then(|batches| batches.of_fields(&self.table)).or_raise()
    }

    /// Returns the rows of other ids.
    fn of(&self, py: Python<'_>, ids: Vec<RowId>) -> Self {
        Self { source: self.source.share(py), table: Arc::clone(&self.table), ids }
    }

    pub(crate) fn into_iter(self) -> RowIterator {
        RowIterator::new(self.source, self.table, Rest::of(self.ids))
    }
}

#[pymethods]
impl Rows {
    fn __len__(&self) -> usize {
        self.ids.len()
    }

    fn __iter__(&self, py: Python<'_>) -> RowIterator {
        self.of(py, self.ids.clone()).into_iter()
    }

    /// Returns the row at a place, or the rows of a slice.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        place: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = place.cast::<PySlice>() {
            let ids = sliced(&self.ids, slice)?;
            return Ok(self.of(py, ids).into_pyobject(py)?.into_any());
        }
        let id = self.ids.get(at(place, self.ids.len())?);
        let id = *id.ok_or_else(|| invalid("the rows changed meanwhile"))?;
        let row = self.source.look(py, |view, blobs| {
            let view = view.table(self.table.number).or_raise()?;
            let row = match find(view, &self.table, id).or_raise()? {
                Some(row) => row,
                None => view.get(id).or_raise()?, // which says so
            };
            Row::of(py, &self.table, &row, blobs)
        });
        Ok(row?.into_pyobject(py)?.into_any())
    }

    fn __repr__(&self) -> String {
        format!("<{} rows of {}>", self.ids.len(), self.table.name)
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let some = self.of(py, self.ids.iter().take(SHOWN).copied().collect());
        html::of_rows(py, &self.table, some.into_iter(), self.ids.len() as u64)
    }

    /// The rows as an Arrow stream.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        arrow::stream(py, self.batches()?)
    }
}

/// Returns the place that an index of Python means among so many.
pub(crate) fn at(place: &Bound<'_, PyAny>, len: usize) -> PyResult<usize> {
    let place: isize = place.extract()?;
    let found = if place < 0 { len.checked_add_signed(place) } else { place.try_into().ok() };
    found.filter(|found| *found < len).ok_or_else(|| {
        PyIndexError::new_err(format!("there is no row at place {place}: there are {len}"))
    })
}

/// Returns what a slice takes.
pub(crate) fn sliced<T: Copy>(all: &[T], slice: &Bound<'_, PySlice>) -> PyResult<Vec<T>> {
    let range = slice.indices(isize::try_from(all.len()).unwrap_or(isize::MAX))?;
    let places = (0..range.slicelength).map(|step| {
        let place = range.start + isize::try_from(step).unwrap_or(0) * range.step;
        all.get(usize::try_from(place).unwrap_or(usize::MAX)).copied()
    });
    Ok(places.flatten().collect())
}
