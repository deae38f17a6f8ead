//! An open file of the file system.

#![allow(clippy::disallowed_methods, reason = "this is where files are opened")]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::engines::Engines;
use super::fork::Origin;
use super::interrupted::retry;
use super::lock::Locks;
use super::names::Names;
use super::{
    Access, Batched, Hold, Lock, Run, Storage, check_lockable, check_writable, holding, identity,
    positioned,
};

/// An open file of the file system.
#[derive(Debug)]
pub(super) struct OpenFile {
    file: File,
    /// The process that opened it.
    origin: Origin,
    path: Mutex<PathBuf>,
    access: Access,
    locks: Locks,
    pub(super) engines: Engines,
    pub(super) names: Names,
}

impl OpenFile {
    pub(super) fn new(file: File, path: &Path, access: Access) -> Self {
        let (locks, engines, names) = (Locks::default(), Engines::default(), Names::default());
        let (origin, path) = (Origin::here(), Mutex::new(path.to_owned()));
        Self { file, origin, path, access, locks, engines, names }
    }

    /// Returns the file itself; an error in a forked child.
    pub(super) fn file(&self) -> io::Result<&File> {
        self.origin.check().map(|()| &self.file)
    }

    #[cfg(unix)]
    pub(super) const fn access(&self) -> Access {
        self.access
    }
}

impl Storage for OpenFile {
    fn len(&self) -> io::Result<u64> {
        Ok(retry(|| self.file()?.metadata())?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        positioned::read(self.file()?, offset, buffer)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        check_writable(self.access)?;
        positioned::write(self.file()?, offset, data)
    }

    fn write_batch(&self, runs: &[Run<'_>]) -> io::Result<Batched> {
        check_writable(self.access)?;
        self.engines.write(self.file()?, runs)
    }

    /// `fdatasync`, which covers the length too (on Apple's systems `F_FULLFSYNC`: there `fsync`
    /// stops at the drive's cache).
    fn flush(&self) -> io::Result<()> {
        check_writable(self.access)?;
        self.file()?.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        check_writable(self.access)?;
        self.file()?.set_len(len)
    }

    fn try_lock(&self, lock: Lock, hold: Hold) -> io::Result<bool> {
        check_lockable(self.access, hold)?;
        self.locks.try_lock(self.file()?, lock, hold)
    }

    fn unlock(&self, lock: Lock) -> io::Result<()> {
        self.locks.unlock(self.file()?, lock)
    }

    fn oldest_pin(&self, roots: Range<u64>) -> io::Result<Option<u64>> {
        self.locks.oldest_pin(self.file()?, roots)
    }

    fn holder(&self, lock: Lock) -> Option<u32> {
        holding::holder(self.file().ok()?, lock)
    }

    fn is_linked(&self) -> io::Result<bool> {
        let path = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        identity::is_at(self.file()?, &path)
    }

    #[cfg(unix)]
    fn may_have_other_names(&self) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt;
        Ok(retry(|| self.file()?.metadata())?.nlink() != 1)
    }

    #[cfg(unix)]
    fn is_removed(&self) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt;
        Ok(retry(|| self.file()?.metadata())?.nlink() == 0)
    }

    fn renamed(&self, name: &str) {
        let name = self.names.real(name);
        self.path.lock().unwrap_or_else(PoisonError::into_inner).set_file_name(name);
    }
}

impl Drop for OpenFile {
    /// Unlocks at once, though closing the file would do so too: a child has the file open until it runs a
    /// program or ends, and would hold the lock until then. In a child the locks are the parent's.
    fn drop(&mut self) {
        if let Ok(file) = self.file() {
            self.locks.end(file);
        }
    }
}
