//! The changes of a range of transactions, in order.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::Result;
use crate::db::Database;
use crate::db::changes::changed::Changed;
use crate::db::changes::changed::RowChange;
use crate::db::changes::rows::RowChanges;
use crate::db::present::segment::JournalFile;
use crate::db::present::snapshot::{Published, Snapshot};
use crate::db::reader::Reader;
use crate::db::time::cursor::{End, JournalCursor, state_at};
use crate::debug::brief;
use crate::store::Store;

/// How much of the journal is read at once, in bytes.
pub(in crate::db) const BATCH: u64 = 1 << 20;

/// How many bytes of rows are kept, about, before the state is looked up again.
pub(in crate::db) const KEPT: usize = 64 << 20;

/// The changes of the transactions of a range, in their order: see [`Database::changes`].
///
/// It is no borrow of the database, and may be stepped when that is closed. It has the state in which the range
/// begins, as a [`Snapshot`] does.
#[must_use = "it reads only when it is stepped"]
pub struct Changes {
    file: Arc<JournalFile>,
    /// The end of the last commit in the file that is to be read.
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
        published: &Published,
        txids: &impl RangeBounds<u64>,
    ) -> Result<Self> {
        let first = match txids.start_bound() {
            Bound::Included(&txid) => Some(txid),
            Bound::Excluded(&txid) => Some(txid.saturating_add(1)),
            Bound::Unbounded => None,
        };
        let last = match txids.end_bound() {
            Bound::Included(&txid) => txid,
            Bound::Excluded(&txid) => txid.saturating_sub(1),
            Bound::Unbounded => u64::MAX,
        };
        let last = last.min(published.point.txid);
        let (file, position) = (Arc::clone(&published.file), published.point.position);
        let is_over = first.is_some_and(|first| first > last);
        let end = End { file: &file, position };
        let (base, cursor) = match first {
            // Nothing will be read.
            _ if is_over => state_of(published),
            // The remaining state of forgotten history is a change from nothing.
            None => (Arc::clone(Store::new().published()), JournalCursor::first(&file)?),
            Some(first) => match first.saturating_sub(1) {
                before if before == published.point.txid => state_of(published),
                before => {
                    let (view, since) = state_at(&end, before)?;
                    let cursor = JournalCursor::behind(&view, since);
                    (view, cursor)
                }
            },
        };
        let rows = RowChanges::new(base, Arc::clone(published.view.schema()));
        Ok(Self { file, position, last, cursor, rows, kept: KEPT, is_over, failure: None })
    }

    /// Reads on; returns whether there is more.
    fn read_on(&mut self) -> Result<bool> {
        let end = End { file: &self.file, position: self.position };
        if self.rows.weight() > self.kept {
            let (view, _) = state_at(&end, self.cursor.txid())?;
            self.rows.rebase(view);
            // So that this is done a few times only, whatever it costs.
            self.kept *= 2;
        }
        self.cursor.read(&end, (self.last, BATCH), &mut self.rows)
    }

    /// Returns the total differences of the range, rather than those of each transaction.
    fn differences(mut self) -> Result<Vec<RowChange>> {
        let mut all = AsOne(&mut self.rows);
        let end = End { file: &self.file, position: self.position };
        if !self.is_over {
            self.cursor.read(&end, (self.last, u64::MAX), &mut all)?;
        }
        let mut rows = self.rows.differing();
        rows.sort_unstable_by_key(|row| (row.table.0, row.id));
        Ok(rows)
    }
}

/// Returns the state that was committed last, and where that is.
pub(in crate::db) fn state_of(published: &Published) -> (Arc<crate::View>, JournalCursor) {
    let Published { view, point, file } = published;
    let since = crate::db::replay::older::Since { segment: file.segment, point: *point };
    (Arc::clone(view), JournalCursor::behind(view, since))
}

/// Takes transactions for one.
struct AsOne<'r>(&'r mut RowChanges);

impl crate::Sink for AsOne<'_> {
    fn event(&mut self, schema: &crate::Schema, event: &crate::event::Event<'_>) -> Result<()> {
        match event {
            crate::event::Event::Comment(_) => Ok(()),
            event => self.0.event(schema, event),
        }
    }

    fn commit(&mut self, _: &crate::Schema, _: &crate::Committed) -> Result<()> {
        Ok(())
    }
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

impl Snapshot {
    /// Returns the changes of the transactions of a range, up to this snapshot: see [`Database::changes`].
    ///
    /// # Errors
    /// As [`Database::changes`].
    pub fn changes(&self, txids: impl RangeBounds<u64>) -> Result<Changes> {
        Changes::between(&self.published, &txids)
    }

    /// Returns the rows that differ between two earlier moments, the ends of two transactions, in order of tables and
    /// ids. A row added between them has no `before`, a removed one no `after`. The second may be the earlier one.
    /// Values are those of the present schema, as in [`RowChange`].
    ///
    /// Cost: the state as of the earlier moment, and reading the journal between the two; memory for each row that
    /// was touched in between.
    ///
    /// ```
    /// # annals::schema!("tutorial.schema");
    /// # fn main() -> annals::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;
    /// db.write(|tx| tx.city().insert("Lille"))?;
    /// db.write(|tx| tx.city().insert("Lyon"))?;
    ///
    /// let added = db.read().as_dynamic().differences(2, 3)?;
    /// assert_eq!(added.len(), 1);
    /// assert!(added[0].before.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Database::changes`]; `Invalid` if there is no such transaction yet.
    pub fn differences(&self, from: u64, to: u64) -> Result<Vec<RowChange>> {
        let (early, late) = (from.min(to), from.max(to));
        if late > self.txid() {
            return Err(crate::Error::invalid(format!(
                "there is no transaction {late} yet: the last one is {}",
                self.txid()
            )));
        }
        let mut rows = self.changes(early.saturating_add(1)..=late)?.differences()?;
        if from > to {
            for row in &mut rows {
                std::mem::swap(&mut row.before, &mut row.after);
            }
        }
        Ok(rows)
    }
}

impl Database {
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
    /// # fn main() -> annals::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;
    /// let lille = db.write(|tx| tx.city().insert("Lile"))?;
    /// db.write(|tx| tx.city().set_name(lille, "Lille"))?;
    ///
    /// // The first transaction made the tables, the second inserted a row.
    /// let all: Vec<_> = db.as_dynamic().changes(3..)?.collect::<annals::Result<_>>()?;
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
    pub fn changes(&self, txids: impl RangeBounds<u64>) -> Result<Changes> {
        self.check_origin()?;
        self.read().changes(txids)
    }
}

impl Reader {
    /// Returns the changes of the transactions of a range, up to the last one loaded: see [`Database::changes`].
    ///
    /// # Errors
    /// As [`Database::changes`].
    pub fn changes(&self, txids: impl RangeBounds<u64>) -> Result<Changes> {
        self.read().changes(txids)
    }
}
