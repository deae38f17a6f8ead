//! SQL functions for the values and transactions of Annals.

use std::sync::Arc;

use annals::Timestamp;
use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};

use crate::forms::{large, read_large};
use crate::host::{Fault, Transactional as _};
use crate::session::Session;

/// Finds the session of the database whose tables have a prefix.
pub(crate) type Find = Arc<dyn Fn(&str) -> Option<Arc<Session>> + Send + Sync>;

/// Registers the functions with a connection. SQLite doesn't replace a function while statements run.
pub(crate) fn register(connection: &Connection, find: &Find) -> rusqlite::Result<()> {
    let pure = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function("annals_time", 1, pure, time)?;
    connection.create_scalar_function("annals_uint64", 1, pure, uint64)?;
    let changing = FunctionFlags::SQLITE_UTF8;
    let find_one = Arc::clone(find);
    connection.create_scalar_function("annals_txid", 0, changing, move |context| {
        txid(context, find_one(""))
    })?;
    let find = Arc::clone(find);
    connection.create_scalar_function("annals_txid", 1, changing, move |context| {
        let prefix: String = context.get(0)?;
        txid(context, find(&prefix))
    })
}

/// Returns the number of the last transaction that the statement sees.
fn txid(context: &Context<'_>, session: Option<Arc<Session>>) -> rusqlite::Result<i64> {
    let session = session.ok_or_else(|| {
        Fault::new("no database is attached: SELECT annals_attach('FILE')").into_error()
    })?;
    #[expect(unsafe_code, reason = "the connection of a function")]
    // SAFETY: it is used in this call only, by the thread that SQLite calls on.
    let connection = unsafe { context.get_connection()? };
    let is_alone = connection.is_autocommit();
    if !is_alone && let Some(ending) = session.ending() {
        // As when a table is opened. Where a connection refuses it, the transaction's end is noticed later.
        let _ = connection.execute_batch(&ending);
    }
    let snapshot = session.snapshot(is_alone).map_err(|error| Fault::from(error).into_error())?;
    Ok(snapshot.txid().0.cast_signed())
}

/// Returns the text of a time, or the microseconds of a text.
fn time(context: &mut Context<'_>) -> rusqlite::Result<Value> {
    Ok(match context.get_raw(0) {
        ValueRef::Integer(time) => Value::Text(Timestamp(time).to_string()),
        ValueRef::Text(text) => {
            let text = String::from_utf8_lossy(text);
            let time = text.parse::<Timestamp>();
            let time = time.map_err(|error| Fault::new(error.to_string()).into_error())?;
            Value::Integer(time.0)
        }
        _ => Value::Null,
    })
}

/// Converts the digits of a number up to 2^64 - 1 to its value in SQL, an integer or the bytes of [`large`], and back.
fn uint64(context: &mut Context<'_>) -> rusqlite::Result<Value> {
    Ok(match context.get_raw(0) {
        ValueRef::Integer(number) => Value::Text(number.to_string()),
        ValueRef::Blob(bytes) => match read_large(bytes) {
            Some(number) => Value::Text(number.to_string()),
            None => Value::Null,
        },
        ValueRef::Text(text) => {
            let text = String::from_utf8_lossy(text);
            let wrong =
                |_| Fault::new(format!("{text} is no number from 0 to 2^64 - 1")).into_error();
            let number: u64 = text.trim().parse().map_err(wrong)?;
            i64::try_from(number).map_or_else(|_| Value::Blob(large(number)), Value::Integer)
        }
        _ => Value::Null,
    })
}
