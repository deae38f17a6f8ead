//! A value that was read from a column.

use annals_schema::{Value, ValueRef};

/// A value: borrowed from the view that it was read from, or a copy if only a cache has its page.
#[derive(Clone, Debug)]
pub(crate) enum Fetched<'a> {
    /// Borrowed, or of a type that is copied anyway.
    Here(ValueRef<'a>),
    /// A copy of a string or of bytes.
    Copied(Value),
}

impl Fetched<'_> {
    /// Borrows the value.
    #[inline]
    pub(crate) fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Here(value) => *value,
            Self::Copied(value) => value.as_ref(),
        }
    }
}
