//! Creation: a journal appears under its name only when its content is whole and durable.
//!
//! ```text
//! 0. remove what an earlier creation of NAME left that came to its end before step 3
//! 1. create NAME.new-ID, lock it, see that it is still there, write the head, flush
//! 2. link it as NAME (fails if somebody was faster)
//! 3. remove NAME.new-ID, flush the directory; if that fails, remove NAME: a later flush proves nothing
//! ```
//!
//! Opening a journal without transactions flushes the directory too. So the name is durable before the first commit,
//! even if the creator ended before step 3.
//!
//! Step 0 removes a NAME.new-ID only if its lock is free, and if it has no frames. Else it may be the last name of a
//! journal that was in use. A process that creates one and hasn't locked it yet finds it locked or missing, and
//! retries.

use std::io;
use std::sync::Arc;

use super::format::{FRAMES_AT, Header, VERSION};
use super::head;
use crate::{Error, Result};
use annals_storage::{Access, Clock, Directory, Hold, Lock, Storage, step};

/// Creates a new journal; `None` if a file of that name exists now, or if the caller must retry.
pub fn create(
    directory: &dyn Directory,
    name: &str,
    clock: &dyn Clock,
) -> Result<Option<Arc<dyn Storage>>> {
    remove_leftovers(directory, name);
    let header = new_header(clock);
    let temporary = format!("{name}.new-{:016x}", clock.random());
    let head = head::new_head(&header, clock.secret());
    let created = write_and_link(directory, name, &temporary, &head);
    if created.is_err() {
        // The orphan of a failed creation is harmless, but should be removed.
        let _ = directory.remove(&temporary);
    }
    match created {
        Ok(created) => Ok(created),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::io(
            format!("{}: can't create it: its directory is missing", directory.display(name)),
            error,
        )),
        Err(error) => {
            Err(Error::io(format!("{}: can't create it", directory.display(name)), error))
        }
    }
}

fn write_and_link(
    directory: &dyn Directory,
    name: &str,
    temporary: &str,
    head: &[u8],
) -> io::Result<Option<Arc<dyn Storage>>> {
    let storage = directory.create(temporary)?;
    if !storage.try_lock(Lock::Head, Hold::Exclusive)? || !storage.is_linked()? {
        let _ = directory.remove(temporary);
        return Ok(None); // somebody took it for a leftover
    }
    storage.write_at(0, head)?;
    storage.flush()?;
    directory.link(temporary, name)?;
    // If it remains, it is harmless.
    let _ = directory.remove(temporary);
    keep_name(directory, name)?;
    Ok(Some(storage))
}

/// Removes the temporary files of interrupted creations of this name. A file that can't be removed is harmless.
fn remove_leftovers(directory: &dyn Directory, name: &str) {
    let is_temporary = |found: &String| {
        let id = found.strip_prefix(name).and_then(|rest| rest.strip_prefix(".new-"));
        id.is_some_and(|id| id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    for leftover in directory.list().unwrap_or_default().iter().filter(|found| is_temporary(found))
    {
        let Ok(storage) = directory.open(leftover, Access::Write) else { continue };
        let nobodys = storage.try_lock(Lock::Head, Hold::Exclusive).unwrap_or(false);
        if nobodys && storage.len().is_ok_and(|len| len <= FRAMES_AT) {
            let _ = directory.remove(leftover);
        }
    }
}

/// Makes the name of a journal durable that has no transaction yet. If that fails the name is removed:
/// nothing is lost with it, and the next creation makes it again.
#[inline]
pub fn keep_name(directory: &dyn Directory, name: &str) -> io::Result<()> {
    let flushed = step!(NameNotFlushed, directory.flush(), else Ok(()));
    if flushed.is_err() {
        let _ = directory.remove(name);
    }
    flushed
}

/// Returns the header of a new journal, with a new id.
pub fn new_header(clock: &dyn Clock) -> Header {
    let mut journal_id = [0; 16];
    for (to, from) in journal_id.chunks_mut(8).zip([clock.random(), clock.random()]) {
        to.copy_from_slice(&from.to_le_bytes());
    }
    Header {
        version: VERSION,
        compatible: 0,
        read_only_compatible: 0,
        incompatible: 0,
        journal_id,
        segment: 0,
        first_txid: 1,
        previous_chain: 0,
        created: clock.now(),
        cipher: 0,
        key_id: [0; 16],
        salt: [0; 32],
        state: 0,
        erasure: 0,
        reserved: [0; 88],
    }
}
