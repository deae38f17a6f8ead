//! The handle of a database.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use annals::{Database as Writer, Level, Moment, Options, Reader, Schema, Txid};
use annals_replica::Lazy;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors::{OrRaise as _, invalid, not_found};
use crate::past::{Blame, Change, Feed, Version, blame, change, version};
use crate::remote;
use crate::snapshot::Snapshot;
use crate::sql::{Answer, ask};
use crate::table::Table;
use crate::transaction::{Transaction, Turn, locked};
use crate::values::{is_time, to_time};

enum Source {
    Writer(Writer),
    Reader(Arc<Reader>),
    /// A database elsewhere.
    Lazy(Arc<Lazy>),
}

/// An open database. With `with`, it is closed at the end of the block.
#[pyclass(frozen, module = "annals")]
pub(crate) struct Database {
    source: Mutex<Option<Source>>,
    turn: Arc<Turn>,
    name: String,
}

fn parsed(text: &str) -> PyResult<Schema> {
    let parsed = annals_schema::parse(text);
    parsed.map(|file| file.schema).map_err(|mistakes| {
        let lines: Vec<String> = mistakes
            .iter()
            .map(|mistake| format!("line {}: {}", mistake.line, mistake.message))
            .collect();
        invalid(format!("the schema: {}", lines.join("\n")))
    })
}

/// Opens a database, or creates it. With a schema, it is upgraded to it. A URL is opened for reading: what a question
/// needs is fetched, with the token, or that of ANNALS_TOKEN.
#[pyfunction]
#[pyo3(signature = (path, *, schema = None, read_only = false, shared = false, create = true, soft = false, token = None))]
#[allow(clippy::too_many_arguments, reason = "they are names in Python")]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    schema: Option<&str>,
    read_only: bool,
    shared: bool,
    create: bool,
    soft: bool,
    token: Option<String>,
) -> PyResult<Database> {
    if let Some(url) = path.to_str().filter(|path| remote::is_url(path)) {
        if schema.is_some() {
            return Err(invalid(format!("{url} is read from here: open it without schema=")));
        }
        let lazy = py.detach(|| remote::open(url, token)).or_raise()?;
        let source = Mutex::new(Some(Source::Lazy(Arc::new(lazy))));
        return Ok(Database { source, turn: Arc::default(), name: url.to_owned() });
    }
    let schema = schema.map(parsed).transpose()?;
    let mut options = Options::new().shared(shared).create(create);
    if soft {
        options = options.level(Level::Soft);
    }
    let name = path.display().to_string();
    let opened = py.detach(|| {
        Ok(match (schema, read_only) {
            (None, false) => Source::Writer(options.open(&path)?),
            (Some(schema), false) => Source::Writer(options.open_schema(&path, &schema)?),
            (None, true) => Source::Reader(Arc::new(options.open_read_only(&path)?)),
            (Some(schema), true) => {
                Source::Reader(Arc::new(options.open_schema_read_only(&path, &schema)?))
            }
        })
    });
    let source = Mutex::new(Some(annals::Result::or_raise(opened)?));
    Ok(Database { source, turn: Arc::default(), name })
}

/// Makes a database in memory with a schema.
#[pyfunction]
#[pyo3(signature = (schema = ""))]
pub(crate) fn in_memory(schema: &str) -> PyResult<Database> {
    let schema = parsed(schema)?;
    let mut none = |_: annals::Custom<'_>, _: &mut annals::Transaction<'_>| {
        Err(annals::Error::invalid("a schema of a Python program has no custom functions"))
    };
    let made = Writer::in_memory().and_then(|db| db.upgrade(&schema, &mut none).map(|()| db));
    let writer = made.or_raise()?;
    let source = Mutex::new(Some(Source::Writer(writer)));
    Ok(Database { source, turn: Arc::default(), name: "in memory".to_owned() })
}

