//! Trees that were saved and loaded, against `BTreeMap`; and pages that mean harm.

use std::sync::Arc;

use super::{Model, Random, keys_of, look, owned, random_key, same, sized};
use crate::btree::Tree;
use crate::pages::page::Epoch;
use crate::pages::paged::Counted;
use crate::pages::pager::Pager;
use crate::pages::save::Saved;
use crate::pages::testing::{TestImage, load};

/// The size of the cache if the pager doesn't keep loaded pages: a few pages in all.
const SMALL: u64 = 16 * 40_000;

fn loaded(saved: &Saved, pager: &Arc<Pager>) -> Tree {
    load(saved, pager, |input| Tree::load(input, 2)).unwrap()
}

/// Changes at random.
#[derive(Clone, Copy)]
struct Steps {
    count: usize,
    /// Whether more is inserted than removed.
    grows: bool,
    /// How long the longest key is.
    longest: usize,
}

/// Inserts and removes at random, on both sides.
fn change(tree: &mut Tree, model: &mut Model, steps: Steps, epoch: &Epoch, random: &mut Random) {
    for _ in 0..steps.count {
        let key = random_key(random, steps.longest);
        if random.next(100) < if steps.grows { 75 } else { 30 } {
            let value = vec![u8::try_from(random.next(256)).unwrap(), 1];
            tree.insert(&key, &value, epoch).unwrap();
            model.insert(key, value);
        } else {
            // An existing one, if there is one after it.
            let near = model.range(key.clone()..).next().map_or(key, |(near, _)| near.clone());
            let was_there = model.remove(&near).is_some();
            assert_eq!(tree.remove(&near, epoch).unwrap(), was_there);
        }
    }
}

fn compare(tree: &Tree, model: &Model, random: &mut Random) {
    same(tree, model);
    let keys: Vec<_> = model.keys().map(Vec::as_slice).collect();
    (0..sized(5, 1)).for_each(|_| look(tree, &keys, random));
}

/// Repeatedly saves a published tree while its successor is changed, continues from the saved one, and loads it too.
fn history(seed: u64, keeps: bool, longest: usize) {
    let (image, pager) = TestImage::new(if keeps { u64::MAX } else { SMALL }, keeps);
    image.set_packing(seed.is_multiple_of(2));
    let mut random = Random(seed);
    let mut epoch = Epoch::first();
    let (mut tree, mut model) = (Tree::new(2), Model::new());
    let mut kept: Vec<(Tree, Model)> = Vec::new();
    for round in 0..sized(12, 3) {
        let steps = Steps { count: sized(600, 20), grows: round % 4 < 2, longest };
        change(&mut tree, &mut model, steps, &epoch, &mut random);
        let (published, then) = (tree.clone(), model.clone());
        epoch.advance();
        change(&mut tree, &mut model, steps, &epoch, &mut random);
        let saved = image.save(&pager, |out| published.save(out));
        tree.rebase(&saved);
        compare(&tree, &model, &mut random);
        let copy = loaded(&saved, &pager);
        compare(&copy, &then, &mut random);
        if round % 5 == 3 {
            // The database is opened again.
            (tree, model) = (copy, then.clone());
        } else {
            kept.push((copy, then.clone()));
        }
        kept.push((published, then));
        epoch.advance();
    }
    kept.iter().for_each(|(tree, model)| compare(tree, model, &mut random));
    // An empty tree leaves nothing in the image.
    for key in model.keys() {
        assert!(tree.remove(key, &epoch).unwrap());
    }
    epoch.advance();
    let saved = image.save(&pager, |out| tree.save(out));
    let empty = loaded(&saved, &pager);
    compare(&empty, &Model::new(), &mut random);
}

#[test]
fn saved_trees_agree_with_a_map() {
    for seed in 1..4 {
        history(seed * 6151, true, 40);
        history(seed * 6151 + 1, false, 40);
    }
}

#[test]
fn saved_long_keys_agree_with_a_map() {
    history(77, true, 2500);
    history(78, false, 2500);
}

