//! SQLite's database files.
//!
//! In reading order: `write` makes a file. `open` opens another, `outline` reads its schema, and `columns` the kinds of
//! its values; `plan` makes a schema of that, with `types` and `defaults`; `read` imports the rows.

mod columns;
mod defaults;
mod open;
mod outline;
mod plan;
mod read;
mod types;
mod write;

use std::fmt::Display;

use annals::{Error, ErrorKind};

pub(crate) use read::import;
pub(crate) use write::write;

/// Adds the file, and the table in it where that is known, to SQLite's error.
fn failed(place: impl Display, error: &rusqlite::Error) -> Error {
    let kind = match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::CannotOpen) => ErrorKind::NotFound,
        Some(rusqlite::ErrorCode::DatabaseCorrupt) => ErrorKind::Corrupt,
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
            ErrorKind::Busy
        }
        Some(rusqlite::ErrorCode::DiskFull | rusqlite::ErrorCode::SystemIoFailure) => ErrorKind::Io,
        _ => ErrorKind::Invalid,
    };
    Error::new(kind, format!("{place}: SQLite says: {error}"))
}

/// Writes a name in quotes.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
