//! The tree against `BTreeMap`.

mod merge;
mod packing;
mod search;
mod stored;

use std::collections::{BTreeMap, BTreeSet};

use super::{Range, Tree};
use crate::pages::page::Epoch;
use crate::pages::paged::Counted;

/// A small generator of random numbers (xorshift).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % below as u64).unwrap()
    }
}

pub(super) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

pub(super) fn owned(key: &[u8], value: &[u8]) -> (Vec<u8>, Vec<u8>) {
    (key.to_vec(), value.to_vec())
}

fn own_key(key: &[u8], _: &[u8]) -> Vec<u8> {
    key.to_vec()
}

pub(super) fn keys_of(mut range: Range<'_>) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| range.next_with(own_key).unwrap()).collect()
}

pub(super) fn same(tree: &Tree, model: &Model) {
    tree.check().unwrap();
    assert_eq!(tree.len(), model.len() as u64);
    let (mut front, mut back) = (tree.range(&[], None).unwrap(), tree.range(&[], None).unwrap());
    for (key, value) in model {
        let same = |k: &[u8], v: &[u8]| (k, v) == (key, value);
        assert_eq!(front.next_with(same).unwrap(), Some(true));
    }
    for (key, value) in model.iter().rev() {
        let same = |k: &[u8], v: &[u8]| (k, v) == (key, value);
        assert_eq!(back.next_back_with(same).unwrap(), Some(true));
    }
    let ends = (front.next_with(owned).unwrap(), back.next_back_with(owned).unwrap());
    assert_eq!(ends, (None, None));
}

/// Reads the tree from random places, without visiting the entries between.
pub(super) fn look(tree: &Tree, keys: &[&[u8]], random: &mut Random) {
    let (a, b) = (random.next(keys.len() + 2), random.next(keys.len() + 2));
    let (low, high) = (a.min(b).min(keys.len()), a.max(b).min(keys.len()));
    let key = |at: usize| keys.get(at).map(|key| key.to_vec());
    let from = key(low).unwrap_or_else(|| vec![0xff; 3000]);
    let range = || tree.range(&from, keys.get(high).copied()).unwrap();
    let len = high - low;
    assert_eq!(range().left().unwrap(), len as u64);
    let (least, most) = range().size_hint();
    assert!(least <= len && most.is_none_or(|most| most >= len), "{least} {len} {most:?}");
    for n in [0, random.next(len + 2), random.next(len + 2), len] {
        let (mut front, mut back) = (range(), range());
        let inside = |at: usize| if at < len { key(low + at) } else { None };
        assert_eq!(front.nth_with(n, own_key).unwrap(), inside(n));
        assert_eq!(back.nth_back_with(n, own_key).unwrap(), inside(len.wrapping_sub(n + 1)));
        let rest = len.saturating_sub(n + 1) as u64;
        assert_eq!((front.left().unwrap(), back.left().unwrap()), (rest, rest));
        let next = if rest > 0 { inside(n + 1) } else { None };
        assert_eq!(range().nth_with(n + 1, own_key).unwrap(), next);
        assert_eq!(front.next_with(own_key).unwrap(), next);
    }
    let mut cursor = tree.cursor();
    assert_eq!((cursor.rank().unwrap(), cursor.peek_prev(own_key).unwrap()), (0, None));
    assert_eq!(cursor.peek_next(own_key).unwrap(), key(0));
    cursor.seek_last();
    assert_eq!(cursor.rank().unwrap(), keys.len() as u64);
    let last = keys.last().map(|key| key.to_vec());
    assert_eq!(cursor.peek_prev(own_key).unwrap(), last);
    assert_eq!(cursor.prev(own_key).unwrap(), last);
    cursor.seek(keys.get(high).copied()).unwrap();
    assert_eq!(cursor.rank().unwrap(), high as u64);
    cursor.seek_rank(low as u64).unwrap();
    let mut gap = low;
    for _ in 0..20 {
        assert_eq!(cursor.rank().unwrap(), gap as u64);
        let peeked = (cursor.peek_next(own_key).unwrap(), cursor.peek_prev(own_key).unwrap());
        assert_eq!(peeked, (key(gap), key(gap.wrapping_sub(1))));
        if random.next(2) == 0 {
            assert_eq!(cursor.next(own_key).unwrap(), key(gap));
            gap = (gap + 1).min(keys.len());
        } else {
            assert_eq!(cursor.prev(own_key).unwrap(), key(gap.wrapping_sub(1)));
            gap = gap.saturating_sub(1);
        }
    }
}

