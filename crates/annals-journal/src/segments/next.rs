//! The next segment: created beside the journal, then renamed to the path.

use annals_schema::Txid;
use std::io;
use std::sync::Arc;

use super::names::{NEXT, is_id, kept_name, number_in, refuse_sealed};
use crate::features;
use crate::format::{Header, MAX_SEGMENTS, Secret, VERSION};
use crate::head::{self, Head};
use crate::outcome::Recovery;
use crate::recover;
use crate::seal::Seal;
use crate::survey::{Rule, Survey};
use crate::verdict::Verdict;
use crate::{Error, ErrorKind, Result};
use annals_storage::{Access, Clock, Directory, Hold, Lock, Storage, step};

/// A prepared segment, without its name.
#[derive(Debug)]
pub struct Next {
    /// The open file.
    pub storage: Arc<dyn Storage>,
    /// The header of the segment.
    pub header: Header,
    /// The secret that its slots hold.
    pub secret: Secret,
    temporary: String,
}

/// The creator of a segment.
#[derive(Clone, Copy)]
pub struct Maker<'m> {
    /// The source of times and random numbers.
    pub clock: &'m dyn Clock,
    /// True if other processes may write the journal in turn.
    pub shared: bool,
}

impl Maker<'_> {
    /// Returns the header of the segment after one that ends with a transaction, without the previous chain. `state`
    /// says that the state will be its first transaction, with the number of the last.
    pub fn header_after(&self, old: &Header, last: u64, state: bool) -> Header {
        Header {
            version: VERSION,
            segment: old.segment + 1,
            first_txid: last + 1 - u64::from(state),
            previous_chain: 0,
            created: self.clock.now().max(old.created),
            state: u64::from(state),
            ..*old
        }
    }
}

impl Next {
    /// Makes the segment after a seal, without frames yet, with the locks of one that is open. Removes orphans of
    /// earlier attempts.
    pub fn create(
        directory: &dyn Directory,
        name: &str,
        seal: &Seal,
        by: Maker<'_>,
    ) -> Result<Self> {
        let shown = directory.display(name);
        if seal.next.segment >= MAX_SEGMENTS {
            return Err(Error::invalid(format!(
                "{shown}: has {MAX_SEGMENTS} segments already, and can't have more"
            )));
        }
        remove_leftovers(directory, name);
        let io = |error| Error::io(format!("{shown}: can't begin a new segment"), error);
        Self::write(directory, name, &seal.next, by).map_err(io)
    }

    /// Takes the segment after a seal that an interrupted restart had ready, if it begins with the state: it
    /// was flushed before the seal was written. One without the state is made again, since an attempt to do
    /// so may have left a file that wasn't flushed.
    fn find(
        directory: &dyn Directory,
        name: &str,
        seal: &Seal,
        by: Maker<'_>,
    ) -> io::Result<Option<Self>> {
        let wanted = seal.next.begins_with_state();
        for temporary in temporaries(directory, name)?.into_iter().filter(|_| wanted) {
            let storage = directory.open(&temporary, Access::Write)?;
            let rule = Rule::new(Recovery::Checked);
            let Ok(survey) = Survey::make(&*storage, &temporary, rule, |_, _| Ok(())) else {
                continue;
            };
            let header = survey.head.header;
            let is_whole =
                survey.verdict() == Verdict::Whole && survey.end.txid == Txid(header.first_txid);
            if header != seal.next || !is_whole || !try_locks(&*storage, by.shared)? {
                continue;
            }
            let secret = survey.secret().unwrap_or_default();
            return Ok(Some(Self { storage, header, secret, temporary }));
        }
        Ok(None)
    }

    fn write(
        directory: &dyn Directory,
        name: &str,
        header: &Header,
        by: Maker<'_>,
    ) -> io::Result<Self> {
        let temporary = format!("{name}{NEXT}{:016x}", by.clock.random());
        let secret = by.clock.secret();
        match write(directory, &temporary, &head::new_head(header, secret), by.shared) {
            Ok(storage) => Ok(Self { storage, header: *header, secret, temporary }),
            Err(error) => {
                let _ = directory.remove(&temporary);
                Err(error)
            }
        }
    }

