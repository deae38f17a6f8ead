//! The past, as methods of the handles of a database.

use crate::db::follow::scan::Sink;
use crate::db::past::time::blame::blame_of;
use crate::db::past::time::changes::{Changes, events_after};
use crate::db::past::time::deletions::Deletions;
use crate::db::past::time::differing::Differing;
use crate::db::past::time::events::Events;
use crate::db::past::time::fields::{ChangedFields, Wanted};
use crate::db::past::time::subscription::Feeding;
use crate::db::past::time::subscription::Subscription;
use crate::db::past::time::versions::History;
use crate::db::write::changed::RowChange;
use crate::journal::lock;
use annals_schema::TableNumber;
use annals_schema::{RowId, Txid};
use std::ops::RangeBounds;
use std::sync::Arc;

use crate::Result;
use crate::db::follow::image_state::ImageState;
use crate::db::past::at::Through;
use crate::db::past::history::txid_of;
use crate::db::past::lazy::Source;
use crate::db::past::moment::Moment;
use crate::db::past::reader::Reader;
use crate::db::present::snapshot::{Published, Snapshot};
use crate::db::write::changed::{Blame, Version};
use crate::db::write::database::Database;
use crate::db::write::inner::Inner;
use crate::db::write::transaction::Transaction;
use crate::storage::SystemClock;

impl Database {
    /// Returns the last problem of the history index since the database was opened: it was rebuilt, or nothing could
    /// be added. The history index is the part of the image that leads from a row to each of its changes in the
    /// journal. Nothing is lost by that, and the next backfill tries it again.
    #[must_use]
    pub fn history_error(&self) -> Option<String> {
        lock(&self.inner().history.problem).clone()
    }

    /// Returns the state at an earlier moment: after a transaction, at a time, or at a comment. It is read through
    /// the present schema, by the numbers of tables and fields: later tables are empty, and later fields have their
    /// default. A later unique index isn't unique there if the old rows have equal keys.
    ///
    /// The state is made when it is read. A row by its id, and the first rows of a range of ids, come from the history
    /// index: some small reads of the journal for each of their changes before. Anything else, and more than 64 such
    /// rows (or 8 of ranges), makes the whole state: a replay from the
    /// nearest older state that the image keeps ([`Options::key_frames`](crate::Options::key_frames)), which takes
    /// milliseconds; if there is none, the replay of the journal up to there. It is in memory as long as the snapshot.
    /// The last one is kept until the next backfill, for the next question about the same moment, unless the database
    /// is shared with other processes. While a snapshot of the past exists, the segments that it may read aren't
    /// removed.
    ///
    /// Cost: some reads; for a time or a comment also that of [`txid_of`](Self::txid_of).
    ///
    /// # Errors
    /// `NotFound` if there is no such moment, or it was forgotten; `Corrupt`, `Io`; `Poisoned` in a forked child. If
    /// the state can't be made later, every read of the snapshot is that error; the numbers of rows then mean nothing.
    pub fn at(&self, moment: impl Into<Moment>) -> Result<Snapshot> {
        self.past(&moment.into(), Through::Present)
    }

