//! The handle of a database.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use annals::{Database as Writer, Level, Moment, Options, Reader, Schema, Txid};
use annals_replica::Lazy;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use crate::arguments;
use crate::errors::{OrRaise as _, invalid, not_found};
use crate::files::{self, retention, watched};
use crate::index::listed;
use crate::past::{Feed, blame, change, version};
use crate::remote;
use crate::snapshot::Snapshot;
use crate::sql::{Answer, ask};
use crate::table::Table;
use crate::transaction::Transaction;
use crate::turn::Turn;
use crate::values::{is_time, row_id, to_time};
use crate::wait::{blocking, locked};

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
    /// The process that opened it.
    process: u32,
    /// The file, if it is here.
    path: Option<PathBuf>,
    is_shared: bool,
}

impl Database {
    fn new(source: Source, name: String) -> Self {
        let (source, turn) = (Mutex::new(Some(source)), Arc::default());
        let process = std::process::id();
        Self { source, turn, name, process, path: None, is_shared: false }
    }
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
/// needs is fetched, with the token, or that of ANNALS_TOKEN. A server is `Unreachable` after 5 seconds without a
/// connection, and after 30 of silence.
///
/// All history is kept, unless one of the rules `keep_bytes`, `keep_days` and `keep_transactions` is given. `progress` is
/// called with the bytes that were read, and all there are.
#[pyfunction]
#[pyo3(signature = (path, *, schema = None, read_only = false, shared = false, create = true, soft = false, token = None,
    keep_bytes = None, keep_days = None, keep_transactions = None, progress = None))]
#[allow(clippy::too_many_arguments, reason = "they are names in Python")]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    schema: Option<&Bound<'_, PyAny>>,
    read_only: bool,
    shared: bool,
    create: bool,
    soft: bool,
    token: Option<String>,
    keep_bytes: Option<&Bound<'_, PyAny>>,
    keep_days: Option<&Bound<'_, PyAny>>,
    keep_transactions: Option<&Bound<'_, PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Database> {
    if let Some(url) = path.to_str().filter(|path| remote::is_url(path)) {
        if schema.is_some() {
            return Err(invalid(format!("{url} is read from here: open it without schema=")));
        }
        let (name, url) = (url.to_owned(), url.to_owned());
        let lazy = blocking(py, move || remote::open(&url, token))?.or_raise()?;
        return Ok(Database::new(Source::Lazy(Arc::new(lazy)), name));
    }
    let schema = arguments::text("schema", schema)?.as_deref().map(parsed).transpose()?;
    let rules = retention(keep_bytes, keep_days, keep_transactions)?;
    let mut options = Options::new().shared(shared).create(create).retention(rules);
    if soft {
        options = options.level(Level::Soft);
    }
    let (name, file) = (path.display().to_string(), path.clone());
    let source = watched(py, options, progress, move |options| {
        Ok(match (schema, read_only) {
            (None, false) => Source::Writer(options.open(&path)?),
            (Some(schema), false) => Source::Writer(options.open_schema(&path, &schema)?),
            (None, true) => Source::Reader(Arc::new(options.open_read_only(&path)?)),
            (Some(schema), true) => {
                Source::Reader(Arc::new(options.open_schema_read_only(&path, &schema)?))
            }
        })
    })?;
    let made = Database::new(source, name);
    Ok(Database { path: Some(file), is_shared: shared, ..made })
}

/// Makes a database in memory with a schema.
#[pyfunction]
#[pyo3(signature = (schema = None))]
pub(crate) fn in_memory(schema: Option<&Bound<'_, PyAny>>) -> PyResult<Database> {
    let schema = parsed(&arguments::text("schema", schema)?.unwrap_or_default())?;
    let mut none = |_: annals::Custom<'_>, _: &mut annals::Transaction<'_>| {
        Err(annals::Error::invalid("a schema of a Python program has no custom functions"))
    };
    let made = Writer::in_memory().and_then(|db| db.upgrade(&schema, &mut none).map(|()| db));
    Ok(Database::new(Source::Writer(made.or_raise()?), "in memory".to_owned()))
}

