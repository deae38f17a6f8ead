//! A value that was read from a column.

use std::borrow::Cow;

use annals_schema::{Value, ValueRef};

/// A value: borrowed from the view that it was read from, or a copy if its page is only in a cache.
#[derive(Clone, Debug)]
pub enum Fetched<'a> {
    /// Borrowed, or of a type that is copied anyway.
    Here(ValueRef<'a>),
    /// A copy of a string or of bytes.
    Copied(Value),
}

impl<'a> Fetched<'a> {
    #[inline]
    pub(crate) fn text(text: Cow<'a, str>) -> Self {
        match text {
            Cow::Borrowed(text) => Self::Here(ValueRef::String(text)),
            Cow::Owned(text) => Self::Copied(Value::String(text)),
        }
    }

    #[inline]
    pub(crate) fn bytes(bytes: Cow<'a, [u8]>) -> Self {
        match bytes {
            Cow::Borrowed(bytes) => Self::Here(ValueRef::Bytes(bytes)),
            Cow::Owned(bytes) => Self::Copied(Value::Bytes(bytes)),
        }
    }

    /// Returns the text, if it is one.
    #[doc(hidden)]
    #[inline]
    pub fn into_text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Here(ValueRef::String(text)) => Some(Cow::Borrowed(text)),
            Self::Copied(Value::String(text)) => Some(Cow::Owned(text)),
            _ => None,
        }
    }

    /// Returns the bytes, if it is a value of bytes.
    #[doc(hidden)]
    #[inline]
    pub fn into_bytes(self) -> Option<Cow<'a, [u8]>> {
        match self {
            Self::Here(ValueRef::Bytes(bytes)) => Some(Cow::Borrowed(bytes)),
            Self::Copied(Value::Bytes(bytes)) => Some(Cow::Owned(bytes)),
            _ => None,
        }
    }

    /// Borrows the value.
    #[inline]
    #[must_use]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Here(value) => *value,
            Self::Copied(value) => value.as_ref(),
        }
    }

    /// Returns a copy of the value.
    #[must_use]
    pub fn into_value(self) -> Value {
        match self {
            Self::Here(value) => value.to_value(),
            Self::Copied(value) => value,
        }
    }
}

impl PartialEq<ValueRef<'_>> for Fetched<'_> {
    fn eq(&self, other: &ValueRef<'_>) -> bool {
        self.as_ref() == *other
    }
}
