//! The writer's side of the store: transactions.
//!
//! Invariants
//! 1. The working view is the published one and the changes of the current transaction.
//! 2. The epoch moves on whenever the working view is published or dropped, and when another handle of it is kept.
//! 3. `doubts` has every key of a unique index that this transaction set for a second row, or the index, and every
//!    enforced reference that this transaction may have left dangling.
//! 4. A view that is published, or kept for a savepoint, owes no entries of indexes.

use std::sync::Arc;

use annals_schema::Blob;

use crate::index::checked::Checked;
use crate::owed::Owed;
use crate::pages::page::Epoch;
use crate::previous_view::PreviousView;
use crate::reference::Doubts;
use crate::saved::SavedView;
use crate::view::View;
use crate::{Error, ErrorKind, Result};
use annals_event::Event;
use annals_storage::debug::brief;

/// When a unique index refuses a key that another row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uniqueness {
    /// The statement is an error.
    AtOnce,
    /// The commit is, if the two rows still have the same key then.
    AtCommit,
}

/// The writer's side of the store: a working view that becomes a snapshot at commit.
pub struct Store {
    pub(super) working: View,
    published: Arc<View>,
    pub(super) previous: PreviousView,
    pub(super) epoch: Epoch,
    pub(super) changed: bool,
    pub(super) doubts: Doubts,
    /// Entries of indexes that are collected first.
    pub(super) owed: Owed,
    /// Where keys are made, so that making one allocates nothing.
    pub(super) key: Vec<u8>,
    pub(super) old_key: Vec<u8>,
    /// Where the unique keys of the row belong that is about to be inserted.
    pub(super) checked: Checked,
    /// The blob that this transaction wrote last, and its length.
    pub(super) open_blob: Option<(Blob, u64)>,
    /// How many bytes of the working view no image had at the last count.
    held: usize,
    /// How many of those were left when all storable ones had been stored.
    pub(super) rest: usize,
    /// How many were left before the current transaction, if a part of it was stored.
    pub(super) rest_before: Option<usize>,
}

brief!(Store, "Store", "view": |it| it.working);

impl Default for Store {
    fn default() -> Self {
        Self::new()
    }
}

impl Store {
    /// Makes an empty store, with an empty schema.
    #[must_use]
    pub fn new() -> Self {
        Self {
            working: View::new(),
            published: Arc::new(View::new()),
            previous: PreviousView::default(),
            epoch: Epoch::first(),
            changed: false,
            doubts: Doubts::default(),
            owed: Owed::default(),
            key: Vec::new(),
            old_key: Vec::new(),
            checked: Checked::default(),
            open_blob: None,
            held: 0,
            rest: 0,
            rest_before: None,
        }
    }

    /// Continues from a loaded view: it is published, and nothing has changed since.
    #[doc(hidden)]
    #[inline]
    pub fn resume(view: View) -> Self {
        Self { working: view.share(), published: Arc::new(view), ..Self::new() }
    }

    /// Lets the working view continue from the output of a backfill, of any view. Its contents stay the same for all
    /// readers; only its memory changes. May be called within a transaction, too.
    ///
    /// The published view stays unchanged, and a rollback restores it. Tables, indexes and fields that were created
    /// or dropped since are skipped.
    #[doc(hidden)]
    #[inline]
    pub fn rebase(&mut self, saved: &SavedView) {
        self.take_aside();
        self.previous.clear();
        self.working.rebase(saved);
        self.count_unsaved();
    }

    /// Returns an upper bound on the bytes of the working view that could be stored and aren't.
    #[doc(hidden)]
    #[inline]
    pub const fn unsaved(&self) -> usize {
        self.held.saturating_sub(self.rest).saturating_add(self.epoch.made())
    }

    /// True if more than `limit` bytes of the working view could be stored and aren't. Pages that were made may be
    /// freed already. So it counts existing ones, if many were made since the last count.
    #[doc(hidden)]
    #[inline]
    pub fn has_unsaved(&mut self, limit: usize) -> bool {
        if self.unsaved() <= limit {
            return false;
        }
        if self.epoch.made() > limit / 8 {
            self.count_unsaved();
        }
        self.held.saturating_sub(self.rest) > limit
    }

    /// Lets the working view continue from the parts that were stored within a transaction, ahead of its commit: all
    /// except pages that are still appended to. From then on the working view differs from the published one,
    /// whatever the transaction changes: a rollback must drop the stored parts, and a commit must keep them.
    #[doc(hidden)]
    #[inline]
    pub fn go_on(&mut self, saved: &SavedView) {
        self.rebase(saved);
        self.rest_before.get_or_insert(self.rest);
        self.rest = self.held;
        self.changed = true;
    }

    pub(super) fn count_unsaved(&mut self) {
        self.previous.forget_made(&self.epoch);
        self.epoch.forget_made();
        self.held = self.working.unsaved();
    }

