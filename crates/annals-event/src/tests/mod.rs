//! Events are written and read again, and what is no event is refused; the document has the same codes.

mod document;
mod malformed;
mod part;
pub(crate) mod round_trip;
