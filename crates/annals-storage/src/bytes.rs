//! Numbers of fixed width in buffers, and the hash over them: the ground of every file format here.

use xxhash_rust::xxh3::xxh3_64;

/// The hash that all checksums and chains are made with: XXH3, 64 bits, seed 0.
#[must_use]
#[inline]
pub fn hash(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// Reads fixed-width numbers from a buffer whose length was checked by its type.
pub struct Fields<'b, const N: usize>(pub &'b [u8; N]);

impl<const N: usize> Fields<'_, N> {
    /// Returns the bytes at a place, or zeros where it isn't within the buffer.
    #[inline]
    pub fn array<const W: usize>(&self, at: usize) -> [u8; W] {
        self.0.get(at..at + W).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; W])
    }
    /// Returns a number of 2 bytes.
    #[inline]
    pub fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }
    /// Returns a number of 4 bytes.
    #[inline]
    pub fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }
    /// Returns a number of 8 bytes.
    #[inline]
    pub fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }
    /// True if the hash of everything before `at` is stored at `at`.
    #[inline]
    pub fn checked(&self, at: usize) -> bool {
        self.0.get(..at).is_some_and(|bytes| hash(bytes) == self.u64(at))
    }
}

/// Writes fixed-width numbers into a buffer.
pub struct Layout<const N: usize>(pub [u8; N]);

impl<const N: usize> Layout<N> {
    /// Writes bytes at a place; does nothing where it isn't within the buffer.
    #[inline]
    pub fn put<const W: usize>(&mut self, at: usize, bytes: [u8; W]) {
        if let Some(to) = self.0.get_mut(at..at + W) {
            to.copy_from_slice(&bytes);
        }
    }
    /// Puts the hash of everything before `at` at `at`.
    #[inline]
    pub fn seal(&mut self, at: usize) {
        let sum = self.0.get(..at).map_or(0, hash);
        self.put(at, sum.to_le_bytes());
    }
}