/// Reads a moment: a number, a `datetime`, or a text as in `comment:before the fair`.
fn moment(at: &Bound<'_, PyAny>) -> PyResult<Moment> {
    if let Ok(text) = at.cast::<PyString>() {
        return text
            .to_str()?
            .parse()
            .map_err(|error: annals::model::MomentError| invalid(error.to_string()));
    }
    if is_time(at)? {
        return Ok(Moment::Time(to_time(at)?));
    }
    let number = if at.is_instance_of::<PyBool>() { None } else { at.extract().ok() };
    number.map(|txid| Moment::Txid(Txid(txid))).ok_or_else(|| {
        let shown = at.repr().map_or_else(|_| "this".to_owned(), |text| text.to_string());
        invalid(format!(
            "{shown} is no moment: write the number of a transaction, a datetime with a zone, or 'comment:TEXT'"
        ))
    })
}

/// Does the same with all kinds of source, after a look at what others have committed. It may take long.
macro_rules! of {
    ($self:expr, $py:expr, $source:ident => $do:expr) => {{
        let (source, follows) = ($self.source()?, $self.follows());
        let done = blocking($py, move || match source {
            Source::Writer($source) if follows => $source.pull().and_then(|_| $do),
            Source::Writer($source) => $do,
            Source::Reader($source) => $source.pull().and_then(|_| $do),
            Source::Lazy(lazy) => lazy.pull().and_then(|_| {
                let $source = lazy.reader();
                $do
            }),
        });
        done?.or_raise()
    }};
}

/// Returns what shows the state after a commit of a subscription. A handle that shares its file may not have loaded that
/// commit, and may have to wait for its turn to do so: then a reader of the file does.
fn showing(
    read: impl Fn() -> annals::Snapshot + Send + Sync + 'static,
    shared: Option<PathBuf>,
) -> impl Fn(Txid) -> annals::Result<annals::Snapshot> + Send + Sync + 'static {
    let reader: Mutex<Option<Reader>> = Mutex::new(None);
    move |txid| {
        let now = read();
        let Some(path) = shared.as_ref().filter(|_| now.txid() < txid) else { return Ok(now) };
        let mut reader = locked(&reader);
        let reader = match &mut *reader {
            Some(reader) => reader,
            none => none.insert(Options::new().open_read_only(path)?),
        };
        Some(reader.read()).filter(|now| now.txid() >= txid).map_or_else(|| reader.pull(), Ok)
    }
}

impl Database {
    /// Fails in a forked child. It takes no lock: another thread may have held it at the fork.
    fn check_process(&self) -> PyResult<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let message = "this handle was opened before the process was forked: open the database again in the child";
        Err(crate::errors::to_python(&annals::Error::new(
            annals::ErrorKind::Poisoned,
            format!("{}: {message}", self.name),
        )))
    }

    fn source(&self) -> PyResult<Source> {
        self.check_process()?;
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

    /// True if other processes may have written since: none does while a transaction of this handle is open.
    fn follows(&self) -> bool {
        self.is_shared && !self.turn.is_taken()
    }

    fn now(&self, py: Python<'_>) -> PyResult<Snapshot> {
        Ok(Snapshot(match self.source()? {
            Source::Writer(writer) if self.follows() => py.detach(|| writer.pull()).or_raise()?,
            Source::Writer(writer) => writer.read(),
            Source::Reader(reader) => py.detach(|| reader.pull()).or_raise()?,
            Source::Lazy(lazy) => blocking(py, move || lazy.pull())?.or_raise()?,
        }))
    }

    /// Returns a table and a row's id.
    fn key(
        &self,
        now: &Snapshot,
        name: &str,
        id: &Bound<'_, PyAny>,
    ) -> PyResult<(annals::Table, annals::RowId)> {
        let table = now.0.schema().table_named(name).cloned();
        let table = table.ok_or_else(|| not_found(now.missing(name)))?;
        let id =
            row_id(id)?.ok_or_else(|| not_found(format!("table `{name}` never had a row {id}")));
        Ok((table, id?))
    }
}

