//! Tables of a transaction.

use std::sync::Arc;

use annals::Table as Schema;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice, PyTuple};

use crate::arrow::Frame;
use crate::errors::{OrRaise as _, invalid, not_found};
use crate::index::{self, Index};
use crate::put::{Given as Row, How, Putting, put};
use crate::rows::{Row as Found, RowIterator, Rows};
use crate::source::Source;
use crate::table;
use crate::transaction::Transaction;
use crate::values::{Given, keyword_field, of_python, row_id, whole_id};

/// A table in a transaction: its rows can be read, as those of a snapshot, and changed. Each call is done wholly or not at
/// all.
///
/// >>> import annals
/// >>> text = "create_table city\nadd_field city name string\nadd_field city size int64 null\n"
/// >>> with annals.in_memory(text + "create_unique_index city_by_name city name\n") as db:
/// ...     with db.write() as tx:
/// ...         _ = tx.city.insert_all([{"name": "Lille"}, {"name": "Lyon"}])
/// ...         for city in tx.city:
/// ...             tx.city.update(city.id, size=len(city.name))
/// ...         lyon = tx.city.upsert("by_name", name="Lyon", size=500)
/// ...     [(city.name, city.size) for city in db.city]
/// [('Lille', 5), ('Lyon', 500)]
#[pyclass(frozen, module = "annals")]
pub(crate) struct WritableTable {
    transaction: Py<Transaction>,
    table: Arc<Schema>,
    /// What a field `id` is called beside the id of its row.
    whole_id: Option<String>,
}

impl WritableTable {
    pub(crate) fn new(transaction: Py<Transaction>, table: Schema) -> Self {
        Self { transaction, whole_id: whole_id(&table), table: Arc::new(table) }
    }

    fn source(&self, py: Python<'_>) -> Source {
        Source::Transaction(self.transaction.clone_ref(py))
    }

    fn named(&self, py: Python<'_>, name: &str) -> PyResult<Result<Index, String>> {
        let (source, table) = (self.source(py), &self.table);
        let number = source.look(py, |view, _| {
            let number = index::named(view.schema(), table, name);
            Ok(number.ok_or_else(|| index::missing(view.schema(), table, name)))
        })?;
        Ok(number.map(|number| Index { source, table: Arc::clone(table), number }))
    }

    fn no_field(&self, name: &str) -> PyErr {
        let names: Vec<&str> = self.table.fields.iter().map(|field| field.name.as_str()).collect();
        let table = &self.table.name;
        not_found(format!(
            "table `{table}` has no field {name:?}; its fields are: {}",
            names.join(", ")
        ))
    }

    /// Reads a row of a dictionary. `id` is the row's id, unless it is a field.
    fn read(&self, fields: &Bound<'_, PyDict>) -> PyResult<Row> {
        let mut row = Row::default();
        let mut found = 0;
        // Beside it, `id` is the row's.
        let whole = match &self.whole_id {
            Some(whole) if fields.contains(whole)? => Some(whole.as_str()),
            _ => None,
        };
        for field in &self.table.fields {
            let name = whole.filter(|_| field.name == "id").unwrap_or(&field.name);
            row.values.push(match fields.get_item(name)? {
                None => Given::Value(field.default_value()),
                Some(value) => {
                    found += 1;
                    row.present.push(field.number);
                    of_python(field, &value)?
                }
            });
        }
        if found == fields.len() {
            return Ok(row);
        }
        for (name, value) in fields {
            let name: String = name.extract().map_err(|_| {
                invalid(format!("{name} is no name of a field: the keys of a row are strings"))
            })?;
            let is_field = self.table.field_named(&name).is_some();
            match name.as_str() {
                "id" if is_field && whole.is_none() => {}
                "id" if value.is_none() => {}
                "id" => row.id = Some(self.id(&value)?),
                name if is_field || whole == Some(name) => {}
                name => self.read_keyword(&mut row, name, &value)?,
            }
        }
        Ok(row)
    }

    /// Reads a field of a name that only an underscore makes one of Python.
    fn read_keyword(&self, row: &mut Row, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let place = keyword_field(value.py(), &self.table, name)?;
        let found = place
            .and_then(|place| Some((self.table.fields.get(place)?, row.values.get_mut(place)?)));
        let (field, known) = found.ok_or_else(|| self.no_field(name))?;
        if row.present.contains(&field.number) {
            return Err(invalid(format!(
                "field `{}` is given twice: also as {name:?}",
                field.name
            )));
        }
        row.present.push(field.number);
        *known = of_python(field, value)?;
        Ok(())
    }

    fn id(&self, id: &Bound<'_, PyAny>) -> PyResult<annals::RowId> {
        let table = &self.table.name;
        row_id(id)?.ok_or_else(|| invalid(format!("table `{table}`: {id} is no id of a row")))
    }

