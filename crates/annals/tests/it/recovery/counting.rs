//! A directory that counts the bytes that are read and written.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use annals::storage::{Access, Directory, Hold, Lock, Storage};

#[derive(Debug)]
pub(super) struct Counting {
    inner: Arc<dyn Directory>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) read: AtomicU64,
    pub(super) written: AtomicU64,
}

impl Counts {
    /// Gives what was read and written since the last time.
    pub(super) fn take(&self) -> (u64, u64) {
        (self.read.swap(0, Ordering::Relaxed), self.written.swap(0, Ordering::Relaxed))
    }
}

impl Counting {
    pub(super) fn new(inner: Arc<dyn Directory>) -> (Self, Arc<Counts>) {
        let counts = Arc::new(Counts::default());
        (Self { inner, counts: Arc::clone(&counts) }, counts)
    }

    fn count(&self, inner: Arc<dyn Storage>) -> Arc<dyn Storage> {
        Arc::new(Counted { inner, counts: Arc::clone(&self.counts) })
    }
}

impl Directory for Counting {
    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn Storage>> {
        self.inner.open(name, access).map(|file| self.count(file))
    }
    fn create(&self, name: &str) -> io::Result<Arc<dyn Storage>> {
        self.inner.create(name).map(|file| self.count(file))
    }
    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.link(from, to)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }
    fn flush(&self) -> io::Result<()> {
        self.inner.flush()
    }
    fn display(&self, name: &str) -> String {
        self.inner.display(name)
    }
}

#[derive(Debug)]
struct Counted {
    inner: Arc<dyn Storage>,
    counts: Arc<Counts>,
}

impl Storage for Counted {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read_at(offset, buffer)?;
        self.counts.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.counts.written.fetch_add(data.len() as u64, Ordering::Relaxed);
        self.inner.write_at(offset, data)
    }
    fn flush(&self) -> io::Result<()> {
        self.inner.flush()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }
    fn try_lock(&self, lock: Lock, hold: Hold) -> io::Result<bool> {
        self.inner.try_lock(lock, hold)
    }
    fn unlock(&self, lock: Lock) -> io::Result<()> {
        self.inner.unlock(lock)
    }
    fn is_linked(&self) -> io::Result<bool> {
        self.inner.is_linked()
    }
}
