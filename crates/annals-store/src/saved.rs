//! A stored view: what it continues from.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::history::HistoryIndex;
use crate::pages::save::Saved;

/// The stored parts of a view, and the history index that was stored with them.
#[derive(Debug)]
pub struct SavedView {
    pub(crate) parts: Saved,
    pub(crate) history: Arc<HistoryIndex>,
}

impl Deref for SavedView {
    type Target = Saved;

    fn deref(&self) -> &Saved {
        &self.parts
    }
}

impl DerefMut for SavedView {
    fn deref_mut(&mut self) -> &mut Saved {
        &mut self.parts
    }
}
