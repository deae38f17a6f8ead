//! The journal of [Annals](https://docs.rs/annals): the append-only file that is the truth. Programs use the crate
//! `annals`, which re-exports the parts that they need.
//!
//! In reading order: `format` and `frame` are the bytes. `head` is the first 16 KiB, and `copies` each part of it
//! separately. `reader` follows the chain and returns each transaction as `committed`; `survey` finds the end of
//! that, and the `verdict` judges it. `recover` makes the file writable again; `outcome` has its modes and its
//! report, and `tail` saves the cut bytes. `walk` continues after damage; `create` makes a new journal. `slots` and
//! `checkpoints` track the flushed position, and `commit` has the recipe of each `level`. `rewrite` rewrites a
//! segment, and an `erasure` marks why. `space` `ahead` is zeros, on a `device` too; `writer` writes transactions;
//! `segments` are the files of a journal that was split. The journal doesn't know the store. (`testing` is for tests
//! only.)
#![deny(clippy::indexing_slicing)]
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the text above the code is for those who work there, and names its private parts"
)]

mod ahead;
mod checkpoints;
mod commit;
mod committed;
mod copies;
mod create;
mod cursor;
mod device;
mod erasure;
mod features;
pub mod format;
mod frame;
mod head;
mod held;
mod level;
mod outcome;
mod reader;
mod recover;
mod refusal;
mod savepoints;
mod seal;
pub mod segments;
mod single;
mod slots;
mod space;
mod survey;
mod tail;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
#[cfg(test)]
mod tests;
mod verdict;
mod writer;

use annals_storage::{Error, ErrorKind, Result};

pub use checkpoints::Checkpoints;
pub use create::{create, keep_name, new_header};
pub use device::{create_on, is_blank};
pub use features::refuse_reading;
pub use frame::{
    FrameHeader, Making, Outline, Trailer, Verified, finish as finish_frame, frame_len,
};
pub use head::{
    Head, first_slot, head_with, holder, live, may_begin_journal, segment_hash, write_slot,
};
pub use outcome::Settled;
pub use reader::{Frame, FrameReader};
pub use recover::{join, refuse, settle, settle_shared};
pub use refusal::{busy, cannot_open, shown_path};
pub use single::{Single, Singles};
pub use survey::Rule;
pub use tail::copy_whole;
pub use verdict::Verdict;
pub use writer::Writer;

pub use committed::Committed;
pub use copies::Copies;
pub use cursor::{Cursor, CursorError};
pub use erasure::{Carried, Erasure};
pub use format::Point;
pub use level::Level;
pub use outcome::{Cut, Recovered, Recovery};
pub use segments::{Plan, Retention, SegmentFacts};
pub use survey::Survey;