    /// Returns how rows are found by the name of a unique index, or by `id`.
    fn by(&self, py: Python<'_>, name: &str) -> PyResult<How> {
        if name == "id" {
            return Ok(How::UpsertById);
        }
        self.source(py).look(py, |view, _| {
            let schema = view.schema();
            let number = index::named(schema, &self.table, name);
            let found = number.and_then(|number| schema.index(number));
            let Some(found) = found else {
                return Err(not_found(index::missing(schema, &self.table, name)));
            };
            if !found.unique {
                let name = &found.name;
                let message = format!("index `{name}` isn't unique: a key of it isn't of one row");
                return Err(invalid(message));
            }
            Ok(How::Upsert(found.number, found.fields.clone()))
        })
    }

    /// Does something with one row.
    fn put(&self, py: Python<'_>, how: &How, row: Row) -> PyResult<u64> {
        self.transaction.get().with(py, |tx| {
            // Without a savepoint it is one statement.
            let is_several = row.needs_savepoint(how);
            let put = |tx: &mut annals::Transaction<'_>| {
                let row = row.ready(tx)?;
                put(tx, &self.table, how, row)
            };
            let id = if is_several { tx.savepoint(put) } else { put(tx) };
            id.or_raise().map(|id| id.0)
        })
    }

    /// Does something with all rows of an Arrow stream, or of an iterable of dictionaries.
    fn put_all(&self, py: Python<'_>, how: &How, data: &Bound<'_, PyAny>) -> PyResult<u64> {
        let transaction = self.transaction.get();
        transaction.wholly(py, || match Frame::of(data)? {
            Some(mut frame) => {
                frame.name_field_id(&self.table);
                self.put_frame(py, how, frame)
            }
            None => self.put_rows(py, how, data),
        })
    }

    fn put_frame(&self, py: Python<'_>, how: &How, mut frame: Frame) -> PyResult<u64> {
        let transaction = self.transaction.get();
        let mut way = transaction.in_part(py, |tx| frame.way(tx.view().schema(), &self.table))?;
        let present = frame.present(&self.table);
        let mut count = 0;
        while let Some(batch) = py.detach(|| frame.next()) {
            let batch = batch.or_raise()?;
            count += transaction.in_part(py, |tx| {
                let mut sink = Putting { tx, table: &self.table, how, present: &present };
                py.detach(|| way.insert(&batch, &mut sink)).or_raise()
            })?;
            py.check_signals()?;
        }
        Ok(count)
    }

    fn put_rows(&self, py: Python<'_>, how: &How, data: &Bound<'_, PyAny>) -> PyResult<u64> {
        let mut count = 0;
        let rows = data.try_iter().map_err(|_| {
            invalid("rows are a DataFrame, or another Arrow stream, or a list of dictionaries")
        })?;
        for row in rows {
            let row = self.read(&as_dictionary(&row?)?)?;
            self.transaction.get().in_part(py, |tx| {
                row.ready(tx).and_then(|row| put(tx, &self.table, how, row)).or_raise()
            })?;
            count += 1;
            if count % 1024 == 0 {
                py.check_signals()?;
            }
        }
        Ok(count)
    }
}

/// Takes a row that is a dictionary, or that has keys as one does.
fn as_dictionary<'py>(row: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    if let Ok(dictionary) = row.cast::<PyDict>() {
        return Ok(dictionary.clone());
    }
    if !row.hasattr("keys")? {
        return Err(invalid(
            "a row is a dictionary of fields; the rows are a list of them, and one row is insert_row({..})",
        ));
    }
    let made = PyDict::new(row.py());
    made.call_method1("update", (row,))?;
    Ok(made)
}

/// Returns the fields that were given by name.
fn named<'py>(py: Python<'py>, fields: Option<&Bound<'py, PyDict>>) -> Bound<'py, PyDict> {
    fields.cloned().unwrap_or_else(|| PyDict::new(py))
}

#[pymethods]
impl WritableTable {
    /// The name of the table.
    #[getter]
    fn name(&self) -> &str {
        &self.table.name
    }

    /// Inserts a row; fields that are left out have their default. Returns its id, the next one if none is given. `id` is
    /// the row's id, unless a field of table `t` has that name: then `t.id` is that field where `id` is given for the row,
    /// and `id` alone is the field. A field `class` is `class_=`.
    #[pyo3(signature = (**fields))]
    fn insert(&self, py: Python<'_>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<u64> {
        self.put(py, &How::Insert, self.read(&named(py, fields))?)
    }

    /// Inserts a row of a dictionary, whose keys may be any names of fields; returns its id.
    #[pyo3(signature = (fields, *, id = None))]
    fn insert_row(
        &self,
        py: Python<'_>,
        fields: &Bound<'_, PyAny>,
        id: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let mut row = self.read(&as_dictionary(fields)?)?;
        if let Some(id) = id {
            row.id = Some(self.id(id)?);
        }
        self.put(py, &How::Insert, row)
    }

