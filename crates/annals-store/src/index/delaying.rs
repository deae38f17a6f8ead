//! Changing the entries of indexes: at once, or putting them off while a journal is replayed.
//!
//! Invariant: what is put off is of the open transaction of a replay, and of those before it that count. So a
//! rollback forgets all of it, and before anything is published it is made, or handed to the index.

use crate::Result;
use crate::Store;
use crate::index::key;
use crate::index::late::Delayed;
use crate::index::tree::{IndexTree, no_entry};
use crate::pages::page::Epoch;
use crate::pages::unique::NoWeak;

/// Changes of entries that are put off.
#[derive(Debug)]
pub(crate) struct Delaying {
    /// By the numbers of the indexes.
    indexes: Vec<Delayed>,
    /// How many there are in all.
    count: usize,
    /// How many there may be: so many pages may have to be copied at once.
    limit: usize,
}

/// A change of the entry of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryChange {
    /// The index gets it.
    Insert,
    /// The index, which has it, loses it.
    Remove,
}

/// Changes an entry of an index, which has a number; or puts that off, if such is the store.
#[inline]
pub(crate) fn change_entry(
    delaying: &mut Option<Delaying>,
    (number, index): (usize, &mut NoWeak<IndexTree>),
    (entry, change): (&[u8], EntryChange),
    epoch: &Epoch,
) -> Result<()> {
    if let Some(delaying) = delaying {
        return delaying.put_off((number, index), (entry, change), epoch);
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
        (number, index): (usize, &mut NoWeak<IndexTree>),
        (entry, change): (&[u8], EntryChange),
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

    fn clear(&mut self) {
        self.indexes.clear();
        self.count = 0;
    }
}

impl Store {
    /// Puts off the entries of indexes, at most `limit`, for a replay: see [`late`](super::late).
    #[doc(hidden)]
    #[inline]
    pub fn delaying(mut self, limit: usize) -> Self {
        self.delaying = Some(Delaying { indexes: Vec::new(), count: 0, limit });
        self
    }

    /// Makes the changes that were put off so far.
    ///
    /// # Errors
    /// An index can't be loaded, or has other entries.
    #[doc(hidden)]
    pub fn make_delayed(&mut self) -> Result<()> {
        let Self { delaying, working, epoch, .. } = self;
        let Some(delaying) = delaying else { return Ok(()) };
        delaying.count = 0;
        for (number, delayed) in std::mem::take(&mut delaying.indexes).into_iter().enumerate() {
            if let Some(index) = working.indexes.get_mut(number).filter(|_| delayed.len() > 0) {
                delayed.make(index.make_mut().tree_mut(epoch)?, epoch)?;
            }
        }
        Ok(())
    }

    /// Puts nothing off any more: the indexes have beside them what was.
    #[doc(hidden)]
    #[inline]
    pub fn end_delay(&mut self) {
        let Some(delaying) = self.delaying.take() else { return };
        for (number, delayed) in delaying.indexes.into_iter().enumerate() {
            if let Some(index) = self.working.indexes.get_mut(number).filter(|_| delayed.len() > 0)
            {
                index.make_mut().put_off(delayed);
            }
        }
    }

    /// Forgets what was put off, of one index or of all.
    pub(crate) fn forget_delayed(&mut self, index: Option<usize>) {
        let Some(delaying) = &mut self.delaying else { return };
        match index {
            None => delaying.clear(),
            Some(number) => {
                let delayed = delaying.indexes.get_mut(number).map(std::mem::take);
                delaying.count -= delayed.map_or(0, |delayed| delayed.len());
            }
        }
    }
}
