//! The next segment: made beside the journal, and put in its place.

use std::io;
use std::sync::Arc;

use super::names::{NEXT, is_id, kept_name, number_in, refuse_sealed};
use super::seal::Seal;
use crate::journal::format::{Header, MAX_SEGMENTS, VERSION};
use crate::journal::head;
use crate::journal::mistakes::{Mistake, is_made};
use crate::journal::recover;
use crate::journal::survey::Survey;
use crate::storage::{Access, Clock, Directory, Hold, Lock, Storage};
use crate::{Error, ErrorKind, Result};

/// A segment that is ready, but for its name.
#[derive(Debug)]
pub(crate) struct Next {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) header: Header,
    temporary: String,
}

impl Next {
    /// Makes the segment behind a seal, without frames yet, with the locks of one that is open. `state`
    /// says that the state will be its first transaction. Removes what earlier attempts left.
    pub(crate) fn create(
        directory: &dyn Directory,
        name: &str,
        (old, seal): (&Header, &Seal),
        state: bool,
        (clock, shared): (&dyn Clock, bool),
    ) -> Result<Self> {
        let shown = directory.display(name);
        if seal.next >= MAX_SEGMENTS {
            return Err(Error::invalid(format!(
                "{shown}: has {MAX_SEGMENTS} segments already, and can't have more"
            )));
        }
        remove_leftovers(directory, name);
        let header = Header {
            version: VERSION,
            segment: seal.next,
            // The state is that of the last transaction, and has its number.
            first_txid: seal.first_txid - u64::from(state),
            previous_chain: seal.chain,
            created: clock.now().max(old.created),
            state: u64::from(state),
            ..*old
        };
        let temporary = format!("{name}{NEXT}{:016x}", clock.random());
        let written = write(directory, &temporary, &header, shared);
        if written.is_err() {
            let _ = directory.remove(&temporary);
        }
        match written {
            Ok(storage) => Ok(Self { storage, header, temporary }),
            Err(error) => Err(Error::io(format!("{shown}: can't begin a new segment"), error)),
        }
    }

    /// Makes a segment with a header that another file of the journal has, for a process that has it alone;
    /// `fill` writes what it begins with, and flushes it. Removes what earlier attempts left.
    pub(crate) fn copy<T>(
        directory: &dyn Directory,
        name: &str,
        header: &Header,
        clock: &dyn Clock,
        fill: impl FnOnce(&dyn Storage) -> Result<T>,
    ) -> Result<(Self, T)> {
        remove_leftovers(directory, name);
        let temporary = format!("{name}{NEXT}{:016x}", clock.random());
        let io = |error| Error::io(format!("{}: can't begin it", directory.display(name)), error);
        let filled = write(directory, &temporary, header, false)
            .map_err(io)
            .and_then(|storage| fill(&*storage).map(|filled| (storage, filled)));
        let (storage, filled) = filled.inspect_err(|_| {
            let _ = directory.remove(&temporary);
        })?;
        Ok((Self { storage, header: *header, temporary }, filled))
    }

    /// Gives the segment a path that leads to nothing yet; tells whether it has it.
    pub(crate) fn appear(&self, directory: &dyn Directory, name: &str) -> io::Result<bool> {
        let linked = directory.link(&self.temporary, name);
        // Should it stay, it is in nobody's way.
        let _ = directory.remove(&self.temporary);
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            linked => linked?,
        }
        crate::journal::keep_name(directory, name)?;
        self.storage.renamed(name);
        Ok(true)
    }

    /// Puts the segment at the path: step 5. The old one has its other name, and is sealed. If the
    /// directory can't be flushed the old one gets the path back: a later flush would prove nothing.
    pub(crate) fn publish(&self, directory: &dyn Directory, name: &str) -> io::Result<()> {
        directory.rename(&self.temporary, name)?;
        if is_made(Mistake::RestartNotFlushed) {
            self.storage.renamed(name);
            return Ok(());
        }
        keep_path(directory, name, &self.header)?;
        self.storage.renamed(name);
        Ok(())
    }

    /// Takes it away again, before anything was sealed.
    pub(crate) fn discard(&self, directory: &dyn Directory) {
        // What is left lies about until the next attempt.
        let _ = directory.remove(&self.temporary);
    }
}

