//! Transactions.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use annals::{Level, Savepoint as Point, Schema, Table};
use annals_tools::Undo as _;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;

use crate::arguments;
use crate::errors::{OrRaise as _, invalid, not_found};
use crate::held::{By, Held, Slot};
use crate::index::listed;
use crate::snapshot::missing;
use crate::turn::Ticket;
use crate::values::to_time;
use crate::wait::{blocking, locked};
use crate::writable::WritableTable;

/// A transaction: with `with`, it commits at the end, or rolls back if the block raises. Any thread may use it and end it;
/// if nobody does, it is rolled back when it is freed.
///
/// >>> import annals
/// >>> with annals.in_memory("create_table city\nadd_field city name string\n") as db:
/// ...     with db.write(comment="the first") as tx:
/// ...         lille = tx.city.insert(name="Lile")
/// ...         tx.city.update(lille, name="Lille")
/// ...         tx.city[lille].name
/// 'Lille'
#[pyclass(frozen, module = "annals")]
pub(crate) struct Transaction {
    slot: Arc<Slot>,
    /// The number of the transaction, once it is committed.
    txid: Mutex<Option<u64>>,
}

impl Transaction {
    /// Begins a transaction. In shared mode that may wait for another process, until a signal ends it.
    pub(crate) fn begin(
        py: Python<'_>,
        database: annals::Database,
        is_shared: bool,
        ticket: Ticket,
        timeout: Option<Duration>,
    ) -> PyResult<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&interrupted);
        let begin = move || {
            // By the thread that waits: if its caller is interrupted, that one may write again, after it.
            ticket.begin_use();
            Held::begin(&database, ticket, timeout, &|| !seen.load(Ordering::Relaxed))
        };
        let held = match is_shared {
            true => {
                blocking(py, begin).inspect_err(|_| interrupted.store(true, Ordering::Relaxed))?
            }
            false => py.detach(begin),
        };
        Ok(Self { slot: Slot::new(held.or_raise()?), txid: Mutex::new(None) })
    }

    /// Does something with the transaction; waits for a call of another thread.
    pub(crate) fn with<T>(
        &self,
        py: Python<'_>,
        what: impl FnOnce(&mut annals::Transaction<'static>) -> PyResult<T>,
    ) -> PyResult<T> {
        what(self.slot.take(py, By::Call)?.get())
    }

    /// Does something that only reads, or is a part of what is done [`wholly`](Self::wholly).
    pub(crate) fn in_part<T>(
        &self,
        py: Python<'_>,
        what: impl FnOnce(&mut annals::Transaction<'static>) -> PyResult<T>,
    ) -> PyResult<T> {
        what(self.slot.take(py, By::Part)?.get())
    }

    /// Does something that may take long, and that Ctrl-C doesn't wait for.
    fn with_patience<T: Send + 'static>(
        &self,
        py: Python<'_>,
        what: impl FnOnce(&mut annals::Transaction<'static>) -> annals::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let mut taken = self.slot.take(py, By::Call)?;
        taken.leave();
        blocking(py, move || what(taken.get()))?.or_raise()
    }

    /// Does what a call that takes rows does wholly or not at all, also if it panics.
    pub(crate) fn wholly<T>(
        &self,
        py: Python<'_>,
        what: impl FnOnce() -> PyResult<T>,
    ) -> PyResult<T> {
        let mut taken = self.slot.take(py, By::Call)?;
        let point = taken.get().set_savepoint().or_raise()?;
        taken.takes_rows(true);
        drop(taken);
        let done = catch_unwind(AssertUnwindSafe(what));
        let mut taken = self.slot.take(py, By::End)?;
        taken.takes_rows(false);
        let tx = taken.get();
        let undone = if matches!(done, Ok(Ok(_))) { Ok(()) } else { tx.roll_back_to(point) };
        let ended = undone.and_then(|()| tx.release(point)).or_raise();
        drop(taken);
        // What went wrong first is the error: ending may fail because of it.
        let done = done.unwrap_or_else(|panicked| resume_unwind(panicked))?;
        ended.map(|()| done)
    }

    fn end<T: Send>(
        &self,
        py: Python<'_>,
        how: impl FnOnce(Held) -> annals::Result<T> + Send,
    ) -> PyResult<T> {
        let taken = self.slot.take(py, By::Call)?;
        py.detach(|| taken.end(how)).or_raise()
    }

    fn schema(&self, py: Python<'_>) -> PyResult<Arc<Schema>> {
        self.in_part(py, |tx| Ok(Arc::clone(tx.view().schema())))
    }

    fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.schema(py)?.tables().iter().map(|table| table.name.clone()).collect())
    }
}

fn table(slf: &Bound<'_, Transaction>, name: &str) -> PyResult<Result<WritableTable, String>> {
    let schema = slf.get().schema(slf.py())?;
    let writable = |table: &Table| WritableTable::new(slf.clone().unbind(), table.clone());
    Ok(schema.table_named(name).map(writable).ok_or_else(|| missing(&schema, name)))
}

