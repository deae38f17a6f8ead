//! The parts of this crate for those above it: `annals-tools` and the program.
//!
//! No program needs it. It is not part of the API, and changes with any version.

pub use crate::db::{
    Batch, Beginning, Carrying, Contents, Continuation, ExposedFile, ExposedFiles, Fate, FileRange,
    Gap, Generation, ImageCheck, ImageComparison, JournalFileKind, LOCAL, OldSegment, Origin,
    PUSHED, Proposal, Proven, REBASE, Rebased, Removable, Restored, Run, Salvaged, SalvagedSegment,
    SegmentStart, Source, SourceFacts, Witness, begin_continuation, begin_replica,
    begin_replica_in, check_image, check_image_in, check_readable, compare_image, compare_image_in,
    continue_segment, count_frames, frames_up_to, head_up_to, last_made_again, locate,
    open_continuation, rebase, rename_continuation, salvage, salvage_in, segment_number,
    upgrade_in, write_state,
};
pub use crate::db::{End, last_clock_time, transaction_ends};
pub use crate::names::{Names, like};
pub use crate::progress::{Watch, read_while};
pub use annals_storage::around_forks;

/// The comments of a request that runs once: its key, and after it the hash of the request with its answer.
pub mod requests {
    pub use crate::requests::{
        Answered, LONGEST_KEY, is_key, may_be_of_key, of_answer, of_erased_answer, of_key,
        read_answer,
    };
}

/// Fails in a process that was forked since a state's database was opened.
///
/// # Errors
/// `Poisoned`.
pub fn check_origin(snapshot: &crate::Snapshot) -> crate::Result<()> {
    snapshot.check_origin()
}

/// Returns the progress callback of an operation with these options.
#[must_use]
pub fn watch(options: &crate::Options) -> Option<Watch> {
    options.watch()
}

/// Makes a database follow another, named as messages name it: commits, restarts and all else that only the owner of
/// a history may do are errors.
pub fn follow(database: &crate::Database, owner: &str) {
    database.follow(owner);
}

/// Begins a transaction, as [`Database::begin`](crate::Database::begin) does. In shared mode it waits for other processes up
/// to `timeout`, or that of the options, and while `is_wanted`, which it asks all the time.
///
/// # Errors
/// Those of [`Database::begin`](crate::Database::begin); `Busy`; `Cancelled`: it isn't wanted any more.
pub fn begin_while<'db>(
    database: &'db crate::Database,
    timeout: Option<std::time::Duration>,
    is_wanted: &dyn Fn() -> bool,
) -> crate::Result<crate::Transaction<'db>> {
    database.begin_while(timeout, is_wanted)
}

/// Keeps the frames of a transaction beside the journal: see [`Proposal`]. To be called before its first change.
///
/// # Errors
/// `Unsupported`: other processes write the journal, too; `Invalid`: it has changes.
pub fn hold(transaction: &mut crate::Transaction<'_>) -> crate::Result<()> {
    transaction.hold()
}

/// Ends a transaction that was held; `None` if it has no events.
///
/// # Errors
/// Those of [`Transaction::commit`](crate::Transaction::commit): it is rolled back.
pub fn propose(transaction: crate::Transaction<'_>) -> crate::Result<Option<Proposal<'_>>> {
    transaction.propose()
}

/// Begins another transaction after those of a proposal: proposed, they are one proposal.
#[must_use]
pub fn extend(proposal: Proposal<'_>) -> crate::Transaction<'_> {
    proposal.extend()
}

/// Takes frames that follow a journal's end into an empty transaction: verifies and applies them, and writes nothing.
///
/// # Errors
/// `Invalid`: they don't verify, or can't be; `Unsupported`; of proposed ones those of statements and of a commit.
pub fn take<'db>(
    transaction: crate::Transaction<'db>,
    frames: &mut annals_storage::Spool,
    origin: Origin,
) -> crate::Result<Proposal<'db>> {
    transaction.take(frames, origin)
}

/// True if bytes may be the beginning of a journal or of frames, as far as there are some.
#[must_use]
pub fn may_begin_journal(bytes: &[u8]) -> bool {
    use crate::journal::format::{FRAME_MAGIC, MAGIC};
    let begins = |magic: &[u8]| bytes.iter().zip(magic).all(|(byte, magic)| byte == magic);
    begins(&MAGIC) || begins(&FRAME_MAGIC)
}

/// Returns an empty spool for frames of a database, beside its journal.
#[must_use]
pub fn spool(database: &crate::Database) -> annals_storage::Spool {
    database.spool()
}

/// Returns the cursor that a transaction without changes follows.
#[must_use]
pub fn end_of(transaction: &crate::Transaction<'_>) -> crate::Cursor {
    transaction.end()
}

/// Acknowledges commits of a database from now on only when a witness has them, too. A database has one, for as long as
/// it is open.
pub fn confirm_by(database: &crate::Database, witness: std::sync::Arc<dyn Witness>) {
    database.confirm_by(witness);
}

/// Returns when all that is written to a database is acknowledged.
///
/// # Errors
/// `Poisoned`, `Io`: it can't be; `Closed`.
pub fn settle(database: &crate::Database) -> crate::Result<()> {
    database.settle()
}
