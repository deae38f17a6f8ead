//! Creation: a journal appears under its name only when its content is whole and durable.
//!
//! ```text
//! 1. create NAME.new-ID, lock it, write the head, flush
//! 2. link it as NAME (fails if somebody was faster)
//! 3. remove NAME.new-ID, flush the directory; if that fails, remove NAME: a later flush proves nothing
//! ```
//!
//! Whoever opens a journal that has no transaction yet flushes the directory too: then the name is
//! durable before the first commit also if the creator came to its end before step 3.

use std::io;
use std::sync::Arc;

use super::format::{Header, VERSION};
use super::head;
use super::mistakes::{Mistake, is_made};
use crate::storage::{Clock, Directory, Storage};
use crate::{Error, Result};

/// Creates a new journal; `None` if there is a file of that name by now.
pub(crate) fn create(
    directory: &dyn Directory,
    name: &str,
    clock: &dyn Clock,
) -> Result<Option<Arc<dyn Storage>>> {
    let header = new_header(clock);
    let temporary = format!("{name}.new-{:016x}", clock.random());
    let created = write_and_link(directory, name, &temporary, &header);
    if created.is_err() {
        // What is left of a failed creation is in nobody's way, but should not lie about.
        let _ = directory.remove(&temporary);
    }
    match created {
        Ok(storage) => Ok(Some(storage)),
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
    header: &Header,
) -> io::Result<Arc<dyn Storage>> {
    let storage = directory.create(temporary)?;
    if !storage.try_lock()? {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    storage.write_at(0, &head::new_head(header))?;
    storage.flush()?;
    directory.link(temporary, name)?;
    // Should it stay, it is in nobody's way.
    let _ = directory.remove(temporary);
    keep_name(directory, name)?;
    Ok(storage)
}

/// Makes the name of a journal durable that has no transaction yet. If that fails the name is removed:
/// nothing is lost with it, and the next creation makes it anew.
pub(crate) fn keep_name(directory: &dyn Directory, name: &str) -> io::Result<()> {
    if is_made(Mistake::NameNotFlushed) {
        return Ok(());
    }
    let flushed = directory.flush();
    if flushed.is_err() {
        let _ = directory.remove(name);
    }
    flushed
}

fn new_header(clock: &dyn Clock) -> Header {
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
        reserved: [0; 104],
    }
}
