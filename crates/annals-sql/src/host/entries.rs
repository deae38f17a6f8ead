//! The functions that SQLite calls.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

use rusqlite::{Connection, ffi};

use super::asked::{Answer, Asked, text};
use super::values::{Arguments, Out};
use super::{Fault, Relation, Scan, Transactional, guarded};

/// A relation, and what belongs to its transactions.
pub(crate) struct Made {
    pub(crate) relation: Box<dyn Relation>,
    pub(crate) transactions: Arc<dyn Transactional>,
}

/// Makes the relation of a virtual table from the arguments after the module's name.
pub(crate) type Maker = Box<dyn Fn(&[&str]) -> Result<Made, Fault>>;

/// A virtual table, as SQLite holds it.
#[repr(C)]
struct Held {
    base: ffi::sqlite3_vtab,
    relation: Box<dyn Relation>,
    transactions: Arc<dyn Transactional>,
    connection: *mut ffi::sqlite3,
}

/// A cursor, as SQLite holds it.
#[repr(C)]
struct Walking {
    base: ffi::sqlite3_vtab_cursor,
    scan: Box<dyn Scan>,
}

#[expect(unsafe_code, reason = "a structure of C, whose other parts may be zero")]
// SAFETY: pointers that may be null, and numbers.
const NOTHING: ffi::sqlite3_module = unsafe { MaybeUninit::zeroed().assume_init() };

static MODULE: ffi::sqlite3_module = ffi::sqlite3_module {
    iVersion: 1,
    xCreate: Some(create),
    xConnect: Some(connect),
    xBestIndex: Some(best_index),
    xDisconnect: Some(disconnect),
    xDestroy: Some(disconnect),
    xOpen: Some(open),
    xClose: Some(close),
    xFilter: Some(filter),
    xNext: Some(next),
    xEof: Some(eof),
    xColumn: Some(column),
    xRowid: Some(rowid),
    xUpdate: Some(update),
    xBegin: Some(begin),
    xCommit: Some(end),
    xRollback: Some(end),
    ..NOTHING
};

/// Registers a module of virtual tables with a connection.
#[expect(unsafe_code, reason = "a function of C")]
pub(crate) fn register(connection: &Connection, name: &str, make: Maker) -> rusqlite::Result<()> {
    let name = CString::new(name)?;
    let make = Box::into_raw(Box::new(make));
    // SAFETY: the name is copied, the module is static, and SQLite drops the maker by `forget`, also after an error.
    let code = unsafe {
        ffi::sqlite3_create_module_v2(
            connection.handle(),
            name.as_ptr(),
            &raw const MODULE,
            make.cast(),
            Some(forget),
        )
    };
    match code {
        ffi::SQLITE_OK => Ok(()),
        code => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)),
    }
}

/// Initializes an extension: `init` registers its functions.
///
/// # Safety
/// The pointers are those that SQLite passes to the entry of an extension.
#[cfg(feature = "loadable")]
#[expect(unsafe_code, reason = "the entry of an extension")]
pub(crate) unsafe fn extension_init(
    connection: *mut ffi::sqlite3,
    message: *mut *mut c_char,
    table: *mut ffi::sqlite3_api_routines,
    init: fn(Connection) -> rusqlite::Result<bool>,
) -> c_int {
    let run = || {
        if table.is_null() {
            return Ok(ffi::SQLITE_ERROR);
        }
        // SAFETY: the caller's pointers.
        Ok(match unsafe { super::oldest::functions(table) } {
            // SAFETY: the caller's pointers. The functions were copied out of the table.
            Ok(mut own) => unsafe {
                Connection::extension_init2(connection, message, &raw mut own, init)
            },
            Err(said) => {
                if !message.is_null() {
                    // SAFETY: it isn't null, and SQLite frees the message.
                    unsafe { *message = said };
                }
                ffi::SQLITE_ERROR
            }
        })
    };
    guarded(run).unwrap_or(ffi::SQLITE_ERROR)
}

#[expect(unsafe_code, reason = "called by SQLite")]
unsafe extern "C" fn forget(make: *mut c_void) {
    // SAFETY: it is the box that `register` leaked; SQLite passes it back once.
    let make = unsafe { Box::from_raw(make.cast::<Maker>()) };
    let _ = guarded(|| {
        drop(make);
        Ok(())
    });
}

#[expect(unsafe_code, reason = "called by SQLite")]
unsafe extern "C" fn create(
    connection: *mut ffi::sqlite3,
    make: *mut c_void,
    count: c_int,
    words: *const *const c_char,
    table: *mut *mut ffi::sqlite3_vtab,
    message: *mut *mut c_char,
) -> c_int {
    // SAFETY: SQLite's arguments, passed on.
    unsafe { connect(connection, make, count, words, table, message) }
}

