//! Functions that SQLite has since some version: an extension asks the program that loads it.

use std::ffi::{CStr, c_char, c_int};

use rusqlite::ffi;

use super::values::Form;

type Collation = unsafe extern "C" fn(*mut ffi::sqlite3_index_info, c_int) -> *const c_char;
type Constant = unsafe extern "C" fn(
    *mut ffi::sqlite3_index_info,
    c_int,
    *mut *mut ffi::sqlite3_value,
) -> c_int;

/// The functions that are there.
#[derive(Clone, Copy, Default)]
struct Newer {
    /// Since 3.22
    collation: Option<Collation>,
    /// Since 3.38
    constant: Option<Constant>,
}

#[cfg(not(feature = "loadable"))]
const fn newer() -> Newer {
    Newer {
        collation: Some(ffi::sqlite3_vtab_collation),
        constant: Some(ffi::sqlite3_vtab_rhs_value),
    }
}

#[cfg(feature = "loadable")]
use loaded::newer;

#[cfg(feature = "loadable")]
pub(super) mod loaded {
    use std::ffi::c_void;
    use std::sync::OnceLock;

    use super::{Collation, Constant, Newer, ffi};

    static NEWER: OnceLock<Newer> = OnceLock::new();

    pub(super) fn newer() -> Newer {
        NEWER.get().copied().unwrap_or_default()
    }

    /// Finds the functions in the table that SQLite passes to an extension. Functions are only ever added at its end.
    ///
    /// # Safety
    /// It is that table, and the functions of `ffi` are initialized from it.
    #[expect(unsafe_code, reason = "a table of functions of C")]
    pub(in super::super) unsafe fn find(table: *mut ffi::sqlite3_api_routines) {
        /// The places of `vtab_collation` and `vtab_rhs_value` among the pointers of the table.
        const COLLATION: usize = 224;
        const CONSTANT: usize = 257;
        let table = table.cast::<*const c_void>();
        // SAFETY: a table of that version has these pointers, of functions of these types; null is `None`.
        NEWER.get_or_init(|| unsafe {
            let version = ffi::sqlite3_libversion_number();
            let at = |since, place: usize| {
                if version >= since { *table.add(place) } else { std::ptr::null() }
            };
            Newer {
                collation: std::mem::transmute::<*const c_void, Option<Collation>>(at(
                    3_022_000, COLLATION,
                )),
                constant: std::mem::transmute::<*const c_void, Option<Constant>>(at(
                    3_038_000, CONSTANT,
                )),
            }
        });
    }
}

/// Returns the collation by which a condition compares; `None` if SQLite is too old to say.
///
/// # Safety
/// `info` is that of the call of `xBestIndex`, and has such a condition.
#[expect(unsafe_code, reason = "a function of C")]
pub(super) unsafe fn collation(info: *mut ffi::sqlite3_index_info, place: c_int) -> Option<String> {
    // SAFETY: the caller's; the name is text that ends with a zero.
    unsafe {
        let name = newer().collation?(info, place);
        if name.is_null() {
            return None;
        }
        CStr::from_ptr(name).to_str().ok().map(str::to_owned)
    }
}

/// Returns the value that a condition compares with, if it is known when the query is prepared.
///
/// # Safety
/// As [`collation`].
#[expect(unsafe_code, reason = "a function of C")]
pub(super) unsafe fn constant(
    info: *mut ffi::sqlite3_index_info,
    place: c_int,
) -> Option<Form<'static>> {
    let mut value = std::ptr::null_mut();
    // SAFETY: the caller's; the value is valid until the call of `xBestIndex` ends, and is copied.
    unsafe {
        let found = newer().constant?(info, place, &raw mut value);
        (found == ffi::SQLITE_OK && !value.is_null()).then(|| Form::read(value).into_owned())
    }
}
