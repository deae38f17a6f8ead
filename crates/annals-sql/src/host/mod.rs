//! The boundary to SQLite's C: virtual tables as traits.
//!
//! All unsafe code of this crate is in this folder.
//!
//! Invariants
//! 1. No panic crosses into C: each entry runs its work in `guarded`, which turns a panic into an error of the query.
//! 2. A scan is closed before its relation: SQLite promises that, and `entries` relies on it.

mod asked;
mod entries;
#[cfg(feature = "bundled")]
mod forks;
#[cfg(feature = "loadable")]
mod oldest;
mod values;

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use annals::ErrorKind;
use rusqlite::ffi;

pub(crate) use asked::{Answer, Asked, Op, Order, Term};
#[cfg(feature = "loadable")]
pub(crate) use entries::extension_init;
pub(crate) use entries::{Made, register};
#[cfg(feature = "bundled")]
pub(crate) use forks::survive_forks;
#[cfg(feature = "bundled")]
pub(crate) use values::memory_used;
pub(crate) use values::{Arguments, Form, Out};

/// A virtual table.
pub(crate) trait Relation {
    /// Returns the statement that declares its columns to SQLite.
    fn declaration(&self) -> &str;

    /// Chooses the way to answer a query.
    fn plan(&self, asked: &Asked) -> Result<Answer, Fault>;

    /// Begins to read; `is_alone` if the statement is in no transaction.
    fn open(&self, is_alone: bool) -> Result<Box<dyn Scan>, Fault>;

    /// Says why a change is refused.
    fn refusal(&self) -> Fault;
}

/// Receives the ends of a connection's transactions.
///
/// SQLite tells virtual tables only of transactions that write to them. So the first read of a transaction runs a
/// statement that would write to one, and changes nothing.
pub(crate) trait Transactional {
    /// Returns that statement, once in each transaction.
    fn ending(&self) -> Option<String>;

    /// Notes that a transaction has ended.
    fn ended(&self);
}

/// A walk over rows of a virtual table.
pub(crate) trait Scan {
    /// Goes to the first row of an answer.
    fn begin(&mut self, plan: c_int, arguments: &Arguments<'_>) -> Result<(), Fault>;

    /// Goes to the next row.
    fn step(&mut self) -> Result<(), Fault>;

    /// True after the last row.
    fn is_over(&self) -> bool;

    /// Writes a value of the row.
    fn column(&self, place: usize, out: Out<'_>) -> Result<(), Fault>;

    /// Returns the id of the row.
    fn id(&self) -> i64;
}

/// An error of a query: a code of SQLite, and a message.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) code: c_int,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { code: ffi::SQLITE_ERROR, message: message.into() }
    }

    /// Returns it as an error of a function.
    pub(crate) fn into_error(self) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(self.code), Some(self.message))
    }

    /// Says to SQLite that a query can't be answered in this order of its tables.
    pub(crate) const fn unusable() -> Self {
        Self { code: ffi::SQLITE_CONSTRAINT, message: String::new() }
    }
}

/// The codes of SQLite by which a failure to read the database is told from a wrong statement. They aren't those of a
/// failure to read SQLite's own files, which would end a transaction that changes other tables.
const UNREADABLE: [(ErrorKind, c_int); 3] = [
    (ErrorKind::PageLost, ffi::SQLITE_ERROR | 100 << 8),
    (ErrorKind::Corrupt, ffi::SQLITE_ERROR | 101 << 8),
    (ErrorKind::Io, ffi::SQLITE_ERROR | 102 << 8),
];

impl From<annals::Error> for Fault {
    fn from(error: annals::Error) -> Self {
        let found = UNREADABLE.iter().find(|(kind, _)| *kind == error.kind());
        let code = found.map_or(ffi::SQLITE_ERROR, |(_, code)| *code);
        Self { code, message: error.to_string() }
    }
}

/// Returns the kind of a failure to read the database; `None`: the statement is wrong.
#[cfg(feature = "bundled")]
pub(crate) fn unreadable(error: &rusqlite::Error) -> Option<ErrorKind> {
    let code = error.sqlite_error()?.extended_code;
    UNREADABLE.iter().find(|(_, known)| *known == code).map(|(kind, _)| *kind)
}

/// Runs the work of an entry; a panic is an error.
fn guarded<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    // Nothing that a panic interrupts is used again: SQLite ends the statement.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        Err(Fault::new(format!("annals: a bug ended this query: {said}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        let fault = guarded::<()>(|| panic!("row {}", 7)).unwrap_err();
        assert!(fault.message.ends_with("row 7"), "{fault:?}");
        assert!(guarded(|| Ok(1)).is_ok());
    }
}
