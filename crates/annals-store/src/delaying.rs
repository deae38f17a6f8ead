//! A store that defers the entries of indexes while a journal is replayed.

use crate::index::delaying::Delaying;
use crate::{Result, Store};

impl Store {
    /// Puts off the entries of indexes, at most `limit`, for a replay: see [`late`](crate::index::late).
    #[doc(hidden)]
    #[inline]
    pub fn delaying(mut self, limit: usize) -> Self {
        self.delaying = Some(Delaying { indexes: Vec::new(), count: 0, limit });
        self
    }

    /// Applies the deferred changes so far.
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

    /// Stops deferring: the deferred entries are now beside the indexes.
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

    /// Drops the deferred changes, of one index or of all.
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

#[cfg(test)]
mod tests;