    /// Inserts rows: of anything that is an Arrow stream (a DataFrame, a table of DuckDB or pyarrow), or of an iterable
    /// of dictionaries. `id` is the row's id, if it is there, as in `insert`. Returns how many there were.
    fn insert_all(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.put_all(py, &How::Insert, data)
    }

    /// Sets fields of a row.
    #[pyo3(signature = (id, /, **fields))]
    fn update(
        &self,
        py: Python<'_>,
        id: &Bound<'_, PyAny>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let mut row = self.read(&named(py, fields))?;
        if row.id.is_some() {
            return Err(invalid("the id of a row stays; delete the row, and insert another"));
        }
        row.id = Some(self.id(id)?);
        self.put(py, &How::Update, row).map(drop)
    }

    /// Sets fields of rows, which are given as to `insert_all`, with the `id` of each row and the fields to set. Returns
    /// how many there were.
    fn update_all(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.put_all(py, &How::Update, data)
    }

    /// Updates the row that has the key in a unique index, or inserts it; `by` is the name of the index, or `id`.
    /// Returns the id of the row.
    #[pyo3(signature = (by, /, **fields))]
    fn upsert(
        &self,
        py: Python<'_>,
        by: &str,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<u64> {
        let how = self.by(py, by)?;
        self.put(py, &how, self.read(&named(py, fields))?)
    }

    /// Updates or inserts rows, which are given as to `insert_all`. Returns how many there were.
    fn upsert_all(&self, py: Python<'_>, data: &Bound<'_, PyAny>, by: &str) -> PyResult<u64> {
        let how = self.by(py, by)?;
        self.put_all(py, &how, data)
    }

    /// Deletes a row.
    fn delete(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<()> {
        let id = self.id(id)?;
        self.transaction.get().with(py, |tx| tx.delete(self.table.number, id).or_raise())
    }

    /// Deletes rows: by their ids, or those of a DataFrame with a column `id`. Returns how many there were.
    fn delete_all(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<u64> {
        let transaction = self.transaction.get();
        transaction.wholly(py, || {
            if !data.is_instance_of::<Rows>()
                && let Some(frame) = Frame::of(data)?
            {
                return self.put_frame(py, &How::Delete, frame);
            }
            let mut count = 0;
            // A list first: what is deleted may be what is iterated.
            for id in data.try_iter()?.collect::<PyResult<Vec<_>>>()? {
                let id = if id.is_instance_of::<Found>() { id.getattr("id")? } else { id };
                let id = self.id(&id)?;
                transaction.in_part(py, |tx| tx.delete(self.table.number, id).or_raise())?;
                count += 1;
                if count % 1024 == 0 {
                    py.check_signals()?;
                }
            }
            Ok(count)
        })
    }

    fn __delitem__(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<()> {
        self.delete(py, id)
    }

    /// Returns the row of an id, or those of a slice of ids.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        id: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let source = self.source(py);
        match id.cast::<PySlice>() {
            Ok(ids) => {
                Ok(table::slice(py, source, &self.table, ids)?.into_pyobject(py)?.into_any())
            }
            Err(_) => {
                Ok(table::require(py, &source, &self.table, id)?.into_pyobject(py)?.into_any())
            }
        }
    }

    /// Returns the row of an id, or None.
    fn get(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<Option<Found>> {
        table::find(py, &self.source(py), &self.table, id)
    }

    /// Returns the rows whose ids are in a range.
    #[pyo3(signature = (first = None, end = None, *, select = None))]
    fn range(
        &self,
        py: Python<'_>,
        first: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
        select: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Rows> {
        table::range(py, self.source(py), &self.table, [first, end, select])
    }

    fn __contains__(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<bool> {
        table::contains(py, &self.source(py), &self.table, id)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        table::len(py, &self.source(py), &self.table)
    }

    /// Iterates over the rows that are there now, each as it is when its turn comes.
    fn __iter__(&self, py: Python<'_>) -> PyResult<RowIterator> {
        table::iterate(py, self.source(py), &self.table)
    }

    /// Returns the ids of all rows, in order.
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let rows = table::range(py, self.source(py), &self.table, [None; 3])?;
        PyTuple::new(py, rows.ids.iter().map(|id| id.0).collect::<Vec<_>>())
    }

    /// Returns the index of a name, also if an attribute of that name is something else.
    fn index(&self, py: Python<'_>, name: &str) -> PyResult<Index> {
        self.named(py, name)?.map_err(not_found)
    }

    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Index> {
        self.named(py, name)?.map_err(PyAttributeError::new_err)
    }

    fn __dir__(slf: &Bound<'_, Self>) -> PyResult<Vec<String>> {
        let (py, this) = (slf.py(), slf.get());
        let names =
            this.source(py).look(py, |view, _| Ok(index::names(view.schema(), &this.table)));
        index::listed(slf, names.unwrap_or_default())
    }

    fn __repr__(&self) -> String {
        format!("<table {} of a transaction>", self.table.name)
    }
}