#[expect(unsafe_code, reason = "called by SQLite")]
unsafe extern "C" fn connect(
    connection: *mut ffi::sqlite3,
    make: *mut c_void,
    count: c_int,
    words: *const *const c_char,
    table: *mut *mut ffi::sqlite3_vtab,
    message: *mut *mut c_char,
) -> c_int {
    let done = guarded(|| {
        // SAFETY: so many texts, each of which ends with a zero; the first three are names.
        let words: Vec<_> = unsafe {
            let count = usize::try_from(count).unwrap_or(0);
            (3..count).map(|place| CStr::from_ptr(*words.add(place)).to_str()).collect()
        };
        let words: Result<Vec<_>, _> = words.into_iter().collect();
        let words = words.map_err(|error| Fault::new(error.to_string()))?;
        // SAFETY: it is the maker that `register` gave away.
        let make = unsafe { &*make.cast::<Maker>() };
        let Made { relation, transactions } = make(&words)?;
        let declaration = CString::new(relation.declaration());
        let declaration = declaration.map_err(|error| Fault::new(error.to_string()))?;
        // SAFETY: it is called in `xConnect`, with a text that ends with a zero.
        let code = unsafe { ffi::sqlite3_declare_vtab(connection, declaration.as_ptr()) };
        if code != ffi::SQLITE_OK {
            let message = format!("SQLite refuses {}", relation.declaration());
            return Err(Fault { code, message });
        }
        let base =
            ffi::sqlite3_vtab { pModule: std::ptr::null(), nRef: 0, zErrMsg: std::ptr::null_mut() };
        Ok(Box::new(Held { base, relation, transactions, connection }))
    });
    match done {
        Ok(held) => {
            // SAFETY: SQLite takes it, and gives it back to `disconnect`.
            unsafe { *table = Box::into_raw(held).cast() };
            ffi::SQLITE_OK
        }
        Err(fault) => {
            // SAFETY: SQLite frees the message.
            unsafe { *message = text(&fault.message) };
            fault.code
        }
    }
}

#[expect(unsafe_code, reason = "called by SQLite")]
unsafe extern "C" fn disconnect(table: *mut ffi::sqlite3_vtab) -> c_int {
    // SAFETY: it is what `connect` made, given back once.
    let held = unsafe { Box::from_raw(table.cast::<Held>()) };
    let _ = guarded(|| {
        drop(held);
        Ok(())
    });
    ffi::SQLITE_OK
}

/// Returns the code of a result, and leaves its message with the table.
///
/// # Safety
/// `table` is one of SQLite's during a call.
#[expect(unsafe_code, reason = "a structure of C")]
unsafe fn report(table: *mut ffi::sqlite3_vtab, done: Result<(), Fault>) -> c_int {
    let Err(fault) = done else { return ffi::SQLITE_OK };
    if !fault.message.is_empty() {
        // SAFETY: the old message is SQLite's memory or null, and so is the new one.
        unsafe {
            ffi::sqlite3_free((*table).zErrMsg.cast());
            (*table).zErrMsg = text(&fault.message);
        }
    }
    fault.code
}

#[expect(unsafe_code, reason = "called by SQLite")]
unsafe extern "C" fn best_index(
    table: *mut ffi::sqlite3_vtab,
    info: *mut ffi::sqlite3_index_info,
) -> c_int {
    // SAFETY: the table is one of `connect`, the info that of this call.
    unsafe {
        let planned = guarded(|| {
            let held = &*table.cast::<Held>();
            let answer: Answer = held.relation.plan(&Asked::read(info))?;
            answer.write(info);
            Ok(())
        });
        report(table, planned)
    }
}

#[expect(unsafe_code, reason = "called by SQLite")]
unsafe extern "C" fn open(
    table: *mut ffi::sqlite3_vtab,
    cursor: *mut *mut ffi::sqlite3_vtab_cursor,
) -> c_int {
    // SAFETY: the table is one of `connect`; the cursor is SQLite's until it gives it to `close`.
    unsafe {
        let opened = guarded(|| {
            let held = &*table.cast::<Held>();
            let is_alone = ffi::sqlite3_get_autocommit(held.connection) != 0;
            let ending = if is_alone { None } else { held.transactions.ending() };
            if let Some(ending) = ending.and_then(|ending| CString::new(ending).ok()) {
                let (no_rows, none) = (None, std::ptr::null_mut());
                // Where a connection refuses it, the transaction's end is noticed later, outside of any.
                ffi::sqlite3_exec(held.connection, ending.as_ptr(), no_rows, none, none.cast());
            }
            let scan = held.relation.open(is_alone)?;
            let base = ffi::sqlite3_vtab_cursor { pVtab: std::ptr::null_mut() };
            *cursor = Box::into_raw(Box::new(Walking { base, scan })).cast();
            Ok(())
        });
        report(table, opened)
    }
}

