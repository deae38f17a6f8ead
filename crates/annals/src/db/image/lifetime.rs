//! The lifetime of an open database: its handles share it, one of them closes it, or else dropping the last one.
//!
//! Invariants
//! 1. Closing happens once. Its files aren't written after it, by whatever handle: other processes may write them.
//! 2. Closing first waits for the open transaction and the running operations of other threads.

use std::mem;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::db::follow::image_state::ImageState;
use crate::db::image::trigger;
use crate::db::write::inner::Inner;
use crate::db::write::shared;
use crate::journal::lock;
use crate::storage::Lock;
use crate::trace::{event, span};
use crate::{Error, ErrorKind, Result};

/// How long dropping a database waits for a backfill.
const PATIENCE: Duration = Duration::from_secs(5);

impl Inner {
    /// Closes it for all handles. Returns the errors of closing, except to those that find it closed already.
    pub(in crate::db) fn close(self: Arc<Self>) -> Result<()> {
        let open = match Arc::try_unwrap(self) {
            Ok(mut only) => return only.close_alone(Duration::MAX),
            Err(open) => open,
        };
        open.check_origin()?;
        open.refuse_nesting()?;
        open.image().map_or(Ok(()), ImageState::refuse_nesting)?;
        open.gate.close();
        // Waits for the transaction of another thread; the next one finds the gate closed.
        drop(open.writing.lock());
        let mut is_closed = lock(&open.is_closed);
        if mem::replace(&mut *is_closed, true) {
            return Ok(());
        }
        let is_imaged = open.stop_threads(Duration::MAX);
        open.finish(Ok(()), is_imaged.then_some(Duration::MAX))
    }

    /// Closes it if it isn't, as the only one that has it; waits up to `patience` for a backfill.
    fn close_alone(&mut self, patience: Duration) -> Result<()> {
        self.check_origin()?;
        if mem::replace(self.is_closed.get_mut().unwrap_or_else(PoisonError::into_inner), true) {
            return Ok(());
        }
        self.gate.close();
        let is_imaged = self.stop_threads(patience);
        drop(self.background.take());
        let is_written = self.checkpoints().check_usable().is_ok();
        let mut rolled_back = Ok(());
        // Not by its lock: a transaction that was forgotten (`mem::forget`) holds that for ever. The thread
        // that shared it has ended.
        if let Some(core) = Arc::get_mut(&mut self.core)
            && is_written
            && self.sharing.is_none()
        {
            rolled_back = core.writing.get_mut().writer.rollback();
        }
        self.finish(rolled_back, is_imaged.then_some(patience))
    }

    /// Ends the work in the background; returns true if a backfill wasn't ended before its end.
    fn stop_threads(&self, patience: Duration) -> bool {
        let is_imaged = self.background.as_ref().is_none_or(|it| it.stop(patience));
        if let Some(checkpointer) = &self.checkpointer {
            checkpointer.stop();
        }
        is_imaged
    }

    /// Closes the files. `patience` limits the time to update the image; with `None` it isn't updated.
    fn finish(&self, rolled_back: Result<()>, patience: Option<Duration>) -> Result<()> {
        let checkpoints = self.checkpoints();
        span!(INFO, "close", file = self.file().name.as_str());
        let closed = match checkpoints.check_usable() {
            Err(error) if error.kind() == ErrorKind::Unapplied => Ok(()), // nothing is written any more
            // In shared mode the end of the turn noted that.
            Err(error) if self.sharing.is_some() => Err(error),
            Err(error) => {
                // Marks for the next opening that the last flush failed; ignores an error of that. In shared mode
                // that was marked in the turn in which it failed.
                if self.sharing.is_none() {
                    let _ = checkpoints.tell();
                }
                Err(Error::new(ErrorKind::Poisoned, error.to_string()))
            }
            Ok(()) if self.sharing.is_some() => shared::close_shared(self),
            Ok(()) => rolled_back.and_then(|()| self.close_journal(patience)),
        };
        self.group.feed().close();
        let file = self.file();
        // For what might still want to write: the lock is released.
        self.checkpoints().refuse(ErrorKind::Closed, self.closed().to_string());
        event!(INFO, "closed", is_ok = closed.is_ok());
        // Snapshots keep the file open, to read blobs; they must not keep others from writing.
        let unlocked = file.storage.unlock(Lock::Head);
        closed.and(
            unlocked.map_err(|error| {
                Error::io(format!("{}: can't let go of its lock", file.name), error)
            }),
        )
    }

    /// Closes a journal that no other process writes.
    fn close_journal(&self, patience: Option<Duration>) -> Result<()> {
        self.group.settle()?;
        // A problem of the image doesn't prevent closing: the next opening replays more.
        let _ = patience.map(|patience| trigger::backfill_at_close(self, patience));
        self.checkpoints().close()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.check_origin().is_err() {
            // Their threads aren't in this process, and locks that they held at the fork are never released.
            mem::forget((self.checkpointer.take(), self.background.take()));
            return;
        }
        // No caller can receive an error, and nothing acknowledged as durable depends on it.
        let _ = self.close_alone(PATIENCE);
    }
}
