//! Roots that reach what is damaged are dropped, and no others.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use annals::reports::{BackfillProgress, Restarting};
use annals::{BackfillMode, Options, Txid, ValueRef};
use annals_simulated::Rng;

use super::damage::{
    TAG, UNIT, ask, change, content, copy, damage_each, define, expected, make, reported,
};
use super::image_of;

/// Makes a database whose image keeps each older root as a key frame; returns the transactions that it was brought
/// forward to.
fn make_frames(folder: &Path) -> (PathBuf, Vec<u64>) {
    let path = folder.join("a.annals");
    let db = options().open(&path).unwrap();
    db.write(define).unwrap();
    let (mut rng, mut txids) = (Rng::new(5), Vec::new());
    for _ in 0..6 {
        db.write(|tx| change(tx, &mut rng, 30)).unwrap();
        txids.push(db.backfill(BackfillMode::Full).unwrap().txid.0);
    }
    db.close().unwrap();
    (path, txids)
}

fn options() -> Options {
    Options::new().background(false).key_frame_spacing(1)
}

/// The number of the newest root, if nothing is wrong with the image.
fn root(path: &Path) -> u64 {
    let check = annals_tools::check_image(&Options::new(), path).unwrap().unwrap();
    assert_eq!(check.problem, None);
    check.root
}

#[test]
fn a_damaged_key_frame_costs_that_key_frame_and_nothing_else() {
    frames_dropped();
}

/// Damages what only key frames reach, and looks at the past and the present.
pub(crate) fn frames_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let (path, txids) = make_frames(folder.path());
    let (present, newest) = (expected(&path), root(&path));
    let without = copy(&path, tempfile::tempdir().unwrap().keep().as_path(), b"");
    std::fs::remove_file(image_of(&without)).unwrap();
    let replayed = options().open(&without).unwrap();
    let past: Vec<_> =
        txids.iter().map(|&txid| content(&replayed.at(Txid(txid)).unwrap()).unwrap()).collect();
    let mut dropped = 0;
    damage_each(&path, 3, |path, _, at| {
        let db = options().open(path).unwrap();
        ask(&present, || content(&db.read()));
        let is_newest = !reported(&db).is_empty();
        for (txid, past) in txids.iter().zip(&past) {
            ask(past, || content(&db.at(Txid(*txid))?));
        }
        if is_newest || reported(&db).is_empty() {
            return; // of the newest root, or free
        }
        dropped += 1;
        // The newest root stays without that part of its history index, in the other slot, for one backfill more.
        let is_of_index = reported(&db).iter().all(|it| it.contains("reading the past faster"));
        let backfills = 1 + u64::from(is_of_index);
        for _ in 0..backfills {
            let tag = [ValueRef::String("x"), ValueRef::Float64(1.0)];
            db.write(|tx| tx.insert(TAG, &tag).map(drop)).unwrap();
            db.backfill(BackfillMode::Full).unwrap();
        }
        assert_eq!(root(path), newest + backfills, "the newest root was kept: {:?}", reported(&db));
        drop(db);
        let db = options().open(path).unwrap();
        for (txid, past) in txids.iter().zip(&past) {
            assert!(content(&db.at(Txid(*txid)).unwrap()).unwrap() == *past, "{at}");
        }
        assert_eq!(reported(&db), Vec::<String>::new(), "what was dropped isn't met again");
    });
    assert!(dropped > 5, "{dropped}");
}

#[test]
fn no_root_is_published_that_reaches_what_is_known_to_be_damaged() {
    none_published();
}

/// Lets a reader meet damage while the image is brought forward.
pub(crate) fn none_published() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 40);
    let mut met = 0;
    damage_each(&path, 4, |path, unit, at| {
        let Ok(db) = Options::new().background(false).open(path) else { return };
        let (now, mut is_met) = (db.read(), false);
        let tag = [ValueRef::String("y"), ValueRef::Float64(1.0)];
        if db.write(|tx| tx.insert(TAG, &tag)).is_err() {
            return;
        }
        let watch: &mut dyn FnMut(BackfillProgress) -> ControlFlow<()> = &mut |_| {
            is_met |= content(&now).is_err();
            ControlFlow::Continue(())
        };
        db.backfill_with(BackfillMode::Full, Restarting::default(), watch).unwrap();
        met += usize::from(is_met);
        let check = annals_tools::check_image(&Options::new(), path).unwrap().unwrap();
        assert!(!is_met || check.problem.is_none(), "{unit:?} at {at}: {:?}", reported(&db));
    });
    assert!(met > 2, "{met}");
}

#[test]
fn a_root_whose_slot_is_damaged_leaves_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 30);
    let (expected, sound) = (expected(&path), std::fs::read(image_of(&path)).unwrap());
    let newest = root(&path);
    for (slots, is_left) in [(&[1][..], true), (&[2], true), (&[1, 2], false)] {
        let mut image = sound.clone();
        for slot in slots {
            image[slot * UNIT..(slot + 1) * UNIT].fill(0x5a);
        }
        let path = copy(&path, folder.path(), &image);
        let db = Options::new().open(&path).unwrap();
        ask(&expected, || content(&db.read()));
        let aside = path.with_file_name("b.annals-image-damaged");
        assert_eq!(aside.exists(), !is_left, "{:?}", reported(&db));
        db.backfill(BackfillMode::Full).unwrap();
        db.close().unwrap();
        if is_left {
            assert!(root(&path) >= newest, "{slots:?}");
        }
        let _ = std::fs::remove_file(aside);
    }
}