#[pymethods]
impl Database {
    /// Returns a snapshot of the last commit. Here it never waits; of a URL it asks the server.
    fn read(&self, py: Python<'_>) -> PyResult<Snapshot> {
        self.now(py)
    }

    /// Returns the state at a moment: the number of a transaction, a `datetime`, or `"comment:.."`. It has the present
    /// tables and fields.
    #[pyo3(signature = (when, /))]
    fn at(&self, py: Python<'_>, when: &Bound<'_, PyAny>) -> PyResult<Snapshot> {
        let at = moment(when)?;
        of!(self, py, source => source.at(at)).map(Snapshot)
    }

    /// Returns the state at a moment with the tables and fields of that moment: also what was dropped since, by the names
    /// of then.
    #[pyo3(signature = (when, /))]
    fn as_it_was(&self, py: Python<'_>, when: &Bound<'_, PyAny>) -> PyResult<Snapshot> {
        let at = moment(when)?;
        of!(self, py, source => source.as_it_was(at)).map(Snapshot)
    }

    /// Returns the number of the transaction at whose end a moment is.
    #[pyo3(signature = (when, /))]
    fn txid_of(&self, py: Python<'_>, when: &Bound<'_, PyAny>) -> PyResult<u64> {
        let at = moment(when)?;
        of!(self, py, source => source.txid_of(at)).map(|txid| txid.0)
    }

    /// Begins a transaction; waits for the one before, until Ctrl-C. It is `Busy` after `timeout` seconds; without that,
    /// when nobody has used the one before for 10 seconds, or other processes have written for so long.
    #[pyo3(signature = (*, comment = None, time = None, soft = false, timeout = None))]
    fn write(
        &self,
        py: Python<'_>,
        comment: Option<&Bound<'_, PyAny>>,
        time: Option<&Bound<'_, PyAny>>,
        soft: bool,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Transaction> {
        let Source::Writer(writer) = self.source()? else {
            return Err(invalid("the database was opened read-only, or by a URL"));
        };
        let comment = arguments::text("comment", comment)?;
        let (time, timeout) = (time.map(to_time).transpose()?, arguments::timeout(timeout)?);
        let (ticket, left) = self.turn.take(py, timeout)?;
        let made = Transaction::begin(py, writer, self.is_shared, ticket, left)?;
        made.with(py, |tx| {
            if soft {
                tx.set_level(Level::Soft);
            }
            if let Some(time) = time {
                tx.set_time(time);
            }
            comment.map_or(Ok(()), |text| tx.comment(&text)).or_raise()
        })?;
        Ok(made)
    }

    /// Asks with SQL, of now, of the past and of the history. It only reads, and opens no other files; `?` takes the values
    /// of a list, `:name` those of a dict.
    #[pyo3(signature = (query, params = None, /))]
    fn sql(
        &self,
        py: Python<'_>,
        query: &str,
        params: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Answer> {
        let source = match self.source()? {
            Source::Writer(writer) => {
                if self.follows() {
                    let pulled = writer.clone();
                    blocking(py, move || pulled.pull())?.or_raise()?;
                }
                annals_sql::Source::Database(writer)
            }
            Source::Reader(reader) => annals_sql::Source::Reader(reader),
            Source::Lazy(lazy) => {
                let pulled = Arc::clone(&lazy);
                blocking(py, move || pulled.pull())?.or_raise()?;
                annals_sql::Source::Reader(lazy.reader())
            }
        };
        ask(py, source, query, params)
    }

    /// Returns the versions of a row, the oldest first.
    fn history<'py>(
        &self,
        py: Python<'py>,
        table: &str,
        id: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let now = self.now(py)?;
        let (table, row) = self.key(&now, table, id)?;
        let all: Vec<_> = of!(self, py, source => source.history_of(table.number, row)?.collect::<annals::Result<_>>())?;
        all.iter().map(|it| version(py, &now.0, it)).collect()
    }

    /// Returns since when each field of a row has its value.
    fn blame<'py>(
        &self,
        py: Python<'py>,
        table: &str,
        id: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let now = self.now(py)?;
        let (table, row) = self.key(&now, table, id)?;
        let number = table.number;
        let all = of!(self, py, source => source.blame(number, row))?;
        all.iter().map(|it| blame(py, &now.0, &table, it)).collect()
    }

