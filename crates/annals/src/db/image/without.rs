//! Going on without an image that has damage which can't be mended.
//!
//! Snapshots that lie over it stay what they are, with errors where it is damaged. The store is replayed from the
//! journal, and what is published from then on is that one's. The next backfill makes another image.
//!
//! It is done by whoever comes first, and finds nobody at work: who asks for a snapshot, begins a transaction, or
//! brings the image forward.

use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use super::imager::{Imager, Working};
use super::opening::Looking;
use super::renewing::exactly;
use crate::db::core::{Core, Writing};
use crate::image::KeyFrames;
use crate::storage::Access;
use crate::{Error, ErrorKind, Result};

impl Core {
    /// Goes on without the image if it is lost, and nobody is at work. What goes wrong leaves all as it is: it is
    /// tried again.
    #[cold]
    pub(in crate::db) fn try_to_go_on_without_image(&self) {
        let Some(imager) = self.image() else { return };
        let Some(mut working) = try_lock(&imager.working) else { return };
        let Some(mut writing) = try_lock(&self.writing) else { return };
        let _ = self.go_on_without_image(imager, (&mut working, &mut writing));
    }

    /// Does so in a transaction that is about to begin.
    #[cold]
    pub(in crate::db) fn begin_without_image(&self, writing: &mut Writing) {
        let Some(imager) = self.image() else { return };
        let Some(mut working) = try_lock(&imager.working) else { return };
        let _ = self.go_on_without_image(imager, (&mut working, writing));
    }

    /// Lets the store, which no transaction changes, go on from a replay of the journal.
    pub(super) fn go_on_without_image(
        &self,
        imager: &Imager,
        (working, writing): (&mut Working, &mut Writing),
    ) -> Result<()> {
        if !imager.is_lost(working)? {
            return Ok(()); // somebody was faster, or it is no longer this one
        }
        self.group.settle()?;
        let file = Arc::clone(&writing.file);
        let end = writing.writer.committed();
        let looking = Looking {
            directory: imager.directory(),
            name: &file.journal,
            storage: &*file.storage,
            access: Access::Read,
            clock: Arc::clone(imager.clock()),
            budget: imager.budget(),
            spills: false,
            key_frames: KeyFrames::new(),
            damages: None,
        };
        writing.store = exactly(looking.replay_all(end.position)?, end)?;
        imager.begin_without(working);
        imager.damages().went_on();
        self.group.replace(writing.store.republish());
        Ok(())
    }

    /// Sees to it that a backfill doesn't meet damage again: what failed with it is told, and the store goes on
    /// without the image. Tells whether the backfill is worth another try.
    pub(super) fn get_over(&self, error: &Error, imager: &Imager, working: &mut Working) -> bool {
        if error.kind() != ErrorKind::Corrupt {
            return false;
        }
        if imager.mend(working) {
            return true;
        }
        imager.lose(working, error);
        self.leave_lost_image(imager, working)
    }

    /// Goes on without the image if it is lost, and no transaction is open: nobody who holds the lock of
    /// backfills waits for one. Tells whether no image is lost.
    pub(super) fn leave_lost_image(&self, imager: &Imager, working: &mut Working) -> bool {
        if !imager.damages().is_lost() {
            return true;
        }
        try_lock(&self.writing).is_some_and(|mut writing| {
            self.go_on_without_image(imager, (working, &mut writing)).is_ok()
        })
    }
}

fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