    /// Creates a segment with a header that is already in another file of the journal, for a process that has the
    /// journal alone; `fill` writes and flushes its beginning. Removes orphans of earlier attempts.
    pub fn copy<T>(
        directory: &dyn Directory,
        name: &str,
        header: &Header,
        clock: &dyn Clock,
        fill: impl FnOnce(&dyn Storage, Secret) -> Result<T>,
    ) -> Result<(Self, T)> {
        remove_leftovers(directory, name);
        let io = |error| Error::io(format!("{}: can't begin it", directory.display(name)), error);
        let made = Self::write(directory, name, header, Maker { clock, shared: false });
        let next = made.map_err(io)?;
        match fill(&*next.storage, next.secret) {
            Ok(filled) => Ok((next, filled)),
            Err(error) => {
                next.discard(directory);
                Err(error)
            }
        }
    }

    /// Renames the segment to a path without a file; returns true if it has it.
    pub fn appear(&self, directory: &dyn Directory, name: &str) -> io::Result<bool> {
        let linked = directory.link(&self.temporary, name);
        // If it remains, it is harmless.
        let _ = directory.remove(&self.temporary);
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            linked => linked?,
        }
        crate::keep_name(directory, name)?;
        self.storage.renamed(name);
        Ok(true)
    }

    /// Puts the segment at the path: step 5. The old one has its other name, and is sealed. If the
    /// directory can't be flushed the old one gets the path back: a later flush would prove nothing.
    #[inline]
    pub fn publish(&self, directory: &dyn Directory, name: &str) -> io::Result<()> {
        directory.rename(&self.temporary, name)?;
        step!(RestartNotFlushed, keep_path(directory, name, &self.header)?);
        self.storage.renamed(name);
        Ok(())
    }

    /// Takes it away again, before anything was sealed.
    #[inline]
    pub fn discard(&self, directory: &dyn Directory) {
        // An orphan remains until the next attempt.
        let _ = directory.remove(&self.temporary);
    }
}

/// Makes the path of a segment durable in which nothing was committed yet. If that fails, the old one is renamed
/// back, since a later flush would prove nothing: the next opening finds it sealed.
pub fn keep_path(directory: &dyn Directory, name: &str, header: &Header) -> io::Result<()> {
    let flushed = directory.flush();
    if let (Err(_), Some(old)) = (&flushed, header.segment.checked_sub(1))
        && has_history(directory, name, old)
    {
        let temporary = format!("{name}{NEXT}{:016x}", header.hash());
        // It is missing only if it was forgotten, which was flushed.
        let _ = directory
            .link(&kept_name(name, old), &temporary)
            .and_then(|()| directory.rename(&temporary, name));
    }
    flushed
}

