//! Archives: what is uploaded can be restored to any moment, whatever fails meanwhile, and two uploaders don't mix.

mod erased;
mod faulty;
mod lazily;
mod retained;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use annals::reports::Older;
use annals::{
    Command, Cursor, Database, ErrorKind, FieldNumber, Moment, Options, TableNumber, Txid, Type,
    ValueRef,
};
use annals_replica::archive::{self, Archive, Bucket, Uploader};
use annals_replica::frames::Source;
use annals_replica::{Connection, Replica};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt as _};

use self::faulty::{Faults, Faulty};

pub(crate) const NOTE: TableNumber = TableNumber(0);
/// How long requests are tried again in these tests.
const PATIENCE: Duration = Duration::from_millis(300);

fn is_full() -> bool {
    std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full")
}

pub(crate) fn create(path: &Path) -> Database {
    with_schema(Options::new().open(path).expect("a database"))
}

fn with_schema(database: Database) -> Database {
    let field = Command::AddField {
        table: NOTE,
        name: "text".to_owned(),
        ty: Type::String,
        nullable: false,
        default: None,
    };
    let made = database.write(|tx| {
        tx.apply_command(&Command::CreateTable { name: "note".to_owned() })?;
        tx.apply_command(&field)
    });
    made.expect("a schema");
    database
}

/// Writes transactions; returns the cursor after each.
pub(crate) fn write(database: &Database, count: u64) -> Vec<Cursor> {
    let one = |_| {
        database
            .write(|tx| {
                let text = format!("note {}", tx.view().table(NOTE)?.len());
                tx.comment(&text)?;
                tx.insert(NOTE, &[ValueRef::String(&text)])
            })
            .expect("a commit");
        database.read().point().into()
    };
    (0..count).map(one).collect()
}

pub(crate) fn bucket(store: &Arc<InMemory>) -> Bucket {
    let store: Arc<dyn ObjectStore> = Arc::clone(store) as _;
    Bucket::with(store, "memory").expect("a bucket").patience(PATIENCE)
}

fn faulty(store: &Arc<InMemory>, faults: Faults) -> (Arc<Faulty>, Bucket) {
    let store = Arc::new(Faulty::new(store, faults));
    let bucket =
        Bucket::with(Arc::clone(&store) as Arc<dyn ObjectStore>, "faulty").expect("a bucket");
    (store, bucket.patience(PATIENCE))
}

pub(crate) fn upload(bucket: Bucket, database: &Database) -> annals::Result<archive::Uploaded> {
    let source = Source::new(database.clone());
    Uploader::open(bucket, &source)?.upload(&source)
}

pub(crate) fn restored(
    bucket: Bucket,
    path: &Path,
    moment: Option<Moment>,
) -> annals::Result<Cursor> {
    Ok(archive::restore(Archive::new(bucket), path, moment, &Options::new())?.end)
}

#[test]
fn every_moment_can_be_restored() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = create(&folder.path().join("a"));
    let store = Arc::new(InMemory::new());
    let source = Source::new(database.clone());
    let mut uploader = Uploader::open(bucket(&store), &source).expect("an uploader");
    let mut ends = vec![database.read().point().into()];
    let rounds = if is_full() { 400 } else { 60 };
    for round in 0..rounds {
        ends.extend(write(&database, 1 + round % 3));
        uploader.upload(&source).expect("an upload");
        if round == rounds / 2 {
            database.restart(Older::NotNeeded, Duration::from_secs(5)).expect("a restart");
        }
    }
    assert!(uploader.manifest().ranges.len() < 30, "old ranges are joined");
    let count = if is_full() { 100 } else { 10 };
    for number in 0..count {
        let end = ends[number * 7919 % ends.len()];
        let path = folder.path().join(format!("r{number}"));
        let moment = match number % 2 {
            0 => Moment::Txid(end.txid),
            _ if end.txid > Txid(1) => Moment::Comment(format!("note {}", end.txid.0 - 2)),
            _ => Moment::Txid(end.txid),
        };
        assert_eq!(restored(bucket(&store), &path, Some(moment)).expect("a restore"), end);
        let copy = Options::new().open(&path).expect("it opens");
        assert_eq!(Cursor::from(copy.read().point()), end);
        assert_eq!(copy.read().table(NOTE).expect("a table").len(), end.txid.0 - 1);
        copy.close().expect("closing");
    }
    let path = folder.path().join("all");
    assert_eq!(restored(bucket(&store), &path, None).expect("a restore"), ends[ends.len() - 1]);
    let again = restored(bucket(&store), &path, None).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::InUse);
    let late =
        restored(bucket(&store), &folder.path().join("late"), Some(Moment::Txid(Txid(9999))))
            .unwrap_err();
    assert_eq!(late.kind(), ErrorKind::NotFound);
    assert!(!folder.path().join("late").exists());
    assert!(!folder.path().join("late.restoring").exists());
    // A replica follows the archive, too.
    let connection: Arc<dyn Connection> = Arc::new(Archive::new(bucket(&store)));
    let replica = Replica::connect(connection, folder.path().join("replica")).expect("a replica");
    ends.extend(write(&database, 5));
    uploader.upload(&source).expect("an upload");
    assert_eq!(replica.pull().expect("a pull"), 5);
    assert_eq!(replica.cursor(), ends[ends.len() - 1]);
    let checked = archive::check(&Archive::new(bucket(&store))).expect("a check");
    assert_eq!((checked.damage, checked.end), (Vec::new(), ends[ends.len() - 1]));
}