    /// Returns the rows that differ between two moments.
    #[pyo3(signature = (first, last = None))]
    fn diff<'py>(
        &self,
        py: Python<'py>,
        first: &Bound<'_, PyAny>,
        last: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let now = self.now(py)?;
        let first = Txid(self.txid_of(py, first)?);
        let last = last.map_or(Ok(now.0.txid().0), |last| self.txid_of(py, last)).map(Txid)?;
        let from = now.0.clone();
        let all = blocking(py, move || from.differences(first, last))?.or_raise()?;
        all.iter().map(|row| change(py, &now.0, row)).collect()
    }

    /// Follows the commits from now on, or all after a transaction: an iterator, also of `async for`.
    #[pyo3(signature = (after = None))]
    fn subscribe(&self, py: Python<'_>, after: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        let first = arguments::count("after", after)?.map(|after| Txid(after.saturating_add(1)));
        let shared = self.path.clone().filter(|_| self.is_shared);
        let feed = match (self.source()?, first) {
            // Nothing is read for it, which another thread would have to do.
            (Source::Writer(writer), None) if shared.is_none() => {
                Feed::new(writer.subscribe(), move |_| Ok(writer.read()))
            }
            _ => of!(self, py, source => {
                let feed = first.map_or_else(|| Ok(source.subscribe()), |first| source.subscribe_from(first));
                feed.map(|feed| Feed::new(feed, showing(move || source.read(), shared)))
            })?,
        };
        Ok(py.import("annals._subscription")?.getattr("Subscription")?.call1((feed,))?.unbind())
    }

    /// Copies the database to a new file, with all of its history, also while it is written. Returns the number of the
    /// last transaction in the copy. `progress` is called with the bytes that were read, and all there are.
    #[pyo3(signature = (path, *, progress = None))]
    fn backup(&self, py: Python<'_>, path: PathBuf, progress: Option<Py<PyAny>>) -> PyResult<u64> {
        let source = self.source()?;
        let from = self.path.clone().ok_or_else(|| {
            invalid(format!(
                "{}: only a file can be copied; `annals backup URL FILE` copies from a server",
                self.name
            ))
        })?;
        if let Source::Writer(writer) = source {
            // What was committed softly is copied, too.
            blocking(py, move || writer.hard_checkpoint())?.or_raise()?;
        }
        files::backup(py, from, path, progress)
    }

    /// Closes the database for all who use this handle; waits for the transaction of another thread. What was read can
    /// still be read.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.check_process()?;
        let source = locked(&self.source).take();
        let Some(Source::Writer(writer)) = source else { return Ok(()) };
        // No transaction begins now; it stays open if this one can't wait for its end.
        self.turn.wait_for_end(py).inspect_err(|_| {
            *locked(&self.source) = Some(Source::Writer(writer.clone()));
        })?;
        blocking(py, move || writer.close())?.or_raise()
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

    /// The names of the tables.
    #[getter]
    fn tables(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.now(py)?.names())
    }

    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        // Python asks for names of its own, also of a database that is closed.
        if name.starts_with("__") {
            return Err(PyAttributeError::new_err(format!("there is no table {name:?}")));
        }
        let now = self.now(py)?;
        now.table(name).ok_or_else(|| PyAttributeError::new_err(now.missing(name)))
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let now = self.now(py)?;
        now.table(name).ok_or_else(|| not_found(now.missing(name)))
    }

    fn __dir__(slf: &Bound<'_, Self>) -> PyResult<Vec<String>> {
        listed(slf, slf.get().tables(slf.py()).unwrap_or_default())
    }

    fn __repr__(&self) -> String {
        let closed = if locked(&self.source).is_none() { ", closed" } else { "" };
        format!("<database {}{closed}>", self.name)
    }
}
