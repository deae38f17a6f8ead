//! A file as it is now, with changes that stay in memory: nothing is written to the file.
//!
//! Invariants
//! 1. Everything in the file that may change under a reader, its head and what follows its end, was copied or is
//!    hidden: other processes may go on writing the file.
//! 2. Locks by which others respect a reader are those of the file; all others are granted, since nobody else has the
//!    changes.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Access, Directory, Hold, Lock, Storage};

/// The unit of changes.
const BLOCK: u64 = 4096;

/// A directory in which one file can be changed, in memory. A clone is another handle of the same directory.
#[derive(Clone, Debug)]
pub struct OverlayDirectory {
    base: Arc<dyn Directory>,
    name: String,
    file: Arc<Overlay>,
}

/// The file with its changes.
#[derive(Debug)]
struct Overlay {
    base: Arc<dyn Storage>,
    changes: Mutex<ChangedBlocks>,
}

/// What differs from the file.
#[derive(Debug)]
struct ChangedBlocks {
    len: u64,
    /// The end of the part that is read from the file.
    shared: u64,
    /// The changed blocks, by their numbers.
    blocks: BTreeMap<u64, Vec<u8>>,
}

/// A handle of the file with its changes.
#[derive(Debug)]
struct Handle {
    file: Arc<Overlay>,
    /// True if its name, as far as it knows that, is the file's.
    is_linked: AtomicBool,
    name: String,
}

impl OverlayDirectory {
    /// Opens the file `name` of a directory, for changes in memory. Its first `head` bytes are copied.
    ///
    /// # Errors
    /// Those of opening and reading it.
    pub fn new(base: Arc<dyn Directory>, name: &str, head: u64) -> io::Result<Self> {
        let storage = base.open(name, Access::Read)?;
        let mut blocks = BTreeMap::new();
        for number in 0..head.div_ceil(BLOCK) {
            blocks.insert(number, read_block(&*storage, number, u64::MAX)?);
        }
        // Not before: the head may speak of what was written meanwhile.
        let len = storage.len()?;
        let changes = Mutex::new(ChangedBlocks { len, shared: len, blocks });
        let file = Arc::new(Overlay { base: storage, changes });
        Ok(Self { base, name: name.to_owned(), file })
    }

    /// Makes the file end here, in memory.
    pub fn cut(&self, len: u64) {
        self.file.changes().set_len(len);
    }
}

/// Reads a block of a file, as far as it goes up to `end`; the rest is zero.
fn read_block(storage: &dyn Storage, number: u64, end: u64) -> io::Result<Vec<u8>> {
    let from = number * BLOCK;
    let mut block = vec![0; index(BLOCK)];
    let room = index(end.saturating_sub(from).min(BLOCK));
    storage.read_at(from, &mut block[..room])?;
    Ok(block)
}

/// A number of bytes that is at most a block, or the length of a buffer.
fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl Overlay {
    fn changes(&self) -> MutexGuard<'_, ChangedBlocks> {
        // Each change of it is whole, even if another thread panicked.
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChangedBlocks {
    fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.shared = self.shared.min(len);
            self.blocks.split_off(&len.div_ceil(BLOCK));
            if let Some(block) = self.blocks.get_mut(&(len / BLOCK)) {
                block[index(len % BLOCK)..].fill(0);
            }
        }
        self.len = len;
    }
}

/// Splits a range of a file at the borders of blocks: the block's number, the place in it, and the place in the range.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let end = offset.saturating_add(len as u64);
    (offset / BLOCK..end.div_ceil(BLOCK)).map(move |number| {
        let from = offset.max(number * BLOCK);
        let to = end.min((number + 1) * BLOCK);
        (number, index(from - number * BLOCK), index(from - offset)..index(to - offset))
    })
}

impl Storage for Handle {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.changes().len)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let changes = self.file.changes();
        let count = buffer.len().min(index(changes.len.saturating_sub(offset)));
        let buffer = &mut buffer[..count];
        let shared = count.min(index(changes.shared.saturating_sub(offset)));
        let read =
            if shared == 0 { 0 } else { self.file.base.read_at(offset, &mut buffer[..shared])? };
        buffer[read..].fill(0);
        for (number, from, part) in parts(offset, count) {
            if let Some(block) = changes.blocks.get(&number) {
                let len = part.len();
                buffer[part].copy_from_slice(&block[from..from + len]);
            }
        }
        Ok(count)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut changes = self.file.changes();
        let end = offset.checked_add(data.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        for (number, from, part) in parts(offset, data.len()) {
            if !changes.blocks.contains_key(&number) {
                let block = read_block(&*self.file.base, number, changes.shared)?;
                changes.blocks.insert(number, block);
            }
            if let Some(block) = changes.blocks.get_mut(&number) {
                block[from..from + part.len()].copy_from_slice(&data[part]);
            }
        }
        changes.len = changes.len.max(end);
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.changes().set_len(len);
        Ok(())
    }

    fn try_lock(&self, lock: Lock, hold: Hold) -> io::Result<bool> {
        match (lock, hold) {
            (Lock::History | Lock::Pin(_), Hold::Shared) => self.file.base.try_lock(lock, hold),
            _ => Ok(true),
        }
    }

    fn unlock(&self, lock: Lock) -> io::Result<()> {
        match lock {
            Lock::History | Lock::Pin(_) => self.file.base.unlock(lock),
            _ => Ok(()),
        }
    }

    fn is_linked(&self) -> io::Result<bool> {
        Ok(self.is_linked.load(Ordering::Relaxed))
    }

    fn may_have_other_names(&self) -> io::Result<bool> {
        Ok(false)
    }

    fn renamed(&self, name: &str) {
        self.is_linked.store(name == self.name, Ordering::Relaxed);
    }
}