pub(super) fn random_key(random: &mut Random, longest: usize) -> Vec<u8> {
    let len = match random.next(8) {
        0 => random.next(longest + 1),
        _ => random.next(6),
    };
    (0..len).map(|i| if i < 1500 && len > 1000 { 7 } else { b"ab\0\xff"[random.next(4)] }).collect()
}

fn history(seed: u64, steps: usize, longest: usize) {
    let mut random = Random(seed);
    let mut epoch = Epoch::first();
    let mut tree = Tree::new(2);
    let mut model = BTreeMap::new();
    let mut kept = Vec::new();
    let mut published = (tree.clone(), model.clone());
    for step in 0..steps {
        let key = random_key(&mut random, longest);
        // Waves of growth and of shrinking.
        if random.next(100) < if step / 500 % 2 == 0 { 75 } else { 25 } {
            let value = vec![u8::try_from(random.next(256)).unwrap(), 1];
            tree.insert(&key, &value, &epoch).unwrap();
            model.insert(key, value);
        } else {
            assert_eq!(tree.remove(&key, &epoch).unwrap(), model.remove(&key).is_some());
        }
        if step % 97 == 0 {
            epoch.advance();
            // Now and then a transaction is rolled back.
            if random.next(3) == 0 {
                (tree, model) = published.clone();
            }
            published = (tree.clone(), model.clone());
            tree.check().unwrap();
            let keys: Vec<_> = model.keys().map(Vec::as_slice).collect();
            look(&tree, &keys, &mut random);
            if step % 970 == 0 {
                kept.push((tree.clone(), model.clone()));
            }
        }
        let (low, high) = (random_key(&mut random, 9), random_key(&mut random, 9));
        let found = keys_of(tree.range(&low, Some(&high)).unwrap());
        let expected: Vec<_> =
            model.keys().map(Vec::as_slice).filter(|&k| k >= &low[..] && k < &high[..]).collect();
        assert_eq!(found, expected, "seed {seed}, step {step}");
        let floor = model.range(..=low.clone()).next_back().map(|(key, _)| key.clone());
        assert_eq!(tree.floor(&low, own_key).unwrap(), floor);
    }
    kept.push((tree, model));
    for (tree, model) in &kept {
        same(tree, model);
        let keys: Vec<_> = model.keys().map(Vec::as_slice).collect();
        (0..sized(30, 2)).for_each(|_| look(tree, &keys, &mut random));
    }
}

/// How large a test is: Miri takes its time.
pub(super) const fn sized(many: usize, few: usize) -> usize {
    if cfg!(miri) { few } else { many }
}

#[test]
fn random_histories_agree_with_a_map() {
    for seed in 1..4 {
        history(seed * 7919, sized(2500, 40), 40);
    }
}

#[test]
fn long_keys_order_right() {
    history(42, sized(2000, 40), 2500);
}

