//! Annals databases as virtual tables of SQLite: an extension for `sqlite3`, Python's `sqlite3`, Datasette and others.
//!
//! ```sql
//! .load ./libannals_sqlite
//! SELECT annals_attach('people.annals');
//! SELECT * FROM person;
//! ```
//!
//! All of it is in the crate `annals-sql`; this makes a library of it that SQLite can load.

use std::ffi::{c_char, c_int, c_void};

/// The entry that SQLite looks for in any extension.
///
/// # Safety
/// The pointers are those that SQLite passes.
// SAFETY: SQLite finds it by this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_extension_init(
    connection: *mut c_void,
    message: *mut *mut c_char,
    table: *mut c_void,
) -> c_int {
    // SAFETY: SQLite's pointers, of the types that it documents.
    unsafe { annals_sql::init(connection.cast(), message, table.cast()) }
}
