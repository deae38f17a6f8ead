//! The blocks of a lazy replica that are here: a bounded number of them, in two files that survive a restart.
//!
//! ```text
//! blocks   place 0 │ place 1 │ ..   each BLOCK bytes
//! index    record 0 │ record 1 │ ..   which block of which file is at that place, its length and its hash
//! ```
//!
//! Invariants
//! 1. A block is used only if its hash is the one in its record. So nothing needs to be flushed, and two processes, or
//!    a crash, can at worst lose blocks.
//! 2. Once writing fails, nothing is written any more: the blocks that are fetched are kept only as long as they are
//!    among the last few.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex};

use annals_storage::bytes::{Fields, Layout, hash};
use annals_storage::sync::lock;
use annals_storage::{Access, Directory, Hold, Lock, MemoryDirectory, Storage};

/// The unit of what is fetched, in bytes.
pub(super) const BLOCK: u64 = BLOCK_LEN as u64;
/// The same, as the length of a buffer.
const BLOCK_LEN: usize = 32 << 10;
/// The length of a record of the index.
const RECORD: usize = 40;
/// How many blocks stay in memory.
const RECENT: usize = 16;
/// The names of the two files.
const NAMES: [&str; 2] = ["blocks", "index"];

/// Which block of which file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// A hash of what proves which file it is.
    pub(super) file: u64,
    pub(super) block: u64,
}

/// The blocks of all files.
#[derive(Debug)]
pub(super) struct Cache {
    blocks: Arc<dyn Storage>,
    index: Arc<dyn Storage>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    places: HashMap<Key, usize>,
    records: Vec<Option<Record>>,
    /// Where the search for a block to evict goes on. (Corbató, "A paging experiment with the Multics system", 1968.)
    hand: usize,
    /// The most blocks that are kept.
    most: usize,
    recent: VecDeque<(Key, Arc<[u8]>)>,
    /// Why nothing is written any more.
    broken: Option<String>,
}

/// What is at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    key: Key,
    len: u32,
    hash: u64,
    is_used: bool,
}

impl Record {
    fn encode(&self) -> [u8; RECORD] {
        let mut to = Layout([0; RECORD]);
        to.put(0, self.key.file.to_le_bytes());
        to.put(8, self.key.block.to_le_bytes());
        to.put(16, self.len.to_le_bytes());
        to.put(24, self.hash.to_le_bytes());
        to.seal(RECORD - 8);
        to.0
    }

    fn decode(bytes: &[u8; RECORD]) -> Option<Self> {
        let from = Fields(bytes);
        let key = Key { file: from.u64(0), block: from.u64(8) };
        let record = Self { key, len: from.u32(16), hash: from.u64(24), is_used: false };
        (from.checked(RECORD - 8) && u64::from(record.len) <= BLOCK).then_some(record)
    }
}

impl Cache {
    /// Opens the cache in a directory, or begins it there; it has at most `most` bytes. If another process uses it, or
    /// it can't be written, it is in memory.
    pub(super) fn open(directory: &dyn Directory, most: u64) -> Self {
        let file = |name| match directory.open(name, Access::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => directory.create(name),
            opened => opened,
        };
        let [blocks, index] = NAMES.map(file);
        match (blocks, index) {
            (Ok(blocks), Ok(index)) if is_alone(&*index) => Self::of(blocks, index, most),
            _ => Self::in_memory(most),
        }
    }

    /// Makes a cache in memory.
    pub(super) fn in_memory(most: u64) -> Self {
        let directory = MemoryDirectory::new();
        match NAMES.map(|name| directory.create(name)) {
            [Ok(blocks), Ok(index)] => Self::of(blocks, index, most),
            // The directory is empty, so both can be created.
            _ => unreachable!("a new directory in memory has no files"),
        }
    }

    fn of(blocks: Arc<dyn Storage>, index: Arc<dyn Storage>, most: u64) -> Self {
        let most = usize::try_from(most / BLOCK).unwrap_or(usize::MAX).max(1);
        let mut state = State { most, ..State::default() };
        state.load(&*index);
        Self { blocks, index, state: Mutex::new(state) }
    }

