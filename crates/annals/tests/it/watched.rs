//! A directory whose files a test watches, counts, or holds up.

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use annals::storage::{Access, Directory, Hold, Lock, Storage};

/// What a test does around the operations of files.
pub(crate) trait Watcher: Debug + Send + Sync + 'static {
    /// Comes before each read.
    fn before_read(&self) {}
    /// Comes after each read of so many bytes.
    fn after_read(&self, _bytes: usize) {}
    /// Comes before so many bytes are written.
    fn before_write(&self, _bytes: usize) {}
    /// Comes before each flush.
    fn before_flush(&self) {}
    /// Comes after each flush.
    fn after_flush(&self) {}
    /// Comes before and after whatever changes something: writes, flushes, lengths, locks.
    fn give_way(&self) {}
}

/// The directory.
#[derive(Debug)]
pub(crate) struct Watched<W> {
    inner: Arc<dyn Directory>,
    pub(crate) watcher: Arc<W>,
}

impl<W: Watcher> Watched<W> {
    pub(crate) fn new(inner: Arc<dyn Directory>, watcher: Arc<W>) -> Self {
        Self { inner, watcher }
    }

    fn watch(&self, inner: Arc<dyn Storage>) -> Arc<dyn Storage> {
        Arc::new(File { inner, watcher: Arc::clone(&self.watcher) })
    }
}

impl<W: Watcher> Directory for Watched<W> {
    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn Storage>> {
        self.inner.open(name, access).map(|file| self.watch(file))
    }
    fn create(&self, name: &str) -> io::Result<Arc<dyn Storage>> {
        self.inner.create(name).map(|file| self.watch(file))
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
    fn again(&self) -> Arc<dyn Directory> {
        Arc::new(Self::new(self.inner.again(), Arc::clone(&self.watcher)))
    }
    fn display(&self, name: &str) -> String {
        self.inner.display(name)
    }
}

#[derive(Debug)]
struct File<W> {
    inner: Arc<dyn Storage>,
    watcher: Arc<W>,
}

impl<W: Watcher> File<W> {
    fn around<T>(&self, act: impl FnOnce() -> T) -> T {
        self.watcher.give_way();
        let result = act();
        self.watcher.give_way();
        result
    }
}

impl<W: Watcher> Storage for File<W> {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.watcher.before_read();
        self.inner.read_at(offset, buffer).inspect(|&bytes| self.watcher.after_read(bytes))
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.watcher.before_write(data.len());
        self.around(|| self.inner.write_at(offset, data))
    }
    fn flush(&self) -> io::Result<()> {
        self.watcher.before_flush();
        let flushed = self.around(|| self.inner.flush());
        self.watcher.after_flush();
        flushed
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.around(|| self.inner.set_len(len))
    }
    fn try_lock(&self, lock: Lock, hold: Hold) -> io::Result<bool> {
        self.around(|| self.inner.try_lock(lock, hold))
    }
    fn unlock(&self, lock: Lock) -> io::Result<()> {
        self.around(|| self.inner.unlock(lock))
    }
    fn oldest_pin(&self, roots: Range<u64>) -> io::Result<Option<u64>> {
        self.inner.oldest_pin(roots)
    }
    fn holder(&self, lock: Lock) -> Option<u32> {
        self.inner.holder(lock)
    }
    fn is_linked(&self) -> io::Result<bool> {
        self.inner.is_linked()
    }
    fn renamed(&self, name: &str) {
        self.inner.renamed(name);
    }
}
