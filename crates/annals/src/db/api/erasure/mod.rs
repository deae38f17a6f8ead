//! A new generation of a journal: segments that were written again take the place of the old ones, as a whole.
//!
//! ```text
//! 1. create NAME.erasing-ID, which lists all files that will be removed; write the kept segments as
//!    NAME-segment-N.erased-ID and the newest one as NAME.erased-ID, flush each
//! 2. give the image a name of step 4, flush the directory
//! 3. rename NAME.erased-ID to NAME, flush the directory   (from here on, and not before, the history is the new one)
//! 4. give the kept ones their names, remove what is listed, flush the directory
//! 5. remove NAME.erasing-ID, flush the directory
//! ```
//!
//! Between 3 and 4 kept segments are found by their other names, which the header of the newest one says
//! (`journal::segments::Kept`). Opening the journal for writing does 4 and 5 if it finds NAME.erasing-ID. The next
//! erasure removes what a crash before 3 leaves.
//!
//! `annals-tools` does 1 to 3; `finish` does 4 and 5, by the list in the `marker`.

mod finish;
mod marker;

pub(in crate::db) use crate::db::api::erasure::finish::finish;
pub use crate::db::api::erasure::finish::{finish_published, removable, remove};
pub use crate::db::api::erasure::marker::{List, write};