/// Makes the path of a segment durable in which nothing was committed yet. If that fails the old one gets
/// the path back, for a later flush would prove nothing: whoever opens it next finds it sealed.
pub(crate) fn keep_path(directory: &dyn Directory, name: &str, header: &Header) -> io::Result<()> {
    let flushed = directory.flush();
    if let (Err(_), Some(old)) = (&flushed, header.segment.checked_sub(1)) {
        let temporary = format!("{name}{NEXT}{:016x}", header.hash());
        // It is gone only where it was forgotten, which was flushed.
        let _ = directory
            .link(&kept_name(name, old), &temporary)
            .and_then(|()| directory.rename(&temporary, name));
    }
    flushed
}

/// Tells whether somebody has a kept segment open for writing, who doesn't know yet where the journal
/// goes on.
pub(crate) fn are_held(directory: &dyn Directory, name: &str, before: u64) -> io::Result<bool> {
    let names = directory.list()?;
    let mut kept = names.iter().filter(|found| number_in(found, name).is_some_and(|n| n < before));
    kept.try_fold(false, |held, name| {
        let storage = directory.open(name, Access::Write)?;
        Ok(held || !storage.try_lock(Lock::Head, Hold::Exclusive)?)
    })
}

fn write(
    directory: &dyn Directory,
    temporary: &str,
    header: &Header,
    shared: bool,
) -> io::Result<Arc<dyn Storage>> {
    let storage = directory.create(temporary)?;
    let locks: &[_] = match shared {
        true => &[(Lock::Head, Hold::Shared), (Lock::Tail, Hold::Exclusive)],
        false => &[(Lock::Head, Hold::Exclusive)],
    };
    for (lock, hold) in locks {
        if !storage.try_lock(*lock, *hold)? {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
    }
    storage.write_at(0, &head::new_head(header))?;
    if !is_made(Mistake::NextNotFlushed) {
        storage.flush()?;
    }
    Ok(storage)
}

/// Removes what restarts of this journal left that didn't come to their end. Nothing was ever committed
/// there, for it never had the path.
fn remove_leftovers(directory: &dyn Directory, name: &str) {
    let is_temporary = |found: &String| {
        let id = found.strip_prefix(name).and_then(|rest| rest.strip_prefix(NEXT));
        id.is_some_and(is_id)
    };
    let names = directory.list().unwrap_or_default();
    for leftover in names.iter().filter(|found| is_temporary(found)) {
        let Ok(storage) = directory.open(leftover, Access::Write) else { continue };
        if storage.try_lock(Lock::Head, Hold::Exclusive).unwrap_or(false) {
            let _ = directory.remove(leftover);
        }
    }
}

/// Gives a segment the name that it will be kept by, durably: step 3. The caller holds its locks.
pub(crate) fn keep(
    directory: &dyn Directory,
    name: &str,
    storage: &dyn Storage,
    header: &Header,
) -> Result<()> {
    let kept = kept_name(name, header.segment);
    let shown = directory.display(&kept);
    let io = |error| Error::io(format!("{shown}: the segment can't be given this name"), error);
    let taken = io::ErrorKind::AlreadyExists;
    let linked = match directory.link(name, &kept) {
        // A restart that was interrupted left it. Its flush may have failed, which must not be trusted.
        Err(error)
            if error.kind() == taken && is_same(directory, &kept, storage).map_err(io)? =>
        {
            let flushed = directory.flush(); // the path first, which must lead to it for certain
            flushed
                .and_then(|()| directory.remove(&kept))
                .and_then(|()| directory.link(name, &kept))
        }
        linked => linked,
    };
    match linked {
        Err(error) if error.kind() == taken => Err(Error::new(
            ErrorKind::InUse,
            format!(
                "{shown}: another file has the name that segment {} will be kept by: move it elsewhere",
                header.segment
            ),
        )),
        Err(error) => Err(io(error)),
        Ok(()) if is_made(Mistake::KeptNameNotFlushed) => Ok(()),
        Ok(()) => directory.flush().map_err(|error| {
            // The path leads to it all the same.
            let _ = directory.remove(&kept);
            io(error)
        }),
    }
}

/// Tells whether a name leads to a file that this handle holds the head lock of.
fn is_same(directory: &dyn Directory, name: &str, storage: &dyn Storage) -> io::Result<bool> {
    let other = directory.open(name, Access::Write)?;
    if other.len()? != storage.len()? {
        return Ok(false);
    }
    // Nobody else holds that: if it isn't free there, it is the same file.
    Ok(!other.try_lock(Lock::Head, Hold::Exclusive)?)
}

/// Ends a restart that was interrupted: a sealed segment was found at the path. The caller holds its
/// locks, and opens the path again behind this.
pub(crate) fn finish(
    directory: &dyn Directory,
    name: &str,
    (storage, survey, seal): (&dyn Storage, &Survey, &Seal),
    clock: &dyn Clock,
    shared: bool,
) -> Result<()> {
    let shown = directory.display(name);
    head::refuse_writing(&survey.head.header, &shown)?;
    refuse_sealed(directory, name, survey.head.header.segment)?;
    let io = |error| Error::io(format!("{shown}: an interrupted restart can't be finished"), error);
    if !storage.is_linked().map_err(io)? {
        return Ok(()); // the path leads to its successor by now
    }
    // What the page cache shows need not be on the disk.
    let from = survey.head.newest_slot().map_or(survey.head.start(), |slot| slot.point);
    if !is_made(Mistake::SealNotRewritten) {
        recover::rewrite(storage, from, seal.point()).map_err(io)?;
        // Also where it is that long already: a flush that failed may have lost the length.
        storage.set_len(seal.end).map_err(io)?;
        storage.flush().map_err(io)?;
    }
    keep(directory, name, storage, &survey.head.header)?;
    let next = Next::create(directory, name, (&survey.head.header, seal), false, (clock, shared))?;
    next.publish(directory, name).map_err(io)
}

/// Tells whether somebody reads a kept segment.
pub(crate) fn is_read(directory: &dyn Directory, name: &str, segment: u64) -> io::Result<bool> {
    let storage = directory.open(&kept_name(name, segment), Access::Write)?;
    match storage.try_lock(Lock::History, Hold::Exclusive) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(false),
        free => free.map(|free| !free),
    }
}

