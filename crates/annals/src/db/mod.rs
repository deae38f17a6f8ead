//! The parts that users hold: the database, its transactions and snapshots, and the ways to read a journal.
//!
//! The rooms, each of which knows only those before it:
//!
//! - `options`, `inspection`, `outcome`, `stats`: the settings of a program, and plain reports to it;
//! - `present`: the segment that is written, whose turn it is, and the state that was published last;
//! - `replay`: from a journal to a state; `changes`: changes of rows, and the feed of commits;
//! - `image`: the state of the image, and opening from it; `history`: the same for the history index;
//! - `past`: past states;
//! - `engine`: the state that threads of an open database share, and the background work;
//! - `handle`: the database and its transactions, the handles of programs; `reader` is the read-only one;
//! - `time`: reading the past and new commits, through these; `open`, with `acquire` and `recovery`: how a database is
//!   opened; `read_only`: files, and `embedded` bytes of the program;
//! - `replication`: frames as they are, from and for other machines;
//! - `continuation`: the transactions that a replica commits on its own;
//! - `inspect`, `examine`, by the `marks` of erasures: examining files; `salvage`: what is left of a damaged journal
//!   besides its transactions; `erase` replaces the files of a journal.

mod acquire;
mod beside;
mod changes;
mod continuation;
mod embedded;
mod engine;
mod erase;
mod examine;
mod handle;
mod history;
mod image;
mod inspect;
mod inspection;
mod marks;
mod open;
mod options;
mod outcome;
mod past;
mod present;
mod read_only;
mod reader;
mod recovery;
mod replay;
mod replication;
mod salvage;
mod stats;
mod threads;
mod time;

use crate::progress;

pub use changes::changed::{Blame, Changed, RowChange, Version, VersionKind, is_same};
pub use changes::moment::{Moment, MomentError};
pub use changes::rows::{RowChanges, fitted, load};
pub use continuation::{
    Continuation, LOCAL, PUSHED, REBASE, begin_continuation, open_continuation, rename_continuation,
};
pub use embedded::Embedded;
pub use engine::group::Witness;
pub use engine::state::{live_blobs, write_state};
pub use erase::{Generation, OldSegment, Removable};
pub use examine::{examine, scan, scan_in};
pub use handle::blobs::BlobReader;
pub use handle::checks::{Checked, Proposed};
pub use handle::database::{Database, begin_while};
pub use handle::pack::Packed;
pub use handle::pending::{Commit, Pending};
pub use handle::savepoints::Savepoint;
pub use handle::transaction::Transaction;
pub(crate) use handle::transaction::is_new_uuid;
pub use handle::upgrade::{Custom, Customs};
pub use history::HistoryCheck;
pub use image::report::Restarting;
pub use image::{
    BackfillMode, BackfillOutcome, BackfillPhases, BackfillProgress, Backfilled, ImageCheck,
    ImageComparison, check_image, check_image_in, compare_image, compare_image_in,
};
pub use inspect::{Examination, inspect, inspect_head, inspect_head_in, inspect_in};
pub use inspection::{
    HistoryInspection, ImageInspection, ImageRoot, Inspection, OldestReader, SegmentInspection,
};
pub use options::{Options, locate, takes_unproven, watch};
pub use outcome::{Forgotten, Older, Restarted};
pub use present::snapshot::{Snapshot, check_origin, name_of};
pub use reader::Reader;
pub use replay::scan::Sink;
pub use replay::unapplied::Unapplied;
pub use replay::witness::Proven;
pub use replication::{
    Batch, Beginning, Carrying, Contents, ExposedFile, ExposedFiles, FileRange, JournalFileKind,
    Known, Origin, Proposal, SegmentStart, Source, SourceFacts, begin_replica, begin_replica_in,
    check_readable, confirm_by, continue_segment, count_frames, end_of, extend, follow,
    frames_up_to, head_up_to, hold, propose, segment_number, settle, spool, take, upgrade_in,
};
pub use replication::{End, last_clock_time, transaction_ends};
pub use salvage::{Part, image_roots, state_of_image, state_of_segment};
pub use stats::{CacheStats, Latencies, OldestState, Stats};
#[cfg(feature = "tokio")]
pub use time::SubscriptionStream;
pub use time::{
    ChangedFields, Changes, Deletions, Differing, Events, FieldValues, History, RowFields,
    Subscription, Tail, erasures_since, past_of, schema_after,
};
