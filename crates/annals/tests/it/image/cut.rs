//! Journals that end before what the image beside them stands for: nobody continues as if nothing were missing.

use std::path::{Path, PathBuf};

use annals::reports::Older;
use annals::{BackfillMode, Database, ErrorKind, Options, Recovery};

use super::{create, dump, image_of, insert};

/// Makes a database of three segments with an image, and maybe some rows after the last root.
fn make(folder: &Path, tail: i64) -> PathBuf {
    let path = folder.join("a.annals");
    let db = create(&path);
    for round in 0..3 {
        insert(&db, round * 1000..(round + 1) * 1000);
        if round < 2 {
            db.backfill(BackfillMode::Restart).unwrap();
        }
    }
    db.backfill(BackfillMode::Full).unwrap();
    insert(&db, 3000..6000);
    db.backfill(BackfillMode::Full).unwrap();
    insert(&db, 6000..6000 + tail);
    db.close().unwrap();
    path
}

/// Opening is refused for writing and for reading, and changes nothing.
fn is_refused(path: &Path, what: &str) {
    let before = std::fs::read(path).unwrap();
    for opened in [
        Options::new().open(path).map(drop),
        Options::new().shared(true).open(path).map(drop),
        Options::new().open_read_only(path).map(drop),
    ] {
        let error = opened.expect_err(what);
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
        let text = error.to_string();
        assert!(text.contains("damaged") && text.contains("restore"), "{what}: {text}");
    }
    let folder = tempfile::tempdir().unwrap();
    let (options, to) = (Options::new(), |name| folder.path().join(name));
    for copied in [
        annals_tools::backup(&options, path, to("backup")).map(drop),
        annals_tools::convert(&options, path, to("convert"), false).map(drop),
        annals_tools::push(&options, path, to("push")).and_then(|mut it| it.bring_up()).map(drop),
    ] {
        let error = copied.expect_err(what);
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
    }
    assert!(std::fs::read(path).unwrap() == before, "{what}: nothing is written");
    assert!(image_of(path).exists(), "{what}: the image is kept");
}

#[test]
fn a_journal_that_was_cut_before_its_image_is_not_gone_on_with() {
    refused();
}

/// Cuts and zeroes a journal before what its image stands for.
pub(crate) fn refused() {
    [0, 10].into_iter().for_each(refused_behind);
}

fn refused_behind(tail: i64) {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), tail);
    let sound = std::fs::read(&path).unwrap();
    for len in [16384, 20000, sound.len() / 3, sound.len() / 2] {
        std::fs::write(&path, &sound[..len]).unwrap();
        is_refused(&path, &format!("cut to {len}"));
        let mut zeroed = sound.clone();
        zeroed[len..].fill(0);
        std::fs::write(&path, &zeroed).unwrap();
        is_refused(&path, &format!("zeroed from {len}"));
    }
    std::fs::write(&path, &sound).unwrap();
    let whole = dump(&Database::open(&path).unwrap());
    std::fs::remove_file(image_of(&path)).unwrap();
    assert_eq!(dump(&Database::open(&path).unwrap()), whole);
}

#[test]
fn a_journal_that_lacks_a_segment_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), 10);
    for number in [0, 1] {
        let kept = path.with_file_name(format!("a.annals-segment-{number:06}"));
        let bytes = std::fs::read(&kept).unwrap();
        std::fs::remove_file(&kept).unwrap();
        for shared in [false, true] {
            let error = Options::new().shared(shared).open(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert!(error.to_string().contains("missing"), "{error}");
        }
        if number == 1 {
            // The seal is gone.
            std::fs::write(&kept, &bytes[..bytes.len() - 8]).unwrap();
            let error = Options::new().open(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        }
        std::fs::write(&kept, &bytes).unwrap();
        assert!(image_of(&path).exists());
        drop(Database::open(&path).unwrap());
    }
}

#[test]
fn an_older_copy_of_the_journal_beside_its_image_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    create(&path).close().unwrap();
    let db = Options::new().open(&path).unwrap();
    insert(&db, 0..3000);
    db.hard_checkpoint().unwrap();
    let older = std::fs::read(&path).unwrap();
    insert(&db, 3000..9000);
    db.backfill(BackfillMode::Full).unwrap();
    db.close().unwrap();
    std::fs::write(&path, &older).unwrap();
    // No recovery takes back what the image proves, and looking at the file says why.
    for recovery in [Recovery::Checked, Recovery::Refuse, Recovery::ToHard, Recovery::ToSoft] {
        let error = Options::new().recovery(recovery).open(&path).unwrap_err();
        assert!(error.to_string().contains("delete the image"), "{recovery:?}: {error}");
    }
    assert!(std::fs::read(&path).unwrap() == older);
    let damage = || annals_tools::examine(&Options::new(), &path).unwrap().inspection.damage;
    assert!(damage().unwrap().contains("but the image beside it stands for"), "{:?}", damage());
    std::fs::remove_file(image_of(&path)).unwrap();
    assert_eq!(damage(), None);
    assert_eq!(dump(&Database::open(&path).unwrap()).len(), 6000);
}