    /// Publishes the working view once more, without a change by a transaction: it may lie over another base by now.
    #[doc(hidden)]
    #[inline]
    pub fn republish(&mut self) -> Arc<View> {
        debug_assert!(!self.changed, "no transaction is open");
        debug_assert!(!self.owes(), "a transaction settles before it ends");
        self.previous.clear();
        self.published = Arc::new(self.working.share());
        self.epoch.advance();
        Arc::clone(&self.published)
    }

    /// Returns the state that the current transaction sees: the working view. If that owes entries of indexes, it is another
    /// view, in which they are settled; making that costs as much as settling them.
    #[inline]
    #[must_use]
    pub fn view(&self) -> &View {
        if self.owes() { self.settled() } else { &self.working }
    }

    /// Returns the view that was published last.
    #[must_use]
    pub fn published(&self) -> &Arc<View> {
        &self.published
    }

    /// Applies an event of the journal, in replay: nothing is checked that the writer checked. Errors are of kind
    /// `Corrupt`: no such table, row or field; an id in use; or `Io`: a page that it changes can't be loaded. Then
    /// all that is left is to roll back.
    pub fn apply(&mut self, event: &Event<'_>) -> Result<()> {
        let applied = self.apply_event(event, false);
        let applied = match applied {
            // Nothing was changed.
            Err(error) if error.kind() == ErrorKind::Invalid && self.erases(event) => {
                self.restore(event, false)
            }
            applied => applied,
        };
        applied.map_err(as_corrupt)
    }

    /// Applies an event; `watch` notes constraints that only the commit can check.
    #[inline]
    pub(super) fn apply_event(&mut self, event: &Event<'_>, watch: bool) -> Result<()> {
        match *event {
            Event::Schema(command) => self.apply_command(command),
            Event::Insert { table, id, values } => {
                self.insert_row(table, id, values, watch.then_some(Uniqueness::AtCommit))
            }
            Event::Update { table, id, field, value } => {
                self.update_row(table, id, field, value, watch)
            }
            Event::Delete { table, id } => self.delete(table, id),
            Event::Blob { blob, offset, bytes, position } => {
                self.add_piece(blob, offset, bytes.len(), position)
            }
            Event::InsertVector { table, id, count } => self.insert_vector(table, id, count, watch),
            Event::UpdateVector { table, id, field, values } => {
                self.update_vector(table, id, field, values, watch)
            }
            Event::DeleteVector { table, id, count } => self.delete_vector(table, id, count),
            Event::ValidData | Event::Comment(_) | Event::Timestamp(_) => Ok(()),
        }
    }

    /// Ends the transaction: the working view becomes the published one. Costs a reference count
    /// for each table and index.
    pub fn commit(&mut self) -> Arc<View> {
        assert!(!self.owes(), "whoever allowed owing has settled before");
        self.owed.clear();
        self.doubts.clear();
        self.end_blob();
        if self.changed {
            self.changed = false;
            self.rest_before = None;
            let next = self.previous.renewed(&self.working);
            let before = std::mem::replace(&mut self.published, next);
            self.previous.put(before, &self.working, &self.epoch);
            self.epoch.advance();
        }
        Arc::clone(&self.published)
    }

    /// Ends the transaction: the working view becomes the last published one.
    pub fn rollback(&mut self) {
        self.owed.clear();
        self.doubts.clear();
        self.end_blob();
        if self.changed {
            self.changed = false;
            self.previous.clear();
            self.working = self.published.share();
            self.epoch.advance();
            if let Some(rest) = self.rest_before.take() {
                // The parts stored with the transaction are in memory alone again.
                self.rest = rest;
                self.count_unsaved();
            }
        }
    }
}

