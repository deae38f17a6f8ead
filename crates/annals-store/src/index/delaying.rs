//! Changing the entries of indexes: at once, or deferred while a journal is replayed.
//!
//! Invariant: deferred changes are of the open transaction of a replay, and of earlier committed ones. So a rollback
//! forgets all of it, and before anything is published it is made, or handed to the index.

use crate::Result;
use crate::index::key;
use crate::index::late::Delayed;
use crate::index::tree::{IndexTree, no_entry};
use crate::pages::page::Epoch;
use crate::pages::unique::NoWeak;

/// Deferred changes of entries.
#[derive(Debug)]
pub(crate) struct Delaying {
    /// By the numbers of the indexes.
    pub(crate) indexes: Vec<Delayed>,
    /// How many there are in all.
    pub(crate) count: usize,
    /// The limit: as many pages may have to be copied at once.
    pub(crate) limit: usize,
}

/// A change of the entry of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryChange {
    /// The index gets it.
    Insert,
    /// The index, which has it, loses it.
    Remove,
}

/// Changes an entry of an index, given by number; or defers that, if the store is in that mode.
#[inline]
pub(crate) fn change_entry(
    delaying: &mut Option<Delaying>,
    number: usize,
    index: &mut NoWeak<IndexTree>,
    entry: &[u8],
    change: EntryChange,
    epoch: &Epoch,
) -> Result<()> {
    if let Some(delaying) = delaying {
        return delaying.put_off(number, index, entry, change, epoch);
    }
    let tree = index.make_mut().tree_mut(epoch)?;
    match change {
        EntryChange::Insert => tree.insert(entry, &[], epoch),
        EntryChange::Remove if tree.remove(entry, epoch)? => Ok(()),
        EntryChange::Remove => Err(no_entry(key::id_of(entry))),
    }
}

impl Delaying {
    #[cold]
    fn put_off(
        &mut self,
        number: usize,
        index: &mut NoWeak<IndexTree>,
        entry: &[u8],
        change: EntryChange,
        epoch: &Epoch,
    ) -> Result<()> {
        if number >= self.indexes.len() {
            self.indexes.resize_with(number + 1, Delayed::default);
        }
        let Some(delayed) = self.indexes.get_mut(number) else { return Ok(()) };
        delayed.push(entry, change == EntryChange::Insert);
        self.count += 1;
        if self.count < self.limit {
            return Ok(());
        }
        let delayed = std::mem::take(delayed);
        self.count -= delayed.len();
        delayed.make(index.make_mut().tree_mut(epoch)?, epoch)
    }

    pub(crate) fn clear(&mut self) {
        self.indexes.clear();
        self.count = 0;
    }
}
