//! The part of a statement that changes the store.

use crate::db::engine::rebuild;
use crate::db::handle::transaction::Transaction;
use crate::store::Store;
use crate::{Error, ErrorKind, Result};

impl Transaction<'_> {
    /// Does a part of a statement in the store: again, where a page is lost and nothing was changed yet.
    #[inline(always)]
    pub(in crate::db) fn change<T>(
        &mut self,
        mut change: impl FnMut(&mut Store) -> Result<T>,
    ) -> Result<T> {
        self.writing.store.forget_rescue();
        match change(&mut self.writing.store) {
            Err(error) => self.change_again(error, change),
            done => done,
        }
    }

    #[cold]
    fn change_again<T>(
        &mut self,
        mut error: Error,
        mut change: impl FnMut(&mut Store) -> Result<T>,
    ) -> Result<T> {
        loop {
            self.get_over(error)?;
            match change(&mut self.writing.store) {
                Err(again) => error = again,
                done => return done,
            }
        }
    }

    fn get_over(&mut self, error: Error) -> Result<()> {
        if error.kind() != ErrorKind::PageLost {
            return Err(stopped(&mut self.broken, error));
        }
        let (changed, core) = (!self.is_empty(), self.database.core());
        let gone = rebuild::get_over_lost_page(core, &mut self.writing, changed, error);
        gone.map_err(|error| stopped(&mut self.broken, error))
    }
}

/// Notes whether an error of the store can have stopped it in the middle of a change; returns the error.
#[cold]
fn stopped(broken: &mut bool, error: Error) -> Error {
    *broken |= matches!(error.kind(), ErrorKind::Io | ErrorKind::Corrupt | ErrorKind::PageLost);
    error
}
