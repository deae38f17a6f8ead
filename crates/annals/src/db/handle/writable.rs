//! Checks that a database may be written: a commit that doesn't apply allows reading only.

use crate::db::handle::database::Database;
use crate::db::replay::unapplied::Unapplied;
use crate::{Error, Result};

impl Database {
    /// Returns the commit that doesn't apply, if the journal holds one. Then the database shows the state before
    /// it, and every write is an error of kind `Unapplied`.
    #[must_use]
    pub fn unapplied(&self) -> Option<&Unapplied> {
        self.unapplied.get()
    }

    /// Fails where nothing of this database may be written: in a forked child, and where a commit doesn't apply.
    pub(in crate::db) fn check_writable(&self) -> Result<()> {
        self.check_origin()?;
        self.refuse_unapplied()
    }

    /// Fails where a commit doesn't apply.
    pub(in crate::db) fn refuse_unapplied(&self) -> Result<()> {
        match self.unapplied.get() {
            None => Ok(()),
            Some(unapplied) => Err(unapplied.error(&self.file().name)),
        }
    }

    /// Writes nothing any more, since a commit doesn't apply that another process made; returns the error that
    /// says so.
    pub(in crate::db) fn stay_before(&self, unapplied: Unapplied) -> Error {
        let error = unapplied.error(&self.file().name);
        self.checkpoints().refuse(error.to_string());
        let _ = self.unapplied.set(unapplied);
        error
    }
}
