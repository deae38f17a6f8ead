//! The parts of this crate for those above it: `annals-tools` and the program.
//!
//! No program needs it. It is not part of the API, and changes with any version.

pub use crate::db::{
    Batch, Beginning, Carrying, Contents, Continuation, ExposedFile, ExposedFiles, FileRange,
    FrameSource, ImageCheck, ImageComparison, JournalFileKind, Known, LOCAL, Opened, Origin,
    PUSHED, Part, Past, Proposal, Proven, REBASE, RowChanges, SegmentStart, Source, SourceFacts,
    Witness, begin_continuation, begin_replica, begin_replica_in, begin_while, beside, check_end,
    check_image, check_image_in, check_origin, check_readable, compare_image, compare_image_in,
    confirm_by, continue_segment, count_frames, end_of, erasure, erasures_since, extend, fitted,
    follow, frames_up_to, head_up_to, hold, image_roots, is_same, live_blobs, load, locate,
    name_of, open_continuation, open_to_replace, past_of, propose, rename_continuation,
    scan_verified, schema_after, segment_number, settle, spool, state_of_image, state_of_segment,
    take, takes_unproven, upgrade_in, watch, write_state,
};
pub use crate::db::{End, last_clock_time, transaction_ends};
pub use crate::progress::{Watch, Watched, read_while};
pub use annals_journal::may_begin_journal;
pub use annals_storage::around_forks;

/// The comments of a request that runs once: its key, and after it the hash of the request with its answer.
pub mod requests {
    pub use crate::requests::{
        Answered, LONGEST_KEY, is_key, may_be_of_key, of_answer, of_erased_answer, of_key,
        read_answer,
    };
}
