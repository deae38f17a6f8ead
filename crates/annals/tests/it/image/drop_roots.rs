//! Roots that reach what is damaged are dropped, and no others.

use std::path::{Path, PathBuf};
use std::time::Duration;

use annals::storage::simulated::Rng;
use annals::{BackfillMode, ErrorKind, Options, RowId, Txid, ValueRef};

use super::damage::{
    ITEM, TAG, UNIT, change, content, copy, damage_each, define, expected, flip, make, reported,
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
    damage_each(&path, 3, |path, unit, at| {
        let db = options().open(path).unwrap();
        assert!(content(&db.read()).unwrap() == present, "{unit:?} at {at}");
        let is_newest = !reported(&db).is_empty();
        for (txid, past) in txids.iter().zip(&past) {
            let then = content(&db.at(Txid(*txid)).unwrap()).unwrap();
            assert!(then == *past, "{unit:?} at {at}, transaction {txid}");
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

/// Lets transactions meet damage before anything else does, and brings the image forward.
pub(crate) fn none_published() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 40);
    let mut met = 0;
    damage_each(&path, 4, |path, unit, at| {
        let Ok(db) = Options::new().background(false).open(path) else { return };
        let mut tx = db.begin().unwrap();
        let tag = [ValueRef::String("y"), ValueRef::Float64(1.0)];
        let met_here = tx.insert(TAG, &tag).is_ok() && {
            let rows = tx.view().table(ITEM).unwrap().rows();
            rows.last().is_some_and(|row| row.is_err())
                || tx.view().table(ITEM).unwrap().rows().any(|row| row.is_err())
        };
        tx.rollback().unwrap();
        if !met_here {
            return;
        }
        met += 1;
        db.backfill(BackfillMode::Full).unwrap();
        let check = annals_tools::check_image(&Options::new(), path).unwrap().unwrap();
        assert_eq!(check.problem, None, "{unit:?} at {at}: {:?}", reported(&db));
    });
    assert!(met > 5, "{met}");
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
        assert!(content(&db.read()).unwrap() == expected, "{slots:?}");
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

#[test]
fn who_does_not_want_to_wait_gets_an_error_of_its_own_kind() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 40);
    let expected = expected(&path);
    let mut late = 0;
    damage_each(&path, 6, |path, unit, at| {
        let Ok(db) = Options::new().rebuild_timeout(Duration::ZERO).open(path) else { return };
        let mut tries = 0;
        while let Err(error) = content(&db.read()) {
            assert_eq!(error.kind(), ErrorKind::PageLost, "{unit:?} at {at}: {error}");
            assert!(error.to_string().contains("Options::rebuild_timeout"), "{error}");
            late += 1;
            tries += 1;
            assert!(tries < 10_000, "{error}");
            annals::storage::Clock::pause(&annals::storage::SystemClock, Duration::from_millis(2));
        }
        assert!(content(&db.read()).unwrap() == expected, "{unit:?} at {at}");
    });
    assert!(late > 5, "{late}");
}

#[test]
fn a_transaction_that_has_changed_nothing_yet_goes_on_over_a_lost_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 40);
    let mut met = 0;
    damage_each(&path, 4, |path, unit, at| {
        let db = Options::new().open(path).unwrap();
        let before = db.read().table(ITEM).unwrap().len();
        let values = [
            ValueRef::String("item 500"),
            ValueRef::Int64(5),
            ValueRef::Null,
            ValueRef::Bool(true),
            ValueRef::Null,
        ];
        // An insert looks at each index, and at the pages that it appends to.
        db.write(|tx| tx.insert(ITEM, &values))
            .unwrap_or_else(|error| panic!("{unit:?} at {at}: {error}"));
        met += usize::from(!reported(&db).is_empty());
        let now = db.read();
        assert_eq!(now.table(ITEM).unwrap().len(), before + 1);
        content(&now).unwrap();
    });
    assert!(met > 3, "{met}");
}

#[test]
fn a_snapshot_of_before_is_read_on_while_commits_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 40);
    let expected = expected(&path);
    let image = std::fs::read(image_of(&path)).unwrap();
    for at in (3 * UNIT..image.len()).step_by(9 * UNIT) {
        let path = copy(&path, folder.path(), &image);
        let db = Options::new().open(&path).unwrap();
        let before = db.read();
        flip(&image_of(&path), at + 4);
        db.write(|tx| tx.comment("another transaction")).unwrap();
        let mut rows = before.table(ITEM).unwrap().rows();
        rows.next().unwrap().unwrap();
        db.write(|tx| tx.comment("yet another")).unwrap();
        let read = rows.map(Result::unwrap).count() as u64;
        assert_eq!(read + 1, before.table(ITEM).unwrap().len(), "{at}");
        let row = before.table(ITEM).unwrap().rows().next_back().unwrap().unwrap();
        assert!(before.table(ITEM).unwrap().contains(row.id()).unwrap());
        assert!(!before.table(ITEM).unwrap().contains(RowId(row.id().0 + 1)).unwrap());
        assert!(content(&before).unwrap() == expected, "{at}");
    }
}
