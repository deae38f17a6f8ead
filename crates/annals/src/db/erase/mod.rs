//! Erasing values from history: every segment from the first that holds one to the newest is rewritten without them,
//! and replaces the old one.
//!
//! ```text
//! 1. create NAME.erasing-ID, which lists all files that will be removed; rewrite the kept segments as
//!    NAME-segment-N.erased-ID and the newest one as NAME.erased-ID, flush each
//! 2. remove the image and the history index, flush the directory
//! 3. rename NAME.erased-ID to NAME, flush the directory   (from here on, and not before, the history is the new one)
//! 4. give the kept ones their names, remove what is listed, flush the directory
//! 5. remove NAME.erasing-ID, flush the directory
//! ```
//!
//! Between 3 and 4 kept segments are found by their other names, which follow from the newest one's header
//! (`journal::segments::Kept`). An opening for writing that finds NAME.erasing-ID does 4 and 5. The next erasure
//! removes the orphans of a crash before 3.
//!
//! In reading order: `call` is the function that programs call, and `report` its result. `search` reads all of
//! history and finds the values; `write` rewrites segments, by an `editor`; `replace` puts them in place, by the list
//! in the `marker`. An examination of a journal reads the marks again (`db::marks`).

mod call;
mod editor;
mod marker;
mod replace;
mod report;
mod search;
mod write;

pub use call::{erase, erase_in};
pub(super) use replace::finish;
pub use report::{Erase, Erased};
