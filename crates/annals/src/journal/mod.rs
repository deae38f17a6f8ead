//! The journal: the append-only file that is the truth.
//!
//! In reading order: `format` and `frame` are the bytes; `head` is the first 16 KiB, and `copies` each part
//! of that by itself; `reader` follows the chain and tells what is `committed`; `survey` finds how far, and the `verdict`
//! judges it; `recover` makes it fit to be written, and saves the `tail`; `walk` goes on behind damage; `create`
//! makes a new one; `slots` and `checkpoints` know how far it is flushed, and `commit` has the recipe of
//! each `level`; `rewrite` writes a segment anew, and an `erasure` marks why; `space` `ahead` is zeros, on a `device` too; `writer` writes transactions; `segments` are the
//! files of a journal that was split. This room doesn't know the store. (`testing` is for tests only.)
#![deny(clippy::indexing_slicing)]

mod ahead;
mod checkpoints;
mod commit;
mod committed;
mod copies;
mod create;
mod device;
#[cfg(test)]
pub(crate) mod document;
mod erasure;
pub mod format;
mod frame;
mod head;
mod level;
mod reader;
mod recover;
mod refusal;
mod rewrite;
pub(crate) mod segments;
mod slots;
mod space;
mod survey;
mod tail;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
#[cfg(test)]
pub(crate) mod vectors;
mod verdict;
mod walk;
mod writer;

use crate::mistakes;
pub(crate) use crate::sync::lock;
pub(crate) use checkpoints::Checkpoints;
pub(crate) use create::{create, keep_name, new_header};
pub(crate) use device::{create_on, is_blank};
pub(crate) use frame::{FrameHeader, Trailer};
pub(crate) use head::{Head, first_slot, head_with, holder, live, segment_hash};
pub(crate) use reader::{Frame, FrameReader};
pub(crate) use recover::{Settled, join, refuse, settle, settle_among_others};
pub(crate) use refusal::{busy, cannot_open};
pub(crate) use rewrite::Rewriting;
pub(crate) use survey::{Rule, Survey};
pub(crate) use tail::copy_whole;
pub(crate) use verdict::{Verdict, shown_path};
pub(crate) use walk::{Link, Skipped, Step, Walk};
pub(crate) use writer::Writer;

pub use committed::Committed;
pub use copies::Copies;
pub use erasure::{Carried, Erasure};
pub use format::Point;
pub use level::Level;
pub use recover::{Cut, Recovered, Recovery};
pub use segments::{Plan, Retention, SegmentFacts};