#[test]
fn what_did_not_change_is_not_stored_again() {
    let (image, pager) = TestImage::new(u64::MAX, true);
    let mut epoch = Epoch::first();
    let mut tree = Tree::new(0);
    for i in 0..sized(20_000, 4000) {
        tree.insert(format!("{i:08}").as_bytes(), &[], &epoch).unwrap();
    }
    epoch.advance();
    let saved = image.save(&pager, |out| tree.save(out));
    let taken = tree.memory(Counted::All);
    tree.rebase(&saved);
    // A stored item stays cached, and exists once.
    assert!(tree.memory(Counted::All) <= taken, "{} bytes of {taken}", tree.memory(Counted::All));
    let (before, read) = (image.live(), pager.loaded());
    assert!(tree.remove(b"00000500", &epoch).unwrap());
    epoch.advance();
    tree.rebase(&image.save(&pager, |out| tree.save(out)));
    assert_eq!(
        image.live(),
        before,
        "a leaf and the nodes that lead to it take the old ones' place"
    );
    assert_eq!(pager.loaded(), read, "what was stored from memory isn't loaded again");
    // A search for a key takes a page for each level.
    let copy =
        load(&image.save(&pager, |out| tree.save(out)), &pager, |i| Tree::load(i, 0)).unwrap();
    let found = copy.first_with(b"0000050", |key, _| key.to_vec()).unwrap();
    assert_eq!((found.as_deref(), copy.height), (Some(&b"00000501"[..]), 1));
    assert!(pager.loaded() - read <= 2 * 16 * 1024);
}

#[test]
fn nodes_that_are_freed_during_the_first_backfill_stay_free() {
    let (image, pager) = TestImage::new(u64::MAX, true);
    let (mut random, mut epoch) = (Random(5), Epoch::first());
    let (mut tree, mut model) = (Tree::new(2), Model::new());
    let steps = Steps { count: sized(2000, 100), grows: true, longest: 1500 };
    change(&mut tree, &mut model, steps, &epoch, &mut random);
    let (published, then) = (tree.clone(), std::mem::take(&mut model));
    epoch.advance();
    then.keys().for_each(|key| assert!(tree.remove(key, &epoch).unwrap()));
    let saved = image.save(&pager, |out| published.save(out));
    tree.rebase(&saved);
    compare(&tree, &model, &mut random);
    change(&mut tree, &mut model, steps, &epoch, &mut random);
    compare(&tree, &model, &mut random);
    compare(&loaded(&saved, &pager), &then, &mut random);
}

