//! Keys with equal heads, and spots that stay valid after insertions.

use std::collections::BTreeSet;

use super::{Random, keys_of, look, sized};
use crate::btree::Tree;
use crate::pages::page::Epoch;

fn agree(tree: &Tree, model: &BTreeSet<Vec<u8>>) {
    tree.check().unwrap();
    let expected: Vec<_> = model.iter().cloned().collect();
    assert_eq!(keys_of(tree.range(&[], None).unwrap()), expected);
}

/// Some of the keys differ only after their head, in groups longer than the range of a hint.
#[test]
fn keys_with_equal_heads_are_told_apart() {
    let mut random = Random(4711);
    for groups in [1, 3, 40] {
        let (epoch, mut tree, mut model) = (Epoch::first(), Tree::new(0), BTreeSet::new());
        for _ in 0..sized(3000, 60) {
            let mut key = vec![u8::try_from(random.next(groups)).unwrap() * 6];
            key.extend([[0; 9], [0xff; 9]][random.next(2)]);
            key.truncate(10 - random.next(3));
            key.extend((0..random.next(3)).map(|_| u8::try_from(random.next(256)).unwrap()));
            if random.next(4) > 0 {
                tree.insert(&key, &[], &epoch).unwrap();
                model.insert(key);
            } else {
                assert_eq!(tree.remove(&key, &epoch).unwrap(), model.remove(&key));
            }
        }
        agree(&tree, &model);
        let keys: Vec<_> = model.iter().map(Vec::as_slice).collect();
        (0..sized(200, 2)).for_each(|_| look(&tree, &keys, &mut random));
        for key in &keys {
            let rest = |found: &[u8], _: &[u8]| found.to_vec();
            assert_eq!(tree.first_with(key, rest).unwrap().as_deref(), Some(*key));
        }
    }
}

/// Entries of equal keys make separators longer than the key, which remain when the entries are removed.
#[test]
fn a_spot_is_right_for_whatever_follows_the_key() {
    let mut random = Random(815);
    let (epoch, mut tree) = (Epoch::first(), Tree::new(0));
    let mut model: BTreeSet<Vec<u8>> = BTreeSet::new();
    let (mut used, mut without) = (0, 0);
    for step in 0..sized(6000, 100) {
        let mut key = vec![7; [3, 900][random.next(2)]];
        key.extend([u8::try_from(random.next(9)).unwrap(), 0, 0]);
        let behind = model.range(key.clone()..);
        let group: Vec<Vec<u8>> =
            behind.take_while(|entry: &&Vec<u8>| entry.starts_with(&key)).cloned().collect();
        let id = u64::try_from(random.next(1000)).unwrap().to_le_bytes();
        let entry = [&key[..], &id].concat();
        match random.next(8) {
            0 => group.iter().for_each(|entry| {
                assert!(tree.remove(entry, &epoch).unwrap() && model.remove(entry));
            }),
            1..4 => {
                let own = |found: &[u8], _: &[u8]| found.to_vec();
                let (found, spot) = tree.first_or_spot(&key, own).unwrap();
                assert_eq!(found, group.first().cloned());
                if found.is_some() {
                    continue;
                }
                match &spot {
                    Some(spot) => tree.insert_at(spot, &entry, &[], &epoch).unwrap(),
                    None => tree.insert(&entry, &[], &epoch).unwrap(),
                }
                *[&mut without, &mut used][usize::from(spot.is_some())] += 1;
                model.insert(entry);
            }
            _ => {
                tree.insert(&entry, &[], &epoch).unwrap();
                model.insert(entry);
            }
        }
        if step % 20 == 0 {
            agree(&tree, &model);
        }
    }
    agree(&tree, &model);
    assert!(cfg!(miri) || (used > 100 && without > 5), "{used} spots, {without} times none");
}
