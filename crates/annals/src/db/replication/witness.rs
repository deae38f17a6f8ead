//! A place elsewhere that must have each commit before it is acknowledged here: a synchronous backup.

use std::fmt::Debug;
use std::sync::Arc;

use super::places::Known;
use super::source::Source;
use crate::Result;
use crate::db::engine::group::Confirm;
use crate::db::handle::database::Database;
use crate::db::present::snapshot::Published;

/// A place elsewhere that must have each commit before it is acknowledged and seen here.
pub trait Witness: Debug + Send + Sync {
    /// Returns once that place has all up to the end of a source, on permanent storage. The commits are flushed
    /// here, seen by nobody yet, and all later ones wait.
    ///
    /// # Errors
    /// It never will: the outcome of the commits is unknown then, and nothing more can be written until the database
    /// is opened again. A place that can't be reached is no error, but is waited for.
    fn confirm(&self, source: &Source) -> Result<()>;
}

/// A witness, and the places that were found for it.
#[derive(Debug)]
struct Asking {
    witness: Arc<dyn Witness>,
    known: Arc<Known>,
}

impl Confirm for Asking {
    fn confirm(&self, written: Published) -> Result<()> {
        self.witness.confirm(&Source::of_written(Arc::new(written), &self.known))
    }
}

impl Database {
    /// Acknowledges commits from now on only when a witness has them. The first witness of a database remains.
    pub(crate) fn confirm_by(&self, witness: Arc<dyn Witness>) {
        self.inner().group().confirm_by(Arc::new(Asking { witness, known: Arc::default() }));
    }

    /// Returns when all that is written is acknowledged.
    pub(crate) fn settle(&self) -> Result<()> {
        let _entered = self.inner().enter()?;
        self.inner().group().settle()
    }
}