/// True if a kept segment exists, with all earlier ones that the state needs. If any was forgotten, the path had been
/// made durable before.
fn has_history(directory: &dyn Directory, name: &str, segment: u64) -> bool {
    for number in (0..=segment).rev() {
        let kept = kept_name(name, number);
        let Ok(storage) = directory.open(&kept, Access::Read) else { return false };
        match Head::read(&*storage, &kept) {
            Ok(head) if head.header.is_base() => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    false
}

/// Returns true if a process that hasn't followed the journal yet has a kept segment open for writing.
#[inline]
pub fn are_held(directory: &dyn Directory, name: &str, before: u64) -> io::Result<bool> {
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
    head: &[u8],
    shared: bool,
) -> io::Result<Arc<dyn Storage>> {
    let storage = directory.create(temporary)?;
    if !try_locks(&*storage, shared)? {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    storage.write_at(0, head)?;
    step!(NextNotFlushed, storage.flush()?);
    Ok(storage)
}

/// Takes the locks of a segment that is open for writing.
fn try_locks(storage: &dyn Storage, shared: bool) -> io::Result<bool> {
    let locks: &[_] = match shared {
        true => &[(Lock::Head, Hold::Shared), (Lock::Tail, Hold::Exclusive)],
        false => &[(Lock::Head, Hold::Exclusive)],
    };
    for (lock, hold) in locks {
        if !storage.try_lock(*lock, *hold)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the names of segments that restarts of this journal prepared.
fn temporaries(directory: &dyn Directory, name: &str) -> io::Result<Vec<String>> {
    let is_temporary = |found: &String| {
        let id = found.strip_prefix(name).and_then(|rest| rest.strip_prefix(NEXT));
        id.is_some_and(is_id)
    };
    let mut names = directory.list()?;
    names.retain(is_temporary);
    Ok(names)
}

/// Removes files of interrupted restarts of this journal. Nothing was ever committed there, since it never had the
/// path.
fn remove_leftovers(directory: &dyn Directory, name: &str) {
    for leftover in temporaries(directory, name).unwrap_or_default() {
        let Ok(storage) = directory.open(&leftover, Access::Write) else { continue };
        if storage.try_lock(Lock::Head, Hold::Exclusive).unwrap_or(false) {
            let _ = directory.remove(&leftover);
        }
    }
}

/// Renames a segment to its kept name, durably: step 3. The caller holds its locks.
pub fn keep(
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
        Ok(()) => step!(KeptNameNotFlushed, directory.flush(), else Ok(())).map_err(|error| {
            // The path still refers to it.
            let _ = directory.remove(&kept);
            io(error)
        }),
    }
}

/// Returns true if a name refers to a file whose head lock this handle holds.
fn is_same(directory: &dyn Directory, name: &str, storage: &dyn Storage) -> io::Result<bool> {
    let other = directory.open(name, Access::Write)?;
    if other.len()? != storage.len()? {
        return Ok(false);
    }
    // No other process holds that lock: if it isn't free there, it is the same file.
    Ok(!other.try_lock(Lock::Head, Hold::Exclusive)?)
}

/// Ends a restart that was interrupted: a sealed segment was found at the path. The file prepared by the restart is
/// renamed to the path. If it is missing, a segment is created from the seal alone, without the state. The caller
/// holds the segment's locks, and opens the path again after this.
pub fn finish(
    directory: &dyn Directory,
    name: &str,
    storage: &dyn Storage,
    survey: &Survey,
    seal: &Seal,
    by: Maker<'_>,
) -> Result<()> {
    let shown = directory.display(name);
    features::refuse_writing(&survey.head.header, &shown)?;
    refuse_sealed(directory, name, survey.head.header.segment)?;
    let io = |error| Error::io(format!("{shown}: an interrupted restart can't be finished"), error);
    if !storage.is_linked().map_err(io)? {
        return Ok(()); // the path leads to its successor by now
    }
    // Bytes in the page cache need not be on the disk.
    step!(SealNotRewritten, {
        let segment = survey.head.hash;
        recover::rewrite(storage, segment, survey.head.hard_point(), seal.point()).map_err(io)?;
        // Also where it is that long already: a flush that failed may have lost the length.
        storage.set_len(seal.end).map_err(io)?;
        storage.flush().map_err(io)?;
    });
    keep(directory, name, storage, &survey.head.header)?;
    let next = match Next::find(directory, name, seal, by).map_err(io)? {
        Some(ready) => ready,
        None => Next::create(directory, name, &seal.without_state(), by)?,
    };
    next.publish(directory, name).map_err(io)
}

/// Returns true if a kept segment has readers.
#[inline]
pub fn is_read(directory: &dyn Directory, name: &str, segment: u64) -> io::Result<bool> {
    let storage = directory.open(&kept_name(name, segment), Access::Write)?;
    match storage.try_lock(Lock::History, Hold::Exclusive) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(false),
        free => free.map(|free| !free),
    }
}

/// The segments that were removed, each with its length, and else the first one that is being read.
pub(crate) type Removed = (Vec<(u64, u64)>, Option<u64>);

/// Removes kept segments of a journal that are older than `before`, the newest first, so that the remaining ones
/// never seem complete. Returns the removed bytes, and the oldest segment with readers.
pub fn remove(directory: &dyn Directory, name: &str, before: u64) -> io::Result<Removed> {
    let mut numbers: Vec<u64> =
        directory.list()?.iter().filter_map(|found| number_in(found, name)).collect();
    numbers.retain(|&number| number < before);
    numbers.sort_unstable_by_key(|&number| std::cmp::Reverse(number));
    // A reader goes from the newest back, and stops at this one.
    let (mut newest, mut pinned) = (None, None);
    for &number in &numbers {
        let storage = directory.open(&kept_name(name, number), Access::Write)?;
        let free = match storage.try_lock(Lock::History, Hold::Exclusive) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => true,
            taken => taken?,
        };
        if step!(PinsIgnored, !free, else false) {
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