    /// Does what [`at`](Self::at) does, with the schema of that time: it has tables and fields that were dropped
    /// since, with their old names.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub fn as_it_was(&self, moment: impl Into<Moment>) -> Result<Snapshot> {
        self.past(&moment.into(), Through::Then)
    }

    /// Returns the number of the transaction at whose end a moment is; 0 before the first one. A number is itself, up
    /// to the last one.
    ///
    /// Cost: nothing for a number. For a comment reads the frames that have it, for a time the headers of a few KiB of
    /// frames, and the marks of the history index after that time. The first question also reads the journal after the
    /// index, and without an image all of it.
    ///
    /// # Errors
    /// `NotFound` if there is no such transaction, or no state is left that is so old; `Corrupt`, `Unsupported`,
    /// `Io`; `Poisoned` in a forked child.
    pub fn txid_of(&self, moment: impl Into<Moment>) -> Result<Txid> {
        self.inner().check_open()?;
        txid_of(&self.read().published, &moment.into()).map(Txid)
    }

    fn past(&self, moment: &Moment, through: Through) -> Result<Snapshot> {
        self.inner().check_open()?;
        past_in(self.inner(), self.read().published, moment, through)
    }

    /// Returns the changes by the transactions of a range of numbers, in their order, up to the last commit as of
    /// now. Each has its time, its comments, and the rows that differ after it, with all their values before and
    /// after.
    ///
    /// Values are seen through the present schema, by the numbers of its fields; rows of tables that were dropped are
    /// left out. A range without a beginning begins with the oldest kept history: if some was forgotten, the first
    /// transaction is the state at that point.
    ///
    /// ```
    /// # annals::schema!("tutorial.schema");
    /// # use tutorial::city;
    /// # fn main() -> annals::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;
    /// let lille = db.write(|tx| Ok(tx.insert(city::New { name: "Lile" })?))?;
    /// db.write(|tx| {
    ///     tx.edit(lille)?.set_name("Lille")?;
    ///     Ok(())
    /// })?;
    ///
    /// // The first transaction made the tables, the second inserted a row.
    /// let all: Vec<_> = (*db).changes(annals::Txid(3)..)?.collect::<annals::Result<_>>()?;
    /// let change = &all[0].rows[0];
    /// assert_eq!(change.before, Some(vec![annals::Value::String("Lile".to_owned())]));
    /// assert_eq!(change.fields().count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Cost: the state as of the beginning, and reading the journal from there on. Takes memory for one transaction,
    /// and for at most some 64 MiB of touched rows; then the state is looked up again.
    ///
    /// # Errors
    /// `NotFound`: the beginning was forgotten, and the message says from where on there is history; `Corrupt`;
    /// `Unsupported`; `Io`. In a forked child `Poisoned`. Later transactions may return the same errors; then it
    /// ends.
    pub fn changes(&self, txids: impl RangeBounds<Txid>) -> Result<Changes> {
        self.inner().check_open()?;
        self.read().changes(txids)
    }

    /// Follows the commits from now on: each transaction once, in the order of their numbers, with its rows before
    /// and after, as [`changes`](Self::changes) does.
    ///
    /// It returns the commits that [`read`](Self::read) shows: those that have reached their [`Level`](crate::Level).
    /// A subscription never makes a writer wait. However slow it is, it misses nothing, since it reads the journal
    /// from its own point on. It pins no file or older state for long. After two backfills without progress it
    /// releases its state, which is loaded again when the subscription continues.
    ///
    /// In shared mode it follows the file with a [`Reader`], polls every 10 ms, and may be ahead of
    /// [`read`](Self::read).
    ///
    /// ```
    /// # annals::schema!("tutorial.schema");
    /// # use tutorial::city;
    /// # fn main() -> annals::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;
    /// let mut feed = (*db).subscribe();
    /// db.write(|tx| Ok(tx.insert(city::New { name: "Lille" })?))?;
    /// assert_eq!(feed.try_next()?.unwrap().rows.len(), 1);
    /// assert!(feed.try_next()?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Cost: for each commit a wake-up, and reading it from the journal. Without subscribers, nothing.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        let closed = self.inner().check_open().err();
        Feeding::of_database(self).now().or_fail(closed)
    }

    /// Does what [`subscribe`](Self::subscribe) does, beginning with transaction `first`, which may be the next one
    /// or an earlier one: so a program continues after the last one that it has handled.
    ///
    /// Cost: the state as of that beginning.
    ///
    /// # Errors
    /// `NotFound`: the history there was forgotten; `Invalid`: it is later than the next one; `Corrupt`; `Io`.
    pub fn subscribe_from(&self, first: Txid) -> Result<Subscription> {
        self.inner().check_open()?;
        Feeding::of_database(self).from(first.0)
    }

    /// Returns the history of a row: each version, with the transaction that made it. A row that never existed has
    /// none. An id may be given again by an explicit insert: all rows that had it are in its history.
    ///
    /// Cost: one read of the journal for each transaction that changed the row, of its frame if that has at most 4 KiB
    /// of events, else of a block of about 4 KiB. Before, one node of the history index for each level. The first
    /// question also reads the journal after the index, and without an image all of it.
    ///
    /// # Errors
    /// `NotFound`: no such table (now); `Corrupt`, `Io`; `Poisoned` in a forked child.
    pub fn history_of(&self, table: TableNumber, row: RowId) -> Result<History> {
        self.inner().check_open()?;
        History::open(&self.read().published, table, row)
    }

    /// Returns for each field of a row since when it has its present value: the transaction that set it, with its
    /// time and its comments. The order is that of the schema.
    ///
    /// A field that was added after the row has its default since the row was inserted. A change that leaves the
    /// value as it was isn't one.
    ///
    /// Cost: that of [`history_of`](Self::history_of).
    ///
    /// # Errors
    /// `NotFound`: there is no such table or row (the message names the transaction that deleted the row);
    /// `Corrupt`, `Io`; `Poisoned` in a forked child.
    pub fn blame(&self, table: TableNumber, row: RowId) -> Result<Vec<Blame>> {
        self.inner().check_open()?;
        blame_of(&self.read().published, table, row)
    }
}

impl Reader {
    /// Returns the state at an earlier moment: see [`Database::at`](crate::Database::at).
    ///
    /// # Errors
    /// As there. Commits since the last [`pull`](Self::pull) aren't found.
    pub fn at(&self, moment: impl Into<Moment>) -> Result<Snapshot> {
        self.past(&moment.into(), Through::Present)
    }