/// Turns the error of a change that no journal asks for into one of damage.
#[cold]
pub(super) fn as_corrupt(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Io | ErrorKind::Corrupt | ErrorKind::PageLost => error,
        _ if error.is_remote() => error,
        _ => Error::corrupt(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pager, TestImage};
    use annals_schema::{Command, FieldNumber, IndexNumber, RowId, TableNumber, Type, ValueRef};

    const TABLE: TableNumber = TableNumber(0);

    fn text(id: u64, round: u64) -> String {
        format!("{round}").repeat(usize::try_from(id % 5 * 4 + 1).unwrap())
    }

    /// Reads all of a view that was published after `round`.
    fn read(view: &View, rows: u64, round: u64) {
        let table = view.table(TABLE).unwrap();
        assert_eq!(table.len(), rows);
        for row in table.rows().map(Result::unwrap) {
            assert_eq!(row.read::<&str>(FieldNumber(0)), text(row.id().0, round));
            assert_eq!(row.read::<Option<bool>>(FieldNumber(1)), Some(row.id().0 % 2 == 0));
        }
        let index = view.index(IndexNumber(0)).unwrap();
        assert_eq!(index.rows().map(Result::unwrap).count() as u64, rows);
    }

    #[test]
    fn a_rollback_counts_again_what_was_stored_with_the_transaction() {
        let (image, pager) = TestImage::new(u64::MAX, true);
        let mut store = Store::new();
        store.apply_command(&Command::CreateTable { name: "t".to_owned() }).unwrap();
        let (name, ty, table) = ("a".to_owned(), Type::Int64, TABLE);
        let field = Command::AddField { table, name, ty, nullable: false, default: None };
        store.apply_command(&field).unwrap();
        let insert = |store: &mut Store, ids: std::ops::Range<u64>| {
            for id in ids {
                let values = [ValueRef::Int64(id.cast_signed())];
                store.insert(TABLE, RowId(id), &values, Uniqueness::AtOnce).unwrap();
            }
        };
        insert(&mut store, 0..40_000);
        store.commit();
        let before = store.published().unsaved();
        for _ in 0..2 {
            insert(&mut store, 40_000..80_000);
            let saved = store.view().save(&pager, &mut image.keeper(false)).unwrap();
            store.go_on(&saved);
            assert_eq!(store.unsaved(), 0, "all is stored that can be");
            store.rollback();
            assert_eq!(store.unsaved(), before);
        }
    }

    /// The page that was changed last is another one then: who changed it in its old place would lose that.
    #[test]
    fn a_transaction_changes_again_a_page_that_was_stored_with_it() {
        for keeps in [true, false] {
            let (image, pager) = TestImage::new(u64::MAX, keeps);
            let mut store = Store::new();
            store.apply_command(&Command::CreateTable { name: "t".to_owned() }).unwrap();
            let (name, ty, table) = ("a".to_owned(), Type::Int64, TABLE);
            let field = Command::AddField { table, name, ty, nullable: false, default: None };
            store.apply_command(&field).unwrap();
            for id in 0..40_000 {
                store.insert(TABLE, RowId(id), &[ValueRef::Int64(0)], Uniqueness::AtOnce).unwrap();
            }
            store.commit();
            for number in 1..10 {
                change_around_a_save(&mut store, number, &image, &pager);
            }
        }
    }

    fn change_around_a_save(
        store: &mut Store,
        number: i64,
        image: &Arc<TestImage>,
        pager: &Arc<Pager>,
    ) {
        let ids = [0, 7, 20_000, 39_999].map(RowId);
        let read = |view: &View, id| {
            view.table(TABLE).unwrap().get(id).unwrap().read::<i64>(FieldNumber(0))
        };
        for id in ids {
            store.update(TABLE, id, FieldNumber(0), ValueRef::Int64(-1)).unwrap();
            let saved = store.view().save(pager, &mut image.keeper(false)).unwrap();
            store.go_on(&saved);
            store.update(TABLE, id, FieldNumber(0), ValueRef::Int64(number)).unwrap();
        }
        let view = store.commit();
        ids.into_iter().for_each(|id| assert_eq!(read(&view, id), number, "row {id:?}"));
        let saved = view.save(pager, &mut image.keeper(false)).unwrap();
        let loaded = View::load(&saved.metadata, &saved.roots, pager).unwrap();
        ids.into_iter().for_each(|id| assert_eq!(read(&loaded, id), number, "row {id:?}, loaded"));
        store.rebase(&saved);
    }

    /// Small enough for Miri, which looks for races between the writer and the readers.
    #[test]
    fn readers_go_on_while_the_writer_appends_updates_and_rolls_back() {
        let mut store = Store::new();
        store.apply_command(&Command::CreateTable { name: "t".to_owned() }).unwrap();
        for (name, ty) in [("a", Type::String), ("b", Type::Bool)] {
            let (name, table) = (name.to_owned(), TABLE);
            let command = Command::AddField { table, name, ty, nullable: true, default: None };
            store.apply_command(&command).unwrap();
        }
        let (name, fields) = ("i".to_owned(), vec![FieldNumber(0)]);
        let index = Command::CreateIndex {
            name,
            table: TABLE,
            fields,
            descending: Vec::new(),
            collated: Vec::new(),
            unique: false,
        };
        store.apply_command(&index).unwrap();
        let mut next = 0;
        let mut threads = Vec::new();
        for round in 0..6 {
            for id in 0..next {
                let text = text(id, round);
                store.update(TABLE, RowId(id), FieldNumber(0), ValueRef::String(&text)).unwrap();
            }
            for id in next..next + 8 {
                let values = [ValueRef::String(&text(id, round)), ValueRef::Bool(id % 2 == 0)];
                store.insert(TABLE, RowId(id), &values, Uniqueness::AtOnce).unwrap();
            }
            if round % 3 == 2 {
                store.rollback();
                continue;
            }
            next += 8;
            let view = store.commit();
            threads.push(std::thread::spawn(move || read(&view, next, round)));
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        store.view().check().unwrap();
    }
}
