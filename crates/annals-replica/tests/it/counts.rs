//! How much of the history a rebase reads: what both sides did since they parted, and nothing before.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use annals::{Options, RowId, ValueRef};
use annals_replica::{Connection, Local, Patience, Replica};
use annals_storage::{Access, Directory, Hold, Lock, MemoryDirectory, Storage, SystemClock};

use crate::offline::{ITEM, PART, create, insert_item, insert_part};

/// A directory that counts the bytes that are read of its journals.
#[derive(Clone, Debug)]
struct Counting {
    directory: Arc<dyn Directory>,
    read: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Counted {
    storage: Arc<dyn Storage>,
    read: Arc<AtomicU64>,
}

impl Storage for Counted {
    fn len(&self) -> io::Result<u64> {
        self.storage.len()
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.storage.read_at(offset, buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.storage.write_at(offset, data)
    }
    fn flush(&self) -> io::Result<()> {
        self.storage.flush()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.storage.set_len(len)
    }
    fn try_lock(&self, lock: Lock, hold: Hold) -> io::Result<bool> {
        self.storage.try_lock(lock, hold)
    }
    fn unlock(&self, lock: Lock) -> io::Result<()> {
        self.storage.unlock(lock)
    }
    fn oldest_pin(&self, roots: Range<u64>) -> io::Result<Option<u64>> {
        self.storage.oldest_pin(roots)
    }
    fn holder(&self, lock: Lock) -> Option<u32> {
        self.storage.holder(lock)
    }
    fn is_linked(&self) -> io::Result<bool> {
        self.storage.is_linked()
    }
    fn renamed(&self, name: &str) {
        self.storage.renamed(name);
    }
}

impl Counting {
    fn counted(&self, name: &str, storage: Arc<dyn Storage>) -> Arc<dyn Storage> {
        match name.contains("image") {
            true => storage,
            false => Arc::new(Counted { storage, read: Arc::clone(&self.read) }),
        }
    }
}

impl Directory for Counting {
    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn Storage>> {
        self.directory.open(name, access).map(|storage| self.counted(name, storage))
    }
    fn create(&self, name: &str) -> io::Result<Arc<dyn Storage>> {
        self.directory.create(name).map(|storage| self.counted(name, storage))
    }
    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        self.directory.link(from, to)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.directory.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.directory.remove(name)
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.directory.list()
    }
    fn flush(&self) -> io::Result<()> {
        self.directory.flush()
    }
    fn again(&self) -> Arc<dyn Directory> {
        Arc::new(self.clone())
    }
    fn display(&self, name: &str) -> String {
        self.directory.display(name)
    }
}

/// Returns how many bytes of journals a replica reads from the opening of its offline journal to the end of a rebase, after
/// so many transactions of history; and how many bytes both sides wrote since they parted.
fn rebase(history: i64) -> (u64, u64) {
    let options = Options::new().background(false);
    let origin = options.open_in(MemoryDirectory::new().again(), "origin", Arc::new(SystemClock));
    let origin = origin.expect("a database");
    origin.write(create).expect("a first transaction");
    let text = "x".repeat(100);
    for number in 0..history {
        origin
            .write(|tx| {
                let item = insert_item(tx, &format!("{text} {number}"), number)?;
                insert_part(tx, item)
            })
            .expect("a commit");
    }
    let counting =
        Counting { directory: MemoryDirectory::new().again(), read: Arc::new(AtomicU64::new(0)) };
    let connection: Arc<dyn Connection> = Arc::new(Local::new(origin.clone()));
    let (directory, patience) = (counting.again(), Patience::default());
    let replica = Replica::connect_in(connection, directory, "copy", &options, patience);
    let replica = replica.expect("a replica");
    let offline = replica.offline().expect("an offline journal");
    let parted = replica.database().read().point().position;
    let set = |tx: &mut annals::Transaction<'_>, row, value| {
        tx.update(ITEM, RowId(row), annals::FieldNumber(1), ValueRef::Int64(value))
    };
    for number in 0..20 {
        offline
            .write(|tx| {
                let item = insert_item(tx, &format!("ours {number}"), 0)?;
                insert_part(tx, item)?;
                set(tx, 100 + number, 7)?;
                tx.delete(PART, RowId(50 + number))
            })
            .expect("a commit");
    }
    let ours = offline.read().point().position - parted;
    offline.close().expect("closing");
    for number in 0..20 {
        origin
            .write(|tx| {
                let item = insert_item(tx, &format!("theirs {number}"), 0)?;
                insert_part(tx, item)?;
                set(tx, 150 + number, 7)
            })
            .expect("a commit");
    }
    let theirs = origin.read().point().position - parted;
    counting.read.store(0, Ordering::Relaxed);
    let rebased = replica.rebase().expect("a rebase");
    assert_eq!((rebased.transactions, rebased.renumbered.len()), (20, 40));
    assert_eq!(replica.cursor(), origin.read().point().into());
    (counting.read.load(Ordering::Relaxed), ours + theirs)
}

#[test]
fn a_rebase_reads_what_both_did_since_they_parted() {
    let (short, written) = rebase(200);
    let (long, again) = rebase(4000);
    assert!(written.abs_diff(again) < 1000);
    assert_eq!(long, short, "it doesn't grow with the history");
    // Each is read a few times: to find the end, to compare, and to make them again.
    assert!(long < 8 * again, "{long} bytes for {again}");
}