    /// Returns the state at an earlier moment, with the schema of that time: see
    /// [`Database::as_it_was`](crate::Database::as_it_was).
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub fn as_it_was(&self, moment: impl Into<Moment>) -> Result<Snapshot> {
        self.past(&moment.into(), Through::Then)
    }

    /// Returns the number of the transaction at whose end a moment is: see
    /// [`Database::txid_of`](crate::Database::txid_of).
    ///
    /// # Errors
    /// As there. Commits since the last [`pull`](Self::pull) aren't found.
    pub fn txid_of(&self, moment: impl Into<Moment>) -> Result<Txid> {
        txid_of(self.read().here()?, &moment.into()).map(Txid)
    }

    fn past(&self, moment: &Moment, through: Through) -> Result<Snapshot> {
        let published = Arc::clone(self.read().here()?);
        let (clock, budget) = (Arc::new(SystemClock), Some(self.pulling().reading.budget()));
        past(&Source { published, clock, budget }, moment, through)
    }

    /// Returns the changes of the transactions of a range, up to the last one loaded: see [`Database::changes`].
    ///
    /// # Errors
    /// As [`Database::changes`].
    pub fn changes(&self, txids: impl RangeBounds<Txid>) -> Result<Changes> {
        self.read().changes(txids)
    }

    /// Follows the commits after the state that [`read`](Self::read) returns now: each transaction once, in the order
    /// of their numbers, with its rows before and after. See [`Database::subscribe`].
    ///
    /// It polls the file every 10 ms, and returns commits that the writer has acknowledged and noted in the file:
    /// that takes the writer at most 10 ms more. [`read`](Self::read) shows the returned commits too: it does what
    /// [`pull`](Self::pull) does.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        Feeding::of_reader(self).now()
    }

    /// Does what [`subscribe`](Self::subscribe) does, beginning with transaction `first`: see
    /// [`Database::subscribe_from`].
    ///
    /// # Errors
    /// As [`Database::subscribe_from`].
    pub fn subscribe_from(&self, first: Txid) -> Result<Subscription> {
        Feeding::of_reader(self).from(first.0)
    }

    /// Returns the history of a row up to the last loaded commit, as [`Database::history_of`] does.
    ///
    /// # Errors
    /// As there.
    pub fn history_of(&self, table: TableNumber, row: RowId) -> Result<History> {
        History::open(self.read().here()?, table, row)
    }

    /// Returns the origin of each field of a row as of the last loaded commit, as [`Database::blame`] does.
    ///
    /// # Errors
    /// As there.
    pub fn blame(&self, table: TableNumber, row: RowId) -> Result<Vec<Blame>> {
        blame_of(self.read().here()?, table, row)
    }
}

/// Returns the state at a moment, before or at the committed state that a transaction began with.
///
/// # Errors
/// As [`Database::at`].
pub fn past_of(tx: &Transaction<'_>, moment: &Moment) -> Result<Snapshot> {
    past_in(tx.database, tx.base().published, moment, Through::Present)
}

/// Returns the state at a moment, before or at a committed state of an open database.
fn past_in(
    inner: &Inner,
    published: Arc<Published>,
    moment: &Moment,
    through: Through,
) -> Result<Snapshot> {
    let budget = Some(inner.image().map_or(0, ImageState::budget));
    past(&Source { published, clock: Arc::clone(inner.clock()), budget }, moment, through)
}

/// Returns the state at a moment: of the present schema one that is made when it is read.
fn past(source: &Source, moment: &Moment, through: Through) -> Result<Snapshot> {
    let txid = txid_of(&source.published, moment)?;
    if txid == source.published.point.txid.0 {
        return Ok(Snapshot::new(Arc::clone(&source.published)));
    }
    if through == Through::Present
        && let Some(published) = source.lazily(txid)?
    {
        return Ok(Snapshot::new(Arc::new(published)));
    }
    source.present().after(txid, through)
}

impl Snapshot {
    /// Returns the number of the transaction at whose end a moment is, up to this snapshot: see
    /// [`Database::txid_of`].
    ///
    /// # Errors
    /// As there.
    pub fn txid_of(&self, moment: impl Into<Moment>) -> Result<Txid> {
        txid_of(self.here()?, &moment.into()).map(Txid)
    }

    /// Returns the history of a row up to this snapshot: see [`Database::history_of`].
    ///
    /// # Errors
    /// As there.
    pub fn history_of(&self, table: TableNumber, row: RowId) -> Result<History> {
        History::open(self.here()?, table, row)
    }

    /// Returns the last change of a row up to this snapshot, with its transaction and time; `None` if the row never
    /// existed. A row that was deleted has its deletion.
    ///
    /// Cost: as [`History::newest`].
    ///
    /// # Errors
    /// As [`Database::history_of`].
    pub fn last_change(&self, table: TableNumber, row: RowId) -> Result<Option<Version>> {
        Ok(self.history_of(table, row)?.newest(1)?.pop())
    }

