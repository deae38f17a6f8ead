//! Raw block devices: a journal without a file system.
//!
//! A device has a fixed length, and holds whatever an earlier life left on it. Only one handle at a time opens it for
//! writing (`O_EXCL`), so that a device that is mounted, or open elsewhere, is safe.

#![allow(clippy::disallowed_methods, reason = "this is where devices are opened")]

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::open_file::OpenFile;
use super::{Access, Batched, Hold, Lock, Run, Storage};

/// An open block device.
#[derive(Debug)]
pub(super) struct DeviceFile {
    file: OpenFile,
    len: u64,
}

impl DeviceFile {
    /// Opens a device; `ResourceBusy` if it is mounted, or open for writing elsewhere.
    pub(super) fn open(path: &Path, access: Access) -> io::Result<Self> {
        let flags = if access == Access::Write { libc::O_EXCL } else { 0 };
        let mut options = OpenOptions::new();
        options.read(true).write(access == Access::Write).custom_flags(flags);
        let file = options.open(path).map_err(|error| explain(path, error))?;
        let file = OpenFile::new(file, path, access);
        let len = end_of(file.file()?)?;
        if len == 0 {
            let message = format!("the system doesn't tell the size of {}", path.display());
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        Ok(Self { file, len })
    }
}

/// Returns a device's length, which isn't in its metadata. This moves the cursor, which nothing uses.
fn end_of(mut file: &File) -> io::Result<u64> {
    file.seek(SeekFrom::End(0))
}

fn explain(path: &Path, error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::ResourceBusy {
        return error;
    }
    let message = format!(
        "the device {} is in use: mounted, part of another device, or open for writing in another \
         process",
        path.display()
    );
    io::Error::new(error.kind(), message)
}

impl Storage for DeviceFile {
    fn len(&self) -> io::Result<u64> {
        self.file.file().map(|_| self.len)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_at(offset, data)
    }

    fn write_batch(&self, runs: &[Run<'_>]) -> io::Result<Batched> {
        self.file.write_batch(runs)
    }

    /// `fdatasync`, which empties the device's cache too.
    fn flush(&self) -> io::Result<()> {
        self.file.flush()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        super::check_writable(self.file.access())?;
        super::check_fixed_len(self.len()?, len)
    }

    fn has_fixed_len(&self) -> bool {
        true
    }

    fn try_lock(&self, lock: Lock, hold: Hold) -> io::Result<bool> {
        self.file.try_lock(lock, hold)
    }

    fn unlock(&self, lock: Lock) -> io::Result<()> {
        self.file.unlock(lock)
    }

    fn oldest_pin(&self, roots: Range<u64>) -> io::Result<Option<u64>> {
        self.file.oldest_pin(roots)
    }

    fn holder(&self, lock: Lock) -> Option<u32> {
        self.file.holder(lock)
    }

    fn is_linked(&self) -> io::Result<bool> {
        self.file.is_linked()
    }

    fn may_have_other_names(&self) -> io::Result<bool> {
        Ok(false)
    }

    fn renamed(&self, name: &str) {
        self.file.renamed(name);
    }
}
