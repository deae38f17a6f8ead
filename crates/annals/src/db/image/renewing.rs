//! Going on from another image than before: one that other processes brought forward, or that was made anew
//! because the one before lost its name, or was mostly free space.

use std::sync::{Arc, TryLockError};
use std::time::Duration;

use super::imager::{Imager, Working, shrink_wholly};
use super::opening::Looking;
use crate::db::core::{Core, Writing};
use crate::db::database::Database;
use crate::storage::Access;
use crate::{Error, ErrorKind, Result};

/// How much of an image has to be free, in bytes, before it is worth the copy. It is half of it, too.
const WORTH: u64 = 1 << 20;

/// How long a transaction that needs space in the image may have to wait for a copy of it.
const NOT_NOTICED: Duration = Duration::from_millis(100);

impl Core {
    /// Sees to it, in a journal that no other process writes, that the image is where opening looks for it. One
    /// that was removed or renamed while the database was open is copied there from the file that is still
    /// open. Gives `false` if a transaction is open: nobody who holds the lock of backfills waits for one.
    pub(super) fn keep_named_or_postpone(
        &self,
        imager: &Imager,
        working: &mut Working,
    ) -> Result<bool> {
        if is_named(working)? {
            return Ok(true);
        }
        let mut writing = match self.writing.try_lock() {
            Ok(writing) => writing,
            Err(TryLockError::Poisoned(writing)) => writing.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(false),
        };
        self.group.settle()?;
        self.keep_named(imager, (working, &mut writing))?;
        Ok(true)
    }

    /// As [`Self::keep_named_or_postpone`], for whoever has the writer, in which nothing is pending.
    pub(super) fn keep_named(
        &self,
        imager: &Imager,
        (working, writing): (&mut Working, &mut Writing),
    ) -> Result<()> {
        if is_named(working)? {
            return Ok(());
        }
        let compacted = match &working.image {
            Some((image, _)) => image.compact(&**imager.clock()).map(drop),
            None => Ok(()),
        };
        match compacted {
            Err(error) if error.kind() == ErrorKind::Io => {
                return Err(
                    error.within("the image was removed or renamed, and can't be made anew")
                );
            }
            // Something else is there by now, which is looked at; or a part can't be read, and is replayed.
            Ok(()) | Err(_) => {}
        }
        self.begin_anew(imager, (working, writing), Access::Write)
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
            access,
            clock: Arc::clone(imager.clock()),
            damage: Some(imager.damage()),
            ..Looking::to_read(imager.directory(), &file.journal, &*file.storage, imager.budget())
        };
        let end = writing.writer.committed();
        let (mut found, store) = looking.state_at(end)?;
        for note in std::mem::take(&mut found.notes) {
            self.note_image_error(&Error::corrupt(note));
        }
        let store = match store {
            Some(store) => store,
            None if access == Access::Read => return Ok(()),
            None if writing.store.view().root() == 0 => {
                imager.begin_anew(working, &found, &file);
                return Ok(());
            }
            None => {
                let (replay, point) = looking.replay_all(end.position)?;
                if point != end {
                    return Err(Error::corrupt("the journal goes on otherwise from there"));
                }
                replay.finish().0
            }
        };
        writing.store = store;
        imager.begin_anew(working, &found, &file);
        self.group.replace(writing.store.republish());
        Ok(())
    }
}

/// Tells whether the image, if there is one, is where opening looks for it.
fn is_named(working: &Working) -> Result<bool> {
    match working.image.as_ref().filter(|_| working.root.is_some()) {
        Some((image, _)) => image.is_linked(),
        None => Ok(true),
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
        let len = shrink_wholly(working)?;
        let (Some((image, _)), Some(root), None) = (&working.image, &working.root, &working.spill)
        else {
            return Ok(len);
        };
        let free = len.saturating_sub(image.reached(root)?);
        if free < WORTH || free <= len / 2 {
            return Ok(len);
        }
        let len = image.compact(&**imager.clock())?;
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
        // A transaction that spills waits for the lock of backfills, which is held here.
        let timeout = match self.sharing() {
            None => timeout.min(NOT_NOTICED),
            Some(_) => timeout,
        };
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
