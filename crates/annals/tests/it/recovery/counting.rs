//! A directory that counts the bytes that are read and written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use annals::storage::Directory;

use crate::watched::{Watched, Watcher};

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) read: AtomicU64,
    pub(super) written: AtomicU64,
}

impl Counts {
    /// Returns what was read and written since the last time.
    pub(super) fn take(&self) -> (u64, u64) {
        (self.read.swap(0, Ordering::Relaxed), self.written.swap(0, Ordering::Relaxed))
    }
}

impl Watcher for Counts {
    fn after_read(&self, bytes: usize) {
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
    }
    fn before_write(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// Counts what is read and written in a directory.
pub(super) fn counting(inner: Arc<dyn Directory>) -> (Watched<Counts>, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    (Watched::new(inner, Arc::clone(&counts)), counts)
}
