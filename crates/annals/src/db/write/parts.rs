//! Parts of a transaction, between savepoints: an error of a part rolls back only that part.
//!
//! ```text
//! set      the store shares its working view; the journal's writer remembers a place in the frame
//! return   the store shares that view again; the frame is truncated, or frames that were written since are cut off;
//!          pages that were spilled since become free space of the image
//! ```
//!
//! Invariant: store, writer and image are at the same savepoint, or the transaction is broken.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use crate::db::write::savepoints::{Saved, Savepoint};
use crate::db::write::spill;
use crate::db::write::transaction::Transaction;
use crate::{Error, Result};

impl Transaction<'_> {
    /// Runs a part of the transaction: if `work` fails, only that part is rolled back, and the transaction can
    /// continue. Parts may be nested. A panic also rolls the part back.
    ///
    /// Afterwards everything is as if the part had never run: rows, ids, the schema, blobs, comments, the level and
    /// time of the commit, the bytes of the journal.
    ///
    /// Cost: no I/O, and a reference count for each table and index; a page that the transaction changed before is
    /// copied once more when it changes again. If the part has written more than about half a megabyte,
    /// rolling it back costs three flushes. See [`set_savepoint`](Self::set_savepoint) for memory.
    ///
    /// # Errors
    /// That of `work`. If rolling back fails, the error of that (kind `Io`): then the whole transaction can only be
    /// rolled back.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> annals::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let db = annals::Database::open(folder.path().join("db"))?;
    /// let mut tx = db.begin()?;
    /// tx.comment("kept")?;
    /// let failed = tx.savepoint(|tx| {
    ///     tx.comment("rolled back")?;
    ///     Err::<(), _>(annals::Error::invalid("no"))
    /// });
    /// assert_eq!(failed.unwrap_err().to_string(), "no");
    /// tx.commit()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn savepoint<T, E: From<Error>>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let savepoint = self.set_savepoint()?;
        let done = catch_unwind(AssertUnwindSafe(|| work(self)));
        self.end_savepoint(savepoint, done)
    }

    /// Ends the part of the transaction since a savepoint: keeps what was done, or rolls it back.
    pub(crate) fn end_savepoint<T, E: From<Error>>(
        &mut self,
        savepoint: Savepoint,
        done: thread::Result<Result<T, E>>,
    ) -> Result<T, E> {
        let returned = match &done {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => self.roll_back_to(savepoint),
        };
        let ended = returned.and_then(|()| self.release(savepoint));
        match done {
            Ok(done) => ended.map_err(E::from).and(done),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Sets a savepoint: the state to which [`roll_back_to`](Self::roll_back_to) returns. It stays until
    /// [`release`](Self::release), or the end of the transaction. [`savepoint`](Self::savepoint) does all three.
    ///
    /// As long as it is set, pages in memory that the transaction changes afterwards are kept: at most about a quarter of
    /// [`Options::memory`](crate::Options::memory) for each savepoint.
    ///
    /// # Errors
    /// `Invalid`: a statement stopped in the middle, and the transaction can only be rolled back.
    pub fn set_savepoint(&mut self) -> Result<Savepoint> {
        self.ready()?;
        let spilled = if self.room.is_spilled { spill::mark(self.database) } else { None };
        self.writing.writer.set_savepoint();
        let store = self.writing.store.set_savepoint();
        let (level, time) = (self.level, self.time);
        Ok(self.savepoints.add(Saved { store, spilled, level, time }))
    }

    /// Returns to a savepoint, which stays set: nothing remains of the transaction since then. Savepoints that were
    /// set later are forgotten. Also possible after a statement that stopped in the middle.
    ///
    /// # Errors
    /// `Invalid`: the savepoint isn't set any more. `Io`: frames that were already written can't be cut off; then the
    /// transaction can only be rolled back.
    pub fn roll_back_to(&mut self, savepoint: Savepoint) -> Result<()> {
        let place = self.place_of(savepoint)?;
        self.forget_savepoints(place + 1);
        let Some(saved) = self.savepoints.last() else { return Ok(()) };
        self.broken = true;
        let is_spilled = saved.spilled.is_some();
        self.writing.store.return_to(&saved.store);
        if self.room.is_spilled {
            spill::return_to(self.database, saved.spilled.as_ref());
            self.room.is_spilled = is_spilled;
        }
        (self.level, self.time) = (saved.level, saved.time);
        self.writing.writer.set_level(self.level);
        self.writing.writer.return_to_savepoint()?;
        self.broken = false;
        Ok(())
    }

    /// Forgets a savepoint and those that were set later; the changes since then stay.
    ///
    /// # Errors
    /// `Invalid`: the savepoint isn't set any more.
    pub fn release(&mut self, savepoint: Savepoint) -> Result<()> {
        let place = self.place_of(savepoint)?;
        self.forget_savepoints(place);
        Ok(())
    }

    /// Forgets the savepoints after the first `count`.
    pub(in crate::db) fn forget_savepoints(&mut self, count: usize) {
        self.savepoints.truncate(count);
        self.writing.writer.keep_savepoints(count);
    }

    fn place_of(&self, savepoint: Savepoint) -> Result<usize> {
        self.database.check_origin()?;
        self.savepoints.place_of(savepoint)
    }
}
