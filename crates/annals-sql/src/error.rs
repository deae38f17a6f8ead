//! What can go wrong with a statement.

use std::fmt;
use std::time::Duration;

use annals::{Error, ErrorKind};

/// Why a statement failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum SqlError {
    /// The statement is wrong, or can't be evaluated: SQLite's message, or that of a virtual table.
    Statement(String),
    /// The statement would change something: SQL reads here.
    ReadOnly(String),
    /// It took longer than it may.
    Time(Duration),
    /// It needs more memory than it may, in bytes.
    Memory(u64),
    /// Its answer has more rows than it may.
    Rows(u64),
    /// Its answer is longer than it may be, in bytes.
    Bytes(u64),
    /// It was interrupted.
    Interrupted,
    /// The caller couldn't take the answer, or the database couldn't be read.
    Other(Error),
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Statement(message) | Self::ReadOnly(message) => f.write_str(message),
            Self::Time(limit) => write!(
                f,
                "the query was ended after {} ms, the longest that one may take: ask for less, or add an index",
                limit.as_millis()
            ),
            Self::Memory(limit) => write!(
                f,
                "the query was ended: it needs more than {limit} bytes of memory; sort or group fewer rows"
            ),
            Self::Rows(limit) => {
                write!(
                    f,
                    "the answer has more than {limit} rows: add LIMIT, or ask for a part of it"
                )
            }
            Self::Bytes(limit) => {
                write!(f, "the answer is longer than {limit} bytes: ask for fewer rows or columns")
            }
            Self::Interrupted => f.write_str("interrupted"),
            Self::Other(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl std::error::Error for SqlError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Other(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for SqlError {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl From<SqlError> for Error {
    fn from(error: SqlError) -> Self {
        match error {
            SqlError::Other(error) => error,
            SqlError::ReadOnly(message) => Self::new(ErrorKind::Unsupported, message),
            SqlError::Interrupted => Self::new(ErrorKind::Cancelled, "interrupted"),
            error => Self::invalid(error.to_string()),
        }
    }
}
