//! Transactions: each change is written once, to the store and to the journal.

use crate::db::image::backfill;
use crate::db::write::{commit, spill};
use crate::db::write::{references, shared, statement};
use std::sync::atomic::Ordering;

use annals_schema::{Command, FieldNumber, RowId, TableNumber, Timestamp, Uuid, ValueRef};
use annals_storage::step;
use annals_storage::sync::MovableGuard;

use crate::db::write::commit::{Request, Written};
use crate::db::write::core::Writing;
use crate::db::write::inner::Inner;
use crate::db::write::pending::{Commit, Pending};
use crate::db::write::room::Room;
use crate::db::write::savepoints::Savepoints;
use crate::db::write::touched::Touched;
use crate::debug::brief;
use crate::event::Event;
use crate::journal::{Level, Point};
use crate::store::collation::with_versions;
use crate::store::{Uniqueness, View};
use crate::trace::span;
use crate::{Error, Result};

/// A set of changes that applies wholly or not at all. Dropped without
/// [`commit`](Transaction::commit), it is rolled back. It may move to another thread, which may end it, too.
///
/// It may be larger than memory: changes are written to free space of the image when they fill a quarter of
/// [`Options::memory`](crate::Options::memory). They aren't visible there before the commit.
///
/// A statement that fails has changed nothing, and the transaction can continue. Several statements that must apply
/// wholly or not at all are a [`savepoint`](Self::savepoint). After an error of kind `Io`, `Corrupt` or `PageLost` the
/// transaction can only be rolled back, wholly or to a savepoint. The same holds if the program's code that makes the
/// values of a run panics, or returns different values the second time.
pub struct Transaction<'db> {
    pub(in crate::db) database: &'db Inner,
    pub(in crate::db) writing: MovableGuard<'db, Writing>,
    pub(in crate::db) level: Level,
    pub(in crate::db) time: Option<Timestamp>,
    /// True if a statement stopped in the middle: store and journal may differ until both are rolled
    /// back.
    pub(in crate::db) broken: bool,
    committed: bool,
    /// The number of statements so far.
    pub(in crate::db) statements: u64,
    /// Its memory.
    pub(in crate::db) room: Room,
    pub(in crate::db) savepoints: Savepoints,
    /// The rows that it has touched, if there are checks.
    pub(in crate::db) touched: Option<Touched>,
}

