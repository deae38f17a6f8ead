//! The memory of a transaction: writing changes ahead where they fill it, and settling what a load owes to indexes.

use crate::Result;
use crate::db::write::core::{Core, Writing};
use crate::db::write::spill;
use crate::store::Store;

/// So many bytes of pages are made before it is seen again whether there is room.
const STEP: usize = 4 << 20;

/// The memory of an open transaction.
#[derive(Debug)]
pub(in crate::db) struct Room {
    /// How many bytes of changes were in memory alone, not in the image, when it began.
    found: usize,
    /// It spills when more bytes of changes than these are in memory alone.
    limit: usize,
    /// The cache of pages leaves room for so many.
    left: usize,
    /// About so many bytes of values are inserted at a time.
    batch: usize,
    /// True if a part of the transaction is in the image.
    pub(in crate::db) is_spilled: bool,
}

impl Room {
    /// Begins a transaction. From now on its store may owe entries to indexes: they are settled before all that needs them.
    pub(in crate::db) fn new(core: &Core, store: &mut Store) -> Self {
        let found = store.unsaved();
        let limit = spill::limit(core, found);
        let (left, batch) = (spill::room(core, found, limit), spill::batch(core));
        store.allow_owing(batch.saturating_mul(4));
        Self { found, limit, left, batch, is_spilled: false }
    }

    /// Returns how many rows are inserted at a time, of `rows` whose values have so many bytes.
    pub(in crate::db) fn rows_of(&self, bytes: usize, rows: u64) -> u64 {
        let bytes_of_row = (bytes as u64).div_ceil(rows.max(1)).max(1);
        (self.batch as u64 / bytes_of_row).max(1)
    }

    /// True if there is nothing to make or to settle.
    #[inline]
    pub(in crate::db) const fn is_enough(&self, store: &Store) -> bool {
        store.unsaved() <= self.left && !store.owes_much()
    }

    /// Settles entries at their bound, and makes room where the changes fill the memory. Store and journal say the same
    /// here.
    ///
    /// # Errors
    /// All that is left is to roll back.
    #[cold]
    pub(in crate::db) fn make(&mut self, core: &Core, writing: &mut Writing) -> Result<()> {
        if writing.store.owes_much() {
            self.settle(core, writing)?;
        }
        self.spill(core, writing)
    }

    /// Settles all entries that are owed; makes room meanwhile.
    ///
    /// # Errors
    /// As [`make`](Self::make).
    #[cold]
    pub(in crate::db) fn settle(&mut self, core: &Core, writing: &mut Writing) -> Result<()> {
        while writing.store.owes() {
            writing.store.settle_some(STEP)?;
            self.spill(core, writing)?;
        }
        Ok(())
    }

    fn spill(&mut self, core: &Core, writing: &mut Writing) -> Result<()> {
        if writing.store.unsaved() <= self.left {
            return Ok(());
        }
        if !writing.store.has_unsaved(self.limit) {
            self.left = spill::room(core, writing.store.unsaved(), self.limit);
            return Ok(());
        }
        let spilled = spill::spill(core, writing);
        self.is_spilled |= *spilled.as_ref().unwrap_or(&false);
        let Err(error) = spilled else { return Ok(()) };
        let changes = writing.store.unsaved();
        if let Some(room) = spill::room_without_spill(core, self.found, changes) {
            (self.left, self.limit) = (room, room);
            core.note_image_error(&error);
            return Ok(());
        }
        Err(error
            .within("the transaction is larger than memory, and can't be written to the image")
            .advising("roll it back; free space, make it smaller, or allow more Options::memory"))
    }
}
