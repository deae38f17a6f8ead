//! Images that are rebuilt while the database is open: one that lost its name, one that was mostly free.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use annals::reports::{BackfillOutcome, Restarting};
use annals::{BackfillMode, Database, ErrorKind, FieldNumber, Options, Result, RowId, ValueRef};

use super::{TABLE, create, dump, image_of, insert, wipe};

fn truncate(db: &Database) -> Result<annals::Backfilled> {
    let how = Restarting { timeout: Duration::ZERO, forget_history: false };
    db.backfill_with(BackfillMode::Truncate, how, &mut |_| ControlFlow::Continue(()))
}

/// Nothing is wrong with the image; returns the last transaction that it has.
fn imaged(path: &Path) -> u64 {
    let options = Options::new();
    let check = annals_tools::check_image(&options, path).unwrap().unwrap();
    assert_eq!(check.problem, None);
    let replayed = annals_tools::examine(&options, path).unwrap().snapshot;
    let compared = annals_tools::compare_image(&options, path, &replayed).unwrap().unwrap();
    assert_eq!(compared.difference, None);
    check.txid.0
}

#[test]
fn an_image_that_lost_its_name_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let image = image_of(&path);
    let db = create(&path);
    insert(&db, 0..5000);
    db.backfill(BackfillMode::Full).unwrap();
    let old = db.read();
    type Losing = fn(&Path);
    let losings: [Losing; 4] = [
        |image| std::fs::remove_file(image).unwrap(),
        |image| std::fs::rename(image, image.with_extension("elsewhere")).unwrap(),
        |image| {
            std::fs::remove_file(image).unwrap();
            std::fs::write(image, "something else").unwrap();
        },
        |image| {
            // A copy is another file, too.
            std::fs::copy(image, image.with_extension("copy")).unwrap();
            std::fs::rename(image.with_extension("copy"), image).unwrap();
        },
    ];
    for (number, lose) in (5000..).zip(losings) {
        lose(&image);
        insert(&db, number..number + 1);
        let before = dump(&db);
        // Whoever waits for nobody doesn't wait for a transaction.
        let tx = db.begin().unwrap();
        let passive = || db.backfill(BackfillMode::Passive).unwrap().outcome;
        let outcome = std::thread::scope(|scope| scope.spawn(passive).join().unwrap());
        assert_eq!(outcome, BackfillOutcome::Postponed);
        tx.rollback().unwrap();

        let done = db.backfill(BackfillMode::Passive).unwrap();
        assert_eq!((done.outcome, done.txid), (BackfillOutcome::Advanced, db.read().txid()));
        assert_eq!(imaged(&path), done.txid.0);
        assert_eq!(dump(&db), before);
    }
    assert_eq!(old.table(TABLE).unwrap().rows().filter(Result::is_ok).count(), 5000);
    let before = dump(&db);
    db.close().unwrap();
    assert_eq!(dump(&Database::open(&path).unwrap()), before);
}

/// Makes an image of which only a few rows in a hundred are left.
fn thin_out(db: &Database) {
    insert(db, 0..60_000);
    db.backfill(BackfillMode::Full).unwrap();
    let thin = |tx: &mut annals::Transaction<'_>| {
        (0..60_000).filter(|id| id % 6000 != 7).try_for_each(|id| tx.delete(TABLE, RowId(id)))
    };
    db.write(thin).unwrap();
}

