//! A folder as an object store: what it says is stored is on permanent storage.
//!
//! The file is written under a name of its own, flushed, linked to its name if that is free, and the folder flushed.

use std::io;
use std::path::Path;
use std::sync::Arc;

use annals::internals::locate;
use annals_storage::{Clock as _, Directory, SystemClock};

/// Creates a file, unless there is one; returns false if there is.
pub(super) fn create(root: &Path, name: &str, bytes: &[u8]) -> io::Result<bool> {
    let path = name.split('/').fold(root.to_owned(), |path, part| path.join(part));
    if let Some(folder) = path.parent() {
        create_folders(folder)?;
    }
    let (directory, name) = directory_of(&path)?;
    let temporary = format!(".{name}.{:016x}", SystemClock.random());
    let made = write(&*directory, &temporary, &name, bytes);
    // Its bytes have another name by now, or aren't wanted.
    let _ = directory.remove(&temporary);
    made
}

fn write(directory: &dyn Directory, temporary: &str, name: &str, bytes: &[u8]) -> io::Result<bool> {
    let file = directory.create(temporary)?;
    file.write_at(0, bytes)?;
    file.flush()?;
    match directory.link(temporary, name) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(error),
    }
    directory.flush()?;
    Ok(true)
}

/// Creates a folder and those above it, each flushed in the one above.
fn create_folders(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        create_folders(above)?;
    }
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let (directory, _) = directory_of(folder)?;
    directory.flush()
}

fn directory_of(path: &Path) -> io::Result<(Arc<dyn Directory>, String)> {
    locate(path).map_err(|error| io::Error::other(error.to_string()))
}
