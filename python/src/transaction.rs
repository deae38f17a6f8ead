//! Writing.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use annals::{
    FieldNumber, Level, RowId, Savepoint as Point, Table as Schema, TableNumber, Value, ValueRef,
};
use annals_arrow::{Incoming, Inserting};
use arrow_array::RecordBatchReader as _;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyTuple};

use crate::arrow::incoming;
use crate::errors::{OrRaise as _, invalid, not_found};
use crate::held::Held;
use crate::rows::Row;
use crate::values::{Given, of_python, to_time};

/// How long a wait goes on before signals are looked at.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// Why a second transaction of a thread is refused.
const NESTED: &str = "this thread has a transaction open already; end it first, or use a savepoint";

/// Whose turn it is to write among the threads of this process. Waiting for it, unlike waiting for the database's own
/// lock, can be interrupted.
#[derive(Default)]
pub(crate) struct Turn {
    taken_by: Mutex<Option<ThreadId>>,
    is_free: Condvar,
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Turn {
    fn take(&self, py: Python<'_>) -> PyResult<()> {
        loop {
            let is_mine = py.detach(|| {
                let me = std::thread::current().id();
                let mut taken = locked(&self.taken_by);
                if *taken == Some(me) {
                    return Err(NESTED);
                }
                if taken.is_some() {
                    let waited = self.is_free.wait_timeout(taken, TICK);
                    taken = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                let is_mine = taken.is_none();
                taken.get_or_insert(me);
                Ok(is_mine)
            });
            let is_mine = is_mine.map_err(invalid)?;
            if is_mine {
                return Ok(());
            }
            py.check_signals()?;
        }
    }

    fn give(&self) {
        *locked(&self.taken_by) = None;
        self.is_free.notify_one();
    }
}

/// A transaction: with `with`, it commits at the end, or rolls back if the block raises.
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
    held: Mutex<Option<Held>>,
    turn: Arc<Turn>,
    /// The number of the transaction, once it is committed.
    txid: Mutex<Option<u64>>,
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let held = self.held.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // In another thread the lock stays taken, and so does the turn.
        if held.is_some_and(|held| held.is_of_this_thread()) {
            self.turn.give();
        }
    }
}

impl Transaction {
    pub(crate) fn begin(
        py: Python<'_>,
        database: &annals::Database,
        turn: &Arc<Turn>,
    ) -> PyResult<Self> {
        turn.take(py)?;
        let held = py.detach(|| Held::begin(database)).or_raise();
        let held = held.inspect_err(|_| turn.give())?;
        Ok(Self { held: Mutex::new(Some(held)), turn: Arc::clone(turn), txid: Mutex::new(None) })
    }

    /// Does something with the transaction.
    pub(crate) fn with<T>(
        &self,
        what: impl FnOnce(&mut annals::Transaction<'static>) -> PyResult<T>,
    ) -> PyResult<T> {
        let Ok(mut held) = self.held.try_lock() else {
            return Err(invalid("the transaction is in use by another thread"));
        };
        let held = held.as_mut().ok_or_else(over)?;
        what(held.get().ok_or_else(other_thread)?)
    }

    fn end<T: Send>(
        &self,
        py: Python<'_>,
        how: impl FnOnce(annals::Transaction<'_>) -> annals::Result<T> + Send,
    ) -> PyResult<T> {
        let mut slot = locked(&self.held);
        let held = slot.take().ok_or_else(over)?;
        if !held.is_of_this_thread() {
            *slot = Some(held);
            return Err(other_thread());
        }
        drop(slot);
        let ended = py.detach(|| held.end(how));
        self.turn.give();
        ended.ok_or_else(other_thread)?.or_raise()
    }

    fn table(&self, name: &str) -> PyResult<Option<Arc<Schema>>> {
        self.with(|tx| Ok(tx.view().schema().table_named(name).cloned().map(Arc::new)))
    }
}

fn over() -> PyErr {
    invalid("the transaction is over; begin another one")
}

fn other_thread() -> PyErr {
    invalid("a transaction belongs to the thread that began it")
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
        let is_over = locked(&self.held).is_none();
        match exception_type {
            _ if is_over => {}
            None => self.commit(py).map(drop)?,
            Some(_) => self.rollback(py)?,
        }
        Ok(false)
    }

    /// Commits; returns the number of the transaction. When it returns, the changes are durable.
    fn commit(&self, py: Python<'_>) -> PyResult<u64> {
        let committed = self.end(py, |tx| tx.commit())?;
        *locked(&self.txid) = Some(committed.txid.0);
        Ok(committed.txid.0)
    }

    /// Rolls back: nothing of the transaction remains.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py, |tx| tx.rollback())
    }

    /// The number of the transaction once it is committed, else None.
    #[getter]
    fn txid(&self) -> Option<u64> {
        *locked(&self.txid)
    }

    /// Writes a comment to the journal.
    fn comment(&self, text: &str) -> PyResult<()> {
        self.with(|tx| tx.comment(text).or_raise())
    }