#[expect(unsafe_code, reason = "called by SQLite")]
unsafe extern "C" fn close(cursor: *mut ffi::sqlite3_vtab_cursor) -> c_int {
    // SAFETY: it is what `open` made, given back once.
    let walking = unsafe { Box::from_raw(cursor.cast::<Walking>()) };
    let _ = guarded(|| {
        drop(walking);
        Ok(())
    });
    ffi::SQLITE_OK
}

#[expect(unsafe_code, reason = "called by SQLite")]
unsafe extern "C" fn filter(
    cursor: *mut ffi::sqlite3_vtab_cursor,
    plan: c_int,
    _: *const c_char,
    count: c_int,
    values: *mut *mut ffi::sqlite3_value,
) -> c_int {
    // SAFETY: the cursor is one of `open`, used by one thread at a time; the values are this call's.
    unsafe {
        let walking = cursor.cast::<Walking>();
        let begun = guarded(|| (*walking).scan.begin(plan, &Arguments::new(count, values)));
        report((*cursor).pVtab, begun)
    }
}

#[expect(unsafe_code, reason = "called by SQLite")]
unsafe extern "C" fn next(cursor: *mut ffi::sqlite3_vtab_cursor) -> c_int {
    // SAFETY: as in `filter`.
    unsafe {
        let walking = cursor.cast::<Walking>();
        report((*cursor).pVtab, guarded(|| (*walking).scan.step()))
    }
}

#[expect(unsafe_code, reason = "called by SQLite")]
unsafe extern "C" fn eof(cursor: *mut ffi::sqlite3_vtab_cursor) -> c_int {
    // SAFETY: as in `filter`.
    let walking = unsafe { &*cursor.cast::<Walking>() };
    // Where that can't be said, the answer ends.
    c_int::from(guarded(|| Ok(walking.scan.is_over())).unwrap_or(true))
}

#[expect(unsafe_code, reason = "called by SQLite")]
unsafe extern "C" fn column(
    cursor: *mut ffi::sqlite3_vtab_cursor,
    context: *mut ffi::sqlite3_context,
    place: c_int,
) -> c_int {
    // SAFETY: as in `filter`; the context is this call's.
    unsafe {
        let walking = &*cursor.cast::<Walking>();
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        let Err(fault) = guarded(|| walking.scan.column(place, Out::new(context))) else {
            return ffi::SQLITE_OK;
        };
        let len = c_int::try_from(fault.message.len()).unwrap_or(0);
        ffi::sqlite3_result_error(context, fault.message.as_ptr().cast(), len);
        ffi::sqlite3_result_error_code(context, fault.code);
        fault.code
    }
}

#[expect(unsafe_code, reason = "called by SQLite")]
unsafe extern "C" fn rowid(
    cursor: *mut ffi::sqlite3_vtab_cursor,
    id: *mut ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: as in `filter`; the id is written where SQLite reads it.
    unsafe {
        let walking = &*cursor.cast::<Walking>();
        *id = guarded(|| Ok(walking.scan.id())).unwrap_or(0);
    }
    ffi::SQLITE_OK
}

#[expect(unsafe_code, reason = "called by SQLite")]
unsafe extern "C" fn begin(_: *mut ffi::sqlite3_vtab) -> c_int {
    ffi::SQLITE_OK
}

#[expect(unsafe_code, reason = "called by SQLite")]
unsafe extern "C" fn end(table: *mut ffi::sqlite3_vtab) -> c_int {
    // SAFETY: the table is one of `connect`.
    let held = unsafe { &*table.cast::<Held>() };
    let _ = guarded(|| {
        held.transactions.ended();
        Ok(())
    });
    ffi::SQLITE_OK
}

#[expect(unsafe_code, reason = "called by SQLite")]
unsafe extern "C" fn update(
    table: *mut ffi::sqlite3_vtab,
    _: c_int,
    _: *mut *mut ffi::sqlite3_value,
    _: *mut ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: the table is one of `connect`.
    unsafe {
        let held = &*table.cast::<Held>();
        report(table, guarded(|| Err(held.relation.refusal())))
    }
}