/// Returns the error of every change of names.
fn unchangeable() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "the directory was opened for reading only")
}

impl Directory for OverlayDirectory {
    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn Storage>> {
        match access {
            _ if name == self.name => {
                let (file, is_linked) = (Arc::clone(&self.file), AtomicBool::new(true));
                Ok(Arc::new(Handle { file, is_linked, name: name.to_owned() }))
            }
            Access::Read => self.base.open(name, access),
            Access::Write => Err(unchangeable()),
        }
    }

    fn create(&self, _name: &str) -> io::Result<Arc<dyn Storage>> {
        Err(unchangeable())
    }

    fn link(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(unchangeable())
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(unchangeable())
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        Err(unchangeable())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.base.list()
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn again(&self) -> Arc<dyn Directory> {
        Arc::new(self.clone())
    }

    fn display(&self, name: &str) -> String {
        self.base.display(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDirectory;
    use annals_simulated::Rng;

    /// The same random steps on an overlay and on a plain file; the file below stays as it was.
    #[test]
    fn an_overlay_is_a_file_and_the_file_below_is_unchanged() {
        let mut rng = Rng::new(17);
        for _ in 0..20 {
            let (below, plain) =
                (MemoryDirectory::new(), MemoryDirectory::new().create("x").unwrap());
            let file = below.create("x").unwrap();
            let bytes: Vec<u8> =
                (0..20_000_u32).map(|number| number.to_le_bytes()[0] | 1).collect();
            file.write_at(0, &bytes).unwrap();
            plain.write_at(0, &bytes).unwrap();
            let overlay = OverlayDirectory::new(below.again(), "x", 5000).unwrap();
            // What others do now isn't seen: they append, and write their head.
            file.write_at(100, b"others").unwrap();
            file.write_at(20_000, b"others").unwrap();
            let over = overlay.open("x", Access::Write).unwrap();
            for _ in 0..60 {
                let offset = rng.below(30_000);
                match rng.below(3) {
                    0 => {
                        let data = vec![rng.number().to_le_bytes()[0]; index(rng.below(9000))];
                        over.write_at(offset, &data).unwrap();
                        plain.write_at(offset, &data).unwrap();
                    }
                    1 => {
                        over.set_len(offset).unwrap();
                        plain.set_len(offset).unwrap();
                    }
                    _ => {}
                }
                let (mut one, mut other) = (vec![7; 9000], vec![7; 9000]);
                let read = over.read_at(offset, &mut one).unwrap();
                assert_eq!(read, plain.read_at(offset, &mut other).unwrap());
                assert!(one == other, "at {offset}");
                assert_eq!(over.len().unwrap(), plain.len().unwrap());
            }
            let mut now = vec![0; 20_006];
            file.read_at(0, &mut now).unwrap();
            assert!(now[..100] == bytes[..100] && now[106..20_000] == bytes[106..]);
            assert!(overlay.open("x-image", Access::Write).is_err());
        }
    }

    #[test]
    fn nothing_but_the_file_itself_can_be_changed() {
        let below = MemoryDirectory::new();
        below.create("x").unwrap().write_at(0, b"content").unwrap();
        below.create("y").unwrap();
        let overlay = OverlayDirectory::new(below.again(), "x", 5000).unwrap();
        overlay.cut(3);
        let over = overlay.open("x", Access::Write).unwrap();
        assert_eq!(
            (over.len().unwrap(), below.open("x", Access::Read).unwrap().len().unwrap()),
            (3, 7)
        );
        assert_eq!(overlay.list().unwrap(), below.list().unwrap());
        assert!(overlay.open("y", Access::Read).is_ok());
        let denied = |result: io::Result<()>| {
            assert_eq!(result.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        };
        denied(overlay.open("y", Access::Write).map(drop));
        denied(overlay.create("z").map(drop));
        denied(overlay.link("x", "z"));
        denied(overlay.rename("x", "z"));
        denied(overlay.remove("y"));
        over.renamed("z");
        assert!(!over.is_linked().unwrap());
        over.renamed("x");
        assert!(over.is_linked().unwrap());
    }

    #[test]
    fn only_locks_that_readers_need_are_those_of_the_file_below() {
        let below = MemoryDirectory::new();
        let other = below.create("x").unwrap();
        let overlay = OverlayDirectory::new(below.again(), "x", 5000).unwrap();
        let over = overlay.open("x", Access::Write).unwrap();
        for lock in [Lock::History, Lock::Pin(3)] {
            assert!(over.try_lock(lock, Hold::Shared).unwrap());
            assert!(!other.try_lock(lock, Hold::Exclusive).unwrap(), "{lock:?}");
            over.unlock(lock).unwrap();
            assert!(other.try_lock(lock, Hold::Exclusive).unwrap(), "{lock:?}");
            assert!(!over.try_lock(lock, Hold::Shared).unwrap(), "{lock:?}");
        }
        assert!(other.try_lock(Lock::Head, Hold::Exclusive).unwrap());
        assert!(over.try_lock(Lock::Head, Hold::Exclusive).unwrap());
    }
}
