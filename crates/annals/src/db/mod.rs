//! The parts that users hold: the database, its transactions and snapshots, and the ways to read a journal.
//!
//! The rooms, each of which imports from those after it, but for a few imports that a test counts:
//!
//! - `api`: opening, files that are only read, bytes of the program, what a program asks of the image;
//! - `tools`: examining files, and `erase`, which replaces the files of a journal;
//! - `past`: past states, the history index, histories, changes, subscriptions, and the handle that only reads;
//! - `image`: backfills and all that is done in the background, checks of the image;
//! - `write`: the database, its transactions, commits, shared mode, frames that were made elsewhere;
//! - `follow`: from a journal to a state, its files, and opening an image;
//! - `present`: the segment that is written, whose turn it is, the state that was published last, plain reports.

mod api;
mod follow;
mod image;
mod past;
mod present;
mod tools;
mod write;

use crate::progress;

pub use crate::db::api::embedded::Embedded;
pub use crate::db::follow::continuation::{LOCAL, PUSHED, Preface, REBASE};
pub use crate::db::follow::files::{JournalPart, expose_image, files_of};
pub use crate::db::follow::inspection::{
    HistoryInspection, ImageInspection, ImageRoot, Inspection, OldestReader, SegmentInspection,
};
pub use crate::db::follow::options::{Options, locate, takes_unproven, watch};
pub use crate::db::follow::report::Restarting;
pub use crate::db::follow::report::{
    BackfillMode, BackfillOutcome, BackfillPhases, BackfillProgress, Backfilled,
};
pub use crate::db::follow::scan::Sink;
pub use crate::db::follow::state::StateBlobs;
pub use crate::db::follow::unapplied::Unapplied;
pub use crate::db::follow::witness::Proven;
pub use crate::db::image::restart::{SegmentBeginning, continue_as};
pub use crate::db::image::{
    ImageCheck, ImageComparison, check_image, check_image_in, compare_image, compare_image_in,
};
pub use crate::db::past::history::HistoryCheck;
pub use crate::db::past::moment::{Moment, MomentError};
pub use crate::db::past::reader::Reader;
#[cfg(feature = "tokio")]
pub use crate::db::past::time::SubscriptionStream;
pub use crate::db::past::time::{
    ChangedFields, Changes, Deletions, Differing, Events, FieldValues, History, RowFields,
    Subscription, Tail, erasures_since, past_of, schema_after,
};
pub use crate::db::present::outcome::{Forgotten, Older, Restarted};
pub use crate::db::present::snapshot::{Snapshot, check_origin, name_of};
pub use crate::db::present::stats::{CacheStats, Latencies, OldestState, Stats};
pub use crate::db::tools::erase::{Generation, OldSegment, Removable};
pub use crate::db::tools::examine::{examine, scan, scan_in};
pub use crate::db::tools::inspect::{
    Examination, inspect, inspect_head, inspect_head_in, inspect_in,
};
pub use crate::db::tools::remains::{Part, image_roots, state_of_image, state_of_segment};
pub use crate::db::write::blobs::BlobReader;
pub use crate::db::write::changed::{Blame, Changed, RowChange, Version, VersionKind, is_same};
pub use crate::db::write::checks::{Checked, Proposed};
pub use crate::db::write::database::{Database, begin_while};
pub use crate::db::write::foreign::{Origin, take};
pub use crate::db::write::group::Witness;
pub use crate::db::write::pack::Packed;
pub use crate::db::write::pending::{Commit, Pending};
pub use crate::db::write::proposal::{Proposal, end_of, extend, hold, propose};
pub use crate::db::write::replication::{
    CommitNews, check_usable, confirm_by, durable, follow, settle, spool, upgrade_in,
};
pub use crate::db::write::rows::{RowChanges, fitted, load};
pub use crate::db::write::savepoints::Savepoint;
pub use crate::db::write::segment_state::{live_blobs, write_state};
pub use crate::db::write::transaction::Transaction;
pub(crate) use crate::db::write::transaction::is_new_uuid;
pub use crate::db::write::upgrade::{Custom, Customs, check_readable};
