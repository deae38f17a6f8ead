//! The parts that users hold: the database, its transactions and snapshots, and the ways to read a journal.
//!
//! The rooms, each of which imports from those after it, but for a few imports that a test counts:
//!
//! - `api`: opening, files that are only read, bytes of the program, what a program asks of the image;
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
mod write;

use crate::progress;

pub use crate::db::api::embedded::Embedded;
pub use crate::db::api::erasure;
pub use crate::db::api::open::open_to_replace;
pub use crate::db::follow::beside;
pub use crate::db::follow::continuation::locate as locate_continued;
pub use crate::db::follow::continuation::{LOCAL, PUSHED, Preface, REBASE};
pub use crate::db::follow::files::{JournalPart, expose_image, files_of};
pub use crate::db::follow::opening::load as load_image;
pub use crate::db::follow::options::{Options, locate, recovery, takes_unproven, watch};
pub use crate::db::follow::report::{
    BackfillMode, BackfillOutcome, BackfillPhases, BackfillProgress, Backfilled, OldestReader,
    Restarting,
};
pub use crate::db::follow::scan::{Sink, take_frame};
pub use crate::db::follow::segments::{Opened, Past, Since, open_to_read};
pub use crate::db::follow::source::{FrameFacts, FrameSource, Visitor, is_damaged};
pub use crate::db::follow::state::{Replay, StateBlobs, advance_to};
pub use crate::db::follow::survey::{FromImage, open_from_image, warn_of_image};
pub use crate::db::follow::unapplied::{Counted, Unapplied};
pub use crate::db::follow::witness::{check_end, identity, image_witnesses};
pub use crate::db::image::compare::difference;
pub use crate::db::image::restart::{SegmentBeginning, continue_as};
pub use crate::db::past::history::check::{compare_history_index, first_end, indexed_until};
pub use crate::db::past::moment::{Moment, MomentError};
pub use crate::db::past::reader::Reader;
#[cfg(feature = "tokio")]
pub use crate::db::past::time::SubscriptionStream;
pub use crate::db::past::time::{
    ChangedFields, Changes, Deletions, Differing, Events, FieldValues, History, RowFields,
    Subscription, Tail, erasures_since, past_of, schema_after,
};
pub use crate::db::present::outcome::{Forgotten, Older, Restarted};
pub use crate::db::present::snapshot::{Snapshot, check_origin, name_of, snapshot_of};
pub use crate::db::present::stats::{CacheStats, Latencies, MemoryStats, OldestState, Stats};
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
