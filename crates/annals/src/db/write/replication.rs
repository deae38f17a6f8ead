//! What replication asks of an open database: its last durable state, news of its commits, and that it follows another
//! journal, or has a witness.

use std::sync::Arc;
#[cfg(feature = "tokio")]
use std::task::Poll;
use std::time::Duration;

use annals_schema::Txid;
use annals_storage::Spool;

use crate::db::present::snapshot::Snapshot;
use crate::db::write::database::Database;
use crate::db::write::feed::{Feed, Slot};
use crate::db::write::group::Witness;
use crate::db::write::proposal;
use crate::db::write::transaction::Transaction;
use crate::db::write::upgrade;
use crate::{ErrorKind, Result, Schema};

/// Makes the schema that a transaction sees that of a program without custom functions.
///
/// # Errors
/// `SchemaMismatch`: the schema is newer, or another; those of the steps.
pub fn upgrade_in(transaction: &mut Transaction<'_>, schema: &Schema) -> Result<()> {
    upgrade::upgrade_in(transaction, schema, &mut upgrade::none)
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

/// Returns the last committed state, which others may have: soft commits are flushed first.
///
/// # Errors
/// `Poisoned`, `Io`: they can't be; `Closed`.
pub fn durable(database: &Database) -> Result<Snapshot> {
    let inner = database.inner();
    let _entered = inner.enter()?;
    let published = inner.group.published();
    let checkpoints = inner.checkpoints();
    if checkpoints.durable_txid() < published.point.txid {
        checkpoints.harden()?;
    }
    Ok(Snapshot::new(published))
}

/// Fails if a database takes no transactions any more: a flush failed, or its file was removed or replaced.
///
/// # Errors
/// `Poisoned`, `Closed`.
pub fn check_usable(database: &Database) -> Result<()> {
    let _entered = database.inner().enter()?;
    match database.inner().checkpoints().check_in_place() {
        Err(error) if error.kind() == ErrorKind::Poisoned => Err(error),
        _ => Ok(()),
    }
}

/// News of a database's commits: as long as it exists, the feed of them is kept.
#[derive(Debug)]
pub struct CommitNews {
    feed: Arc<Feed>,
    _slot: Arc<Slot>,
}

impl CommitNews {
    /// Begins with the last commit.
    #[must_use]
    pub fn of(database: &Database) -> Self {
        let (group, slot) = (&database.inner().group, Arc::default());
        group.follow(&slot);
        Self { feed: Arc::clone(group.feed()), _slot: slot }
    }

    /// Waits until a transaction after this one is committed, or the database is closed, up to `timeout`.
    pub fn wait(&self, after: Txid, timeout: Duration) {
        self.feed.wait(after.0, Some(timeout));
    }

    /// Returns a future that ends once a transaction after this one is committed, or no more will follow. Dropping it
    /// is safe at any time. It waits in no thread.
    #[cfg(feature = "tokio")]
    pub fn after(&self, txid: Txid) -> impl Future<Output = ()> + Send + use<> {
        let waiter = self.feed.waiter();
        std::future::poll_fn(move |context| match waiter.wake_after(txid.0, context.waker()) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        })
    }
}