/// Reads a moment: a number, a `datetime`, or a text as in `comment:before the fair`.
fn moment(at: &Bound<'_, PyAny>) -> PyResult<Moment> {
    if let Ok(text) = at.cast::<PyString>() {
        return text
            .to_str()?
            .parse()
            .map_err(|error: annals::MomentError| invalid(error.to_string()));
    }
    if is_time(at)? {
        return Ok(Moment::Time(to_time(at)?));
    }
    at.extract().map(|txid| Moment::Txid(Txid(txid))).map_err(|_| {
        let shown = at.repr().map_or_else(|_| "this".to_owned(), |text| text.to_string());
        invalid(format!(
            "{shown} is no moment: write the number of a transaction, a datetime with a zone, or 'comment:TEXT'"
        ))
    })
}

/// Does the same with both kinds of source.
macro_rules! of {
    ($self:expr, $source:ident => $do:expr) => {{
        match $self.source()? {
            Source::Writer($source) => $do,
            Source::Reader($source) => $do,
            Source::Lazy(lazy) => {
                let $source = lazy.reader();
                $do
            }
        }
    }};
}

impl Database {
    fn source(&self) -> PyResult<Source> {
        match &*locked(&self.source) {
            Some(Source::Writer(writer)) => Ok(Source::Writer(writer.clone())),
            Some(Source::Reader(reader)) => Ok(Source::Reader(Arc::clone(reader))),
            Some(Source::Lazy(lazy)) => Ok(Source::Lazy(Arc::clone(lazy))),
            None => Err(crate::errors::to_python(&annals::Error::new(
                annals::ErrorKind::Closed,
                format!("{} was closed; open it again", self.name),
            ))),
        }
    }

    fn now(&self) -> PyResult<Snapshot> {
        Ok(Snapshot(match self.source()? {
            Source::Writer(writer) => writer.read(),
            Source::Reader(reader) => reader.pull().or_raise()?,
            Source::Lazy(lazy) => Python::attach(|py| py.detach(|| lazy.pull())).or_raise()?,
        }))
    }

    fn number(&self, now: &Snapshot, name: &str) -> PyResult<annals::Table> {
        let found = now.0.schema().table_named(name).cloned();
        found.ok_or_else(|| not_found(now.missing(name)))
    }
}

#[pymethods]
impl Database {
    /// Returns a snapshot of the last commit; never waits.
    fn read(&self) -> PyResult<Snapshot> {
        self.now()
    }

    /// Returns the state at a moment: the number of a transaction, a `datetime`, or `"comment:.."`.
    #[pyo3(signature = (when, /))]
    fn at(&self, py: Python<'_>, when: &Bound<'_, PyAny>) -> PyResult<Snapshot> {
        let at = moment(when)?;
        of!(self, source => py.detach(|| source.at(at)).or_raise().map(Snapshot))
    }

    /// Returns the number of the transaction at whose end a moment is.
    #[pyo3(signature = (when, /))]
    fn txid_of(&self, py: Python<'_>, when: &Bound<'_, PyAny>) -> PyResult<u64> {
        let at = moment(when)?;
        of!(self, source => py.detach(|| source.txid_of(at)).or_raise().map(|txid| txid.0))
    }

    /// Begins a transaction; waits for the one before, until Ctrl-C.
    #[pyo3(signature = (*, comment = None, time = None, soft = false))]
    fn write(
        &self,
        py: Python<'_>,
        comment: Option<&str>,
        time: Option<&Bound<'_, PyAny>>,
        soft: bool,
    ) -> PyResult<Transaction> {
        let Source::Writer(writer) = self.source()? else {
            return Err(invalid("the database was opened read-only, or by a URL"));
        };
        let made = Transaction::begin(py, &writer, &self.turn)?;
        let time = time.map(to_time).transpose()?;
        made.with(|tx| {
            if soft {
                tx.set_level(Level::Soft);
            }
            if let Some(time) = time {
                tx.set_time(time);
            }
            comment.map_or(Ok(()), |text| tx.comment(text)).or_raise()
        })?;
        Ok(made)
    }

