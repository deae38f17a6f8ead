//! The one error of the library: a kind that a caller can act on, what happened, and its cause.

use std::fmt;
use std::io;

/// What every fallible function of this library returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, in a way a program can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Somebody else holds what is needed: try again later, or end the holder.
    Busy,
    /// Two rows would have the same key in a unique index.
    Unique,
    /// An enforced reference would lead to no row.
    Reference,
    /// There is no such row, table, field, index or file.
    NotFound,
    /// The id is in use already.
    InUse,
    /// An argument, a statement or a text is wrong; nothing was changed.
    Invalid,
    /// The file's schema isn't the program's.
    SchemaMismatch,
    /// One journal isn't the beginning of another, so that one can't be brought up to the other; nothing
    /// was changed.
    Diverged,
    /// The file isn't an Annals journal at all.
    NotAJournal,
    /// The file needs a newer version of Annals.
    Unsupported,
    /// The file is damaged: what it holds isn't what was written.
    Corrupt,
    /// Opening would have to recover, and the caller asked to refuse that.
    NeedsRecovery,
    /// The program stopped it, by the answer of one of its callbacks; nothing was changed.
    Cancelled,
    /// The operating system said no; see the source.
    Io,
    /// The commit was written, but whether it is durable is not known: reopen and look.
    UnknownOutcome,
    /// An earlier failure, or a fork of the process, made this handle unusable for writing: reopen the
    /// database.
    Poisoned,
}

/// An error: its [kind](Error::kind), what happened, where, what to do, and the cause.
///
/// It is one pointer wide, so that a `Result` costs nothing where nothing goes wrong.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    source: Option<io::Error>,
}

impl Error {
    /// Makes an error from a kind and a message that says what, where and what to do.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), source: None }))
    }

    /// Makes an error of kind [`ErrorKind::Io`] from what was being done and the cause.
    #[cold]
    pub fn io(message: impl Into<String>, source: io::Error) -> Self {
        Self::with_source(ErrorKind::Io, message, source)
    }

    /// Makes an error of any kind that was caused by the operating system.
    #[cold]
    pub fn with_source(kind: ErrorKind, message: impl Into<String>, source: io::Error) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), source: Some(source) }))
    }

    /// Makes an error of kind [`ErrorKind::Invalid`].
    #[cold]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Makes an error of kind [`ErrorKind::Corrupt`].
    #[cold]
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// Tells what kind of error it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Puts what to do behind the message.
    #[must_use]
    pub(crate) fn advising(mut self, advice: impl fmt::Display) -> Self {
        self.0.message = format!("{}; {advice}", self.0.message);
        self
    }

    /// True if it was caused by want of space: on the disk, or of what this user may have of it.
    #[must_use]
    pub(crate) fn is_want_of_space(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let source = self.0.source.as_ref().map(io::Error::kind);
        matches!(source, Some(StorageFull | QuotaExceeded | FileTooLarge))
    }

    /// Puts the name that a person knows in place of another one.
    #[must_use]
    pub(crate) fn renaming(mut self, from: &str, to: &str) -> Self {
        self.0.message = self.0.message.replace(from, to);
        self
    }

    /// Puts where it happened in front of the message.
    #[must_use]
    pub fn within(mut self, place: impl fmt::Display) -> Self {
        self.0.message = format!("{place}: {}", self.0.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match &self.0.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| source as _)
    }
}

/// So that a transaction may read times: `tx.set_time(text.parse()?)`.
impl From<annals_schema::TimestampError> for Error {
    fn from(error: annals_schema::TimestampError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<annals_schema::SchemaError> for Error {
    fn from(error: annals_schema::SchemaError) -> Self {
        Self::invalid(error.to_string())
    }
}
