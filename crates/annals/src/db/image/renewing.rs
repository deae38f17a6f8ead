//! Going on from another image than before: one that other processes brought forward, or that was made anew
//! because the one before lost its name, or was mostly free space.

use std::sync::{MutexGuard, TryLockError};
use std::time::Duration;

use super::imager::{Imager, Working};
use super::opening::{Found, Looking};
use super::report::BackfillMode;
use crate::db::core::{Core, Writing};
use crate::db::database::Database;
use crate::db::scan::Replay;
use crate::journal::{Point, lock};
use crate::storage::Access;
use crate::store::Store;
use crate::{Error, ErrorKind, Result};

/// How much of an image has to be free, in bytes, before it is worth the copy. It is half of it, too.
const WORTH: u64 = 1 << 20;

impl Core {
    /// Sees to it, in a journal that no other process writes, that the image is where opening looks for it. One
    /// that was removed or renamed while the database was open is copied there from the file that is still
    /// open. Gives `false` if a transaction is open and the mode doesn't wait for it.
    pub(super) fn keep_named(
        &self,
        imager: &Imager,
        working: &mut Working,
        mode: BackfillMode,
    ) -> Result<bool> {
        let image = working.image.as_ref().filter(|_| working.root.is_some());
        let Some((image, _)) = image else { return Ok(true) };
        if image.is_linked()? {
            return Ok(true);
        }
        let Some(mut writing) = self.writer_for(mode) else { return Ok(false) };
        self.group.settle()?;
        match image.compact(imager.clock()) {
            Err(error) if error.kind() == ErrorKind::Io => {
                return Err(
                    error.within("the image was removed or renamed, and can't be made anew")
                );
            }
            // Something else is there by now, which is looked at; or a part can't be read, and is replayed.
            Ok(_) | Err(_) => {}
        }
        self.begin_anew(imager, (working, &mut writing), Access::Write)?;
        Ok(true)
    }

    /// Gives the writer's side; in a mode that waits for nobody only if no transaction has it.
    fn writer_for(&self, mode: BackfillMode) -> Option<MutexGuard<'_, Writing>> {
        match self.writing.try_lock() {
            Ok(writing) => Some(writing),
            Err(TryLockError::Poisoned(writing)) => Some(writing.into_inner()),
            Err(TryLockError::WouldBlock) if mode == BackfillMode::Passive => None,
            Err(TryLockError::WouldBlock) => Some(lock(&self.writing)),
        }
    }

    /// Lets the store begin anew from the newest root of the image, and replays what follows; without an
    /// image, or with one that can't be used, it has all in memory afterwards.
    pub(super) fn begin_anew(
        &self,
        imager: &Imager,
        (working, writing): (&mut Working, &mut Writing),
        access: Access,
    ) -> Result<()> {
        let file = self.file();
        let looking = Looking {
            directory: imager.directory(),
            name: &file.journal,
            storage: &*file.storage,
            access,
            clock: imager.clock(),
            budget: imager.budget(),
        };
        let mut found = looking.find()?;
        let end = writing.writer.committed();
        let replayed = replay_from(&mut found, &looking, end);
        for note in std::mem::take(&mut found.notes) {
            self.note_image_error(&Error::corrupt(note));
        }
        let store = match replayed {
            Some(store) => store,
            None if access == Access::Read => return Ok(()),
            None if writing.store.view().root() == 0 => {
                imager.begin_anew(working, &found, &file);
                return Ok(());
            }
            None => exactly(looking.replay_all(end.position)?, end)?,
        };
        writing.store = store;
        imager.begin_anew(working, &found, &file);
        self.group.replace(writing.store.republish());
        Ok(())
    }
}

impl Database {
    /// Makes the image as small as it can be, for whoever has the right to bring it forward: gives back its
    /// unused end, and if more than half of the rest is free, puts a copy without gaps in its place, while
    /// commits go on. Gives its length.
    pub(super) fn compact_image(
        &self,
        imager: &Imager,
        working: &mut Working,
        timeout: Duration,
    ) -> Result<u64> {
        let len = imager.shrink_wholly(working)?;
        let (Some((image, _)), Some(root)) = (&working.image, &working.root) else {
            return Ok(len);
        };
        let free = len.saturating_sub(image.reached(root)?);
        if free < WORTH || free <= len / 2 {
            return Ok(len);
        }
        let len = image.compact(imager.clock())?;
        match self.go_on_from_the_copy(imager, working, timeout) {
            // The next backfill finds out.
            Err(error) if error.kind() != ErrorKind::Busy => Err(error),
            Ok(()) | Err(_) => Ok(len),
        }
    }

    fn go_on_from_the_copy(
        &self,
        imager: &Imager,
        working: &mut Working,
        timeout: Duration,
    ) -> Result<()> {
        let mut writing = self.core().writer_within(timeout)?;
        self.take_turn_by(&mut writing, |now| now.take_turn_within(timeout))?;
        let begun = match self.group().settle() {
            Ok(()) => self.core().begin_anew(imager, (working, &mut writing), Access::Write),
            Err(error) => Err(error),
        };
        self.end_turn();
        begun
    }
}

/// Replays from the root that was found, if there is one that can be used.
fn replay_from(found: &mut Found, looking: &Looking<'_>, end: Point) -> Option<Store> {
    let begun = found.begun.as_ref()?;
    match looking.replay_to(begun, end.position).and_then(|replayed| exactly(replayed, end)) {
        Ok(store) => Some(store),
        Err(error) => {
            looking.set_aside(found, error.to_string());
            None
        }
    }
}

/// Gives the store, if it has just what a commit ends.
fn exactly((replay, point): (Replay, Point), end: Point) -> Result<Store> {
    match point == end {
        true => Ok(replay.finish().0),
        false => Err(Error::corrupt("the journal goes on otherwise from there")),
    }
}
