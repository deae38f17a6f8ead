//! Getting hold of a file: opening or creating it, and taking its locks.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::db::follow::options::Options;
use crate::db::present::turns::Turns;
use crate::journal::{self, segments};
use crate::storage::{self, Access, Clock, Directory, Hold, Lock, Storage};
use crate::{Error, ErrorKind, Result};

/// How often opening starts over when the file changes under its hands.
const TRIES: usize = 100;

/// How long opening waits before it looks again whether a file is free.
const PAUSE: Duration = Duration::from_millis(1);

/// A file that was opened, or created, and locked.
pub(in crate::db) struct Acquired {
    pub(in crate::db) storage: Arc<dyn Storage>,
    pub(in crate::db) is_new: bool,
    /// True if other handles have it open for writing too, in shared mode.
    pub(in crate::db) others: bool,
}

/// Opens or creates the file and takes its locks: in shared mode the turn, too.
pub(in crate::db) fn acquire(
    options: &Options,
    directory: &dyn Directory,
    name: &str,
    clock: &Arc<dyn Clock>,
) -> Result<Acquired> {
    let shown = directory.display(name);
    for _ in 0..TRIES {
        let Some((storage, is_new)) = open_or_create(options, directory, name, &**clock)? else {
            continue;
        };
        let others = lock(options, &storage, clock, &shown)?;
        let io = |error| Error::io(format!("{shown}: can't lock it"), error);
        // A new file was opened by another name, which is removed now: that suffices only until the next check
        // whether it is linked.
        let is_linked = if is_new { !options.shared } else { storage.is_linked().map_err(io)? };
        if is_linked {
            if !is_new {
                segments::refuse_kept(directory, name, &*storage)?;
            }
            let is_new = is_new || create_on(options, &*storage, &shown, &**clock)?;
            return Ok(Acquired { storage, is_new, others });
        }
    }
    Err(Error::new(
        ErrorKind::Busy,
        format!("{shown}: the file was replaced during each attempt to open it; try again later"),
    ))
}

/// Opens the file, or creates it; returns whether it was created. `None` if the caller must retry.
fn open_or_create(
    options: &Options,
    directory: &dyn Directory,
    name: &str,
    clock: &dyn Clock,
) -> Result<Option<(Arc<dyn Storage>, bool)>> {
    match directory.open(name, Access::Write) {
        Ok(storage) => Ok(Some((storage, false))),
        Err(error) if error.kind() == io::ErrorKind::NotFound && options.create => {
            let created = journal::create(directory, name, clock)?;
            Ok(created.map(|storage| (storage, true)))
        }
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            Err(device_busy(directory, name, &error))
        }
        Err(error) => Err(journal::cannot_open(&directory.display(name), Access::Write, error)),
    }
}

/// Takes the head lock, alone, or in shared mode with others and in turn; returns whether there are
/// others.
fn lock(
    options: &Options,
    storage: &Arc<dyn Storage>,
    clock: &Arc<dyn Clock>,
    shown: &str,
) -> Result<bool> {
    let io = |error| Error::io(format!("{shown}: can't lock it"), error);
    if options.shared && storage.has_fixed_len() {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("{shown}: a device is for one process at a time: open it unshared"),
        ));
    }
    if options.shared {
        return join(options, storage, clock, shown);
    }
    match storage.try_lock(Lock::Head, Hold::Exclusive).map_err(io)? {
        true => Ok(false),
        false => Err(journal::busy(shown, journal::holder(&**storage))),
    }
}

/// Takes the turn, and the head lock with others; returns whether there are others.
fn join(
    options: &Options,
    storage: &Arc<dyn Storage>,
    clock: &Arc<dyn Clock>,
    shown: &str,
) -> Result<bool> {
    let io = |error| Error::io(format!("{shown}: can't lock it"), error);
    let turns = Turns::new(storage, clock, shown, options.lock_timeout);
    let begun = clock.elapsed();
    loop {
        turns.take()?;
        let alone = storage.try_lock(Lock::Head, Hold::Exclusive).map_err(io)?;
        storage.unlock(Lock::Head).map_err(io)?;
        if storage.try_lock(Lock::Head, Hold::Shared).map_err(io)? {
            return Ok(!alone);
        }
        turns.end();
        let holder = journal::holder(&**storage);
        // A process that is just creating or closing it, which has no pid here, has it alone for a moment only.
        let waited = clock.elapsed().saturating_sub(begun);
        if holder.is_some() || waited >= options.lock_timeout {
            return Err(journal::busy(shown, holder));
        }
        clock.pause(PAUSE);
    }
}

/// Creates a journal if the storage is a blank device; returns whether it was.
fn create_on(
    options: &Options,
    storage: &dyn Storage,
    shown: &str,
    clock: &dyn Clock,
) -> Result<bool> {
    let io = |error| Error::io(format!("{shown}: can't read the device"), error);
    if !storage.has_fixed_len() || !journal::is_blank(storage).map_err(io)? {
        return Ok(false);
    }
    if !options.create {
        let message = format!("{shown}: the device is blank: there is no journal on it yet");
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    journal::create_on(storage, shown, clock)?;
    Ok(true)
}

/// Explains why a device can't be opened for writing, which is for one at a time.
fn device_busy(directory: &dyn Directory, name: &str, error: &io::Error) -> Error {
    let shown = directory.display(name);
    let storage = directory.open(name, Access::Read).ok();
    match storage.and_then(|storage| journal::holder(&*storage)) {
        Some(pid) if storage::is_alive(pid) => journal::busy(&shown, Some(pid)),
        _ => Error::new(
            ErrorKind::Busy,
            format!("{shown}: {error}; unmount it or end that, or open read-only"),
        ),
    }
}
