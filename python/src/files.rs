//! What is done with whole files: their progress, copies and checks.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use annals::{Error, ErrorKind, Options, Progress, Result, Retention};
use annals_tools::Examination;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{self, Argument};
use crate::errors::OrRaise as _;
use crate::wait::{blocking, locked};

/// Whom an operation reports to, and whether it is to stop.
#[derive(Default)]
struct Watched {
    progress: Option<Py<PyAny>>,
    /// The exception that the callback raised, or nothing: the caller was interrupted.
    stopped: Mutex<Option<Option<PyErr>>>,
}

impl Watched {
    fn report(&self, progress: Progress) -> ControlFlow<()> {
        if locked(&self.stopped).is_some() {
            return ControlFlow::Break(());
        }
        let Some(callback) = &self.progress else { return ControlFlow::Continue(()) };
        let called =
            Python::attach(|py| callback.call1(py, (progress.done, progress.total)).map(drop));
        match called {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                *locked(&self.stopped) = Some(Some(error));
                ControlFlow::Break(())
            }
        }
    }
}

/// Does work on a file, which calls `progress(done, total)` with bytes, and ends at Ctrl-C.
pub(crate) fn watched<T: Send + 'static>(
    py: Python<'_>,
    options: Options,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Options) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let watched = Arc::new(Watched { progress, stopped: Mutex::default() });
    let reporting = Arc::clone(&watched);
    let options = options.on_progress(move |progress| reporting.report(progress));
    let done = blocking(py, move || work(&options));
    let raised = match &done {
        Err(_) => locked(&watched.stopped).replace(None),
        Ok(_) => locked(&watched.stopped).take(),
    };
    match raised.flatten() {
        Some(raised) => Err(raised),
        None => done?.or_raise(),
    }
}

/// Reads the rules of what history is kept.
pub(crate) fn retention(
    bytes: Argument<'_, '_>,
    days: Argument<'_, '_>,
    transactions: Argument<'_, '_>,
) -> PyResult<Retention> {
    Ok(Retention {
        bytes: arguments::count("keep_bytes", bytes)?,
        time: arguments::duration("keep_days", "days", 86_400.0, days)?,
        transactions: arguments::count("keep_transactions", transactions)?,
    })
}

/// Copies a database, also while programs write it; returns the number of the last transaction in the copy.
pub(crate) fn backup(
    py: Python<'_>,
    from: PathBuf,
    to: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<u64> {
    watched(py, Options::new(), progress, move |options| {
        annals_tools::backup(options, from, to).map(|copied| copied.end.txid.0)
    })
}

/// Checks a file: reads and verifies all of its history, and builds its state. Returns how many `transactions`, `events`,
/// `tables`, `indexes` and `rows` it has; damage is an error.
#[pyfunction]
#[pyo3(signature = (path, *, progress = None))]
pub(crate) fn check(
    py: Python<'_>,
    path: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let counts = watched(py, Options::new(), progress, move |options| {
        let examination = annals_tools::examine(options, &path)?;
        examined(&path, &examination)
    })?;
    let made = PyDict::new(py);
    for (name, count) in ["transactions", "events", "tables", "indexes", "rows"].iter().zip(counts)
    {
        made.set_item(name, count)?;
    }
    Ok(made)
}

fn examined(path: &Path, examination: &Examination) -> Result<[u64; 5]> {
    let Examination { inspection, snapshot, problem, wrong_mark, .. } = examination;
    if let Some(unapplied) = &examination.unapplied {
        let shown = path.display().to_string();
        let why = problem.clone().unwrap_or_else(|| unapplied.explain(&shown));
        return Err(Error::new(ErrorKind::Unapplied, why));
    }
    let damage = inspection.damage.as_ref().or(problem.as_ref()).or(wrong_mark.as_ref());
    if let Some(damage) = damage {
        return Err(Error::corrupt(damage.clone()).within(path.display()));
    }
    if inspection.damaged_headers() > 0 || inspection.wrong_chain().is_some() {
        let error = Error::corrupt(
            "a copy of what is kept more than once is damaged, and the rest is sound",
        );
        return Err(error
            .within(path.display())
            .advising("opening the file for writing repairs it"));
    }
    snapshot.check().map_err(|error| error.within(path.display()))?;
    let tables = snapshot.schema().tables();
    let before = examination.segments.first().map(|oldest| oldest.start.txid.0);
    let before = before.unwrap_or(inspection.head.header.first_txid.saturating_sub(1));
    let mut rows = 0;
    for table in tables {
        rows += snapshot.table(table.number)?.len();
    }
    let transactions = inspection.end.txid.0.saturating_sub(before);
    let indexes = snapshot.schema().indexes().len() as u64;
    let events = examination.events.unwrap_or_default();
    Ok([transactions, events, tables.len() as u64, indexes, rows])
}
