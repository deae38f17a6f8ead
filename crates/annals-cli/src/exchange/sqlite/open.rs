//! Opening a database of SQLite for reading, also where SQLite itself can't read it without writing.

use std::cmp::Ordering;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use annals::{Error, ErrorKind, Result};
use rusqlite::config::DbConfig;
use rusqlite::ffi::{
    SQLITE_NOTADB, SQLITE_READONLY, SQLITE_READONLY_CANTINIT, SQLITE_READONLY_ROLLBACK,
};
use rusqlite::{Connection, OpenFlags};

use super::failed;
use crate::files;

/// A database that is only read.
pub(super) struct Input {
    pub(super) connection: Connection,
    path: PathBuf,
    /// The state of the file when it was opened, if nothing keeps others from writing it meanwhile.
    unlocked: Option<State>,
}

/// The length of a file, and when it was written last.
type State = (u64, Option<SystemTime>);

impl Input {
    /// Opens a database, in a transaction: all that is read is of one state.
    pub(super) fn open(path: &Path) -> Result<Self> {
        // SQLite's own message doesn't name the problem.
        drop(files::open_plain(path)?);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let error = match Connection::open_with_flags(path, flags).and_then(begun) {
            Ok(connection) => {
                return Ok(Self { connection, path: path.to_owned(), unlocked: None });
            }
            Err(error) => error,
        };
        if !needs_log(&error)
            || [beside(path, "-wal"), beside(path, "-journal")].iter().any(|path| is_filled(path))
        {
            return Err(explained(path, &error));
        }
        // It is of the kind with a log, and the log is empty: only SQLite's lock, which is in a file of its own, can't
        // be had.
        let unlocked = Some(state(path)?);
        let name = format!("file:{}?immutable=1", escaped(path));
        let connection = Connection::open_with_flags(name, flags | OpenFlags::SQLITE_OPEN_URI);
        let connection = connection.and_then(begun).map_err(|error| explained(path, &error))?;
        Ok(Self { connection, path: path.to_owned(), unlocked })
    }

    /// Checks at the end that nobody has written the file meanwhile.
    pub(super) fn check_unchanged(&self) -> Result<()> {
        let Some(before) = self.unlocked else { return Ok(()) };
        if state(&self.path)? == before && !is_filled(&beside(&self.path, "-wal")) {
            return Ok(());
        }
        let message =
            format!("{}: the file changed while it was read: try again", self.path.display());
        Err(Error::new(ErrorKind::Busy, message))
    }
}

/// Begins to read. Nothing in the file may have side effects.
fn begun(connection: Connection) -> rusqlite::Result<Connection> {
    // A name that the file doesn't have is an error, not a text.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    connection.execute_batch("PRAGMA trusted_schema=OFF; BEGIN; SELECT 1 FROM sqlite_master")?;
    // Rows are read in the order in which they are stored, so that no collation is ever asked; but SQLite wants all.
    connection.collation_needed(|connection, name| {
        connection.create_collation(name, |a: &str, b: &str| -> Ordering { a.cmp(b) })
    })?;
    Ok(connection)
}

fn code(error: &rusqlite::Error) -> i32 {
    error.sqlite_error().map_or(0, |error| error.extended_code)
}

/// True if SQLite can't create the files that it needs beside a database with a log.
fn needs_log(error: &rusqlite::Error) -> bool {
    let cannot_open = error.sqlite_error_code() == Some(rusqlite::ErrorCode::CannotOpen);
    cannot_open
        || (code(error) & 0xff == SQLITE_READONLY && code(error) != SQLITE_READONLY_ROLLBACK)
}

/// Says what to do about an error of opening.
fn explained(path: &Path, error: &rusqlite::Error) -> Error {
    let shown = path.display();
    let (kind, what) = match code(error) {
        SQLITE_NOTADB => (
            ErrorKind::Invalid,
            "it is no database of SQLite, or an encrypted one: check the path".to_owned(),
        ),
        SQLITE_READONLY_ROLLBACK => (
            ErrorKind::Busy,
            format!(
                "a program was ended in the middle of a transaction, and SQLite must undo that with {shown}-journal \
                 before the file can be read; `sqlite3 {shown} \"SELECT 1 FROM sqlite_master\"` does so, or do it with \
                 a copy of both files"
            ),
        ),
        _ if needs_log(error) || code(error) == SQLITE_READONLY_CANTINIT => (
            ErrorKind::Io,
            format!(
                "its last transactions are in {shown}-wal, and SQLite reads that only where it can write: copy both \
                 files to a folder that you may write to, and import the copy"
            ),
        ),
        _ => return failed(shown, error),
    };
    Error::new(kind, format!("{shown}: {what}"))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

fn is_filled(path: &Path) -> bool {
    files::length(path) > 0
}

fn state(path: &Path) -> Result<State> {
    let metadata = fs::metadata(path).map_err(|error| files::cannot("read", path, error))?;
    Ok((metadata.len(), metadata.modified().ok()))
}

/// Writes a path as a URI has it.
fn escaped(path: &Path) -> String {
    let byte = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
            char::from(*byte).to_string()
        }
        byte => format!("%{byte:02x}"),
    };
    path.as_os_str().as_encoded_bytes().iter().map(byte).collect()
}
