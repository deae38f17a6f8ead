//! Versions of rows, changes by transaction, and subscriptions. Their classes are named tuples, in `_past.py`.

use std::sync::Mutex;
use std::time::Duration;

use annals::{RowChange, Snapshot, Txid, Value, ValueRef};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments;
use crate::errors::OrRaise as _;
use crate::source::read_blob;
use crate::values::{time, to_python};
use crate::wait::{TICK, deadline_of, locked, now};

/// Makes an instance of a class of `_past.py`.
fn make<'py>(
    py: Python<'py>,
    class: &str,
    fields: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || Ok::<_, PyErr>(py.import("annals._past")?.unbind()));
    module?.bind(py).getattr(class)?.call1(fields.into_pyobject(py)?)
}

fn comment(comments: &[String]) -> Option<String> {
    (!comments.is_empty()).then(|| comments.join("\n"))
}

fn side<'py>(
    py: Python<'py>,
    snapshot: &Snapshot,
    change: &RowChange,
    values: Option<&[Value]>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let (Some(values), Some(table)) = (values, snapshot.schema().table(change.table)) else {
        return Ok(None);
    };
    let made = PyDict::new(py);
    let blobs = |blob| read_blob(snapshot, blob);
    for field in &table.fields {
        let value = values.get(field.number.0 as usize).map_or(ValueRef::Null, Value::as_ref);
        made.set_item(&field.name, to_python(py, value, &blobs)?)?;
    }
    Ok(Some(made))
}

/// Returns a change.
pub(crate) fn change<'py>(
    py: Python<'py>,
    snapshot: &Snapshot,
    row: &RowChange,
) -> PyResult<Bound<'py, PyAny>> {
    let table = snapshot.schema().table(row.table).map_or("", |table| table.name.as_str());
    let old = side(py, snapshot, row, row.before.as_deref())?;
    let new = side(py, snapshot, row, row.after.as_deref())?;
    make(py, "Change", (table, row.id.0, old, new))
}

pub(crate) fn version<'py>(
    py: Python<'py>,
    snapshot: &Snapshot,
    it: &annals::Version,
) -> PyResult<Bound<'py, PyAny>> {
    let old = side(py, snapshot, &it.change, it.change.before.as_deref())?;
    let new = side(py, snapshot, &it.change, it.change.after.as_deref())?;
    let (time, comment) = (time(py, it.time)?, comment(&it.comments));
    make(py, "Version", (it.txid.0, time, comment, it.kind().name(), old, new))
}

pub(crate) fn blame<'py>(
    py: Python<'py>,
    snapshot: &Snapshot,
    table: &annals::Table,
    it: &annals::Blame,
) -> PyResult<Bound<'py, PyAny>> {
    let blobs = |blob| read_blob(snapshot, blob);
    let field = table.field(it.field).map_or("", |field| field.name.as_str());
    let value = to_python(py, it.value.as_ref(), &blobs)?;
    let (time, comment) = (time(py, it.time)?, comment(&it.comments));
    make(py, "Blame", (field, value, it.txid.0, time, comment, it.kind.name()))
}

fn changed<'py>(
    py: Python<'py>,
    snapshot: &Snapshot,
    it: &annals::Changed,
) -> PyResult<Bound<'py, PyAny>> {
    let rows = it.rows.iter().map(|row| change(py, snapshot, row));
    let rows = rows.collect::<PyResult<Vec<_>>>()?;
    make(py, "Changed", (it.txid.0, time(py, it.time)?, comment(&it.comments), rows))
}

struct Following {
    subscription: annals::Subscription,
    /// A commit that was taken from it, and isn't given yet: it stays if it can't be made into objects.
    next: Option<annals::Changed>,
}

/// The commits from one on, each once, in order.
#[pyclass(frozen, module = "annals")]
pub(crate) struct Feed {
    following: Mutex<Option<Following>>,
    /// Shows the state after a commit, or a later one.
    show: Box<dyn Fn(Txid) -> annals::Result<Snapshot> + Send + Sync>,
}

impl Feed {
    pub(crate) fn new(
        subscription: annals::Subscription,
        show: impl Fn(Txid) -> annals::Result<Snapshot> + Send + Sync + 'static,
    ) -> Self {
        let following = Mutex::new(Some(Following { subscription, next: None }));
        Self { following, show: Box::new(show) }
    }

    /// Waits a moment for the next commit; returns it, and whether nothing will follow.
    fn wait(&self, step: Duration) -> annals::Result<(Option<annals::Changed>, bool)> {
        let mut following = locked(&self.following);
        let Some(Following { subscription, next }) = following.as_mut() else {
            return Ok((None, true));
        };
        let next = match next.take() {
            Some(next) => Some(next),
            None => subscription.next_timeout(step)?,
        };
        Ok((next, subscription.is_over()))
    }
}

#[pymethods]
impl Feed {
    /// Returns the next commit; None after `timeout` seconds, or at the end: then `is_over` is true.
    #[pyo3(signature = (timeout = None))]
    fn next<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let end = deadline_of(arguments::timeout(timeout)?);
        loop {
            let left = end.map(|end| end.saturating_duration_since(now()));
            let step = left.map_or(TICK, |left| left.min(TICK));
            let (next, is_over) = py.detach(|| self.wait(step)).or_raise()?;
            if let Some(next) = next {
                let made = py.check_signals().and_then(|()| {
                    let now = py.detach(|| (self.show)(next.txid)).or_raise()?;
                    changed(py, &now, &next)
                });
                if let (Err(_), Some(following)) = (&made, locked(&self.following).as_mut()) {
                    following.next = Some(next);
                }
                return made.map(Some);
            }
            py.check_signals()?;
            if is_over || left.is_some_and(|left| left <= step) {
                return Ok(None);
            }
        }
    }

    /// True if nothing will follow.
    #[getter]
    fn is_over(&self) -> bool {
        let following = locked(&self.following);
        following.as_ref().is_none_or(|it| it.next.is_none() && it.subscription.is_over())
    }

    /// Ends it.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(locked(&self.following).take()));
    }
}
