//! Numbers of fixed width in buffers, and the hash over them: the ground of every file format here.

use xxhash_rust::xxh3::xxh3_64;

/// The hash that all checksums and chains are made with: XXH3, 64 bits, seed 0.
#[must_use]
pub fn hash(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// Reads fixed-width numbers from a buffer whose length was checked by its type.
pub(crate) struct Fields<'b, const N: usize>(pub(crate) &'b [u8; N]);

impl<const N: usize> Fields<'_, N> {
    pub(crate) fn array<const W: usize>(&self, at: usize) -> [u8; W] {
        self.0.get(at..at + W).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; W])
    }
    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }
    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }
    pub(crate) fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }
    /// The hash of everything before `at`, which stands at `at` where nothing is damaged.
    pub(crate) fn checked(&self, at: usize) -> bool {
        self.0.get(..at).is_some_and(|bytes| hash(bytes) == self.u64(at))
    }
}

/// Writes fixed-width numbers into a buffer.
pub(crate) struct Layout<const N: usize>(pub(crate) [u8; N]);

impl<const N: usize> Layout<N> {
    pub(crate) fn put<const W: usize>(&mut self, at: usize, bytes: [u8; W]) {
        if let Some(to) = self.0.get_mut(at..at + W) {
            to.copy_from_slice(&bytes);
        }
    }
    /// Puts the hash of everything before `at` at `at`.
    pub(crate) fn seal(&mut self, at: usize) {
        let sum = self.0.get(..at).map_or(0, hash);
        self.put(at, sum.to_le_bytes());
    }
}
