//! Journals that end before what the image beside them stands for: nobody goes on as if nothing were missing.

use std::path::{Path, PathBuf};

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
    let db = Options::new().small_history_index(4096, 1 << 20).open(&path).unwrap();
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
    let damage = || annals::examine(&path).unwrap().inspection.damage;
    assert!(damage().unwrap().contains("but the image beside it stands for"), "{:?}", damage());
    std::fs::remove_file(image_of(&path)).unwrap();
    // So does the history index, which never has more than the image does.
    assert!(damage().unwrap().contains("but the history index beside it"), "{:?}", damage());
    std::fs::remove_file(path.with_file_name("a.annals-history")).unwrap();
    assert_eq!(damage(), None);
    assert_eq!(dump(&Database::open(&path).unwrap()).len(), 6000);
}
