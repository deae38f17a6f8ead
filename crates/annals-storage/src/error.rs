//! The one error of the library: a kind that a caller can act on, a description, and its cause.

use std::fmt;
use std::io;

use annals_schema::{RowId, Txid, Value};

/// The result type of every fallible function of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error, on which a program can act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Another process or thread holds a lock: try again later, or end the holder.
    Busy,
    /// Two rows would have the same key in a unique index.
    Unique,
    /// An enforced reference would be dangling.
    Reference,
    /// Later changes stand against undoing a transaction or restoring a row; nothing was changed.
    Conflict,
    /// A check that the program registered refuses the commit.
    Refused,
    /// There is no such row, table, field, index or file.
    NotFound,
    /// The id is in use already.
    InUse,
    /// An argument, a statement or a text is wrong; nothing was changed.
    Invalid,
    /// The file's schema isn't the program's.
    SchemaMismatch,
    /// One journal isn't the beginning of another, so that it can't be updated from that one; nothing was changed.
    Diverged,
    /// The history that is asked for isn't kept any more: it was forgotten, or erased. Also the state that a lazy
    /// replica reads, once it was replaced on the other machine: read again, from a new snapshot.
    Forgotten,
    /// The file isn't an Annals journal at all.
    NotAJournal,
    /// The file needs a newer version of Annals.
    Unsupported,
    /// The file is damaged: its contents differ from those that were written.
    Corrupt,
    /// A page of the image is damaged. The next snapshot or transaction is opened without it, from an older state or the
    /// journal: try again there. Nothing is lost.
    PageLost,
    /// The file is sound, but holds a commit whose events don't apply: it can only be read, as of the commit
    /// before. See `Database::unapplied`.
    Unapplied,
    /// Opening would have to recover, and the caller asked to refuse that.
    NeedsRecovery,
    /// An error of the program's own rolled the transaction back; see [`Error::into_program`].
    Aborted,
    /// The program stopped it, by the answer of one of its callbacks; nothing was changed.
    Cancelled,
    /// Another machine can't be reached, or doesn't answer; nothing is known to have changed there. Try again later.
    Unreachable,
    /// The other machine doesn't know who asks: a token is missing, wrong or expired.
    Unauthenticated,
    /// The role of the token doesn't allow it.
    Forbidden,
    /// It is larger than the other machine takes.
    TooLarge,
    /// The disk of the other machine is full.
    NoSpace,
    /// An I/O error; see [`Error::io_error`].
    Io,
    /// The commit was written, but whether it is durable is not known: reopen and look.
    UnknownOutcome,
    /// Another handle closed the database: open it again.
    Closed,
    /// An earlier failure, or a fork of the process, made this handle unusable for writing: reopen the
    /// database.
    Poisoned,
}

/// An error: its [kind](Error::kind), description, place, remedy, and cause.
///
/// It is one pointer wide, so that a successful `Result` costs nothing.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    source: Option<io::Error>,
    violation: Option<Violation>,
    /// The transaction whose events don't apply, where a replay says so.
    transaction: Option<u64>,
}

/// The violated rule of the schema, and the rows concerned.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Violation {
    /// Two rows would have the same key in a unique index.
    Unique {
        /// The name of the index.
        index: String,
        /// The name of its table.
        table: String,
        /// The row that has the key.
        row: RowId,
        /// The other row, if it has an id already: it has none in a refused `insert`.
        other: Option<RowId>,
        /// The values of the key, in the order of the index's fields.
        key: Vec<Value>,
    },
    /// An enforced reference would be dangling.
    Reference {
        /// The name of the table with the reference.
        table: String,
        /// The row with the reference; `None` if the reference is the default of a new field.
        row: Option<RowId>,
        /// The name of the reference's field.
        field: String,
        /// The name of the table that it refers to.
        target: String,
        /// The row that it refers to.
        target_row: RowId,
    },
    /// A transaction can't be undone, or a row can't be restored.
    Conflict {
        /// All that stands against it.
        obstacles: Vec<Obstacle>,
    },
}

