//! Values that may be left out.

use annals_schema::ValueRef;

/// An argument that may be left out: a plain value, an `Option` of it, or `None`.
#[diagnostic::on_unimplemented(
    message = "this takes `{T}`, or an `Option` of it, and not `{Self}`",
    note = "if the value is a `Result`, put a `?` after it; the id of a row of another table doesn't fit"
)]
pub trait OrNull<T> {
    /// Returns the value, or `None`.
    fn or_null(self) -> Option<T>;
}

impl<T> OrNull<T> for T {
    #[inline(always)]
    fn or_null(self) -> Option<T> {
        Some(self)
    }
}

impl<T> OrNull<T> for Option<T> {
    #[inline(always)]
    fn or_null(self) -> Self {
        self
    }
}

/// Makes a value of an argument that may be left out. Generated code calls it.
#[doc(hidden)]
#[inline]
pub fn nullable<'v, T: Into<ValueRef<'v>>>(value: impl OrNull<T>) -> ValueRef<'v> {
    value.or_null().map_or(ValueRef::Null, Into::into)
}
