//! The changes of a range of transactions, in order.

use annals_schema::{Schema, Txid};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::db::past::lazy;
use crate::db::past::lazy::Source;
use crate::db::past::time::cursor::{End, JournalCursor, state_at};
use crate::db::present::segment::JournalFile;
use crate::db::present::snapshot::{Published, Snapshot};
use crate::db::write::changed::Changed;
use crate::db::write::rows::RowChanges;
use crate::db::write::window::Window;
use crate::debug::brief;
use crate::store::Store;
use crate::{ErrorKind, Result};

/// How much of the journal is read at once, in bytes.
pub(in crate::db) const BATCH: u64 = 1 << 20;

/// How many bytes of rows are kept, about, before the state is looked up again.
pub(in crate::db) const KEPT: usize = 64 << 20;

/// The changes of the transactions of a range, in their order: see [`Database::changes`](crate::Database::changes).
///
/// It is no borrow of the database, and may be stepped when that is closed. It has the state in which the range
/// begins, as a [`Snapshot`](crate::Snapshot) does.
#[must_use = "it reads only when it is stepped"]
pub struct Changes {
    file: Arc<JournalFile>,
    /// Where the last commit ended when this was created, in `file`: reading never goes beyond it.
    position: u64,
    /// The last transaction.
    last: u64,
    cursor: JournalCursor,
    rows: RowChanges,
    /// How many bytes of rows are kept.
    kept: usize,
    is_over: bool,
    failure: Option<crate::Error>,
}

brief!(Changes, "Changes", "file": |it| it.file.name, "last": |it| it.last);

impl Changes {
    /// Begins with the transactions of a range, as far as there are any.
    pub(in crate::db) fn between(
        published: &Arc<Published>,
        txids: &impl RangeBounds<Txid>,
    ) -> Result<Self> {
        let first = match txids.start_bound() {
            Bound::Included(&txid) => Some(txid.0),
            Bound::Excluded(&txid) => Some(txid.0.saturating_add(1)),
            Bound::Unbounded => None,
        };
        let last = match txids.end_bound() {
            Bound::Included(&txid) => txid.0,
            Bound::Excluded(&txid) => txid.0.saturating_sub(1),
            Bound::Unbounded => u64::MAX,
        };
        let last = last.min(published.point.txid.0);
        let (file, position) = (Arc::clone(&published.file), published.point.position);
        let is_over = first.is_some_and(|first| first > last);
        let ChangesBeginning { base, cursor } = match first {
            // Nothing will be read.
            _ if is_over => state_of(published),
            // The remaining state of forgotten history is a change from nothing.
            None => ChangesBeginning {
                base: Arc::clone(Store::new().published()),
                cursor: JournalCursor::first(&file)?,
            },
            Some(first) => Self::begin(published, first.saturating_sub(1))?,
        };
        let rows = RowChanges::new(base, Arc::clone(published.view.schema()));
        Ok(Self { file, position, last, cursor, rows, kept: KEPT, is_over, failure: None })
    }

    /// Bounds the memory of each transaction: of its rows the first ones by table and id are returned that take about
    /// `bytes`, and the others are counted in [`Changed::left_out`]. After such a transaction the state is looked up again.
    pub fn within(mut self, bytes: usize) -> Self {
        self.kept = self.kept.min(bytes);
        self.rows.bound(Window::of(bytes));
        self
    }

    /// Sets how many bytes of rows are kept in memory between transactions, about, and how far it reads ahead; 64 MiB if this isn't
    /// called.
    ///
    /// Cost: as that of [`Subscription::keep_at_most`](crate::Subscription::keep_at_most).
    pub fn keep_at_most(mut self, bytes: usize) -> Self {
        self.kept = bytes.max(1);
        self
    }

    /// Returns the state after a transaction, of which only the rows are read that change later, if the history index
    /// leads there.
    pub(in crate::db) fn begin(published: &Arc<Published>, txid: u64) -> Result<ChangesBeginning> {
        if txid == published.point.txid.0 {
            return Ok(state_of(published));
        }
        match Source::of(published).beginning(txid)? {
            Some(lazy::Beginning { base, since, schema, .. }) => {
                Ok(ChangesBeginning { base, cursor: JournalCursor::at(since, schema) })
            }
            None => state_after(published, txid),
        }
    }

    /// Reads on; returns whether there is more.
    fn read_on(&mut self) -> Result<bool> {
        let end = End { file: &self.file, position: self.position };
        if self.rows.weight() > self.kept || self.rows.is_full() {
            let (view, since) = state_at(&end, self.cursor.txid())?;
            self.cursor = JournalCursor::behind(&view, since);
            self.rows.rebase(view);
            // So that this is done a few times only, whatever it costs.
            self.kept = self.kept.saturating_mul(2);
        }
        let most = BATCH.min(self.kept as u64);
        match self.cursor.read(&end, self.last, most, &mut self.rows) {
            Err(error) if error.kind() == ErrorKind::Cancelled && self.rows.is_full() => Ok(true),
            read => read,
        }
    }
}

/// Returns the schema after a transaction up to a snapshot.
///
/// Cost: some reads; the state there, if the history index doesn't lead there.
///
/// # Errors
/// As [`Database::as_it_was`](crate::Database::as_it_was).
pub fn schema_after(snapshot: &Snapshot, txid: Txid) -> Result<Schema> {
    Ok(Changes::begin(snapshot.here()?, txid.0)?.cursor.schema)
}

/// Passes the events of the transactions after `after` up to `last` to a sink.
///
/// Cost: reading them. The state before is made only if the history index doesn't lead there.
///
/// # Errors
/// `NotFound`: it was forgotten; `Corrupt`; `Unsupported`; `Io`; and errors of the sink.
pub(in crate::db) fn events_after(
    published: &Arc<Published>,
    after: u64,
    last: u64,
    sink: &mut impl crate::Sink,
) -> Result<()> {
    let mut cursor = Changes::begin(published, after)?.cursor;
    let end = End { file: &published.file, position: published.point.position };
    cursor.read(&end, last, u64::MAX, sink).map(drop)
}

/// A state, and the place in the journal after it: what changes follow.
pub(in crate::db) struct ChangesBeginning {
    pub(in crate::db) base: Arc<crate::View>,
    pub(in crate::db) cursor: JournalCursor,
}

/// Returns the state that was committed last, and where that is.
pub(in crate::db) fn state_of(published: &Published) -> ChangesBeginning {
    let Published { view, point, file } = published;
    let since = crate::db::follow::segments::Since { segment: file.segment, point: *point };
    ChangesBeginning { base: Arc::clone(view), cursor: JournalCursor::behind(view, since) }
}

/// Returns the state after a transaction, which is published.
pub(in crate::db) fn state_after(published: &Published, txid: u64) -> Result<ChangesBeginning> {
    if txid == published.point.txid.0 {
        return Ok(state_of(published));
    }
    let end = End { file: &published.file, position: published.point.position };
    let (base, since) = state_at(&end, txid)?;
    let cursor = JournalCursor::behind(&base, since);
    Ok(ChangesBeginning { base, cursor })
}

impl Iterator for Changes {
    type Item = Result<Changed>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(changed) = self.rows.done.pop_front() {
                return Some(Ok(changed));
            }
            if self.is_over {
                return self.failure.take().map(Err);
            }
            match self.read_on() {
                Ok(is_more) => self.is_over = !is_more,
                // Transactions read before that are still returned.
                Err(error) => (self.is_over, self.failure) = (true, Some(error)),
            }
        }
    }
}

impl std::iter::FusedIterator for Changes {}