    /// Asks with SQL, of now, of the past and of the history. It only reads; `?` takes the values of a list, `:name` those
    /// of a dict.
    #[pyo3(signature = (query, params = None, /))]
    fn sql(
        &self,
        py: Python<'_>,
        query: &str,
        params: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Answer> {
        let source = match self.source()? {
            Source::Writer(writer) => annals_sql::Source::Database(writer),
            Source::Reader(reader) => annals_sql::Source::Reader(reader),
            Source::Lazy(lazy) => {
                py.detach(|| lazy.pull()).or_raise()?;
                annals_sql::Source::Reader(lazy.reader())
            }
        };
        ask(py, source, query, params)
    }

    /// Returns the versions of a row, the oldest first.
    fn history(&self, py: Python<'_>, table: &str, id: u64) -> PyResult<Vec<Version>> {
        let now = self.now()?;
        let table = self.number(&now, table)?;
        let row = annals::RowId(id);
        let all: annals::Result<Vec<_>> =
            of!(self, source => py.detach(|| source.history_of(table.number, row)?.collect()));
        all.or_raise()?.iter().map(|it| version(py, &now.0, it)).collect()
    }

    /// Returns since when each field of a row has its value.
    fn blame(&self, py: Python<'_>, table: &str, id: u64) -> PyResult<Vec<Blame>> {
        let now = self.now()?;
        let table = self.number(&now, table)?;
        let row = annals::RowId(id);
        let all = of!(self, source => py.detach(|| source.blame(table.number, row)));
        all.or_raise()?.iter().map(|it| blame(py, &now.0, &table, it)).collect()
    }

    /// Returns the rows that differ between two moments.
    #[pyo3(signature = (first, last = None))]
    fn diff(
        &self,
        py: Python<'_>,
        first: &Bound<'_, PyAny>,
        last: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Change>> {
        let now = self.now()?;
        let first = Txid(self.txid_of(py, first)?);
        let last = last.map_or(Ok(now.0.txid().0), |last| self.txid_of(py, last)).map(Txid)?;
        let all = py.detach(|| now.0.differences(first, last)).or_raise()?;
        all.iter().map(|row| change(py, &now.0, row)).collect()
    }

    /// Follows the commits from now on, or all after a transaction: an iterator, also of `async for`.
    #[pyo3(signature = (after = None))]
    fn subscribe(&self, py: Python<'_>, after: Option<u64>) -> PyResult<Py<PyAny>> {
        let first = after.map(|after| Txid(after + 1));
        let feed = of!(self, source => {
            let feed = py.detach(|| first.map_or_else(|| Ok(source.subscribe()), |first| source.subscribe_from(first)));
            Feed::new(annals::Result::or_raise(feed)?, move || source.read())
        });
        Ok(py.import("annals._subscription")?.getattr("Subscription")?.call1((feed,))?.unbind())
    }

    /// Closes the database for all who use this handle. What was read can still be read.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let source = locked(&self.source).take();
        match source {
            Some(Source::Writer(writer)) => py.detach(|| writer.close()).or_raise(),
            _ => Ok(()),
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (exception_type = None, exception = None, traceback = None))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exception_type: Option<Bound<'_, PyAny>>,
        exception: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let _ = (exception_type, exception, traceback);
        self.close(py).map(|()| false)
    }

    fn __getattr__(&self, name: &str) -> PyResult<Table> {
        // Python asks for names of its own, also of a database that is closed.
        if name.starts_with("__") {
            return Err(PyAttributeError::new_err(format!("there is no table {name:?}")));
        }
        let now = self.now()?;
        now.table(name).ok_or_else(|| PyAttributeError::new_err(now.missing(name)))
    }

    fn __repr__(&self) -> String {
        let closed = if locked(&self.source).is_none() { ", closed" } else { "" };
        format!("<database {}{closed}>", self.name)
    }
}
