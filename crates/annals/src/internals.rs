//! The parts of this crate for those above it: `annals-tools` and the program.
//!
//! No program needs it. It is not part of the API, and changes with any version.

pub use crate::db::{
    Batch, Beginning, Carrying, Contents, Continuation, Counted, ExposedFile, ExposedFiles,
    FileRange, FrameFacts, FrameSource, FromImage, JournalFileKind, Known, LOCAL, Opened, Origin,
    PUSHED, Past, Proposal, REBASE, Replay, RowChanges, SegmentStart, Since, Source, SourceFacts,
    Visitor, Witness, advance_to, begin_continuation, begin_replica, begin_replica_in, begin_while,
    beside, check_end, check_origin, check_readable, compare_history_index, confirm_by,
    continue_segment, count_frames, difference, end_of, erasure, erasures_since, extend, fitted,
    follow, frames_up_to, head_up_to, hold, identity, image_witnesses, indexed_until, is_damaged,
    is_same, live_blobs, load, load_image, locate, locate_continued, name_of, open_continuation,
    open_from_image, open_to_read, open_to_replace, past_of, propose, recovery,
    rename_continuation, schema_after, segment_number, settle, snapshot_of, spool, take,
    take_frame, takes_unproven, upgrade_in, warn_of_image, watch, write_state,
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
