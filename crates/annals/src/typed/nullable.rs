//! Values that may be left out.

use annals_schema::ValueRef;

/// Makes a value of an argument that may be left out: a plain one, an `Option` of it, or `None`. Generated code calls
/// it.
#[doc(hidden)]
#[inline]
pub fn nullable<'v, T: Into<ValueRef<'v>>>(value: impl Into<Option<T>>) -> ValueRef<'v> {
    value.into().map_or(ValueRef::Null, Into::into)
}
