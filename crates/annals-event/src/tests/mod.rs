//! Events are written and read again, and what is no event is refused; the document has the same codes.

mod document;
mod malformed;
pub(crate) mod round_trip;
