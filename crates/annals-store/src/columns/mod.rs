//! Columns: the values of a field, by slot.
//!
//! In reading order: a [`mod@column`] holds values of any type as [`raw`] ones, its [`strings`] those without a fixed
//! size; a value read from it is [`fetched`]; many are read by the
//! column's reader, and [`copied`] where their pages don't stay. A program passes runs of values as [`values`] and reads them as a
//! [`vector_view`], both made of [`primitive`] types.

pub(super) mod column;
pub(super) mod copied;
pub(super) mod fetched;
pub(super) mod primitive;
pub(super) mod raw;
pub(super) mod strings;
pub(super) mod values;
