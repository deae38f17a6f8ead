//! The previously published view: its unused parts are reused.
//!
//! A transaction that changes a table copies it, since the published view refers to the table too. The previous view
//! still has an older copy. Updating that older copy costs a fraction of making another and dropping it (see
//! [`refresh`](mod@crate::pages::refresh)).
//!
//! Invariants
//! 1. A view that a reader still has is left alone: only parts with a single owner are taken.
//! 2. The kept parts take little memory beyond the newer view: a transaction that made many pages leaves nothing
//!    here.
//! 3. A view that lies over an older image is not kept: it would pin the image's space.

use std::sync::Arc;

use crate::index::tree::IndexTree;
use crate::pages::page::{Epoch, PAGE};
use crate::pages::refresh::Refresh;
use crate::pages::unique::NoWeak;
use crate::table::Table;
use crate::view::View;

/// A transaction that made more than this leaves nothing.
const MOST: usize = 32 * PAGE;

/// The view that was published before, if it is kept.
#[derive(Debug, Default)]
pub(super) struct PreviousView {
    view: Option<Arc<View>>,
    /// The bytes made when the last transaction was published, by the running count; resets since then make it less
    /// than 0, and wrap around.
    made: usize,
}

impl PreviousView {
    /// Returns an old table of that number, if it is unused.
    pub(super) fn table(&mut self, number: usize) -> Option<NoWeak<Table>> {
        self.alone()?.tables.take(number)
    }

    /// Returns an old index of that number, if it is unused.
    pub(super) fn index(&mut self, number: usize) -> Option<NoWeak<IndexTree>> {
        self.alone()?.indexes.take(number)
    }

    fn alone(&mut self) -> Option<&mut View> {
        Arc::get_mut(self.view.as_mut()?)
    }

    /// Returns another handle of a view: the old one, updated, if it is unused.
    pub(super) fn renewed(&mut self, working: &View) -> Arc<View> {
        if let Some(mut old) = self.view.take()
            && let Some(view) = Arc::get_mut(&mut old)
        {
            view.refresh(working);
            return old;
        }
        Arc::new(working.share())
    }

    /// Releases the view.
    pub(super) fn clear(&mut self) {
        self.view = None;
    }

    /// Keeps the count of made bytes of the open transaction, before that count is reset.
    pub(super) const fn forget_made(&mut self, epoch: &Epoch) {
        self.made = self.made.wrapping_sub(epoch.made());
    }

    /// Keeps the previously published view, if the transaction made little, and if it lies over the same image.
    pub(super) fn put(&mut self, before: Arc<View>, working: &View, epoch: &Epoch) {
        let made = epoch.made();
        let is_small = made.wrapping_sub(self.made) <= MOST;
        let keeps = is_small && before.root() == working.root();
        *self = Self { view: keeps.then_some(before), made };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use annals_schema::{Command, FieldNumber, RowId, TableNumber, Type, ValueRef};

    use crate::image::RootPin;
    use crate::{Store, TestImage, Uniqueness};

    const TABLE: TableNumber = TableNumber(0);
    /// Enough for more pages than a view may have that is kept.
    const ROWS: u64 = 100_000;

    fn update(store: &mut Store, ids: std::ops::Range<u64>, number: i64) {
        for id in ids {
            let value = ValueRef::Int64(number);
            store.update(TABLE, RowId(id), FieldNumber(0), value).unwrap();
        }
    }

    #[test]
    fn only_what_is_small_is_kept_whenever_is_counted_what_was_made() {
        let mut store = Store::new();
        store.apply_command(&Command::CreateTable { name: "t".to_owned() }).unwrap();
        let (name, ty, table) = ("a".to_owned(), Type::Int64, TABLE);
        let field = Command::AddField { table, name, ty, nullable: false, default: None };
        store.apply_command(&field).unwrap();
        for id in 0..2 * ROWS {
            store.insert(TABLE, RowId(id), &[ValueRef::Int64(-1)], Uniqueness::AtOnce).unwrap();
        }
        store.commit();
        assert!(store.previous.view.is_none());
        // Between two transactions, of which the later makes less.
        assert!(store.has_unsaved(1));
        update(&mut store, 0..ROWS, 1);
        store.commit();
        assert!(store.previous.view.is_none());
        // Within one.
        update(&mut store, 0..ROWS, 2);
        assert!(store.has_unsaved(1));
        update(&mut store, 0..1, 3);
        store.commit();
        assert!(store.previous.view.is_none());
        // A small one is kept, whatever was counted before it, until it is rolled back.
        update(&mut store, 0..1, 4);
        store.commit();
        assert!(store.previous.view.is_some());
        assert!(store.has_unsaved(1) || store.unsaved() > 0);
        update(&mut store, 0..1, 5);
        store.commit();
        assert!(store.previous.view.is_some());
        update(&mut store, 0..1, 6);
        store.rollback();
        assert!(store.previous.view.is_none());
    }

    #[test]
    fn no_view_is_kept_over_an_older_image() {
        let (image, pager) = TestImage::new(u64::MAX, true);
        let mut store = Store::new();
        store.apply_command(&Command::CreateTable { name: "t".to_owned() }).unwrap();
        store.commit();
        store.apply_command(&Command::CreateTable { name: "u".to_owned() }).unwrap();
        let view = store.commit();
        assert!(store.previous.view.is_some());
        let saved = view.save(&pager, &mut image.keeper(true)).unwrap();
        store.rebase(&saved);
        assert!(store.previous.view.is_none());
        // The published one still lies over none.
        store.working.pin = Some(Arc::new(RootPin::here(7)));
        store.apply_command(&Command::CreateTable { name: "v".to_owned() }).unwrap();
        store.commit();
        assert!(store.previous.view.is_none());
    }
}
