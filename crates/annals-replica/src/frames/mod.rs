//! Frames as they are in the files of a journal, from and for other machines.
//!
//! ```text
//! here a transaction ─► Proposal (frames in a spool) ─► the other side ─┬─► accepted: its frames are written here
//!                                                                       └─► refused:  nothing remains of it
//! Source ─► frames after a cursor, whole transactions ─► take ─► Proposal ─► written as they are
//! ```
//!
//! `source` reads frames out of a journal, `places` finds them, `missing` says why one isn't there; `outlines` are what
//! frames say of themselves; `segments` begins a replica, and continues in another segment as the other side did.
//! `exposed` are the files themselves, as lazy replicas read them. `annals` verifies and applies frames that were made
//! elsewhere.

mod exposed;
mod missing;
mod outlines;
mod places;
mod segments;
mod source;

pub(crate) use exposed::head_up_to;
pub use exposed::{ExposedFile, ExposedFiles, JournalFileKind};
pub use missing::Carrying;
pub use outlines::{
    Beginning, Contents, End, Frames, count_frames, frames_up_to, last_clock_time, transaction_ends,
};
pub use places::Known;
pub use segments::{SegmentStart, begin_replica, continue_segment};
pub use source::{Batch, FileRange, Source, SourceFacts};
