//! The parts of a compressed file besides its blocks.

use super::MAGIC;
use crate::bytes::{Fields, Layout, hash};

/// How its table begins: another skippable frame, with its length after this.
pub(super) const TABLE_MAGIC: [u8; 4] = *b"\x51\x2A\x4D\x18";
/// The version of the format.
pub(super) const VERSION: u32 = 1;
/// Length of the head.
pub(super) const HEAD_LEN: usize = 64;
/// How many bytes of the file a block holds; the last one may have less.
pub(super) const BLOCK: u32 = 128 << 10;
/// Length of an entry of the table.
pub(super) const ENTRY_LEN: usize = 24;

const _: () = assert!(MAGIC[4] as usize + 8 == HEAD_LEN);

/// The contents of the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CompressedHead {
    pub(super) version: u32,
    /// How many bytes each block has but the last.
    pub(super) block: u32,
    /// How many bytes the file has unpacked.
    pub(super) len: u64,
    /// Where the first entry of the table is.
    pub(super) table_at: u64,
}

impl CompressedHead {
    pub(super) fn encode(&self) -> [u8; HEAD_LEN] {
        let mut to = Layout([0; HEAD_LEN]);
        to.put(0, MAGIC);
        to.put(16, self.version.to_le_bytes());
        to.put(20, self.block.to_le_bytes());
        to.put(24, self.len.to_le_bytes());
        to.put(32, self.table_at.to_le_bytes());
        to.seal(HEAD_LEN - 8);
        to.0
    }

    pub(super) fn decode(bytes: &[u8; HEAD_LEN]) -> Option<Self> {
        let from = Fields(bytes);
        (from.array(0) == MAGIC && from.checked(HEAD_LEN - 8)).then(|| Self {
            version: from.u32(16),
            block: from.u32(20),
            len: from.u64(24),
            table_at: from.u64(32),
        })
    }
}

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockEntry {
    pub(super) position: u64,
    /// The hash of its bytes as they are in the file.
    pub(super) hash: u64,
    pub(super) length: u32,
}

impl BlockEntry {
    pub(super) fn encode(&self, number: u64) -> [u8; ENTRY_LEN] {
        let mut to = Layout([0; ENTRY_LEN]);
        to.put(0, self.position.to_le_bytes());
        to.put(8, self.hash.to_le_bytes());
        to.put(16, self.length.to_le_bytes());
        to.put(20, self.check(number));
        to.0
    }

    pub(super) fn decode(bytes: &[u8; ENTRY_LEN], number: u64) -> Option<Self> {
        let from = Fields(bytes);
        let entry = Self { position: from.u64(0), hash: from.u64(8), length: from.u32(16) };
        (from.array(20) == entry.check(number)).then_some(entry)
    }

    /// Returns the lower half of the hash of the entry and its number.
    fn check(&self, number: u64) -> [u8; 4] {
        let mut to = Layout([0; 28]);
        to.put(0, self.position.to_le_bytes());
        to.put(8, self.hash.to_le_bytes());
        to.put(16, self.length.to_le_bytes());
        to.put(20, number.to_le_bytes());
        let [a, b, c, d, ..] = hash(&to.0).to_le_bytes();
        [a, b, c, d]
    }
}
