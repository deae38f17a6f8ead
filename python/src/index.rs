//! Indexes: rows by key.

use std::ops::Bound as Limit;
use std::sync::Arc;

use annals::store::IndexView;
use annals::{IndexNumber, RowId, Schema as Whole, Table as Schema, Value, ValueRef};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arguments::{self, Argument};
use crate::errors::{OrRaise as _, invalid, not_found};
use crate::rows::{Row, RowIterator, Rows};
use crate::source::Source;
use crate::table;
use crate::values::{Given, of_python};

/// An index of a table: rows by key, in the order of the keys.
#[pyclass(frozen, module = "annals")]
pub(crate) struct Index {
    pub(crate) source: Source,
    pub(crate) table: Arc<Schema>,
    pub(crate) number: IndexNumber,
}

/// Finds an index of a table, by its name or by the part after the table's.
pub(crate) fn named(schema: &Whole, table: &Schema, name: &str) -> Option<IndexNumber> {
    let full = format!("{}_{name}", table.name);
    let mut of_table = schema.indexes_of(table);
    of_table.find(|index| index.name == name || index.name == full).map(|index| index.number)
}

/// Returns the names that indexes of a table have as attributes.
pub(crate) fn names(schema: &Whole, table: &Schema) -> Vec<String> {
    let prefix = format!("{}_", table.name);
    let of_table = schema.indexes_of(table).map(|index| index.name.as_str());
    of_table.map(|name| name.strip_prefix(&prefix).unwrap_or(name).to_owned()).collect()
}

/// Returns the message that there is no such index.
pub(crate) fn missing(schema: &Whole, table: &Schema, name: &str) -> String {
    let names = names(schema, table).join(", ");
    let names = if names.is_empty() { "there is none".to_owned() } else { names };
    format!("table `{}` has no index {name:?}; its indexes are: {names}", table.name)
}

/// Returns the names of an object's class, and these: what completion shows.
pub(crate) fn listed<T>(object: &Bound<'_, T>, names: Vec<String>) -> PyResult<Vec<String>> {
    let mut all: Vec<String> = object.as_any().get_type().dir()?.extract()?;
    let others: Vec<String> = names.into_iter().filter(|name| !all.contains(name)).collect();
    all.extend(others);
    Ok(all)
}

impl Index {
    fn fields(&self, py: Python<'_>) -> PyResult<(String, Vec<annals::FieldNumber>)> {
        self.source.look(py, |view, _| {
            let index = view.schema().index(self.number);
            let index = index.ok_or_else(|| not_found("the index was dropped"))?;
            Ok((index.name.clone(), index.fields.clone()))
        })
    }

    /// Reads values of the first fields of the index.
    fn key(&self, key: &Bound<'_, PyTuple>) -> PyResult<Vec<Value>> {
        let (name, fields) = self.fields(key.py())?;
        if key.len() > fields.len() {
            return Err(invalid(format!(
                "index `{name}` has {}, not {}",
                counted(fields.len(), "field"),
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

    /// Reads values of all fields of the index.
    fn whole_key(&self, key: &Bound<'_, PyTuple>) -> PyResult<Vec<Value>> {
        let read = self.key(key)?;
        let (name, fields) = self.fields(key.py())?;
        if read.len() < fields.len() {
            let names = fields.iter().filter_map(|number| self.table.field(*number));
            let names: Vec<&str> = names.map(|field| field.name.as_str()).collect();
            return Err(invalid(format!(
                "a key of index `{name}` has {}: {}; equal() takes the first of them, and iterating takes none",
                counted(names.len(), "value"),
                names.join(", ")
            )));
        }
        Ok(read)
    }

    /// Returns the first row of a whole key.
    fn first(&self, key: &Bound<'_, PyTuple>) -> PyResult<Option<Row>> {
        let (py, key) = (key.py(), self.whole_key(key)?);
        self.source.look(py, |view, blobs| {
            let row = view.index(self.number).and_then(|view| view.first(&refs(&key)));
            row.or_raise()?.map(|row| Row::of(py, &self.table, &row, blobs)).transpose()
        })
    }

    fn rows(
        &self,
        py: Python<'_>,
        select: Argument<'_, '_>,
        ids: impl FnOnce(IndexView<'_>) -> annals::Result<Vec<RowId>> + Send,
    ) -> PyResult<Rows> {
        let table = arguments::select(&self.table, select)?;
        let ids = self
            .source
            .look(py, |view, _| py.detach(|| ids(view.index(self.number)?)).or_raise())?;
        Ok(Rows { source: self.source.share(py), table, ids })
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
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
        let found = self.first(&parts(key)?)?;
        let name = || self.fields(py).map_or_else(|_| String::new(), |(name, _)| name);
        found.ok_or_else(|| not_found(format!("index `{}` has no key {key}", name())))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.first(&parts(key)?)?.is_some())
    }

    /// Returns the row that has a key, which has a value for each field of the index, or None. Of several rows it is the
    /// first.
    #[pyo3(signature = (*key))]
    fn get(&self, key: &Bound<'_, PyTuple>) -> PyResult<Option<Row>> {
        self.first(key)
    }

    /// Returns the rows that have a key, or these values in the first fields; with `select` these fields of the rows alone:
    /// no others are read.
    #[pyo3(signature = (*key, select = None))]
    fn equal(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyTuple>,
        select: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Rows> {
        let key = self.key(key)?;
        self.rows(py, select, |index| index.equal(&refs(&key)).ids().collect())
    }

    /// Returns the rows whose key begins with these values, and then a string that begins with the last of them.
    #[pyo3(signature = (*key, select = None))]
    fn prefix(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyTuple>,
        select: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Rows> {
        let mut key = self.key(key)?;
        let last = match key.pop() {
            Some(Value::String(text)) => text.into_bytes(),
            Some(Value::Bytes(bytes)) => bytes,
            _ => return Err(invalid("a prefix is a string or bytes")),
        };
        self.rows(py, select, |index| index.prefix(&refs(&key), &last).ids().collect())
    }

    /// Returns the rows that have these values in the first fields, and in the next field one from `first` on and
    /// before `end`.
    #[pyo3(signature = (*key, first = None, end = None, select = None))]
    fn range(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyTuple>,
        first: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
        select: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Rows> {
        let limit = |last: Option<&Bound<'_, PyAny>>| {
            let Some(last) = last else { return Ok(None) };
            let whole = key.to_list();
            whole.append(last)?;
            Ok::<_, PyErr>(self.key(&whole.to_tuple())?.pop())
        };
        let (key, first, end) = (self.key(key)?, limit(first)?, limit(end)?);
        self.rows(py, select, |index| {
            let first =
                first.as_ref().map_or(Limit::Unbounded, |first| Limit::Included(first.as_ref()));
            let end = end.as_ref().map_or(Limit::Unbounded, |end| Limit::Excluded(end.as_ref()));
            index.range(&refs(&key), first, end).ids().collect()
        })
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<RowIterator> {
        Ok(self.rows(py, None, |index| index.rows().ids().collect())?.into_iter())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        table::len(py, &self.source, &self.table)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (name, fields) = self.fields(py)?;
        let names = fields.iter().filter_map(|number| self.table.field(*number));
        let names: Vec<&str> = names.map(|field| field.name.as_str()).collect();
        Ok(format!("<index {name} of {}>", names.join(", ")))
    }
}
