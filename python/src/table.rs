//! Tables of a snapshot.

use std::sync::Arc;

use annals::{RowId, Snapshot, Table as Schema, Txid};
use annals_arrow::TableBatches;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PySlice};

use crate::arguments;
use crate::arguments::Argument;
use crate::arrow::{self, Changeset};
use crate::errors::{OrRaise as _, invalid, not_found};
use crate::html;
use crate::index::{self, Index};
use crate::rows::{Rest, Row, RowIterator, Rows};
use crate::source::Source;
use crate::values::row_id;

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

impl Table {
    fn source(&self) -> Source {
        Source::Snapshot(self.snapshot.clone())
    }

    fn named(&self, name: &str) -> Option<Index> {
        let number = index::named(self.snapshot.schema(), &self.table, name)?;
        Some(Index { source: self.source(), table: Arc::clone(&self.table), number })
    }
}

/// Returns the row of an id.
pub(crate) fn find(
    py: Python<'_>,
    source: &Source,
    table: &Arc<Schema>,
    id: &Bound<'_, PyAny>,
) -> PyResult<Option<Row>> {
    let Some(id) = row_id(id)? else { return Ok(None) };
    source.look(py, |view, blobs| {
        let row = view.table(table.number).and_then(|view| view.find(id)).or_raise()?;
        row.map(|row| Row::of(py, table, &row, blobs)).transpose()
    })
}

/// Returns the row of an id, which must be there.
pub(crate) fn require(
    py: Python<'_>,
    source: &Source,
    table: &Arc<Schema>,
    id: &Bound<'_, PyAny>,
) -> PyResult<Row> {
    find(py, source, table, id)?
        .ok_or_else(|| not_found(format!("table `{}` has no row {id}", table.name)))
}

/// Returns how many rows there are.
pub(crate) fn len(py: Python<'_>, source: &Source, table: &Schema) -> PyResult<usize> {
    let len = source.look(py, |view, _| view.table(table.number).map(|view| view.len()).or_raise());
    usize::try_from(len?).map_err(|_| invalid("so many rows have no len()"))
}

/// True if something is the id of a row.
pub(crate) fn contains(
    py: Python<'_>,
    source: &Source,
    table: &Schema,
    id: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let Ok(Some(id)) = row_id(id) else { return Ok(false) };
    source
        .look(py, |view, _| view.table(table.number).and_then(|view| view.contains(id)).or_raise())
}

/// Returns an iterator of the rows that are there now.
pub(crate) fn iterate(
    py: Python<'_>,
    source: Source,
    table: &Arc<Schema>,
) -> PyResult<RowIterator> {
    let end = source
        .look(py, |view, _| view.table(table.number).map(|view| view.next_id()).or_raise())?;
    Ok(RowIterator::new(source, Arc::clone(table), Rest::all(end)))
}

/// Returns the rows whose ids are in a range.
pub(crate) fn range(
    py: Python<'_>,
    source: Source,
    table: &Arc<Schema>,
    [first, end, select]: [Argument<'_, '_>; 3],
) -> PyResult<Rows> {
    let shown = arguments::select(table, select)?;
    let id = |given: Option<&Bound<'_, PyAny>>| match given.filter(|given| !given.is_none()) {
        None => Ok(None),
        Some(given) => row_id(given)?
            .map(Some)
            .ok_or_else(|| invalid(format!("{given} is no row's id; a range of ids is from 0 on"))),
    };
    let (first, end) = (id(first)?.unwrap_or(RowId(0)), id(end)?);
    let end = end.unwrap_or(RowId(RowId::MAX.0 + 1));
    let ids = source.look(py, |view, _| {
        let ids = py.detach(|| {
            let view = view.table(table.number)?;
            view.range(first..end).reading(&[]).map(|row| row.map(|row| row.id())).collect()
        });
        annals::Result::or_raise(ids)
    });
    Ok(Rows { source, table: shown, ids: ids? })
}

/// Returns the rows of a slice, which is of ids, as a range is.
pub(crate) fn slice(
    py: Python<'_>,
    source: Source,
    table: &Arc<Schema>,
    slice: &Bound<'_, PySlice>,
) -> PyResult<Rows> {
    if !slice.getattr("step")?.is_none() {
        return Err(invalid("a slice of a table is a range of ids: it has no step"));
    }
    let (first, end) = (slice.getattr("start")?, slice.getattr("stop")?);
    range(py, source, table, [Some(&first), Some(&end), None])
}

#[pymethods]
impl Table {
    /// The name of the table.
    #[getter]
    fn name(&self) -> &str {
        &self.table.name
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        len(py, &self.source(), &self.table)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<RowIterator> {
        iterate(py, self.source(), &self.table)
    }

    fn __contains__(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<bool> {
        contains(py, &self.source(), &self.table, id)
    }

    /// Returns the row of an id, or those of a slice of ids.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        id: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match id.cast::<PySlice>() {
            Ok(ids) => {
                Ok(slice(py, self.source(), &self.table, ids)?.into_pyobject(py)?.into_any())
            }
            Err(_) => {
                Ok(require(py, &self.source(), &self.table, id)?.into_pyobject(py)?.into_any())
            }
        }
    }

    /// Returns the row of an id, or None.
    fn get(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<Option<Row>> {
        find(py, &self.source(), &self.table, id)
    }

    /// Returns the rows whose ids are in a range; with `select` these fields of them alone: no others are read.
    #[pyo3(signature = (first = None, end = None, *, select = None))]
    fn range(
        &self,
        py: Python<'_>,
        first: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
        select: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Rows> {
        range(py, self.source(), &self.table, [first, end, select])
    }

    /// Returns the changes of the table's rows, of a range of transactions, as an Arrow stream.
    #[pyo3(signature = (first = None, last = None))]
    fn changes(
        &self,
        py: Python<'_>,
        first: Option<&Bound<'_, PyAny>>,
        last: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Changeset> {
        let first = arguments::count("first", first)?.map_or(Txid(0), Txid);
        let last = arguments::count("last", last)?.map_or(self.snapshot.txid(), Txid);
        Changeset::new(py, &self.snapshot, self.table.number, [first, last])
    }

    /// Returns the index of a name, also if an attribute of that name is something else.
    fn index(&self, name: &str) -> PyResult<Index> {
        self.named(name)
            .ok_or_else(|| not_found(index::missing(self.snapshot.schema(), &self.table, name)))
    }

    fn __getattr__(&self, name: &str) -> PyResult<Index> {
        self.named(name).ok_or_else(|| {
            PyAttributeError::new_err(index::missing(self.snapshot.schema(), &self.table, name))
        })
    }

    fn __dir__(slf: &Bound<'_, Self>) -> PyResult<Vec<String>> {
        let this = slf.get();
        index::listed(slf, index::names(this.snapshot.schema(), &this.table))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<table {} of {} rows>", self.table.name, self.__len__(py)?))
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        html::of_rows(py, &self.table, self.__iter__(py)?, self.__len__(py)? as u64)
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
