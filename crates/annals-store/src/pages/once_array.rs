//! The loaded items of an array, by their places.
//!
//! The tree of a base says where everything is, in nodes of 64 entries of some 50 bytes: a walk for each read would
//! cost more than the read. So an item that stays where it was loaded to is found in two steps here,
//! whatever the height of the tree.
//!
//! Invariant: a place that has an item keeps it as long as the array lives: it may be borrowed.

use std::fmt;
use std::sync::OnceLock;

/// The number of places made at once: as many as a node of the tree has.
const CHUNK: usize = 64;

/// Items by their places, each set once.
pub(super) struct OnceArray<T> {
    chunks: OnceLock<Box<[OnceLock<Chunk<T>>]>>,
}

type Chunk<T> = Box<[OnceLock<T>; CHUNK]>;

impl<T> Default for OnceArray<T> {
    fn default() -> Self {
        Self { chunks: OnceLock::new() }
    }
}

impl<T> fmt::Debug for OnceArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceArray").finish_non_exhaustive()
    }
}

impl<T> OnceArray<T> {
    /// Returns the item set at a place.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        self.chunks.get()?.get(index / CHUNK)?.get()?[index % CHUNK].get()
    }

    /// Sets an item at one of `places` places, unless there is one; returns the present one.
    #[cold]
    pub(super) fn put(&self, index: usize, places: usize, item: T) -> &T {
        let empty = || std::iter::repeat_with(OnceLock::new).take(places.div_ceil(CHUNK)).collect();
        let chunks = self.chunks.get_or_init(empty);
        let chunk =
            chunks[index / CHUNK].get_or_init(|| Box::new([const { OnceLock::new() }; CHUNK]));
        chunk[index % CHUNK].get_or_init(|| item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_first_to_a_place_stays() {
        for places in [64, 4096, 1 << 18] {
            let array = OnceArray::default();
            for index in [0, 1, places / 2, places - 1] {
                assert_eq!(array.get(index), None);
                assert_eq!(array.put(index, places, index), &index);
                assert_eq!(array.put(index, places, 7), &index);
                assert_eq!(array.get(index), Some(&index));
            }
            assert_eq!((array.get(places), array.get(usize::MAX)), (None, None));
        }
    }

    #[test]
    fn threads_get_the_same_item() {
        let array = OnceArray::default();
        let put = |number: usize| *array.put(9, 64, number);
        let got = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|number| scope.spawn(move || put(number))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(got.iter().all(|number| array.get(9) == Some(number)), "{got:?}");
    }
}
