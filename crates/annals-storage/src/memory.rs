//! Files in memory: of temporary databases, of tests, and those whose bytes the program holds.
//!
//! They end with the last handle of their directory and of themselves.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::holders::Holders;
use super::{Access, Directory, Hold, Lock, Storage, check_lockable, check_name, check_writable};

type Names = BTreeMap<String, Arc<MemoryFile>>;

/// A directory in memory. A clone is another handle of the same directory.
#[derive(Clone, Debug, Default)]
pub struct MemoryDirectory {
    names: Arc<Mutex<Names>>,
    /// True if the program holds the bytes of its files, as messages say.
    is_embedded: bool,
}

/// The target of a name.
#[derive(Default)]
struct MemoryFile {
    /// Copied when they are changed, if the program holds them.
    bytes: Mutex<Cow<'static, [u8]>>,
    holders: Mutex<Holders>,
    handles: AtomicU64,
}

/// Data isn't shown.
impl fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryFile").finish_non_exhaustive()
    }
}

/// One handle of a file.
#[derive(Debug)]
struct Handle {
    file: Arc<MemoryFile>,
    directory: MemoryDirectory,
    name: Mutex<String>,
    access: Access,
    number: u64,
}

impl MemoryDirectory {
    /// Makes an empty directory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a directory of files whose bytes the program holds, as `include_bytes!` gives them. They are read where
    /// they are.
    #[must_use]
    pub fn embedded(files: impl IntoIterator<Item = (String, Cow<'static, [u8]>)>) -> Self {
        let file = |bytes| MemoryFile { bytes: Mutex::new(bytes), ..MemoryFile::default() };
        let names = files.into_iter().map(|(name, bytes)| (name, Arc::new(file(bytes))));
        Self { names: Arc::new(Mutex::new(names.collect())), is_embedded: true }
    }

    /// Refuses to change files whose bytes the program holds.
    fn check_changeable(&self) -> io::Result<()> {
        if !self.is_embedded {
            return Ok(());
        }
        let message = "the files are bytes in the program, which can't be changed";
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        // A map is whole after each of its methods, even if another thread panicked.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, file: Arc<MemoryFile>, name: &str, access: Access) -> Arc<dyn Storage> {
        let (directory, name) = (self.clone(), Mutex::new(name.to_owned()));
        let number = file.handles.fetch_add(1, Ordering::Relaxed);
        Arc::new(Handle { file, directory, name, access, number })
    }
}

impl Directory for MemoryDirectory {
    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn Storage>> {
        check_name(name)?;
        let file = self.names().get(name).map(Arc::clone).ok_or(io::ErrorKind::NotFound)?;
        if access == Access::Write {
            self.check_changeable()?;
        }
        Ok(self.handle(file, name, access))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Storage>> {
        check_name(name)?;
        self.check_changeable()?;
        let mut names = self.names();
        if names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = Arc::new(MemoryFile::default());
        names.insert(name.to_owned(), Arc::clone(&file));
        Ok(self.handle(file, name, Access::Write))
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        check_name(from)?;
        self.check_changeable()?;
        check_name(to)?;
        let mut names = self.names();
        let file = names.get(from).map(Arc::clone).ok_or(io::ErrorKind::NotFound)?;
        if names.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        names.insert(to.to_owned(), file);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_name(from)?;
        self.check_changeable()?;
        check_name(to)?;
        let mut names = self.names();
        let file = names.get(from).map(Arc::clone).ok_or(io::ErrorKind::NotFound)?;
        // As in POSIX: two names of one file are unchanged.
        if names.get(to).is_some_and(|other| Arc::ptr_eq(&file, other)) {
            return Ok(());
        }
        names.remove(from);
        names.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        self.check_changeable()?;
        self.names().remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.names().keys().cloned().collect())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn again(&self) -> Arc<dyn Directory> {
        Arc::new(self.clone())
    }

    fn display(&self, name: &str) -> String {
        match self.is_embedded {
            true => format!("{name} in the program"),
            false => format!("memory:{name}"),
        }
    }
}

impl Handle {
    fn bytes(&self) -> MutexGuard<'_, Cow<'static, [u8]>> {
        self.file.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn holders(&self) -> MutexGuard<'_, Holders> {
        self.file.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Storage for Handle {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.bytes();
        if let Cow::Borrowed(constant) = *bytes {
            drop(bytes); // threads read them at the same time
            return Ok(copy(constant, offset, buffer));
        }
        Ok(copy(&bytes, offset, buffer))
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        check_writable(self.access)?;
        if data.is_empty() {
            return Ok(());
        }
        let from = usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let end = from.checked_add(data.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        let mut bytes = self.bytes();
        if end > bytes.len() {
            resize(bytes.to_mut(), end)?;
        }
        bytes.to_mut()[from..end].copy_from_slice(data);
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        check_writable(self.access)?;
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        check_writable(self.access)?;
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        resize(self.bytes().to_mut(), len)
    }

    fn try_lock(&self, lock: Lock, hold: Hold) -> io::Result<bool> {
        check_lockable(self.access, hold)?;
        self.holders().try_lock(lock, hold, self.number)
    }

    fn unlock(&self, lock: Lock) -> io::Result<()> {
        self.holders().unlock(lock, self.number);
        Ok(())
    }

    fn oldest_pin(&self, roots: Range<u64>) -> io::Result<Option<u64>> {
        Ok(self.holders().oldest_pin(roots))
    }

    fn holder(&self, lock: Lock) -> Option<u32> {
        self.holders().holder(lock)
    }

    fn is_linked(&self) -> io::Result<bool> {
        let name = self.name.lock().unwrap_or_else(PoisonError::into_inner);
        let names = self.directory.names();
        Ok(names.get(&*name).is_some_and(|file| Arc::ptr_eq(file, &self.file)))
    }

    fn may_have_other_names(&self) -> io::Result<bool> {
        let names = self.directory.names();
        Ok(names.values().filter(|file| Arc::ptr_eq(file, &self.file)).count() > 1)
    }

    fn renamed(&self, name: &str) {
        name.clone_into(&mut self.name.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.holders().end(self.number);
    }
}

/// Copies bytes from an offset on, as far as they go; returns how many.
fn copy(bytes: &[u8], offset: u64, buffer: &mut [u8]) -> usize {
    let rest = usize::try_from(offset).ok().and_then(|from| bytes.get(from..)).unwrap_or_default();
    let count = rest.len().min(buffer.len());
    buffer[..count].copy_from_slice(&rest[..count]);
    count
}

/// Sets the length; a lack of memory is an error, as a full disk is, not the end of the program.
fn resize(bytes: &mut Vec<u8>, len: usize) -> io::Result<()> {
    if bytes.try_reserve(len.saturating_sub(bytes.len())).is_err() {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    bytes.resize(len, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_sizes_are_errors() {
        let file = MemoryDirectory::new().create("x").unwrap();
        assert!(file.set_len(u64::MAX).is_err());
        assert!(file.write_at(u64::MAX, b"x").is_err());
        assert_eq!(file.read_at(u64::MAX, &mut [0; 4]).unwrap(), 0);
        assert_eq!(file.len().unwrap(), 0);
    }

    #[test]
    fn bytes_of_the_program_are_read_where_they_are() {
        let bytes: &'static [u8] = b"unchanged";
        let directory = MemoryDirectory::embedded([("x".to_owned(), bytes.into())]);
        let file = directory.open("x", Access::Read).unwrap();
        let mut buffer = [0; 5];
        assert_eq!(file.read_at(6, &mut buffer).unwrap(), 3);
        assert_eq!(&buffer[..3], b"ged");
        let refused = [
            file.write_at(0, b"y"),
            file.set_len(0),
            directory.open("x", Access::Write).map(drop),
            directory.create("y").map(drop),
            directory.link("x", "y"),
            directory.rename("x", "y"),
            directory.remove("x"),
        ];
        for refused in refused {
            assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
        assert_eq!(
            (directory.display("x"), &*directory.list().unwrap()),
            ("x in the program".to_owned(), &["x".to_owned()][..])
        );
        let name = Arc::clone(&directory.names()["x"]);
        assert!(matches!(&*name.bytes.lock().unwrap(), Cow::Borrowed(_)));
        assert!(!format!("{directory:?}").contains("unchanged"), "data isn't shown");
    }

    #[test]
    fn a_file_outlives_its_name() {
        let directory = MemoryDirectory::new();
        let file = directory.create("x").unwrap();
        file.write_at(0, b"still").unwrap();
        directory.remove("x").unwrap();
        let mut buffer = [0; 5];
        assert_eq!(file.read_at(0, &mut buffer).unwrap(), 5);
        assert_eq!(&buffer, b"still");
    }
}
