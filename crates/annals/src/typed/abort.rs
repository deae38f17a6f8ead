//! The error that ends a transaction.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use crate::{Error, ErrorKind};

/// An error that rolls a transaction back, or a part of it: one of the database, or the program's own.
///
/// `?` makes it of any error. [`Database::write`](super::Database::write) returns an [`Error`] of it: errors of the database
/// stay as they are, and [`Error::into_program`] returns the program's own.
///
/// ```
/// annals::schema!("tutorial.schema");
/// use annals::ErrorKind;
/// use std::num::ParseIntError;
///
/// # fn main() -> annals::Result<()> {
/// let db = tutorial::Database::in_memory()?;
/// let aborted = db.write(|tx| {
///     tx.insert(tutorial::city::New { name: "Lille" })?;
///     Ok("fifty".parse::<i32>()?)
/// });
/// let error = aborted.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Aborted);
/// assert!(error.into_program::<ParseIntError>().is_ok());
/// assert!(db.read().city().is_empty());
/// # Ok(())
/// # }
/// ```
///
/// So that `?` takes any error, it isn't an error itself.
pub struct Abort(Box<dyn StdError + Send + Sync>);

impl Abort {
    /// Makes it of a text, or of a boxed error, which `?` doesn't take: `work().map_err(Abort::new)?`.
    #[cold]
    pub fn new(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self(error.into())
    }

    /// Returns the error of the database, or one with the program's own.
    #[doc(hidden)]
    #[cold]
    pub fn into_error(self) -> Error {
        match self.0.downcast::<Error>() {
            Ok(error) => *error,
            Err(error) => Error::with_source(
                ErrorKind::Aborted,
                "rolled back by the program",
                io::Error::other(error),
            ),
        }
    }
}

/// A type whose values end a transaction by `?`: each error that can go to another thread.
#[diagnostic::on_unimplemented(
    message = "`{Self}` doesn't implement `std::error::Error`, which can end a transaction",
    label = "`{Self}` isn't a `std::error::Error`; for a text or a boxed error, `.map_err(annals::Abort::new)?`",
    note = "an error must be `Send`, `Sync` and `'static`, too"
)]
pub trait Cause: StdError + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<E: StdError + Send + Sync + 'static> Cause for E {}

impl<E: Cause> From<E> for Abort {
    #[cold]
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl fmt::Debug for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
