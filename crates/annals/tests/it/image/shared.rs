//! Images that several handles read and bring forward, in turn.

use std::path::Path;

use annals::reports::BackfillOutcome;
use annals::{BackfillMode, Database, FieldNumber, Options, Reader, RowId};
use annals::{ErrorKind, Level, Snapshot, ValueRef};
use annals_tools::inspect;

use annals::IndexNumber;

use super::{TABLE, create, image_of, insert};

fn shared() -> Options {
    Options::new().shared(true).memory(64 << 10)
}

/// Returns all that there is, through rows and index.
fn dump(now: &Snapshot) -> Vec<String> {
    now.check().unwrap();
    let rows = now.table(TABLE).unwrap().rows().map(|row| format!("{:?}", row.unwrap()));
    let indexed = now.index(IndexNumber(0)).unwrap().rows();
    rows.chain(indexed.map(|row| format!("{:?}", row.unwrap()))).collect()
}

/// Makes a database with an image, and closes it.
fn begin(path: &Path) {
    let db = create(path);
    insert(&db, 0..5000);
    db.backfill(BackfillMode::Full).unwrap();
    db.close().unwrap();
}

fn update(db: &Database, step: usize) {
    db.write(|tx| {
        for id in (0..5000).step_by(step) {
            let number = i64::try_from(id * step).unwrap();
            tx.update(TABLE, RowId(id as u64), FieldNumber(1), ValueRef::Int64(number))?;
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn handles_bring_the_image_forward_in_turn_and_snapshots_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    begin(&path);
    let handles = [shared().open(&path).unwrap(), shared().open(&path).unwrap()];
    let mut held = Vec::new();
    for round in 0..12 {
        let handle = &handles[round % 2];
        update(handle, 3 + round);
        insert(handle, 0..10);
        let done = handle.backfill(BackfillMode::Full).unwrap();
        assert_eq!(done.outcome, BackfillOutcome::Advanced);
        assert_eq!(done.txid, handle.read().txid());
        assert_eq!(handle.image_error(), None);
        let now = handle.read();
        let all = dump(&now);
        held.push((now, all));
        let again = handle.backfill(BackfillMode::Passive).unwrap();
        assert_eq!(again.outcome, BackfillOutcome::UpToDate);
    }
    for (snapshot, all) in &held {
        assert_eq!(&dump(snapshot), all, "txid {}", snapshot.txid());
    }
    let (last, all) = held.pop().unwrap();
    let image = inspect(&Options::new(), &path).unwrap().image.unwrap();
    let newest = image.newest.unwrap();
    assert_eq!((newest.txid, newest.tail, newest.number), (last.txid(), 0, 13));
    assert!(!image.readers.is_empty(), "the snapshots are readers of older roots");
    let [one, two] = handles;
    // Snapshots outlive their handle, and continue to keep what they read.
    drop(one);
    for round in 0..4 {
        update(&two, 5 + round);
        two.backfill(BackfillMode::Full).unwrap();
    }
    for (snapshot, all) in &held {
        assert_eq!(&dump(snapshot), all, "txid {}", snapshot.txid());
    }
    assert_eq!(dump(&last), all);
    let all = dump(&two.read());
    drop((held, last));
    two.close().unwrap();
    let alone = Database::open(&path).unwrap();
    assert_eq!(alone.recovered().findings, [""; 0]);
    assert_eq!(dump(&alone.read()), all);
    alone.close().unwrap();
    std::fs::remove_file(image_of(&path)).unwrap();
    assert_eq!(dump(&Database::open(&path).unwrap().read()), all, "as replay gives it");
}

#[test]
fn a_snapshot_outlives_a_handle_that_was_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    begin(&path);
    let snapshot = Options::new().memory(64 << 10).open(&path).unwrap().read();
    let db = Database::open(&path).unwrap();
    let all = dump(&db.read());
    for round in 0..6 {
        update(&db, 2 + round);
        let done = db.backfill(BackfillMode::Full).unwrap();
        assert!(round == 0 || done.oldest_reader.is_some(), "{done:?}");
    }
    assert_eq!(dump(&snapshot), all);
    drop(snapshot);
    update(&db, 1);
    assert_eq!(db.backfill(BackfillMode::Full).unwrap().oldest_reader, None);
}

#[test]
fn nobody_waits_for_a_passive_backfill() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    begin(&path);
    let [one, two] = [shared(), shared()].map(|options| options.open(&path).unwrap());
    let mut transaction = one.begin().unwrap();
    transaction.update(TABLE, RowId(1), FieldNumber(1), ValueRef::Int64(7)).unwrap();
    for handle in [&one, &two] {
        let done = handle.backfill(BackfillMode::Passive).unwrap();
        assert_eq!(done.outcome, BackfillOutcome::Postponed);
    }
    let error = one.backfill(BackfillMode::Full).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    transaction.commit().unwrap();
    let done = two.backfill(BackfillMode::Passive).unwrap();
    assert_eq!((done.outcome, done.txid.0), (BackfillOutcome::Advanced, 3));
}

#[test]
fn an_image_that_cannot_be_used_is_replaced_by_whoever_may() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    begin(&path);
    let db = shared().open(&path).unwrap();
    update(&db, 3);
    let all = dump(&db.read());
    // Somebody damages the root that all would begin with.
    let mut bytes = std::fs::read(image_of(&path)).unwrap();
    bytes[4096..12288].fill(1);
    std::fs::write(image_of(&path), &bytes).unwrap();
    let late = shared().open(&path).unwrap();
    assert!(late.recovered().findings[0].contains("isn't used"), "{:?}", late.recovered());
    assert_eq!(dump(&late.read()), all);
    let reader = Reader::open(&annals::storage::FileDirectory::new(folder.path()), "a.annals");
    let reader = reader.unwrap();
    assert!(reader.findings()[0].contains("isn't used"), "{:?}", reader.findings());
    assert_eq!(dump(&reader.read()), all);
    let told = inspect(&Options::new(), &path).unwrap().image.unwrap();
    assert!(told.newest.unwrap_err().contains("root"));
    // It is set aside, and another made, which has all.
    let done = late.backfill(BackfillMode::Full).unwrap();
    assert_eq!(done.outcome, BackfillOutcome::Advanced);
    assert!(late.image_error().unwrap().contains("set aside"), "{:?}", late.image_error());
    assert!(folder.path().join("a.annals-image-damaged").exists());
    for handle in [&late, &db] {
        update(handle, 7);
        let done = handle.backfill(BackfillMode::Full).unwrap();
        assert_eq!(done.outcome, BackfillOutcome::Advanced);
        assert_eq!(done.txid, handle.read().txid());
    }
    let all = dump(&db.read());
    drop((db, late));
    let alone = Database::open(&path).unwrap();
    assert_eq!(alone.recovered().findings, [""; 0]);
    assert_eq!(dump(&alone.read()), all);
}

