//! A map of few entries, and a sort of few items.
//!
//! For each type, std's `BTreeMap` adds about five thousand instructions to the build of every program, and `sort` two
//! thousand. These take three hundred and fifty. See `docs/decisions/39-layers.md`.

use std::borrow::Borrow;

/// A map as a sorted array. Inserting and removing take time in proportion to the entries after the key: it is for a
/// few hundred.
///
/// Invariant: the keys are strictly ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortedMap<K, V> {
    entries: Vec<(K, V)>,
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> SortedMap<K, V> {
    /// Makes an empty map.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// Returns the entries, in the order of their keys.
    #[must_use]
    pub fn entries(&self) -> &[(K, V)] {
        &self.entries
    }

    /// Iterates over the keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.entries.iter().map(|(key, _)| key)
    }

    /// True if there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        self.entries.binary_search_by(|(own, _)| own.borrow().cmp(key))
    }

    /// Returns the value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let place = self.find(key).ok()?;
        self.entries.get(place).map(|(_, value)| value)
    }

    /// True if the map has the key.
    pub fn contains<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    /// Sets the value of a key; true if the key is new.
    pub fn insert(&mut self, key: K, value: V) -> bool {
        match self.find(&key) {
            Ok(place) => {
                if let Some((_, own)) = self.entries.get_mut(place) {
                    *own = value;
                }
                false
            }
            Err(place) => {
                self.entries.insert(place, (key, value));
                true
            }
        }
    }

    /// Returns the value of a key, made and inserted first if there is none.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let place = self.find(&key).unwrap_or_else(|place| {
            self.entries.insert(place, (key, make()));
            place
        });
        &mut self.entries[place].1
    }

    /// Removes a key; returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let place = self.find(key).ok()?;
        Some(self.entries.remove(place).1)
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

/// Sorts a few hundred items by an order; equal ones stay as they are. Items that are in order take linear time.
pub fn sort_few<T>(items: &mut [T], is_before: impl Fn(&T, &T) -> bool) {
    for end in 1..items.len() {
        let mut place = end;
        while place > 0 && is_before(&items[place], &items[place - 1]) {
            items.swap(place, place - 1);
            place -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn it_does_the_same_as_a_tree() {
        let (mut map, mut tree) = (SortedMap::new(), BTreeMap::new());
        let mut number = 1_u64;
        for step in 0..2000 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = number >> 58;
            match step % 4 {
                0 => assert_eq!(map.remove(&key), tree.remove(&key)),
                1 => assert_eq!(
                    map.get_or_insert_with(key, || step),
                    tree.entry(key).or_insert(step)
                ),
                _ => assert_eq!(map.insert(key, step), tree.insert(key, step).is_none()),
            }
            assert_eq!(map.get(&key), tree.get(&key));
            assert_eq!(map.contains(&key), tree.contains_key(&key));
            assert!(map.entries().iter().map(|(key, value)| (key, value)).eq(tree.iter()));
            assert!(map.keys().eq(tree.keys()));
            assert_eq!(map.is_empty(), tree.is_empty());
        }
        let again: SortedMap<_, _> = tree.into_iter().rev().collect();
        assert_eq!(again, map);
        map.clear();
        assert!(map.is_empty());
    }

    #[test]
    fn few_items_are_sorted_as_many_are() {
        let mut number = 1_u64;
        for len in 0..40 {
            let mut items = Vec::new();
            for place in 0..len {
                number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                items.push((number >> 60, place));
            }
            let mut expected = items.clone();
            expected.sort_by_key(|(key, _)| std::cmp::Reverse(*key));
            sort_few(&mut items, |a, b| a.0 > b.0);
            assert_eq!(items, expected);
        }
    }
}