/// A row that stands against undoing a transaction, against making it again, or against restoring a row.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Obstacle {
    /// The name of its table.
    pub table: String,
    /// The row.
    pub row: RowId,
    /// The name of the field, if it is about a single one.
    pub field: Option<String>,
    /// The later transaction that changed, inserted or deleted the row, if that is the reason.
    pub txid: Option<Txid>,
    /// The transaction that was to be made again, in a rebase.
    pub again: Option<Txid>,
    /// The reason, as a clause of a sentence.
    pub reason: String,
}

impl Obstacle {
    /// Makes an obstacle of a row.
    #[doc(hidden)]
    #[must_use]
    pub fn new(table: &str, row: RowId, reason: String) -> Self {
        Self { table: table.to_owned(), row, field: None, txid: None, again: None, reason }
    }

    /// Sets the name of its field.
    #[doc(hidden)]
    #[must_use]
    pub fn in_field(self, field: &str) -> Self {
        Self { field: Some(field.to_owned()), ..self }
    }

    /// Sets the transaction that was to be made again.
    #[doc(hidden)]
    #[must_use]
    pub fn met_by(self, again: Txid) -> Self {
        Self { again: Some(again), ..self }
    }

    /// Sets the later transaction.
    #[doc(hidden)]
    #[must_use]
    pub fn by(self, txid: Option<Txid>) -> Self {
        Self { txid, ..self }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table `{}`, row {}", self.table, self.row.0)?;
        if let Some(field) = &self.field {
            write!(f, ", field `{field}`")?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// The id of a row of one table, as generated code has it.
pub trait TypedId: From<RowId> {
    /// The name of the table.
    const TABLE: &'static str;
}

impl Violation {
    /// Returns the row of a table that the violation is about: the one with the key, or the one with the reference,
    /// or the one that it refers to; of obstacles the first one of the table.
    #[must_use]
    pub fn id<I: TypedId>(&self) -> Option<I> {
        match self {
            Self::Unique { table, row, .. } => (table == I::TABLE).then_some(*row),
            Self::Reference { table, row: Some(row), .. } if table == I::TABLE => Some(*row),
            Self::Reference { target, target_row, .. } => {
                (target == I::TABLE).then_some(*target_row)
            }
            Self::Conflict { obstacles } => {
                obstacles.iter().find(|it| it.table == I::TABLE).map(|it| it.row)
            }
        }
        .map(I::from)
    }
}

impl Error {
    /// Makes an error from a kind and a message with the description, place and remedy.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::made(kind, message.into(), None, None)
    }

    /// Makes an error of a change that would break a rule of the schema.
    #[doc(hidden)]
    #[cold]
    pub fn violating(violation: Violation, message: String) -> Self {
        let kind = match violation {
            Violation::Unique { .. } => ErrorKind::Unique,
            Violation::Reference { .. } => ErrorKind::Reference,
            Violation::Conflict { .. } => ErrorKind::Conflict,
        };
        Self::made(kind, message, None, Some(violation))
    }

    /// Makes an error of kind [`ErrorKind::Io`] from the operation and the cause; of kind [`ErrorKind::Corrupt`] if
    /// the cause is that read bytes differ from the written ones (`InvalidData`). Of a file on another machine it is
    /// [`ErrorKind::Unreachable`] (`HostUnreachable`), or [`ErrorKind::Forgotten`] if the file was replaced there
    /// (`StaleNetworkFileHandle`).
    #[cold]
    pub fn io(message: impl Into<String>, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::InvalidData => ErrorKind::Corrupt,
            io::ErrorKind::HostUnreachable => ErrorKind::Unreachable,
            io::ErrorKind::StaleNetworkFileHandle => ErrorKind::Forgotten,
            _ => ErrorKind::Io,
        };
        Self::with_source(kind, message, source)
    }

    /// Makes an error of any kind that was caused by the operating system.
    #[cold]
    pub fn with_source(kind: ErrorKind, message: impl Into<String>, source: io::Error) -> Self {
        Self::made(kind, message.into(), Some(source), None)
    }

    fn made(
        kind: ErrorKind,
        message: String,
        source: Option<io::Error>,
        violation: Option<Violation>,
    ) -> Self {
        Self(Box::new(Inner { kind, message, source, violation, transaction: None }))
    }

    /// Sets the transaction whose events don't apply.
    #[doc(hidden)]
    #[must_use]
    pub fn of_transaction(mut self, txid: u64) -> Self {
        self.0.transaction = Some(txid);
        self
    }

    /// Returns the transaction whose events don't apply, if the error means that.
    #[doc(hidden)]
    pub fn transaction(&self) -> Option<u64> {
        self.0.transaction
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

    /// Makes the error that an image says `what` though its checksums are right: a program wrote it like this.
    #[cold]
    #[doc(hidden)]
    pub fn ill_written(what: impl fmt::Display) -> Self {
        Self::corrupt(format!("the image was written with a mistake: {what}")).advising(
            "close the database and delete the image file; nothing is lost: the next opening makes it from the journal",
        )
    }

    /// Returns the kind of error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the index or reference and the rows that an error of kind [`ErrorKind::Unique`],
    /// [`ErrorKind::Reference`] or [`ErrorKind::Conflict`] is about. The error of a merge of files has none: its rows have other
    /// ids in each file.
    #[must_use]
    pub fn violation(&self) -> Option<&Violation> {
        self.0.violation.as_ref()
    }

    /// Returns the I/O error that caused this one. The message ends with its text.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        self.0.source.as_ref()
    }

    /// Returns the program's own error, which rolled a transaction back or refused a commit.
    ///
    /// # Errors
    /// This error: it has none of that type.
    pub fn into_program<E: std::error::Error + Send + Sync + 'static>(mut self) -> Result<E> {
        let is_it = |source: &io::Error| source.get_ref().is_some_and(|error| error.is::<E>());
        let own = self.0.source.take_if(|source| is_it(source)).and_then(io::Error::into_inner);
        match own.map(|error| error.downcast::<E>()) {
            Some(Ok(error)) => Ok(*error),
            _ => Err(self),
        }
    }