#[test]
fn the_last_one_to_close_leaves_an_image() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let db = create(&path);
    drop(db);
    let [one, two] = [shared(), shared()].map(|options| options.open(&path).unwrap());
    insert(&one, 0..5000);
    one.close().unwrap();
    assert!(!image_of(&path).exists(), "another one has it open");
    let all = dump(&two.pull().unwrap());
    two.close().unwrap();
    let image = inspect(&Options::new(), &path).unwrap().image.unwrap();
    assert_eq!(image.newest.map(|root| (root.txid.0, root.tail)), Ok((2, 0)));
    let db = Database::open(&path).unwrap();
    assert_eq!(dump(&db.read()), all);
}

#[test]
fn a_reader_begins_with_the_image_and_begins_anew_when_it_has_moved_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    begin(&path);
    let db = Database::open(&path).unwrap();
    let reader = |hard| Options::new().hard_only(hard).open_read_only(&path).unwrap();
    let [all, hard] = [reader(false), reader(true)];
    let readers = || inspect(&Options::new(), &path).unwrap().image.unwrap().readers;
    for round in 0..48 {
        db.write(|tx| {
            tx.set_level(if round % 3 == 0 { Level::Soft } else { Level::Checksummed });
            (0..5000).try_for_each(|id| {
                let number = i64::try_from(id).unwrap() * round;
                tx.update(TABLE, RowId(id), FieldNumber(1), ValueRef::Int64(number))
            })
        })
        .unwrap();
        all.pull().unwrap();
        hard.pull().unwrap();
        db.backfill(BackfillMode::Passive).unwrap();
        if round % 6 > 0 {
            continue;
        }
        let expected = dump(&db.read());
        assert_eq!(dump(&all.pull().unwrap()), expected);
        db.hard_checkpoint().unwrap();
        assert_eq!(dump(&hard.pull().unwrap()), expected);
        assert_eq!(dump(&reader(true).read()), expected);
    }
    // The journal has grown by more than 1 MiB since the first root, which nobody reads any more.
    assert!(readers().iter().all(|reader| reader.root > 2), "{:?}", readers());
    drop((all, hard, db));
    assert_eq!(readers(), []);
}

#[cfg(unix)]
#[test]
fn files_that_may_only_be_read_are_enough_for_a_reader() -> annals::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    begin(&path);
    let all = dump(&Database::open(&path)?.read());
    let image = image_of(&path);
    let files = [folder.path(), &*path, &*image];
    let set = |modes: [u32; 3]| {
        for (file, mode) in files.into_iter().zip(modes) {
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    set([0o555, 0o444, 0o444]);
    let reader = Options::new().open_read_only(&path)?;
    assert_eq!((reader.findings(), dump(&reader.read())), (&[][..], all.clone()));
    set([0o555, 0o444, 0o000]);
    let reader = Options::new().open_read_only(&path)?;
    // The superuser may do anything.
    let may_read = std::fs::read(&image).is_ok();
    assert_eq!(reader.findings().is_empty(), may_read, "{:?}", reader.findings());
    assert_eq!(dump(&reader.read()), all);
    set([0o755, 0o644, 0o644]);
    Ok(())
}

/// Two threads of each of two handles: the right to bring the image forward belongs to the thread that took it, not
/// to whoever else has the same file open.
#[test]
fn threads_of_several_handles_bring_the_image_forward() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    create(&path).close().unwrap();
    let patience = std::time::Duration::from_secs(100);
    let open = || Options::new().shared(true).lock_timeout(patience).open(&path).unwrap();
    let handles = [open(), open()];
    std::thread::scope(|scope| {
        for db in handles.iter().flat_map(|db| [db, db]) {
            scope.spawn(move || {
                for round in 0..40 {
                    insert(db, round..round + 1);
                    db.backfill(BackfillMode::Full).unwrap();
                }
            });
        }
    });
    assert_eq!(handles[0].image_error(), None);
}