#[test]
fn a_range_ends_at_an_error_and_a_cursor_stays() {
    let (image, pager) = TestImage::new(u64::MAX, true);
    let mut epoch = Epoch::first();
    let mut tree = Tree::new(0);
    for i in 0..4000 {
        tree.insert(format!("{i:08}").as_bytes(), &[], &epoch).unwrap();
    }
    epoch.advance();
    let saved = image.save(&pager, |out| tree.save(out));
    let tree = load(&saved, &pager, |input| Tree::load(input, 0)).unwrap();
    let mut range = tree.range(b"00000010", Some(b"00003000")).unwrap();
    let mut cursor = tree.cursor();
    cursor.seek(Some(b"00000010")).unwrap();
    image.set_broken(true);
    let mut given = 0;
    let error = loop {
        match range.next_with(owned) {
            Ok(Some(_)) => given += 1,
            Ok(None) => panic!("an error comes before the end"),
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("broke"), "{error}");
    assert!(range.next_with(owned).unwrap().is_none() && range.left().unwrap() == 0);
    let walked = std::iter::from_fn(|| cursor.next(owned).ok()).count();
    assert_eq!(walked, given);
    image.set_broken(false);
    let key = format!("{:08}", 10 + given).into_bytes();
    assert_eq!(cursor.next(owned).unwrap(), Some((key, vec![])));
}

/// Whatever is in the pages, nothing panics, and everything ends.
#[test]
fn crafted_pages_lead_nowhere_else() {
    let mut refused = 0;
    for seed in 1..sized(400, 4) as u64 {
        let (image, pager) = TestImage::new(u64::MAX, seed % 2 == 0);
        image.set_packing(seed % 4 < 2);
        let mut random = Random(seed * 104_729);
        let mut epoch = Epoch::first();
        let (mut tree, mut model) = (Tree::new(2), Model::new());
        let longest = if seed % 3 == 0 { 2500 } else { 40 };
        let more = Steps { count: 800, grows: true, longest };
        let fewer = Steps { count: 100, grows: false, longest };
        for steps in [more, fewer] {
            change(&mut tree, &mut model, steps, &epoch, &mut random);
        }
        epoch.advance();
        let saved = image.save(&pager, |out| tree.save(out));
        for _ in 0..1 + random.next(12) {
            image.craft(|len| (random.next(len), u8::try_from(random.next(256)).unwrap()));
        }
        let mut tree = loaded(&saved, &pager);
        refused += usize::from(tree.check().is_err());
        abuse(&mut tree, &epoch, &mut random);
    }
    assert!(refused > sized(100, 0), "{refused}");
}

/// Does all that can be done with a tree; errors are fine.
fn abuse(tree: &mut Tree, epoch: &Epoch, random: &mut Random) {
    for _ in 0..sized(300, 10) {
        let (low, high) = (random_key(random, 2500), random_key(random, 9));
        _ = tree.insert(&low, &[1, 2], epoch);
        _ = tree.remove(&high, epoch);
        _ = tree.floor(&low, owned);
        _ = tree.first_with(&high, owned);
        if let Ok(mut range) = tree.range(&low, Some(&high)) {
            _ = (range.left(), range.size_hint());
            _ = range.nth_with(random.next(50), owned);
            _ = range.nth_back_with(random.next(50), owned);
            for _ in 0..100 {
                _ = (range.next_with(owned), range.next_back_with(owned));
            }
        }
        let mut cursor = tree.cursor();
        _ = cursor.seek_rank(random.next(500) as u64);
        _ = (cursor.rank(), cursor.peek_prev(owned), cursor.next(owned), cursor.prev(owned));
    }
    _ = tree.check();
}

#[test]
fn what_is_no_tree_is_refused() {
    let (image, pager) = TestImage::new(u64::MAX, true);
    let mut tree = Tree::new(2);
    tree.insert(b"a", &[1, 2], &Epoch::first()).unwrap();
    let tries: [fn(&mut Tree); 4] =
        [|t| t.len = 0, |t| t.height = 16, |t| t.root = crate::btree::NONE, |t| t.len = u64::MAX];
    for change in tries {
        let mut crafted = tree.clone();
        change(&mut crafted);
        let saved = image.save(&pager, |out| crafted.save(out));
        assert!(load(&saved, &pager, |input| Tree::load(input, 2)).is_err());
    }
    // The size of its values isn't the expected one.
    let saved = image.save(&pager, |out| tree.save(out));
    let other = load(&saved, &pager, |input| Tree::load(input, 0)).unwrap();
    assert!(other.range(&[], None).is_err());
    assert_eq!(keys_of(loaded(&saved, &pager).range(&[], None).unwrap()), [b"a"]);
}

#[test]
fn a_node_with_a_wrong_hint_is_none() {
    let (image, pager) = TestImage::new(u64::MAX, true);
    let (mut tree, mut epoch) = (Tree::new(0), Epoch::first());
    for number in 0..100 {
        tree.insert(format!("{number:03}").as_bytes(), &[], &epoch).unwrap();
    }
    epoch.advance();
    let saved = image.save(&pager, |out| tree.save(out));
    let find = || {
        let tree = load(&saved, &image.pager(u64::MAX, true), |input| Tree::load(input, 0));
        tree.unwrap().first_with(b"004", |key, _| key.to_vec())
    };
    assert_eq!(find().unwrap().unwrap(), b"004");
    // In the first page, which is the leaf, the lowest byte of the first hint.
    let mut chosen = [(0, 0), (0, 0), (16, 0xee)].into_iter();
    image.craft(|_| chosen.next().unwrap());
    assert!(find().is_err());
}
