//! The tree against `BTreeMap`.

use std::collections::BTreeMap;

use super::super::Tree;
use crate::store::page::Epoch;

/// A small generator of random numbers (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % below as u64).unwrap()
    }
}

fn same(tree: &Tree, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
    tree.check().unwrap();
    let all: Vec<_> = model.iter().map(|(k, v)| (k.as_slice(), v.as_slice())).collect();
    assert_eq!(tree.len(), all.len() as u64);
    assert!(tree.range(&[], None).eq(all.iter().copied()));
    assert!(tree.range(&[], None).rev().eq(all.iter().rev().copied()));
}

fn random_key(random: &mut Random, longest: usize) -> Vec<u8> {
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
    for step in 0..steps {
        let key = random_key(&mut random, longest);
        // Waves of growth and of shrinking.
        if random.next(100) < if step / 500 % 2 == 0 { 75 } else { 25 } {
            let value = vec![u8::try_from(random.next(256)).unwrap(), 1];
            tree.insert(&key, &value, &epoch);
            model.insert(key, value);
        } else {
            assert_eq!(tree.remove(&key, &epoch), model.remove(&key).is_some());
        }
        if step % 97 == 0 {
            epoch.advance();
            if step % 970 == 0 {
                kept.push((tree.clone(), model.clone()));
            }
        }
        let (low, high) = (random_key(&mut random, 9), random_key(&mut random, 9));
        let found: Vec<_> = tree.range(&low, Some(&high)).map(|(key, _)| key).collect();
        let expected: Vec<_> =
            model.keys().map(Vec::as_slice).filter(|&k| k >= &low[..] && k < &high[..]).collect();
        assert_eq!(found, expected, "seed {seed}, step {step}");
        let floor = model.range(..=low.clone()).next_back().map(|(key, _)| key.as_slice());
        assert_eq!(tree.floor(&low).map(|(key, _)| key), floor);
    }
    kept.push((tree, model));
    kept.iter().for_each(|(tree, model)| same(tree, model));
}

#[test]
fn random_histories_agree_with_a_map() {
    for seed in 1..4 {
        history(seed * 7919, 2500, 40);
    }
}

#[test]
fn long_keys_order_right() {
    history(42, 2000, 2500);
}

#[test]
fn keys_in_order_fill_their_nodes() {
    let epoch = Epoch::first();
    let mut tree = Tree::new(0);
    for i in 0..100_000_u32 {
        tree.insert(format!("{i:08}").as_bytes(), &[], &epoch);
    }
    tree.check().unwrap();
    assert!(tree.memory() < 100_000 * 17, "{} bytes", tree.memory());
    let found: Vec<_> = tree.range(b"00050000", Some(b"00050003")).map(|(key, _)| key).collect();
    assert_eq!(found, [b"00050000", b"00050001", b"00050002"]);
}

#[test]
fn churn_does_not_grow_the_tree() {
    let epoch = Epoch::first();
    let mut tree = Tree::new(0);
    for i in 0..60_000_u32 {
        tree.insert(format!("{i:08}").as_bytes(), &[], &epoch);
        if i >= 1000 {
            assert!(tree.remove(format!("{:08}", i - 1000).as_bytes(), &epoch));
        }
    }
    tree.check().unwrap();
    assert!(tree.memory() < 200_000, "{} bytes", tree.memory());
}
