//! The oldest SQLite that may load the extension.
//!
//! rusqlite takes the functions of SQLite 3.45 from the table that a program passes, and reads beyond the end of an
//! older one. So it gets a table of that size with the functions of the oldest version, none of which is missing.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::{MaybeUninit, offset_of};
use std::ptr;

use rusqlite::ffi;

use super::asked::copy;

/// The oldest version: since it, SQLite says which conditions are an IN, and the values of others.
const OLDEST: c_int = 3_038_000;

/// The number of functions in the table of that version. Newer ones only append to it.
const FUNCTIONS: usize =
    offset_of!(ffi::sqlite3_api_routines, vtab_in_next) / size_of::<*const c_void>() + 1;

/// Returns the version for which rusqlite is compiled: it refuses older ones.
extern "C" fn compiled_for() -> c_int {
    ffi::SQLITE_VERSION_NUMBER
}

/// Returns a table of the functions of the oldest version.
///
/// # Errors
/// SQLite is older: the message is for the program that loads the extension.
///
/// # Safety
/// `table` is the one that SQLite passes to an extension.
#[expect(unsafe_code, reason = "a table of functions of C")]
pub(super) unsafe fn functions(
    table: *mut ffi::sqlite3_api_routines,
) -> Result<ffi::sqlite3_api_routines, *mut c_char> {
    // SAFETY: the first functions of the table are those of any version; the rest of the copy is null, which is `None`.
    // A table of at least the oldest version has all that are copied.
    unsafe {
        let version = (*table).libversion_number.map_or(0, |version| version());
        if version < OLDEST {
            let name = (*table).libversion.map(|name| CStr::from_ptr(name()).to_string_lossy());
            let message = format!(
                "annals needs SQLite 3.38 or newer, and this program has {}: update it, or ask with `annals sql FILE`",
                name.unwrap_or_default()
            );
            return Err(match ((*table).malloc, c_int::try_from(message.len() + 1)) {
                (Some(malloc), Ok(size)) => copy(&message, malloc(size).cast()),
                _ => ptr::null_mut(),
            });
        }
        let mut own = MaybeUninit::<ffi::sqlite3_api_routines>::zeroed();
        let (from, to) = (table.cast::<*const c_void>(), own.as_mut_ptr().cast());
        ptr::copy_nonoverlapping(from, to, FUNCTIONS);
        let mut own = own.assume_init();
        let version: unsafe extern "C" fn() -> c_int = compiled_for;
        own.libversion_number = Some(version);
        Ok(own)
    }
}