#[test]
fn an_upload_that_is_cut_at_any_request_is_continued() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = create(&folder.path().join("a"));
    let store = Arc::new(InMemory::new());
    let mut ends = write(&database, 3);
    upload(bucket(&store), &database).expect("an upload");
    for at in 1..=if is_full() { 60 } else { 14 } {
        for has_effect in [false, true] {
            ends.extend(write(&database, 2));
            let (_, cut) =
                faulty(&store, Faults { cut_at: Some(at), has_effect, ..Faults::default() });
            let cut = upload(cut.patience(Duration::ZERO), &database);
            assert!(at > 14 || cut.is_err() || !has_effect || at > 4, "request {at}: {cut:?}");
            let (_, late) = faulty(&store, Faults { lists_late: true, ..Faults::default() });
            upload(late, &database)
                .unwrap_or_else(|error| panic!("request {at}, {has_effect}: {error}"));
            let checked = archive::check(&Archive::new(bucket(&store))).expect("a check");
            assert_eq!((checked.damage, checked.end), (Vec::new(), ends[ends.len() - 1]), "{at}");
        }
    }
    let path = folder.path().join("restored");
    assert_eq!(restored(bucket(&store), &path, None).expect("a restore"), ends[ends.len() - 1]);
}

#[test]
fn a_storm_of_errors_and_lost_answers_is_borne() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = create(&folder.path().join("a"));
    let store = Arc::new(InMemory::new());
    let (storm, stormy) = faulty(&store, Faults { is_stormy: true, ..Faults::default() });
    let source = Source::new(database.clone());
    let stormy = stormy.patience(Duration::from_secs(30));
    let mut uploader = Uploader::open(stormy, &source).expect("an uploader");
    for _ in 0..12 {
        write(&database, 2);
        uploader.upload(&source).expect("an upload");
    }
    assert!(storm.requests() > 30);
    let (_, stormy) = faulty(&store, Faults { is_stormy: true, ..Faults::default() });
    let path = folder.path().join("restored");
    let end = restored(stormy.patience(Duration::from_secs(30)), &path, None).expect("a restore");
    assert_eq!(end, database.read().point().into());
}

#[test]
fn two_uploaders_do_not_mix() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = create(&folder.path().join("a"));
    let source = Source::new(database.clone());
    let rounds = if is_full() { 500 } else { 30 };
    let store = Arc::new(InMemory::new());
    let mut conflicts = 0;
    for _ in 0..rounds {
        let mut uploaders: Vec<_> =
            (0..2).map(|_| Uploader::open(bucket(&store), &source).expect("an uploader")).collect();
        write(&database, 1);
        let done: Vec<_> = std::thread::scope(|scope| {
            let started: Vec<_> =
                uploaders.iter_mut().map(|it| scope.spawn(|| it.upload(&source))).collect();
            started.into_iter().map(|it| it.join().expect("a thread")).collect()
        });
        let failed: Vec<_> = done.iter().filter_map(|it| it.as_ref().err()).collect();
        assert!(failed.iter().all(|error| error.kind() == ErrorKind::Conflict), "{failed:?}");
        assert!(failed.len() < 2, "one of them goes on");
        conflicts += failed.len();
        let checked = archive::check(&Archive::new(bucket(&store))).expect("a check");
        assert_eq!((checked.damage, checked.end), (Vec::new(), database.read().point().into()));
    }
    assert_eq!(conflicts, rounds, "the one that came first is ended");
}

