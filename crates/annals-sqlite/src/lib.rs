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

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::mem::MaybeUninit;

    use rusqlite::ffi::{SQLITE_ERROR, sqlite3_api_routines};

    use super::*;

    extern "C" fn number() -> c_int {
        3_037_002
    }

    extern "C" fn name() -> *const c_char {
        c"3.37.2".as_ptr()
    }

    extern "C" fn allocate(size: c_int) -> *mut c_void {
        let bytes = vec![b'x'; usize::try_from(size).unwrap_or(0)];
        Box::leak(bytes.into_boxed_slice()).as_mut_ptr().cast()
    }

    #[test]
    fn an_older_sqlite_is_refused_with_a_message() {
        // SAFETY: each function may be missing.
        let mut table: sqlite3_api_routines = unsafe { MaybeUninit::zeroed().assume_init() };
        table.libversion_number = Some(number);
        table.libversion = Some(name);
        table.malloc = Some(allocate);
        let mut message = std::ptr::null_mut();
        let connection = std::ptr::null_mut();
        // SAFETY: an older SQLite gets no call, and its connection isn't looked at.
        let code = unsafe {
            sqlite3_extension_init(connection, &raw mut message, (&raw mut table).cast())
        };
        assert_eq!(code, SQLITE_ERROR);
        // SAFETY: it is the memory of `allocate`, with a text that ends with a zero.
        let message = unsafe { CStr::from_ptr(message) }.to_str().unwrap();
        assert_eq!(
            message,
            "annals needs SQLite 3.38 or newer, and this program has 3.37.2: update it, or ask with `annals sql FILE`"
        );
        // Without a place for the message, and without any table, it is refused too.
        // SAFETY: as before.
        unsafe {
            let nowhere = std::ptr::null_mut();
            let code = sqlite3_extension_init(connection, nowhere, (&raw mut table).cast());
            assert_eq!(code, SQLITE_ERROR);
            assert_eq!(sqlite3_extension_init(connection, nowhere, std::ptr::null_mut()), SQLITE_ERROR);
        }
    }
}