/// Makes a database of some segments, each with a row of its own; returns its path and an older copy of it.
fn segmented(folder: &Path, segments: i64, is_full: bool) -> (PathBuf, Vec<u8>) {
    let path = folder.join("a.annals");
    let db = create(&path);
    insert(&db, 0..10);
    db.hard_checkpoint().unwrap();
    let older = std::fs::read(&path).unwrap();
    for segment in 1..segments {
        db.backfill(BackfillMode::Restart).unwrap();
        insert(&db, segment * 10..segment * 10 + 10);
    }
    if is_full {
        db.backfill(BackfillMode::Full).unwrap();
    }
    db.close().unwrap();
    (path, older)
}

fn kept(path: &Path, number: u64) -> PathBuf {
    path.with_file_name(format!("a.annals-segment-{number:06}"))
}

fn damage(path: &Path) -> Option<String> {
    annals_tools::examine(&Options::new(), path).unwrap().inspection.damage
}

#[test]
fn a_sealed_segment_at_the_path_does_not_hide_what_the_image_proves() {
    for is_moved in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (path, _) = segmented(folder.path(), 2, true);
        std::fs::remove_file(&path).unwrap();
        std::fs::copy(kept(&path, 0), &path).unwrap();
        if is_moved {
            std::fs::remove_file(kept(&path, 0)).unwrap();
        }
        is_refused(&path, "a sealed segment at the path");
        let damage = damage(&path).unwrap();
        assert!(damage.contains("but the image beside it stands for transaction"), "{damage}");
        assert!(folder.path().read_dir().unwrap().all(|file| {
            !file.unwrap().file_name().to_string_lossy().contains("image-damaged")
        }));
    }
}

#[test]
fn an_older_file_beside_later_segments_is_not_gone_on_with() {
    // Sealed or not, with the next segment beside it or only its own seal, with the image or without.
    for (is_sealed, segments, is_imaged) in
        [(true, 4, false), (false, 4, false), (false, 2, true), (false, 2, false)]
    {
        let folder = tempfile::tempdir().unwrap();
        // Then the last root is at the beginning of the next segment, with the same transaction.
        let (path, older) = segmented(folder.path(), segments, false);
        let what = format!("sealed: {is_sealed}, of {segments}, imaged: {is_imaged}");
        let older = if is_sealed { std::fs::read(kept(&path, 0)).unwrap() } else { older };
        std::fs::write(&path, &older).unwrap();
        if is_imaged {
            is_refused(&path, &what);
            continue;
        }
        std::fs::remove_file(image_of(&path)).unwrap();
        let last = format!("a.annals-segment-{:06}", segments - 2);
        for error in [
            Options::new().open(&path).map(drop).unwrap_err(),
            Options::new().shared(true).open(&path).map(drop).unwrap_err(),
            Options::new().open_read_only(&path).map(drop).unwrap_err(),
            annals_tools::backup(&Options::new(), &path, folder.path().join("backup"))
                .map(drop)
                .unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
            let text = error.to_string();
            assert!(text.contains("an older one") && text.contains(&last), "{what}: {text}");
        }
        assert!(damage(&path).unwrap().contains(&last), "{what}");
        assert!(std::fs::read(&path).unwrap() == older, "{what}: nothing is written");
        // The later segments are salvaged, and the last is known to be missing.
        let new = folder.path().join("new");
        let salvaged = annals_tools::salvage(&Options::new(), &path, &new).unwrap();
        assert!(!salvaged.is_complete(), "{what}: {salvaged:?}");
        assert_eq!(salvaged.missing, [u64::try_from(segments - 1).unwrap()], "{what}");
        assert_eq!(salvaged.replaced.is_some(), !is_sealed, "{what}");
        let rows = usize::try_from((segments - 1) * 20).unwrap(); // in the table and in its index
        assert_eq!(dump(&Database::open(&new).unwrap()).len(), rows, "{what}");
        // Who wants the older file moves the later ones away.
        for number in 0..3 {
            let _ = std::fs::remove_file(kept(&path, number));
        }
        assert_eq!(damage(&path), None, "{what}");
        assert_eq!(dump(&Database::open(&path).unwrap()).len(), 20, "{what}");
    }
}

#[test]
fn what_an_interrupted_restart_leaves_is_no_older_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, older) = segmented(folder.path(), 2, false);
    // The second name without the seal, and the seal without the next segment; copied, so that they are two files.
    let sealed = std::fs::read(kept(&path, 0)).unwrap();
    let _ = std::fs::remove_file(image_of(&path));
    for bytes in [older, sealed] {
        std::fs::write(&path, &bytes).unwrap();
        std::fs::write(kept(&path, 0), &bytes).unwrap();
        assert_eq!(damage(&path), None);
        let reader = Options::new().open_read_only(&path).unwrap();
        assert_eq!(reader.read().txid(), annals::Txid(2));
    }
    // A name is no proof.
    std::fs::remove_file(kept(&path, 0)).unwrap();
    let other = folder.path().join("b.annals");
    let db = create(&other);
    insert(&db, 0..1);
    db.restart(Older::Kept, std::time::Duration::ZERO).unwrap();
    db.close().unwrap();
    std::fs::rename(folder.path().join("b.annals-segment-000000"), kept(&path, 0)).unwrap();
    assert_eq!(damage(&path), None);
}
