//! The history index: the file beside a journal that records in which parts of it a row was changed. A cache:
//! deleting it loses nothing, ever.
//!
//! The journal is cut into [`Zone`]s of whole frames. Each zone has the data needed to begin reading there, and
//! [`Entry`]s: the rows that it changes, and its comments. Both are in runs, as in a log-structured tree: added zones
//! are a new run, and runs of similar size are merged.
//!
//! In reading order: `format` is the bytes of the head; `zone`, `entry` and `node` are those of pages. `extent` is
//! the position of a run and its pages; `write` makes a run, and `merge` one of several. `file` opens, creates and
//! publishes, and `update` adds zones; `read` has lookups; `check` verifies all of it.
#![deny(clippy::indexing_slicing)]

mod check;
mod entry;
mod extent;
mod file;
mod format;
mod merge;
mod node;
mod read;
#[cfg(test)]
mod tests;
mod update;
mod write;
mod zone;

pub(crate) use check::check;
pub(crate) use entry::{COMMENTS, Entry, comment_key, table_key};
pub(crate) use file::{IndexFile, history_name, set_aside};
pub(crate) use format::{Bound, journal_id_of};
pub(crate) use read::Lookup;
pub(crate) use zone::{COMMENTED, ENDS_INSIDE, STATE, Zone};
