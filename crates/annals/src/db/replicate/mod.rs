//! What a database does with frames as they are, for connections to other machines.
//!
//! ```text
//! here a transaction ─► Proposal (frames in a spool) ─► the other side ─┬─► accepted: its frames are written here
//!                                                                       └─► refused:  nothing remains of it
//! Source ─► frames after a cursor, whole transactions ─► take ─► Proposal ─► written as they are
//! ```
//!
//! `source` reads frames out of a journal, `places` finds them, `missing` says why one isn't there; `foreign` verifies and applies frames
//! that were made elsewhere; `proposal` is a transaction whose frames are complete and not written yet; `segments`
//! begins a replica, and continues in another segment as the other side did. `exposed` are the files themselves, as lazy replicas read them.

pub(in crate::db) mod continuation;
mod ends;
mod exposed;
mod foreign;
mod missing;
mod places;
mod proposal;
mod segments;
mod source;

pub use crate::db::replicate::ends::{End, last_clock_time, transaction_ends};
pub use crate::db::replicate::exposed::{
    ExposedFile, ExposedFiles, JournalFileKind, head_up_to, segment_number,
};
pub use crate::db::replicate::foreign::{
    Beginning, Contents, Origin, count_frames, frames_up_to, take,
};
pub use crate::db::replicate::missing::Carrying;
pub use crate::db::replicate::places::Known;
pub use crate::db::replicate::proposal::{Proposal, end_of, extend, hold, propose};
pub use crate::db::replicate::segments::{
    SegmentStart, begin_replica, begin_replica_in, continue_segment,
};
pub use crate::db::replicate::source::{Batch, FileRange, Source, SourceFacts};

use std::sync::Arc;

use annals_storage::Spool;

use crate::db::present::snapshot::Snapshot;
use crate::db::write::database::Database;
use crate::db::write::group::Witness;
use crate::db::write::transaction::Transaction;
use crate::db::write::upgrade;
use crate::{Result, Schema};

/// Makes the schema that a transaction sees that of a program without custom functions.
///
/// # Errors
/// `SchemaMismatch`: the schema is newer, or another; those of the steps.
pub fn upgrade_in(transaction: &mut Transaction<'_>, schema: &Schema) -> Result<()> {
    upgrade::upgrade_in(transaction, schema, &mut upgrade::none)
}

/// Checks that a program can read a state: it has all that the program's schema has.
///
/// # Errors
/// `SchemaMismatch`: it lacks something.
pub fn check_readable(state: &Snapshot, schema: &Schema) -> Result<()> {
    upgrade::check_readable(state.schema(), schema)
}

/// Makes a database follow another, named as messages name it: commits, restarts and all else that only the owner of
/// a history may do are errors.
pub fn follow(database: &Database, owner: &str) {
    database.inner().follows.get_or_init(|| owner.to_owned());
}

/// Returns an empty spool for frames of a database, beside its journal.
#[must_use]
pub fn spool(database: &Database) -> Spool {
    proposal::spool(database.inner())
}

/// Acknowledges commits of a database from now on only when a witness has them, too. A database has one, for as long as
/// it is open.
pub fn confirm_by(database: &Database, witness: Arc<dyn Witness>) {
    database.inner().group.confirm_by(witness);
}

/// Returns when all that is written to a database is acknowledged.
///
/// # Errors
/// `Poisoned`, `Io`: it can't be; `Closed`.
pub fn settle(database: &Database) -> Result<()> {
    let _entered = database.inner().enter()?;
    database.inner().group.settle()
}