/// Keys that fill their nodes with few entries make trees of many levels.
#[test]
fn counts_hold_in_a_tree_of_many_levels() {
    let (mut random, mut epoch, mut tree) = (Random(99), Epoch::first(), Tree::new(0));
    let mut model = BTreeSet::new();
    let mut highest = 0;
    for wave in 0..4 {
        for _ in 0..sized(5000, 20) {
            let mut key = vec![5; 1000];
            key.extend((0..4).map(|_| u8::try_from(random.next(40)).unwrap()));
            if random.next(100) < [95, 10, 80, 1][wave] {
                tree.insert(&key, &[], &epoch).unwrap();
                model.insert(key);
            } else if let Some(near) = model.range(key..).next().cloned() {
                assert!(tree.remove(&near, &epoch).unwrap() && model.remove(&near));
            }
            highest = highest.max(tree.height);
        }
        epoch.advance();
        let before = tree.clone();
        tree.check().unwrap();
        let keys: Vec<_> = model.iter().map(Vec::as_slice).collect();
        (0..sized(50, 2)).for_each(|_| look(&tree, &keys, &mut random));
        for key in model.iter().step_by(2) {
            assert!(tree.remove(key, &epoch).unwrap());
        }
        tree.check().unwrap();
        tree = before;
        tree.check().unwrap();
    }
    assert!(highest >= sized(3, 1), "{highest}");
    model.iter().for_each(|key| assert!(tree.remove(key, &epoch).unwrap()));
    tree.check().unwrap();
    look(&tree, &[], &mut random);
}

#[test]
fn keys_in_order_fill_their_nodes() {
    let epoch = Epoch::first();
    let mut tree = Tree::new(0);
    let count = sized(100_000, 200);
    for i in 0..count {
        tree.insert(format!("{i:08}").as_bytes(), &[], &epoch).unwrap();
    }
    tree.check().unwrap();
    assert!(tree.memory(Counted::All) < count * 17 + 30_000, "{} bytes", tree.memory(Counted::All));
    let found = keys_of(tree.range(b"00000150", Some(b"00000153")).unwrap());
    assert_eq!(found, [b"00000150", b"00000151", b"00000152"]);
}

/// Keys of which each begins with a cluster: of clusters that grow at the same time, or one after the other.
fn clusters(clusters: usize, each: usize, in_turn: bool, epoch: &Epoch) -> Tree {
    let mut tree = Tree::new(0);
    for n in 0..clusters * each {
        let (cluster, i) = match in_turn {
            true => (n % clusters, n / clusters),
            false => (n / each * 7919 % clusters, n % each),
        };
        tree.insert(format!("{cluster:06}{i:06}").as_bytes(), &[], epoch).unwrap();
    }
    tree.check().unwrap();
    tree
}

#[test]
fn keys_in_order_within_clusters_fill_their_nodes() {
    let epoch = Epoch::first();
    // An entry takes 20 bytes, and 24 in nodes of which a sixth is empty.
    for in_turn in [true, false] {
        let tree = clusters(5, sized(20_000, 50), in_turn, &epoch);
        let memory = tree.memory(Counted::All);
        assert!(memory < sized(100_000, 250) * 23 + 60_000, "{memory} bytes");
    }
}

#[test]
fn small_clusters_leave_no_thin_nodes() {
    let epoch = Epoch::first();
    for each in [1, 10, 100, 300, 500, 700, 1000] {
        for in_turn in [true, false] {
            let count = sized(50_000, 200) / each;
            let tree = clusters(count, each, in_turn, &epoch);
            let (memory, entries) = (tree.memory(Counted::All), count * each);
            assert!(memory < entries * 52 + 60_000, "{each} {in_turn}: {memory} bytes");
        }
    }
}

#[test]
fn churn_does_not_grow_the_tree() {
    let epoch = Epoch::first();
    let mut tree = Tree::new(0);
    let kept = sized(1000, 20);
    for i in 0..sized(60_000, 100) {
        tree.insert(format!("{i:08}").as_bytes(), &[], &epoch).unwrap();
        if i >= kept {
            assert!(tree.remove(format!("{:08}", i - kept).as_bytes(), &epoch).unwrap());
        }
    }
    tree.check().unwrap();
    assert!(tree.memory(Counted::All) < 200_000, "{} bytes", tree.memory(Counted::All));
}
