//! The view that was published before: what of it nobody has any more is used again.
//!
//! A transaction that changes a table copies it, for the published view has it too, and the view before that one
//! still has the copy of before. Bringing that up to date costs a fraction of making another and dropping it
//! (see [`refresh`](mod@crate::store::pages::refresh)).
//!
//! Invariants
//! 1. A view that a reader still has is left alone: everything is taken out of what has one owner.
//! 2. What is kept for this takes little memory beyond what the newer view has: a transaction that made many
//!    pages leaves nothing here.
//! 3. A view that lies over an older image is not kept: it would keep the image's space.

use std::sync::Arc;

use crate::store::index::tree::IndexTree;
use crate::store::pages::page::{Epoch, PAGE};
use crate::store::pages::refresh::Refresh;
use crate::store::pages::unique::NoWeak;
use crate::store::table::Table;
use crate::store::view::View;

/// A transaction that made more than this leaves nothing.
const MOST: usize = 32 * PAGE;

/// The view that was published before, if it is kept.
#[derive(Debug, Default)]
pub(super) struct Retired {
    view: Option<Arc<View>>,
    /// How many bytes had been made when it was put here.
    made: usize,
}

impl Retired {
    /// Gives an old table of that number, if nobody has it.
    pub(super) fn table(&mut self, number: usize) -> Option<NoWeak<Table>> {
        self.alone()?.tables.take(number)
    }

    /// Gives an old index of that number, if nobody has it.
    pub(super) fn index(&mut self, number: usize) -> Option<NoWeak<IndexTree>> {
        self.alone()?.indexes.take(number)
    }

    fn alone(&mut self) -> Option<&mut View> {
        Arc::get_mut(self.view.as_mut()?)
    }

    /// Gives another handle of a view: the old one, brought up to date, if nobody has it.
    pub(super) fn renewed(&mut self, working: &View) -> Arc<View> {
        if let Some(mut old) = self.view.take()
            && let Some(view) = Arc::get_mut(&mut old)
        {
            view.refresh(working);
            return old;
        }
        Arc::new(working.share())
    }

    /// Keeps what was published before, if the transaction made little.
    pub(super) fn put(&mut self, before: Arc<View>, epoch: &Epoch) {
        let made = epoch.made();
        let is_small = made.saturating_sub(self.made) <= MOST;
        *self = Self { view: is_small.then_some(before), made };
    }
}