#[test]
fn other_histories_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a");
    let database = create(&path);
    write(&database, 3);
    let store = Arc::new(InMemory::new());
    upload(bucket(&store), &database).expect("an upload");
    database.clone().close().expect("closing");
    let older = folder.path().join("older");
    std::fs::copy(&path, &older).expect("a copy");
    let database = Options::new().open(&path).expect("it opens");
    write(&database, 2);
    upload(bucket(&store), &database).expect("an upload");
    let refused = |database: &Database, what: &str| {
        let error = upload(bucket(&store), database).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Diverged);
        assert!(error.to_string().contains(what), "{error}");
    };
    let older = Options::new().open(&older).expect("it opens");
    refused(&older, "it is an older copy");
    // It ends in the middle of a range.
    let middle = folder.path().join("middle");
    restored(bucket(&store), &middle, Some(Moment::Txid(Txid(2)))).expect("a restore");
    refused(&Options::new().open(&middle).expect("it opens"), "it is an older copy");
    write(&older, 4);
    refused(&older, "differ after transaction 4");
    refused(&create(&folder.path().join("other")), "of another database");
    let empty = restored(bucket(&Arc::new(InMemory::new())), &folder.path().join("none"), None);
    assert_eq!(empty.unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_flipped_byte_is_found_by_check_and_refused_by_restore() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = create(&folder.path().join("a"));
    let store = Arc::new(InMemory::new());
    let source = Source::new(database.clone());
    let mut uploader = Uploader::open(bucket(&store), &source).expect("an uploader");
    for _ in 0..3 {
        write(&database, 2);
        uploader.upload(&source).expect("an upload");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let names: Vec<_> = uploader.manifest().ranges.iter().map(|range| range.name.clone()).collect();
    let manifest = format!("manifests/{:020}", uploader.manifest().number);
    for (number, name) in names.iter().chain([&manifest]).enumerate() {
        let at = object_store::path::Path::from(name.as_str());
        let whole =
            runtime.block_on(async { store.get(&at).await?.bytes().await }).expect("it is there");
        let places = if is_full() { 1 } else { whole.len() / 5 };
        for place in (0..whole.len()).step_by(places.max(1)) {
            let mut wrong = whole.to_vec();
            wrong[place] ^= 0x10;
            runtime.block_on(store.put(&at, wrong.into())).expect("damage");
            let found = archive::check(&Archive::new(bucket(&store)));
            assert!(found.is_err() || !found.unwrap().damage.is_empty(), "{name} at {place}");
            let path = folder.path().join(format!("r{number}-{place}"));
            let error = restored(bucket(&store), &path, None).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Corrupt), "{name} at {place}: {error}");
            assert!(!path.exists());
            runtime.block_on(store.put(&at, whole.clone().into())).expect("as it was");
        }
    }
    let path = folder.path().join("restored");
    restored(bucket(&store), &path, None).expect("nothing is wrong any more");
}

#[test]
fn a_store_that_lies_is_shown_by_a_race() {
    let store = Arc::new(InMemory::new());
    let raced = archive::race(&bucket(&store)).expect("a race");
    assert_eq!((raced.rounds, raced.kept), (200, 200));
    let (_, lying) = faulty(&store, Faults { lies: true, ..Faults::default() });
    assert_eq!(archive::race(&lying).expect("a race").kept, 0);
}

#[test]
fn a_folder_is_an_archive_whose_objects_are_flushed() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = create(&folder.path().join("a"));
    write(&database, 20);
    let url = format!("file://{}/deep/archive", folder.path().display());
    let open = || Bucket::open(&url).expect("a bucket");
    upload(open(), &database).expect("an upload");
    write(&database, 1);
    upload(open(), &database).expect("an upload");
    let path = folder.path().join("restored");
    let end = restored(open(), &path, Some(Moment::Txid(Txid(15)))).expect("a restore");
    assert_eq!(end.txid, Txid(15));
    assert_eq!(archive::race(&open()).expect("a race").kept, 200);
    let copy = Options::new().open(&path).expect("it opens");
    let now = copy.read();
    let row = now.table(NOTE).expect("a table").rows().last().expect("a row").expect("a row");
    assert_eq!(row.read::<&str>(FieldNumber(0)), "note 13");
}