#[test]
fn truncating_leaves_no_more_than_what_is_reached() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    drop(create(&path));
    let db = Options::new().memory(64 << 10).open(&path).unwrap();
    thin_out(&db);
    db.backfill(BackfillMode::Full).unwrap();
    let before = dump(&db);
    let len = || std::fs::metadata(image_of(&path)).unwrap().len();
    let (old, large) = (db.read(), len());
    db.backfill(BackfillMode::Full).unwrap();
    let done = truncate(&db).unwrap();
    assert_eq!(done.image_bytes, len());
    // The state, the nodes of the history index, and the node of the directory that leads to those.
    let nodes = annals_tools::inspect(&Options::new(), &path).unwrap().history.unwrap().nodes;
    let live = db.live_bytes().unwrap() + (nodes + 1) * 4096;
    assert!(len() <= live && len() < large / 5, "{} of {large}, {live} live", len());
    assert_eq!(imaged(&path), db.read().txid().0);
    // Whoever reads the old file continues, and everybody else continues from the copy.
    assert_eq!(old.table(TABLE).unwrap().rows().filter(Result::is_ok).count(), 10);
    assert_eq!(dump(&db), before);
    insert(&db, 70_000..70_100);
    db.write(|tx| tx.update(TABLE, RowId(7), FieldNumber(1), ValueRef::Int64(-1))).unwrap();
    let before = dump(&db);
    let done = db.backfill(BackfillMode::Passive).unwrap();
    // With so little memory what works in the background may have done it a moment before.
    assert_ne!(done.outcome, BackfillOutcome::Postponed);
    assert_eq!((done.txid, done.oldest_reader), (db.read().txid(), None));
    db.close().unwrap();
    assert_eq!(imaged(&path), done.txid.0);
    assert_eq!(dump(&Database::open(&path).unwrap()), before);
}

#[test]
fn truncating_copies_nothing_that_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let db = create(&path);
    insert(&db, 0..20_000);
    db.backfill(BackfillMode::Full).unwrap();
    let file = |path: &Path| {
        let inspection =
            annals_tools::examine(&Options::new(), path).unwrap().inspection.image.unwrap();
        inspection.newest.unwrap().number
    };
    let before = file(&path);
    insert(&db, 20_000..20_001);
    truncate(&db).unwrap();
    assert_eq!(file(&path), before + 2, "a root for each of its two backfills");
}

#[test]
fn several_processes_go_on_from_the_copy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    drop(create(&path));
    let open = || Options::new().shared(true).open(&path).unwrap();
    let (one, two) = (open(), open());
    thin_out(&one);
    two.pull().unwrap();
    let mut reader = Options::new().open_read_only(&path).ok();
    let large = std::fs::metadata(image_of(&path)).unwrap().len();
    // The other one's view of the first root keeps it waiting.
    insert(&two, 80_000..80_001);
    one.pull().unwrap();
    let done = truncate(&one).or_else(|error| {
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        drop(reader.take());
        two.backfill(BackfillMode::Full)?;
        truncate(&one)
    });
    let done = done.unwrap();
    assert!(done.image_bytes < large / 3, "{} of {large}", done.image_bytes);
    for (number, db) in (90_000..).zip([&two, &one, &two]) {
        insert(db, number..number + 1);
        let done = db.backfill(BackfillMode::Full).unwrap();
        assert_eq!((done.outcome, done.txid), (BackfillOutcome::Advanced, db.read().txid()));
        assert_eq!(imaged(&path), done.txid.0);
    }
    one.pull().unwrap();
    assert_eq!(dump(&one), dump(&two));
    assert_eq!((one.image_error(), two.image_error()), (None, None));
}

#[test]
fn damage_of_the_file_before_is_no_reason_to_leave_the_copy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let db = create(&path);
    insert(&db, 0..20_000);
    db.backfill(BackfillMode::Full).unwrap();
    db.close().unwrap();
    let db = Options::new().background(false).open(&path).unwrap();
    let old = db.read();
    let (image, elsewhere) = (image_of(&path), image_of(&path).with_extension("elsewhere"));
    std::fs::rename(&image, &elsewhere).unwrap();
    insert(&db, 20_000..20_001);
    db.backfill(BackfillMode::Full).unwrap();
    let newest = || {
        let inspection =
            annals_tools::examine(&Options::new(), &path).unwrap().inspection.image.unwrap();
        inspection.newest.unwrap().number
    };
    let before = newest();
    // The snapshot finds that nothing is left of what it reads.
    wipe(&elsewhere);
    assert!(old.table(TABLE).unwrap().rows().any(|row| row.is_err()));
    assert!(!db.image_damage().is_empty());
    insert(&db, 20_001..20_002);
    db.backfill(BackfillMode::Full).unwrap();
    assert_eq!(newest(), before + 1, "it is the same image");
    assert_eq!(imaged(&path), db.read().txid().0);
}
