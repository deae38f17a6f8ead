//! Trees into which keys are merged, against trees that get them one by one.
#![expect(clippy::big_endian_bytes, reason = "big-endian numbers compare as their bytes do")]

use std::collections::BTreeSet;

use super::{Random, random_key, same};
use crate::btree::node::Node;
use crate::btree::{NONE, Tree};
use crate::pages::page::Epoch;

/// Merges keys, which are sorted first.
fn merge(tree: &mut Tree, keys: &[Vec<u8>], epoch: &Epoch) {
    let mut sorted: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    sorted.sort_unstable();
    let mut sorted = sorted.into_iter().peekable();
    while sorted.peek().is_some() {
        tree.merge_next(&mut sorted, epoch).unwrap();
    }
}

/// Counts the leaves of a tree.
fn leaves(tree: &Tree) -> usize {
    fn below(tree: &Tree, number: u32, level: usize) -> usize {
        if level == tree.height {
            return 1;
        }
        let page = tree.inner(number).unwrap();
        let node = Node::new(&page);
        (0..node.count()).map(|at| below(tree, node.child(at), level + 1)).sum()
    }
    if tree.root == NONE { 0 } else { below(tree, tree.root, 0) }
}

/// Merges batches, compares the tree after each with one that got the same keys one by one, and returns how many leaves
/// both have.
fn compare(batches: impl IntoIterator<Item = Vec<Vec<u8>>>) -> (usize, usize) {
    let mut epoch = Epoch::first();
    let (mut merged, mut single, mut model) = (Tree::new(0), Tree::new(0), super::Model::new());
    let mut before: Option<(Tree, u64)> = None;
    for (number, batch) in batches.into_iter().enumerate() {
        merge(&mut merged, &batch, &epoch);
        for key in batch {
            single.insert(&key, &[], &epoch).unwrap();
            model.insert(key, Vec::new());
        }
        if number % 4 == 0 {
            same(&merged, &model);
            // A reader has what it had.
            if let Some((tree, len)) = before.replace((merged.clone(), merged.len())) {
                tree.check().unwrap();
                assert_eq!(tree.len(), len);
            }
            epoch.advance();
        }
    }
    same(&merged, &model);
    same(&single, &model);
    for key in model.keys().step_by(7) {
        assert!(merged.remove(key, &epoch).unwrap(), "it can be changed as any other");
    }
    merged.check().unwrap();
    let both = (leaves(&merged), leaves(&single));
    (both.0.max(1), both.1.max(1))
}

fn numbers(numbers: impl Iterator<Item = u64>) -> Vec<Vec<u8>> {
    numbers.map(|number| number.to_be_bytes().repeat(3)).collect()
}

/// Leaves into which random keys are merged split at about the same time: so right after that there are some more.
fn assert_not_thin(what: &str, (merged, single): (usize, usize), more_percent: usize) {
    let most = single * (100 + more_percent) / 100 + 1;
    assert!(merged <= most, "{what}: {merged} leaves, one by one {single}");
}

#[test]
fn keys_of_all_kinds_are_merged() {
    for seed in 1..40 {
        let mut random = Random(seed * 77);
        let longest = if seed % 3 == 0 { 3000 } else { 40 };
        let batches = (0..30).map(|_| {
            let count = random.next(400);
            (0..count).map(|_| random_key(&mut random, longest)).collect()
        });
        compare(batches.collect::<Vec<Vec<_>>>());
    }
}

#[test]
fn random_keys_make_no_more_leaves_than_one_by_one() {
    for (size, batches) in [(1_u32, 3000), (100, 200), (3000, 20), (65_536, 2)] {
        let mut random = Random(u64::from(size) + 5);
        let random = std::cell::RefCell::new(&mut random);
        let next = |_| random.borrow_mut().next(1 << 40) as u64;
        let batches = (0..batches).map(|_| numbers((0..size).map(next)));
        assert_not_thin(&format!("batches of {size}"), compare(batches), 10);
    }
}

#[test]
fn ascending_keys_make_full_leaves() {
    for (size, batches) in [(1, 3000), (100, 200), (3000, 20)] {
        let batches = (0..batches).map(|batch| numbers(batch * size..(batch + 1) * size));
        assert_not_thin(&format!("batches of {size}"), compare(batches), 2);
    }
}

#[test]
fn ascending_clusters_make_no_more_leaves_than_one_by_one() {
    for (size, batches) in [(5, 2000), (100, 200), (3000, 20)] {
        let batches = (0..batches).map(|batch| {
            let cluster = |n: u64| (n * 7 % 5) << 40 | (batch * size + n);
            numbers((0..size).map(cluster))
        });
        assert_not_thin(&format!("batches of {size}"), compare(batches), 2);
    }
}

#[test]
fn the_order_of_merged_batches_doesnt_matter() {
    let all: Vec<_> = (0..20_000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let model: BTreeSet<Vec<u8>> = numbers(all.iter().copied()).into_iter().collect();
    for size in [1000, 7000, 20_000] {
        let (epoch, mut tree) = (Epoch::first(), Tree::new(0));
        for batch in all.chunks(size) {
            merge(&mut tree, &numbers(batch.iter().copied()), &epoch);
            // Again: nothing changes.
            merge(&mut tree, &numbers(batch.iter().copied()), &epoch);
        }
        assert!(
            super::keys_of(tree.range(&[], None).unwrap()).into_iter().eq(model.iter().cloned())
        );
        tree.check().unwrap();
    }
}
