//! The history of rows, and the index that tells where it is.
//!
//! In reading order: `files` are those of a journal up to a commit; `find` tells which parts of them have to be read;
//! `moments` are looked up so, too; `row` is a row as events make it, and `versions` what each transaction made of it;
//! `collect` makes zones and entries of frames, and `keep` adds them to the index; `inspection` looks at that from
//! outside.

mod collect;
mod files;
mod find;
mod inspection;
mod keep;
mod moments;
mod row;
mod versions;

pub use inspection::HistoryCheck;
pub(super) use inspection::{inspect, witness};
pub(super) use keep::Keeping;
pub(super) use moments::txid_of;
pub use versions::History;
