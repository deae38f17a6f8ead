//! The extension: functions that attach databases to a connection of another program.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use annals::Options;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::{Connection, ffi};

use crate::attach::{Attached, Attaching};
use crate::functions::{self, Find};
use crate::host::{Fault, extension_init};
use crate::session::{Session, Source};

/// How many bytes the indexes take that a statement makes for itself.
const TRANSIENTS: usize = 256 << 20;

/// Makes `annals_attach` known to a connection.
///
/// # Safety
/// The pointers are those that SQLite passes to the entry of an extension.
#[expect(unsafe_code, reason = "the entry of an extension")]
pub unsafe fn init(
    connection: *mut ffi::sqlite3,
    message: *mut *mut c_char,
    table: *mut ffi::sqlite3_api_routines,
) -> c_int {
    // SAFETY: the caller's pointers.
    unsafe { extension_init(connection, message, table, add) }
}

/// Adds the functions; the library stays in memory, as modules of it may be used later.
fn add(connection: Connection) -> rusqlite::Result<bool> {
    let attached = Arc::new(Databases::default());
    let known = Arc::clone(&attached);
    let find: Find = Arc::new(move |prefix| known.lock().get(prefix).cloned());
    functions::register(&connection, &find)?;
    // A view or a trigger of a file that isn't trusted may not open other files.
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DIRECTONLY;
    let known = Arc::clone(&attached);
    connection.create_scalar_function("annals_attach", 1, flags, move |context| {
        attach(context, "", &known)
    })?;
    connection.create_scalar_function("annals_attach", 2, flags, move |context| {
        let prefix: String = context.get(1)?;
        attach(context, &prefix, &attached)
    })?;
    Ok(true)
}

/// The attached databases of a connection, by the prefix of their tables' names.
#[derive(Default)]
struct Databases(Mutex<BTreeMap<String, Arc<Session>>>);

impl Databases {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Session>>> {
        // A panic leaves the map whole, so a poisoned lock can be used.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Attaches a database; returns a message with the number of its tables, and the names that were left out.
fn attach(context: &Context<'_>, prefix: &str, databases: &Databases) -> rusqlite::Result<String> {
    let file: String = context.get(0)?;
    let failed = |error| Fault::from(error).into_error();
    let reader = Options::new().open_read_only(Path::new(&file)).map_err(failed)?;
    let schema = Arc::clone(reader.read().schema());
    let session = Arc::new(Session::new(Source::from(reader), TRANSIENTS));
    #[expect(unsafe_code, reason = "the connection of a function")]
    // SAFETY: it is used in this call only, by the thread that SQLite calls on.
    let connection = unsafe { context.get_connection()? };
    let label = format!("{prefix}:{file}");
    let attaching = Attaching { session: &session, schema: &schema, prefix, label: &label };
    let Attached { tables, left_out } = attaching.attach(&connection)?;
    databases.lock().insert(prefix.to_owned(), session);
    let noun = if tables == 1 { "table" } else { "tables" };
    let mut said = format!("{tables} {noun} of {file}, as of each statement");
    for (name, why) in left_out {
        said.push_str(&format!("; `{name}` isn't there: {why}"));
    }
    Ok(said)
}