/// The segments that were removed, each with its length, and else the first one that is being read.
pub(crate) type Removed = (Vec<(u64, u64)>, Option<u64>);

/// Removes kept segments of a journal that are older than `before`, the newest first, so that those that
/// are left never seem to be whole. Gives what was removed, in bytes, and the oldest that is being read.
pub(crate) fn remove(directory: &dyn Directory, name: &str, before: u64) -> io::Result<Removed> {
    let mut numbers: Vec<u64> =
        directory.list()?.iter().filter_map(|found| number_in(found, name)).collect();
    numbers.retain(|&number| number < before);
    numbers.sort_unstable_by_key(|&number| std::cmp::Reverse(number));
    // Whoever begins to read goes from the newest back, and doesn't get past this one.
    let (mut newest, mut pinned) = (None, None);
    for &number in &numbers {
        let storage = directory.open(&kept_name(name, number), Access::Write)?;
        let free = match storage.try_lock(Lock::History, Hold::Exclusive) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => true,
            taken => taken?,
        };
        if !free && !is_made(Mistake::PinsIgnored) {
            pinned = Some(number);
        }
        newest.get_or_insert(storage);
    }
    if pinned.is_some() {
        return Ok((Vec::new(), pinned));
    }
    let mut removed = Vec::new();
    for &number in &numbers {
        let kept = kept_name(name, number);
        let len = directory.open(&kept, Access::Read)?.len()?;
        directory.remove(&kept)?;
        removed.push((number, len));
    }
    directory.flush()?;
    removed.reverse();
    Ok((removed, None))
}