    /// Sets the time of the commit, instead of the clock's.
    fn set_time(&self, time: &Bound<'_, PyAny>) -> PyResult<()> {
        let time = to_time(time)?;
        self.with(|tx| Ok(tx.set_time(time)))
    }

    /// Makes the commit soft: it survives a crash of the process, and maybe not a power cut.
    fn set_soft(&self) -> PyResult<()> {
        self.with(|tx| Ok(tx.set_level(Level::Soft)))
    }

    /// Undoes an earlier transaction by new changes.
    fn revert(&self, txid: u64) -> PyResult<()> {
        self.with(|tx| tx.revert(annals::Txid(txid)).or_raise())
    }

    /// Returns a savepoint: with `with`, a block that raises is undone, and the transaction goes on.
    fn savepoint(slf: Py<Self>) -> Savepoint {
        Savepoint { transaction: slf, point: Mutex::new(None) }
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<WritableTable> {
        match slf.get().table(name)? {
            Some(table) => Ok(WritableTable { transaction: slf.clone().unbind(), table }),
            None => Err(PyAttributeError::new_err(format!("there is no table {name:?}"))),
        }
    }

    fn __getitem__(slf: &Bound<'_, Self>, name: &str) -> PyResult<WritableTable> {
        match slf.get().table(name)? {
            Some(table) => Ok(WritableTable { transaction: slf.clone().unbind(), table }),
            None => Err(not_found(format!("there is no table {name:?}"))),
        }
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
        let point = slf.get().transaction.get().with(|tx| tx.set_savepoint().or_raise())?;
        *locked(&slf.get().point) = Some(point);
        Ok(slf)
    }

    #[pyo3(signature = (exception_type = None, exception = None, traceback = None))]
    fn __exit__(
        &self,
        exception_type: Option<Bound<'_, PyAny>>,
        exception: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let _ = (exception, traceback);
        let Some(point) = locked(&self.point).take() else { return Ok(false) };
        self.transaction.get().with(|tx| {
            if exception_type.is_some() {
                tx.roll_back_to(point).or_raise()?;
            }
            tx.release(point).or_raise()
        })?;
        Ok(false)
    }

    /// Undoes what the transaction did since.
    fn rollback(&self) -> PyResult<()> {
        let point = *locked(&self.point);
        let point = point.ok_or_else(|| invalid("the savepoint isn't set; use it with `with`"))?;
        self.transaction.get().with(|tx| tx.roll_back_to(point).or_raise())
    }
}

/// A table in a transaction.
#[pyclass(frozen, module = "annals")]
pub(crate) struct WritableTable {
    transaction: Py<Transaction>,
    table: Arc<Schema>,
}

/// The values of a row that may have blobs.
fn ready(tx: &mut annals::Transaction<'_>, given: Given) -> PyResult<Value> {
    match given {
        Given::Value(value) => Ok(value),
        Given::Blob(bytes) => tx.write_blob(bytes.as_slice()).map(Value::Blob).or_raise(),
    }
}

impl WritableTable {
    fn number(&self) -> TableNumber {
        self.table.number
    }

    fn no_field(&self, name: &str) -> PyErr {
        let names: Vec<&str> = self.table.fields.iter().map(|field| field.name.as_str()).collect();
        let table = &self.table.name;
        not_found(format!(
            "table `{table}` has no field {name:?}; its fields are: {}",
            names.join(", ")
        ))
    }

