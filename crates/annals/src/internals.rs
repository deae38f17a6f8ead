//! The parts of this crate for those above it: `annals-tools`, `annals-replica` and the program.
//!
//! No program needs it. It is not part of the API, and changes with any version.

pub use crate::db::{
    CommitNews, Counted, FrameFacts, FrameSource, FromImage, JournalPart, LOCAL, Opened, Origin,
    PUSHED, Past, Preface, Proposal, REBASE, Replay, RowChanges, SegmentBeginning, Since,
    StateBlobs, Visitor, Witness, advance_to, begin_while, beside, check_end, check_origin,
    check_readable, check_usable, compare_history_index, confirm_by, continue_as, difference,
    durable, end_of, erasure, erasures_since, expose_image, extend, files_of, first_end, fitted,
    follow, hold, identity, image_witnesses, indexed_until, is_damaged, is_same, live_blobs, load,
    load_image, locate, locate_continued, name_of, open_from_image, open_to_read, open_to_replace,
    past_of, propose, recovery, schema_after, settle, snapshot_of, spool, take, take_frame,
    takes_unproven, upgrade_in, warn_of_image, watch, write_state,
};
pub use crate::progress::{Watch, Watched, read_while};
pub use annals_storage::around_forks;