brief!(Transaction<'_>, "Transaction", "file": |it| it.database.file().name, "level": |it| it.level);

impl<'db> Transaction<'db> {
    pub(in crate::db) fn new(
        database: &'db Inner,
        mut writing: MovableGuard<'db, Writing>,
        level: Level,
    ) -> Self {
        let room = Room::new(database, &mut writing.store);
        Self {
            database,
            writing,
            level,
            time: None,
            broken: false,
            committed: false,
            statements: 0,
            room,
            savepoints: Savepoints::default(),
            touched: database.checks.watch(),
        }
    }

    /// Returns the state that this transaction sees: the last commit and its own changes.
    ///
    /// Cost: in the middle of a load, after hundreds of insertions in a row, it merges their entries into the indexes, of
    /// 65,536 rows and one run of fewer at most. Each leaf that gets one takes a page of memory, whatever
    /// [`Options::memory`](crate::Options::memory) says; a [savepoint](Self::set_savepoint) before it merges them within
    /// that.
    #[inline]
    #[must_use]
    pub fn view(&self) -> &View {
        self.writing.store.view()
    }

    /// Applies a command of the schema language.
    ///
    /// # Errors
    /// `Invalid` if it doesn't fit the schema, or if the database was opened with the schema of a program, whose code
    /// relies on it. `Unique` if rows have the same key in a new unique index; `Reference` if the default of rows
    /// would be a dangling reference. `Unsupported` if an index has a collation, and the library was built without them.
    pub fn apply_command(&mut self, command: &Command) -> Result<()> {
        self.ready()?;
        if self.database.has_fixed_schema() {
            return Err(Error::invalid(
                "the database was opened with the schema of a program, which relies on it: write the \
                 change below the program's schema, and the file is upgraded when it is opened",
            ));
        }
        let command = &*with_versions(command)?;
        references::prepare(self, command)?;
        statement::change(self, |store| store.apply_command(command))?;
        self.note(&Event::Schema(command))
    }

    /// Inserts a row with the table's next id, which no row ever had.
    ///
    /// # Errors
    /// `NotFound`: no such table; `Invalid`: values that don't fit the fields; `Unique`: a key that
    /// another row has (at once, not at commit).
    #[inline]
    pub fn insert(&mut self, table: TableNumber, values: &[ValueRef<'_>]) -> Result<RowId> {
        let id = self.unsettled().table(table)?.next_id();
        if id > RowId::MAX.0 {
            return Err(self.no_next_id(table));
        }
        self.insert_row(table, RowId(id), values, Uniqueness::AtOnce)?;
        Ok(RowId(id))
    }

    /// Inserts a row at an id that no row has now.
    ///
    /// # Errors
    /// As [`Self::insert`]; `InUse`: a row has that id.
    pub fn insert_at(
        &mut self,
        table: TableNumber,
        id: RowId,
        values: &[ValueRef<'_>],
    ) -> Result<()> {
        self.insert_row(table, id, values, Uniqueness::AtOnce)
    }

    /// Inserts a row of zero values (0, false, empty; null where that is allowed) at a free id, as
    /// joedb's `insert_into` does. Unique keys are checked at commit.
    ///
    /// # Errors
    /// As [`Self::insert_at`].
    pub fn insert_zero(&mut self, table: TableNumber, id: RowId) -> Result<()> {
        let schema = std::sync::Arc::clone(self.unsettled().schema());
        let fields = schema.table(table).map(|table| table.fields.as_slice()).unwrap_or_default();
        let zeros: Vec<_> = fields.iter().map(annals_schema::Field::zero_value).collect();
        let values: Vec<_> = zeros.iter().map(annals_schema::Value::as_ref).collect();
        self.insert_row(table, id, &values, Uniqueness::AtCommit)
    }

    #[cold]
    pub(in crate::db) fn no_next_id(&self, table: TableNumber) -> Error {
        let view = self.unsettled();
        let name = view.schema().table(table).map(|table| table.name.as_str());
        let view = view.table(table).ok();
        let used = view.map_or(0, |table| table.next_id()).saturating_sub(1);
        let has_it = view.is_some_and(|table| table.contains(RowId(used)).unwrap_or(false));
        let whose = if has_it { "a row has" } else { "a row had that was deleted" };
        let (name, last) = (name.unwrap_or_default(), RowId::MAX.0);
        Error::invalid(format!(
            "table `{name}` has given out its last id: ids go up to {last}, and {whose} {used}. Insert at ids that are \
             free; or export the rows, and import them into a new table without their ids"
        ))
    }

    #[doc(hidden)]
    #[inline]
    pub fn insert_row(
        &mut self,
        table: TableNumber,
        id: RowId,
        values: &[ValueRef<'_>],
        uniqueness: Uniqueness,
    ) -> Result<()> {
        self.usable()?;
        if values.iter().any(is_new_uuid) {
            let values = self.with_new_uuids(values);
            return self.insert_row(table, id, &values, uniqueness);
        }
        statement::change(self, |store| store.insert(table, id, values, uniqueness))?;
        let Writing { writer, store, .. } = &mut *self.writing;
        if let Some(description) = store.unsettled().schema().table(table) {
            let noted = writer.insert(description, id, values);
            self.broken = noted.is_err();
            noted?;
            self.touched.iter_mut().for_each(|touched| touched.add(table, id, 1));
            return self.make_room();
        }
        Ok(())
    }

    #[cold]
    fn with_new_uuids<'v>(&mut self, values: &[ValueRef<'v>]) -> Vec<ValueRef<'v>> {
        let mut stored = |value: &ValueRef<'v>| match is_new_uuid(value) {
            true => ValueRef::Uuid(self.new_uuid()),
            false => *value,
        };
        values.iter().map(&mut stored).collect()
    }

    /// Returns a new UUID of version 7, by the clock and the randomness of the database. It is greater than all that were made
    /// since the database was opened. In rows, [`Uuid::NEW_V7`] stands for one.
    pub fn new_uuid(&mut self) -> Uuid {
        self.writing.uuids.next(&**self.database.clock())
    }

    /// Sets one field of one row. Unique keys are checked at commit, so that two rows can swap
    /// values.
    ///
    /// # Errors
    /// `NotFound`: no such table, row or field; `Invalid`: a value that doesn't fit the field.
    pub fn update(
        &mut self,
        table: TableNumber,
        id: RowId,
        field: FieldNumber,
        value: ValueRef<'_>,
    ) -> Result<()> {
        self.ready()?;
        let new = is_new_uuid(&value).then(|| ValueRef::Uuid(self.new_uuid()));
        let value = new.unwrap_or(value);
        statement::change(self, |store| store.update(table, id, field, value))?;
        self.note(&Event::Update { table, id, field, value })
    }

    /// Applies an insert or an update in which null is an erased value, even if the field may not be null: for
    /// rebuilding a history, as the shell does from a log. Unique keys are checked at commit.
    ///
    /// # Errors
    /// As [`Self::insert_at`], [`Self::update`] and [`Self::update_vector`]; then all that is left is to roll
    /// back. `Invalid`: it is another event.
    pub fn apply_erased(&mut self, event: &Event<'_>) -> Result<()> {
        self.ready()?;
        if !matches!(
            event,
            Event::Insert { .. } | Event::Update { .. } | Event::UpdateVector { .. }
        ) {
            return Err(Error::invalid("only inserts and updates have values that were erased"));
        }
        self.wholly(|tx| {
            tx.writing.store.restore(event, true)?;
            tx.note(event)
        })
    }

    /// Deletes a row, and at once the rows that refer to it by `cascade`, with their own referrers; references by
    /// `set_null` become null. The commit checks `restrict`.
    ///
    /// Cost: for each enforced reference to the table, a lookup in an index that begins with it; without one a scan
    /// of the referring table.
    ///
    /// # Errors
    /// `NotFound`: no such table or row; `Invalid`: the row, or one that would be deleted with it, is
    /// the only one of a table of a single row.
    pub fn delete(&mut self, table: TableNumber, id: RowId) -> Result<()> {
        self.ready()?;
        references::delete_referring(self, table, id, 1)?;
        statement::change(self, |store| store.delete(table, id))?;
        self.note(&Event::Delete { table, id })
    }

    /// Writes a comment to the journal.
    ///
    /// # Errors
    /// `Io` if the journal can't be written.
    pub fn comment(&mut self, text: &str) -> Result<()> {
        self.usable()?;
        self.note(&Event::Comment(text))
    }

    /// Writes a time to the journal, in seconds since 1970-01-01T00:00:00Z, as joedb's `timestamp` does. (Each commit
    /// also has a time; see [`Self::set_time`].)
    ///
    /// # Errors
    /// `Io` if the journal can't be written.
    pub fn timestamp(&mut self, seconds: i64) -> Result<()> {
        self.usable()?;
        self.note(&Event::Timestamp(seconds))
    }

    /// Marks the data as coherent here, for readers of the history.
    ///
    /// # Errors
    /// `Io` if the journal can't be written.
    pub fn valid_data(&mut self) -> Result<()> {
        self.usable()?;
        self.note(&Event::ValidData)
    }

    /// Sets the level of this transaction's commit.
    pub fn set_level(&mut self, level: Level) {
        self.level = level;
        self.writing.writer.set_level(level);
    }

    /// Sets the time of the commit, any value, instead of the clock's.
    pub const fn set_time(&mut self, time: Timestamp) {
        self.time = Some(time);
    }

    /// True if nothing was changed or noted yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writing.writer.is_empty()
    }

    /// Commits. When this returns `Ok`, the changes are visible, and the level's promise holds. A
    /// transaction without events writes nothing and is not counted; at a level that flushes it makes
    /// everything before it durable.
    ///
    /// Blocks until the level is reached. Threads that commit at the same time share flushes.
    ///
    /// # Errors
    /// `Unique` if two rows have the same key in a unique index; `Reference` if an enforced reference is dangling;
    /// `Refused` by a [check](crate::Database::check_commits); `Io` if the journal can't be written: in these cases everything is rolled back. `UnknownOutcome` if the flush
    /// failed: reopen the database to see whether the transaction survived.
    pub fn commit(self) -> Result<Commit> {
        span!(DEBUG, "commit");
        self.submit()?.wait()
    }

    /// Commits without waiting for a flush: the changes are written, and the next transaction builds on them, but
    /// they are neither visible to [`Database::read`](crate::Database::read) nor promised until [`Pending::wait`] has returned. A soft
    /// commit that needn't wait for an earlier one is visible at once. So one thread can share a flush among several
    /// transactions, or do other work meanwhile.
    ///
    /// In shared mode it waits all the same, since the turn ends with it.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn submit(mut self) -> Result<Pending<'db>> {
        self.usable()?;
        self.forget_savepoints(0);
        let (database, level) = (self.database, self.level);
        database.refuse_following("commit")?;
        if self.is_empty() {
            if level.flushes() && database.sharing.is_some() {
                // Within this process's turn, so that a failure can be marked for the others.
                database.harden()?;
            }
            let point = self.writing.writer.committed();
            return Ok(Pending { database, point, level, is_empty: true, is_acknowledged: false });
        }
        self.settle()?;
        self.pass_checks()?;
        let request = self.request();
        let written = commit::commit(database, &mut self.writing, request)?;
        let Written { point, mut is_acknowledged } = written;
        self.note_written(point);
        if database.sharing.is_some() {
            // Other processes build on it as soon as the turn ends, which it does with this transaction.
            step!(TurnEndedEarly, database.group.wait(point)?);
            drop(self);
            step!(TurnEndedEarly, else database.group.wait(point)?);
            is_acknowledged = true;
        }
        Ok(Pending { database, point, level, is_empty: false, is_acknowledged })
    }

    /// Runs the checks that the program registered.
    pub(in crate::db) fn pass_checks(&mut self) -> Result<()> {
        let Some(touched) = self.touched.take() else { return Ok(()) };
        self.database.checks.pass(&self.writing.store, touched)
    }

    /// Begins another one after it, whose frames are held, too.
    pub(in crate::db) fn begin_next(&mut self) {
        self.time = None;
        self.touched = self.database.checks.watch();
    }

    /// Returns what it requests of its commit.
    pub(in crate::db) fn request(&self) -> Request {
        let (level, time) = (self.level, self.time.map(|time| time.0));
        Request { level, time, is_spilled: self.room.is_spilled, is_foreign: false }
    }

    /// Records that its commit was written, up to `point`.
    pub(in crate::db) fn note_written(&mut self, point: Point) {
        let is_spilled = std::mem::take(&mut self.room.is_spilled);
        self.committed = true;
        self.database.wake_checkpointer();
        if let Some(background) = &self.database.background {
            if is_spilled {
                background.want();
            }
            background.note_commit(&mut self.writing, point.position, self.statements);
        }
    }

    /// Rolls back: nothing of the transaction remains.
    ///
    /// # Errors
    /// `Io` if frames that were already written can't be cut off; the next transaction tries again before it begins.
    /// The changes are undone in any case.
    pub fn rollback(mut self) -> Result<()> {
        self.undo()
    }

    fn undo(&mut self) -> Result<()> {
        self.committed = true;
        self.database.check_origin()?;
        self.savepoints.truncate(0);
        self.writing.store.rollback();
        if std::mem::take(&mut self.room.is_spilled) {
            spill::roll_back_spilled(self.database);
        }
        self.writing.writer.rollback()
    }

    /// Writes an event to the journal, after the store took it.
    #[inline]
    pub(in crate::db) fn note(&mut self, event: &Event<'_>) -> Result<()> {
        let Writing { writer, store, .. } = &mut *self.writing;
        let noted = writer.event(store.unsettled().schema(), event);
        self.broken |= noted.is_err();
        noted?;
        self.touched.iter_mut().for_each(|touched| touched.note(store.unsettled().schema(), event));
        self.make_room()
    }

    /// Makes room where the changes fill the memory, or where much is owed to indexes. Store and journal say the same here.
    #[inline]
    pub(in crate::db) fn make_room(&mut self) -> Result<()> {
        if self.room.is_enough(&self.writing.store) { Ok(()) } else { self.make_more_room() }
    }

    #[cold]
    fn make_more_room(&mut self) -> Result<()> {
        let made = self.room.make(self.database, &mut self.writing);
        self.broken |= made.is_err();
        made
    }

    /// Settles what a load owes to indexes.
    #[inline]
    pub(in crate::db) fn settle(&mut self) -> Result<()> {
        if !self.writing.store.owes() {
            return Ok(());
        }
        let settled = self.room.settle(self.database, &mut self.writing);
        self.broken |= settled.is_err();
        settled
    }

    /// Prepares for a statement other than an insertion: fails as [`usable`](Self::usable), and settles.
    #[inline]
    pub(in crate::db) fn ready(&mut self) -> Result<()> {
        self.usable()?;
        self.settle()
    }

    /// Fails in a forked child, and after a statement that stopped in the middle.
    #[inline]
    pub(in crate::db) fn usable(&self) -> Result<()> {
        if self.broken || self.database.origin.is_elsewhere() {
            return Err(self.unusable());
        }
        Ok(())
    }

    #[cold]
    fn unusable(&self) -> Error {
        let stopped = Error::invalid(
            "a statement of this transaction stopped in the middle (the journal or the image couldn't be \
             written, a page couldn't be loaded, or making the values of a run failed): roll it back and start \
             again",
        );
        self.database.check_origin().err().unwrap_or(stopped)
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.committed {
            // If the cut fails, the next transaction tries it again before it begins.
            let _ = self.undo();
        }
        if self.database.check_origin().is_ok() {
            backfill::install_late(self.database, &mut self.writing);
        }
        disown(self.database);
    }
}

/// True if a value stands for a new UUID.
#[inline]
pub(crate) const fn is_new_uuid(value: &ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Uuid(Uuid::NEW_V7))
}

/// Records that a transaction was written or rolled back: the next one may begin.
fn disown(inner: &Inner) {
    if inner.origin.is_elsewhere() {
        return; // the turn is the parent's, and its locks may be held for ever here
    }
    shared::end_turn(inner);
    inner.owner.store(0, Ordering::Relaxed);
    inner.group.leave();
}