    /// Inserts a row of a dictionary; `id` is taken apart.
    fn insert_row(
        &self,
        tx: &mut annals::Transaction<'_>,
        row: &Bound<'_, PyDict>,
        id: Option<u64>,
    ) -> PyResult<u64> {
        let mut values = Vec::with_capacity(self.table.fields.len());
        let mut found = 0;
        for field in &self.table.fields {
            values.push(match row.get_item(&field.name)? {
                Some(value) => {
                    found += 1;
                    let given = of_python(field, &value)?;
                    ready(tx, given)?
                }
                None => field.default_value(),
            });
        }
        if found < row.len() {
            for name in row.keys() {
                let name: String = name.extract()?;
                if self.table.field_named(&name).is_none() {
                    return Err(self.no_field(&name));
                }
            }
        }
        let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        match id {
            Some(id) => tx.insert_at(self.number(), RowId(id), &values).or_raise().map(|()| id),
            None => tx.insert(self.number(), &values).or_raise().map(|id| id.0),
        }
    }
}

#[pymethods]
impl WritableTable {
    /// Inserts a row; fields that are left out have their default. Returns its id, the next one if none is given.
    #[pyo3(signature = (*, id = None, **fields))]
    fn insert(
        &self,
        py: Python<'_>,
        id: Option<u64>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<u64> {
        let none;
        let fields = match fields {
            Some(fields) => fields,
            None => {
                none = PyDict::new(py);
                &none
            }
        };
        self.transaction.get().with(|tx| self.insert_row(tx, fields, id))
    }

    /// Inserts a row of a dictionary, whose keys may be any names of fields; returns its id.
    #[pyo3(name = "insert_row", signature = (fields, *, id = None))]
    fn insert_dictionary(&self, fields: &Bound<'_, PyDict>, id: Option<u64>) -> PyResult<u64> {
        let fields = fields.copy()?;
        self.transaction.get().with(|tx| self.insert_row(tx, &fields, id))
    }

    /// Inserts rows: of anything that is an Arrow stream (a DataFrame, a table of DuckDB or pyarrow), or of an iterable
    /// of dictionaries. `id` is the row's id, if it is there. Returns how many there were.
    fn insert_all(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<u64> {
        let transaction = self.transaction.get();
        if let Some(stream) = incoming(data)? {
            let mut count = 0;
            let columns = stream.schema();
            let number = self.number();
            let way = transaction
                .with(|tx| Incoming::new(tx.view().schema(), number, &columns).or_raise())?;
            let mut stream = std::panic::AssertUnwindSafe(stream);
            while let Some(batch) = py.detach(|| stream.next()) {
                let batch = batch.map_err(annals_arrow::from_arrow).or_raise()?;
                count += transaction
                    .with(|tx| way.insert(&batch, &mut Inserting::new(tx, number)).or_raise())?;
                py.check_signals()?;
            }
            return Ok(count);
        }
        let mut count = 0;
        for row in data.try_iter()? {
            let row = row?;
            let dictionary = match row.cast::<PyDict>() {
                Ok(row) => row.copy()?,
                Err(_) => {
                    let mapping = row.cast::<PyMapping>();
                    let mapping =
                        mapping.map_err(|_| invalid("a row is a dictionary of fields"))?;
                    let made = PyDict::new(py);
                    made.update(mapping)?;
                    made
                }
            };
            let id = match self.table.field_named("id") {
                None => dictionary.get_item("id")?,
                Some(_) => None,
            };
            if id.is_some() {
                dictionary.del_item("id")?;
            }
            let id = id.map(|id| id.extract::<Option<u64>>()).transpose()?.flatten();
            transaction.with(|tx| self.insert_row(tx, &dictionary, id))?;
            count += 1;
            if count % 1024 == 0 {
                py.check_signals()?;
            }
        }
        Ok(count)
    }

    /// Sets fields of a row.
    #[pyo3(signature = (id, /, **fields))]
    fn update(&self, id: u64, fields: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let mut changes: Vec<(FieldNumber, Given)> = Vec::new();
        for (name, value) in fields.into_iter().flatten() {
            let name: String = name.extract()?;
            let field = self.table.field_named(&name).ok_or_else(|| self.no_field(&name))?;
            changes.push((field.number, of_python(field, &value)?));
        }
        self.transaction.get().with(|tx| {
            tx.view()
                .table(self.number())
                .and_then(|view| view.get(RowId(id)).map(drop))
                .or_raise()?;
            for (field, given) in changes {
                let value = ready(tx, given)?;
                tx.update(self.number(), RowId(id), field, value.as_ref()).or_raise()?;
            }
            Ok(())
        })
    }

    /// Deletes a row.
    fn delete(&self, id: u64) -> PyResult<()> {
        self.transaction.get().with(|tx| tx.delete(self.number(), RowId(id)).or_raise())
    }

    fn __delitem__(&self, id: u64) -> PyResult<()> {
        self.delete(id)
    }

    fn __getitem__(&self, py: Python<'_>, id: u64) -> PyResult<Row> {
        self.transaction.get().with(|tx| {
            let blobs = |blob| {
                let mut bytes = Vec::new();
                let read = std::io::Read::read_to_end(&mut tx.blob(blob)?, &mut bytes);
                read.map_err(|error| annals::Error::io("the bytes of a blob", error))?;
                Ok(bytes)
            };
            let row = tx.view().table(self.number()).and_then(|view| view.get(RowId(id)));
            Row::of(py, &self.table, &row.or_raise()?, &blobs)
        })
    }

    fn __contains__(&self, id: u64) -> PyResult<bool> {
        self.transaction.get().with(|tx| {
            tx.view().table(self.number()).and_then(|view| view.contains(RowId(id))).or_raise()
        })
    }

    fn __len__(&self) -> PyResult<usize> {
        self.transaction.get().with(|tx| {
            let len = tx.view().table(self.number()).or_raise()?.len();
            usize::try_from(len).map_err(|_| invalid("so many rows have no len()"))
        })
    }

    /// Returns the ids of all rows, in order.
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let ids: Vec<u64> = self.transaction.get().with(|tx| {
            let view = tx.view().table(self.number()).or_raise()?;
            let ids = view.rows().map(|row| row.map(|row| row.id().0));
            ids.collect::<annals::Result<_>>().or_raise()
        })?;
        PyTuple::new(py, ids)
    }
}