    /// Appends the remedy to the message.
    #[doc(hidden)]
    #[must_use]
    pub fn advising(mut self, advice: impl fmt::Display) -> Self {
        self.0.message = format!("{}; {advice}", self.0.message);
        self
    }

    /// True if a file on another machine couldn't be read, because that doesn't answer, or doesn't have the file any
    /// more. It says nothing about the contents of the file, and nothing else may be read in its place.
    #[doc(hidden)]
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self.kind(), ErrorKind::Unreachable | ErrorKind::Forgotten)
    }

    /// True if the cause is lack of space: on the disk, or in this user's quota.
    #[doc(hidden)]
    #[must_use]
    pub fn is_want_of_space(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let source = self.0.source.as_ref().map(io::Error::kind);
        self.kind() == ErrorKind::NoSpace
            || matches!(source, Some(StorageFull | QuotaExceeded | FileTooLarge))
    }

    /// Returns the same error once more, for each of those whose work failed together.
    #[doc(hidden)]
    #[must_use]
    pub fn again(&self) -> Self {
        let Inner { kind, message, source, violation, transaction } = &*self.0;
        let source = source.as_ref().map(|source| match source.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(source.kind(), source.to_string()),
        });
        let again = Self::made(*kind, message.clone(), source, violation.clone());
        match transaction {
            Some(txid) => again.of_transaction(*txid),
            None => again,
        }
    }

    /// Puts the name that a person knows in place of another one.
    #[doc(hidden)]
    #[must_use]
    pub fn renaming(mut self, from: &str, to: &str) -> Self {
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
        // The message has the text of the I/O error, so the chain continues with that one's own cause.
        std::error::Error::source(self.0.source.as_ref()?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_an_i_o_error_follows_from_its_cause() {
        for (cause, kind) in [
            (io::ErrorKind::InvalidData, ErrorKind::Corrupt),
            (io::ErrorKind::HostUnreachable, ErrorKind::Unreachable),
            (io::ErrorKind::StaleNetworkFileHandle, ErrorKind::Forgotten),
            (io::ErrorKind::PermissionDenied, ErrorKind::Io),
        ] {
            let error = Error::io("file", cause.into());
            assert_eq!(error.kind(), kind);
            assert_eq!(error.io_error().map(io::Error::kind), Some(cause));
        }
    }
}
