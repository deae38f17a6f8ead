//! Versions of rows, changes by transaction, and subscriptions.

use std::sync::Mutex;
use std::time::Duration;

use annals::{RowChange, Schema, Snapshot, Value, ValueRef};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{OrRaise as _, invalid};
use crate::rows::read_blob;
use crate::transaction::{TICK, locked};
use crate::values::{time, to_python};

/// One version of a row: what a transaction did to it.
#[pyclass(frozen, get_all, module = "annals")]
pub(crate) struct Version {
    txid: u64,
    time: Py<PyAny>,
    comment: Option<String>,
    kind: &'static str,
    old: Option<Py<PyDict>>,
    new: Option<Py<PyDict>>,
}

/// Since when a field has its value.
#[pyclass(frozen, get_all, module = "annals")]
pub(crate) struct Blame {
    field: String,
    value: Py<PyAny>,
    txid: u64,
    time: Py<PyAny>,
    comment: Option<String>,
    kind: &'static str,
}

/// A row that differs, with its values before and after; None where there was no row.
#[pyclass(frozen, get_all, module = "annals")]
pub(crate) struct Change {
    table: String,
    id: u64,
    old: Option<Py<PyDict>>,
    new: Option<Py<PyDict>>,
}

/// The changes of one transaction.
#[pyclass(frozen, get_all, module = "annals")]
pub(crate) struct Changed {
    txid: u64,
    time: Py<PyAny>,
    comment: Option<String>,
    rows: Vec<Py<Change>>,
}

fn comment(comments: &[String]) -> Option<String> {
    (!comments.is_empty()).then(|| comments.join("\n"))
}

fn side(
    py: Python<'_>,
    snapshot: &Snapshot,
    change: &RowChange,
    values: Option<&[Value]>,
) -> PyResult<Option<Py<PyDict>>> {
    let (Some(values), Some(table)) = (values, snapshot.schema().table(change.table)) else {
        return Ok(None);
    };
    let made = PyDict::new(py);
    let blobs = |blob| read_blob(snapshot, blob);
    for field in &table.fields {
        let value = values.get(field.number.0 as usize).map_or(ValueRef::Null, Value::as_ref);
        made.set_item(&field.name, to_python(py, value, &blobs)?)?;
    }
    Ok(Some(made.unbind()))
}

/// Returns a change.
pub(crate) fn change(py: Python<'_>, snapshot: &Snapshot, row: &RowChange) -> PyResult<Change> {
    let schema: &Schema = snapshot.schema();
    let table = schema.table(row.table).map_or_else(String::new, |table| table.name.clone());
    let old = side(py, snapshot, row, row.before.as_deref())?;
    let new = side(py, snapshot, row, row.after.as_deref())?;
    Ok(Change { table, id: row.id.0, old, new })
}

pub(crate) fn version(
    py: Python<'_>,
    snapshot: &Snapshot,
    it: &annals::Version,
) -> PyResult<Version> {
    Ok(Version {
        txid: it.txid.0,
        time: time(py, it.time)?,
        comment: comment(&it.comments),
        kind: it.kind().name(),
        old: side(py, snapshot, &it.change, it.change.before.as_deref())?,
        new: side(py, snapshot, &it.change, it.change.after.as_deref())?,
    })
}

pub(crate) fn blame(
    py: Python<'_>,
    snapshot: &Snapshot,
    table: &annals::Table,
    it: &annals::Blame,
) -> PyResult<Blame> {
    let blobs = |blob| read_blob(snapshot, blob);
    Ok(Blame {
        field: table.field(it.field).map_or_else(String::new, |field| field.name.clone()),
        value: to_python(py, it.value.as_ref(), &blobs)?,
        txid: it.txid.0,
        time: time(py, it.time)?,
        comment: comment(&it.comments),
        kind: it.kind.name(),
    })
}

pub(crate) fn changed(
    py: Python<'_>,
    snapshot: &Snapshot,
    it: &annals::Changed,
) -> PyResult<Changed> {
    let rows = it.rows.iter().map(|row| Py::new(py, change(py, snapshot, row)?));
    let (rows, time) = (rows.collect::<PyResult<_>>()?, time(py, it.time)?);
    Ok(Changed { txid: it.txid.0, time, comment: comment(&it.comments), rows })
}

macro_rules! repr {
    ($($class:ident: $format:literal, $($field:ident),*;)*) => {$(
        #[pymethods]
        impl $class {
            fn __repr__(&self) -> String {
                format!($format, $(self.$field),*)
            }
        }
    )*};
}

repr! {
    Version: "<version by transaction {}: {}>", txid, kind;
    Blame: "<{} since transaction {}>", field, txid;
    Change: "<change of row {} of {}>", id, table;
    Changed: "<transaction {}>", txid;
}

/// The commits from one on, each once, in order.
#[pyclass(frozen, module = "annals")]
pub(crate) struct Feed {
    feed: Mutex<Option<annals::Subscription>>,
    read: Box<dyn Fn() -> Snapshot + Send + Sync>,
}

impl Feed {
    pub(crate) fn new(
        feed: annals::Subscription,
        read: impl Fn() -> Snapshot + Send + Sync + 'static,
    ) -> Self {
        Self { feed: Mutex::new(Some(feed)), read: Box::new(read) }
    }
}

#[pymethods]
impl Feed {
    /// Returns the next commit; None after `timeout` seconds, or at the end: then `is_over` is true.
    #[pyo3(signature = (timeout = None))]
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Changed>> {
        let whole = match timeout {
            None => Duration::MAX,
            Some(seconds) => Duration::try_from_secs_f64(seconds)
                .map_err(|_| invalid("timeout: write seconds"))?,
        };
        let mut left = whole;
        loop {
            let step = TICK.min(left);
            let next = py.detach(|| {
                let mut feed = locked(&self.feed);
                let Some(feed) = feed.as_mut() else { return Ok((None, true)) };
                let next = feed.next_timeout(step)?;
                Ok((next, feed.is_over()))
            });
            let (next, is_over) = annals::Result::or_raise(next)?;
            py.check_signals()?;
            if let Some(next) = next {
                return changed(py, &(self.read)(), &next).map(Some);
            }
            left = left.saturating_sub(step);
            if is_over || left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// True if nothing will follow.
    #[getter]
    fn is_over(&self) -> bool {
        locked(&self.feed).as_ref().is_none_or(annals::Subscription::is_over)
    }

    /// Ends it.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(locked(&self.feed).take()));
    }
}