    /// Returns the origin of each field of a row as of this snapshot: see [`Database::blame`].
    ///
    /// # Errors
    /// As there.
    pub fn blame(&self, table: TableNumber, row: RowId) -> Result<Vec<Blame>> {
        blame_of(self.here()?, table, row)
    }

    /// Returns the changes of the transactions of a range, up to this snapshot: see [`Database::changes`].
    ///
    /// # Errors
    /// As [`Database::changes`].
    pub fn changes(&self, txids: impl RangeBounds<Txid>) -> Result<Changes> {
        Changes::between(self.here()?, &txids)
    }

    /// Returns what finds the rows of a table that were deleted up to this snapshot, by the history index; `None` if the
    /// table has none.
    ///
    /// Cost: that of [`history_of`](Self::history_of), without reading a row's history.
    ///
    /// # Errors
    /// As [`Database::history_of`].
    pub fn deletions(&self, table: TableNumber) -> Result<Option<Deletions>> {
        Deletions::open(self.here()?, table)
    }

    /// Returns the fields that a transaction changed, of the first `most` rows that it touched, or of those of one table;
    /// `None` if there is no such transaction up to this snapshot.
    ///
    /// Rows after the first `most`, or after some 16 MiB of values, are only counted.
    ///
    /// Cost: reading the transaction, and for each row the last earlier place that set the same fields. Only a row that
    /// was deleted, and a field that isn't found in the last 64 changes of its row, may take the state before.
    ///
    /// # Errors
    /// As [`Database::changes`].
    pub fn changed_fields(
        &self,
        txid: Txid,
        table: Option<TableNumber>,
        most: usize,
    ) -> Result<Option<ChangedFields>> {
        ChangedFields::of(self.here()?, txid.0, Wanted { table, most })
    }

    /// Returns the rows that differ between two earlier moments, the ends of two transactions, in order of tables and
    /// ids. A row added between them has no `before`, a removed one no `after`. The second may be the earlier one.
    /// Values are those of the present schema, as in [`RowChange`].
    ///
    /// Cost: the state as of the earlier moment, and reading the journal between the two once; memory for each row that was
    /// touched in between. [`differing`](Self::differing) takes less.
    ///
    /// ```
    /// # annals::schema!("tutorial.schema");
    /// # use tutorial::city;
    /// # fn main() -> annals::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;
    /// db.write(|tx| Ok(tx.insert(city::New { name: "Lille" })?))?;
    /// db.write(|tx| Ok(tx.insert(city::New { name: "Lyon" })?))?;
    ///
    /// let added = db.read().as_dynamic().differences(annals::Txid(2), annals::Txid(3))?;
    /// assert_eq!(added.len(), 1);
    /// assert!(added[0].before.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Database::changes`]; `Invalid` if there is no such transaction yet.
    pub fn differences(&self, from: Txid, to: Txid) -> Result<Vec<RowChange>> {
        // One part: all of it is kept anyway.
        self.differing(from, to, usize::MAX)?.collect()
    }

    /// Returns the same rows, one after the other, in memory that doesn't grow with them: about `bytes` of rows are kept
    /// at once.
    ///
    /// Cost: the state as of the earlier moment, and reading the journal between the two once for each `bytes` of rows
    /// that were touched in between.
    ///
    /// # Errors
    /// As [`differences`](Self::differences). After an error it ends.
    pub fn differing(&self, from: Txid, to: Txid, bytes: usize) -> Result<Differing> {
        Differing::between(self.here()?, [from, to], bytes)
    }

    /// Returns the events of the transactions after `after` up to `last`, or up to this snapshot.
    ///
    /// Cost: the state as of `after`, from the nearest older root of the image, and then reading the journal from there
    /// on, up to `last`, once. `annals_tools::scan` reads all of it, twice, and verifies more.
    ///
    /// # Errors
    /// `NotFound`: the state as of `after` was forgotten; `Corrupt`; `Unsupported`; `Io`.
    pub fn events(&self, after: Txid, last: Txid) -> Result<Events> {
        Events::between(self.here()?, after.0, last.0)
    }

    /// Reads the events of the transactions after `after` up to `last`, or up to this snapshot, into a sink, in memory that
    /// doesn't grow with them.
    ///
    /// Cost: reading the journal from there on, once. The state as of `after` is made only if the history index doesn't
    /// lead there.
    ///
    /// # Errors
    /// As [`events`](Self::events); errors of the sink.
    pub fn read_events(&self, after: Txid, last: Txid, sink: &mut impl Sink) -> Result<()> {
        events_after(self.here()?, after.0, last.0, sink)
    }
}