    /// Returns a block, if at least `len` bytes of it are here.
    pub(super) fn get(&self, key: Key, len: usize) -> Option<Arc<[u8]>> {
        let (place, record) = {
            let mut state = lock(&self.state);
            if let Some((_, bytes)) = state.recent.iter().find(|(of, _)| *of == key) {
                return Some(Arc::clone(bytes)).filter(|bytes| bytes.len() >= len);
            }
            let place = *state.places.get(&key)?;
            let record = state.records.get_mut(place)?.as_mut()?;
            record.is_used = true;
            (place, *record)
        };
        let mut bytes = vec![0; usize::try_from(record.len).ok().filter(|known| *known >= len)?];
        let read = self.blocks.read_at(place as u64 * BLOCK, &mut bytes);
        let is_right =
            matches!(read, Ok(read) if read == bytes.len()) && hash(&bytes) == record.hash;
        if !is_right {
            self.drop_block(key);
            return None;
        }
        let bytes: Arc<[u8]> = bytes.into();
        lock(&self.state).note_recent(key, &bytes);
        Some(bytes)
    }

    /// Keeps a block, in place of another one if there are too many.
    pub(super) fn put(&self, key: Key, bytes: &[u8]) -> Arc<[u8]> {
        let kept: Arc<[u8]> = bytes.into();
        let mut state = lock(&self.state);
        state.note_recent(key, &kept);
        if state.broken.is_some() {
            return kept;
        }
        let place = state.place_for(key);
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let record = Record { key, len, hash: hash(bytes), is_used: false };
        let written = self
            .blocks
            .write_at(place as u64 * BLOCK, bytes)
            .and_then(|()| self.index.write_at((place * RECORD) as u64, &record.encode()));
        match written {
            Ok(()) => {
                state.places.insert(key, place);
                if let Some(at) = state.records.get_mut(place) {
                    *at = Some(record);
                }
            }
            Err(error) => state.broken = Some(error.to_string()),
        }
        kept
    }

    /// Drops a block, which isn't what it should be.
    pub(super) fn drop_block(&self, key: Key) {
        let mut state = lock(&self.state);
        state.recent.retain(|(of, _)| *of != key);
        if let Some(place) = state.places.remove(&key) {
            if let Some(at) = state.records.get_mut(place) {
                *at = None;
            }
            // Without this the block would be dropped again after a restart.
            let _ = self.index.write_at((place * RECORD) as u64, &[0; RECORD]);
        }
    }

    /// Returns how many blocks it keeps.
    pub(super) fn room(&self) -> u64 {
        let state = lock(&self.state);
        let count = if state.broken.is_some() { RECENT } else { state.most };
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    /// Returns how many bytes are kept.
    pub(super) fn bytes(&self) -> u64 {
        let state = lock(&self.state);
        state.records.iter().flatten().map(|record| u64::from(record.len)).sum()
    }

    /// Returns why nothing is kept any more, if that is so.
    pub(super) fn broken(&self) -> Option<String> {
        lock(&self.state).broken.clone()
    }
}

/// True if no other process uses the cache; it is locked then as long as its files are open.
fn is_alone(index: &dyn Storage) -> bool {
    match index.try_lock(Lock::Head, Hold::Exclusive) {
        Ok(is_held) => is_held,
        // Two processes at once only lose blocks.
        Err(error) => error.kind() == io::ErrorKind::Unsupported,
    }
}

impl State {
    /// Reads the index that an earlier process left.
    fn load(&mut self, index: &dyn Storage) {
        let len = index.len().ok().and_then(|len| usize::try_from(len).ok()).unwrap_or(0);
        let mut bytes = vec![0; len.min(self.most.saturating_mul(RECORD))];
        let read = index.read_at(0, &mut bytes).unwrap_or(0);
        let (records, _) = bytes.get(..read).unwrap_or_default().as_chunks::<RECORD>();
        for (place, record) in records.iter().enumerate() {
            let record = Record::decode(record).filter(|it| !self.places.contains_key(&it.key));
            if let Some(record) = record {
                self.places.insert(record.key, place);
            }
            self.records.push(record);
        }
    }

