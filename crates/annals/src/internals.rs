//! The parts of this crate for those above it: `annals-tools`, `annals-replica` and the program.
//!
//! No program needs it. It is not part of the API, and changes with any version.

pub use crate::db::{
    CommitNews, Generation, ImageCheck, ImageComparison, JournalPart, LOCAL, OldSegment, Origin,
    PUSHED, Part, Preface, Proposal, Proven, REBASE, Removable, RowChanges, SegmentBeginning,
    StateBlobs, Witness, begin_while, check_image, check_image_in, check_origin, check_readable,
    check_usable, compare_image, compare_image_in, confirm_by, continue_as, durable, end_of,
    erasures_since, expose_image, extend, files_of, fitted, follow, hold, image_roots, is_same,
    live_blobs, load, locate, name_of, past_of, propose, schema_after, settle, spool,
    state_of_image, state_of_segment, take, takes_unproven, upgrade_in, watch, write_state,
};
pub use crate::progress::{Watch, Watched, read_while};
pub use annals_storage::around_forks;
