//! SQLite's database files.
//!
//! In reading order: `write` makes a file. `outline` reads the schema of another, and `columns` the kinds of its
//! values; `plan` makes a schema of that, with `types` and `defaults`; `read` imports the rows.

mod columns;
mod defaults;
mod outline;
mod plan;
mod read;
mod types;
mod write;

use std::path::Path;

use annals::{Error, ErrorKind};

pub(crate) use read::import;
pub(crate) use write::write;

/// Adds the file to SQLite's error.
fn failed(path: &Path, error: &rusqlite::Error) -> Error {
    let kind = match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::CannotOpen) => ErrorKind::NotFound,
        Some(rusqlite::ErrorCode::DatabaseCorrupt) => ErrorKind::Corrupt,
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
            ErrorKind::Busy
        }
        Some(rusqlite::ErrorCode::DiskFull | rusqlite::ErrorCode::SystemIoFailure) => ErrorKind::Io,
        _ => ErrorKind::Invalid,
    };
    Error::new(kind, format!("{}: SQLite says: {error}", path.display()))
}

/// Writes a name in quotes.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