    fn note_recent(&mut self, key: Key, bytes: &Arc<[u8]>) {
        self.recent.retain(|(of, _)| *of != key);
        self.recent.push_front((key, Arc::clone(bytes)));
        self.recent.truncate(RECENT);
    }

    /// Returns the place for a block: its own, a free one, or that of one that wasn't used for long.
    fn place_for(&mut self, key: Key) -> usize {
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        if self.records.len() < self.most {
            self.records.push(None);
            return self.records.len() - 1;
        }
        loop {
            self.hand = (self.hand + 1) % self.records.len();
            match self.records.get_mut(self.hand) {
                Some(Some(record)) if record.is_used => record.is_used = false,
                Some(record) => {
                    if let Some(record) = record.take() {
                        self.places.remove(&record.key);
                    }
                    return self.hand;
                }
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(block: u64) -> Key {
        Key { file: 1, block }
    }

    fn block(number: u64) -> Vec<u8> {
        vec![number.to_le_bytes()[0]; BLOCK_LEN]
    }

    #[test]
    fn it_keeps_no_more_than_it_may_and_survives_a_restart() {
        let directory = MemoryDirectory::new();
        let cache = Cache::open(&directory, 64 * BLOCK);
        for number in 0..200 {
            cache.put(key(number), &block(number));
            // One that is used stays.
            assert_eq!(cache.get(key(0), 1).as_deref(), Some(&block(0)[..]), "{number}");
        }
        assert_eq!(cache.bytes(), 64 * BLOCK);
        assert_eq!(directory.open("blocks", Access::Read).unwrap().len().unwrap(), 64 * BLOCK);
        drop(cache);
        let again = Cache::open(&directory, 64 * BLOCK);
        assert_eq!(again.bytes(), 64 * BLOCK);
        let there: Vec<_> =
            (0..200).filter(|&number| again.get(key(number), BLOCK_LEN).is_some()).collect();
        assert_eq!(there.len(), 64);
        assert!(there.contains(&0) && there.contains(&199));
        for number in there {
            assert_eq!(again.get(key(number), 1).as_deref(), Some(&block(number)[..]));
        }
        // A smaller one keeps fewer.
        drop(again);
        assert_eq!(Cache::open(&directory, 8 * BLOCK).bytes(), 8 * BLOCK);
    }

    #[test]
    fn a_full_disk_keeps_nothing_and_loses_nothing() {
        let disk = annals_simulated::SimulatedDisk::new(1);
        disk.limit_space(10 * BLOCK);
        let cache = Cache::open(&disk, 64 * BLOCK);
        for number in 0..40 {
            // What is asked for comes back, kept or not.
            assert_eq!(*cache.put(key(number), &block(number)), block(number)[..]);
        }
        let problem = cache.broken().expect("the disk is full");
        assert!(problem.contains("space"), "{problem}");
        for number in 0..40 {
            let kept = cache.get(key(number), 1);
            assert!(kept.is_none_or(|kept| *kept == block(number)[..]), "{number}");
        }
        assert!(cache.get(key(39), 1).is_some(), "the last ones are in memory");
        assert!(cache.bytes() <= 10 * BLOCK);
    }

    #[test]
    fn a_block_that_was_damaged_here_is_not_used() {
        let directory = MemoryDirectory::new();
        let cache = Cache::open(&directory, 64 * BLOCK);
        (0..40).for_each(|number| drop(cache.put(key(number), &block(number))));
        drop(cache);
        let blocks = directory.open("blocks", Access::Write).unwrap();
        blocks.write_at(3 * BLOCK + 77, b"x").unwrap();
        let index = directory.open("index", Access::Write).unwrap();
        index.write_at(5 * RECORD as u64 + 9, b"x").unwrap();
        let cache = Cache::open(&directory, 64 * BLOCK);
        let lost: Vec<_> = (0..40).filter(|&number| cache.get(key(number), 1).is_none()).collect();
        assert_eq!(lost, [3, 5]);
        // A shorter block isn't a longer one.
        cache.put(key(50), b"short");
        assert!(cache.get(key(50), 6).is_none() && cache.get(key(50), 5).is_some());
    }
}