#[pymethods]
impl Transaction {
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
        let _ = (exception, traceback);
        match exception_type {
            _ if self.slot.is_over() => {}
            None => self.commit(py).map(drop)?,
            Some(_) => self.rollback(py)?,
        }
        Ok(false)
    }

    /// Commits; returns the number of the transaction. When it returns, the changes are durable.
    fn commit(&self, py: Python<'_>) -> PyResult<u64> {
        let committed = self.end(py, Held::commit)?;
        *locked(&self.txid) = Some(committed.txid.0);
        Ok(committed.txid.0)
    }

    /// Rolls back: nothing of the transaction remains.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py, Held::rollback)
    }

    /// The number of the transaction once it is committed, else None.
    #[getter]
    fn txid(&self) -> Option<u64> {
        *locked(&self.txid)
    }

    /// The names of the tables.
    #[getter]
    fn tables(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.names(py)
    }

    /// Writes a comment to the journal.
    fn comment(&self, py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<()> {
        let text = arguments::text("comment", Some(text))?.unwrap_or_default();
        self.with(py, |tx| tx.comment(&text).or_raise())
    }

    /// Sets the time of the commit, instead of the clock's.
    fn set_time(&self, py: Python<'_>, time: &Bound<'_, PyAny>) -> PyResult<()> {
        let time = to_time(time)?;
        self.with(py, |tx| {
            tx.set_time(time);
            Ok(())
        })
    }

    /// Makes the commit soft: it survives a crash of the process, and maybe not a power cut.
    fn set_soft(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |tx| {
            tx.set_level(Level::Soft);
            Ok(())
        })
    }

    /// Undoes an earlier transaction by new changes.
    fn revert(&self, py: Python<'_>, txid: &Bound<'_, PyAny>) -> PyResult<()> {
        let txid = arguments::count("txid", Some(txid))?.unwrap_or_default();
        self.with_patience(py, move |tx| tx.revert(annals::Txid(txid)))
    }

    /// Returns a savepoint: with `with`, a block that raises is undone, and the transaction goes on.
    fn savepoint(slf: Py<Self>) -> Savepoint {
        Savepoint { transaction: slf, point: Mutex::new(None) }
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<WritableTable> {
        // Python asks for names of its own, also of a transaction that is over.
        if name.starts_with("__") {
            return Err(PyAttributeError::new_err(format!("there is no table {name:?}")));
        }
        table(slf, name)?.map_err(|missing| {
            let it = format!("a transaction has no `{name}`");
            PyAttributeError::new_err(match name {
                "sql" => format!(
                    "{it}: its tables are read as tx.t[0] and tx.t.by_name[..]; db.sql(..) asks for what is committed"
                ),
                "read" | "at" | "as_it_was" | "history" | "blame" | "diff" | "subscribe" | "write" => {
                    format!("{it}, the database has it: db.{name}(..), of what is committed")
                }
                _ => missing,
            })
        })
    }

    fn __getitem__(slf: &Bound<'_, Self>, name: &str) -> PyResult<WritableTable> {
        table(slf, name)?.map_err(not_found)
    }

    fn __dir__(slf: &Bound<'_, Self>) -> PyResult<Vec<String>> {
        listed(slf, slf.get().names(slf.py()).unwrap_or_default())
    }

    fn __repr__(&self) -> String {
        let state = match *locked(&self.txid) {
            Some(txid) => format!("{txid}, committed"),
            None if self.slot.is_over() => "over".to_owned(),
            None => "open".to_owned(),
        };
        format!("<transaction {state}>")
    }
}

/// A moment of a transaction to which it returns if the block raises.
#[pyclass(frozen, module = "annals")]
pub(crate) struct Savepoint {
    transaction: Py<Transaction>,
    point: Mutex<Option<Point>>,
}

#[pymethods]
impl Savepoint {
    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let transaction = slf.get().transaction.get();
        let point = transaction.with(slf.py(), |tx| tx.set_savepoint().or_raise())?;
        *locked(&slf.get().point) = Some(point);
        Ok(slf)
    }

    #[pyo3(signature = (exception_type = None, exception = None, traceback = None))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exception_type: Option<Bound<'_, PyAny>>,
        exception: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let _ = (exception, traceback);
        let Some(point) = locked(&self.point).take() else { return Ok(false) };
        // A block that ended the transaction has nothing to undo, and its own error counts.
        if exception_type.is_some() && self.transaction.get().slot.is_over() {
            return Ok(false);
        }
        self.transaction.get().with(py, |tx| {
            if exception_type.is_some() {
                tx.roll_back_to(point).or_raise()?;
            }
            tx.release(point).or_raise()
        })?;
        Ok(false)
    }

    /// Undoes what the transaction did since.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        let point = *locked(&self.point);
        let point = point.ok_or_else(|| invalid("the savepoint isn't set; use it with `with`"))?;
        self.transaction.get().with(py, |tx| tx.roll_back_to(point).or_raise())
    }
}
