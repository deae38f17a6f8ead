//! Erasures reach the archive, whatever is cut off meanwhile.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use annals::reports::Older;
use annals::{Cursor, Database, ErrorKind, Moment, Options, RowId, Txid, ValueRef};
use annals_replica::archive::{self, Archive, Archiving, Uploader};
use annals_replica::frames::Source;
use annals_tools::Erase;
use futures_util::TryStreamExt as _;
use object_store::memory::InMemory;
use object_store::{ObjectStore as _, ObjectStoreExt as _};

use super::faulty::Faults;
use super::{NOTE, bucket, create, faulty, is_full, restored, upload, write};

const SECRET: &str = "a secret that must go";

/// Returns the names of the objects that have the secret.
fn with_secret(store: &InMemory) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let all: Vec<_> = store.list(None).try_collect().await.expect("a list");
        let mut found = Vec::new();
        for object in all {
            let bytes =
                store.get(&object.location).await.expect("there").bytes().await.expect("it");
            let has = bytes.windows(SECRET.len()).any(|it| it == SECRET.as_bytes());
            found.extend(has.then(|| object.location.to_string()));
        }
        found
    })
}

fn erase(path: &Path) {
    let what = Erase {
        table: "note".to_owned(),
        row: RowId(3),
        field: None,
        comments: false,
        comments_of: Vec::new(),
        overwrite: false,
        dry_run: false,
    };
    annals_tools::erase(&Options::new(), path, &what).expect("an erasure");
}

/// Makes a database of three segments with a secret in the middle one, uploads it, and then erases the secret.
fn erased(folder: &Path, rest: u64) -> (Database, Arc<InMemory>, Cursor) {
    let path = folder.join("a");
    let database = create(&path);
    let store = Arc::new(InMemory::new());
    write(&database, 3);
    database.restart(Older::Kept, Duration::from_secs(5)).expect("a restart");
    database.write(|tx| tx.insert(NOTE, &[ValueRef::String(SECRET)])).expect("a commit");
    upload(bucket(&store), &database).expect("an upload");
    write(&database, 2);
    database.restart(Older::Kept, Duration::from_secs(5)).expect("a restart");
    write(&database, 2);
    upload(bucket(&store), &database).expect("an upload");
    assert!(!with_secret(&store).is_empty());
    let old = database.read().point().into();
    // What no archive has got.
    write(&database, rest);
    database.close().expect("closing");
    erase(&path);
    (Options::new().open(&path).expect("it opens"), store, old)
}

#[test]
fn an_erasure_that_is_cut_at_any_request_is_carried_to_its_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let (database, before, old) = erased(folder.path(), 1);
    let end: Cursor = database.read().point().into();
    let (mut cuts, mut seen) = (0, [0, 0]);
    for at in 1.. {
        let mut is_over = true;
        for has_effect in [false, true] {
            let store = Arc::new(before.fork());
            let faults = Faults { cut_at: Some(at), has_effect, ..Faults::default() };
            let (faulty, cut) = faulty(&store, faults);
            let cut = upload(cut.patience(Duration::ZERO), &database);
            is_over &= faulty.requests() < at;
            cuts += u32::from(cut.is_err());
            let path = folder.path().join(format!("r{at}-{has_effect}"));
            let found = restored(bucket(&store), &path, None).expect("the old history, or the new");
            assert!(found == old || found == end, "request {at}: {found:?}");
            seen[usize::from(found == end)] += 1;
            upload(bucket(&store), &database).expect("an upload");
            assert_eq!(with_secret(&store), Vec::<String>::new(), "request {at}, {has_effect}");
            let checked = archive::check(&Archive::new(bucket(&store))).expect("a check");
            assert_eq!((checked.damage, checked.end), (Vec::new(), end), "request {at}");
            if at % 8 == 0 || is_full() {
                let path = folder.path().join(format!("s{at}-{has_effect}"));
                let moment = Some(Moment::Txid(Txid(5)));
                assert_eq!(restored(bucket(&store), &path, moment).expect("it").txid, Txid(5));
            }
        }
        if is_over {
            break;
        }
    }
    assert!(cuts > 20 && seen.iter().all(|count| *count > 0), "{cuts} cuts, {seen:?}");
}

#[test]
fn a_history_that_was_not_erased_is_not_replaced_unless_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a");
    let database = create(&path);
    write(&database, 4);
    database.clone().close().expect("closing");
    let other = folder.path().join("other");
    std::fs::copy(&path, &other).expect("a copy");
    let database = Options::new().open(&path).expect("it opens");
    write(&database, 3);
    let store = Arc::new(InMemory::new());
    upload(bucket(&store), &database).expect("an upload");
    // Another history of the same journal, from which values were erased, and which is longer.
    let forked = Options::new().open(&other).expect("it opens");
    write(&forked, 5);
    forked.close().expect("closing");
    erase(&other);
    let forked = Options::new().open(&other).expect("it opens");
    let error = upload(bucket(&store), &forked).expect_err("it is another history");
    assert_eq!(error.kind(), ErrorKind::Diverged, "{error}");
    let source = Source::new(forked.clone());
    let how = Archiving { replaces: true, ..Archiving::default() };
    let mut uploader = Uploader::open_with(bucket(&store), &source, how).expect("as asked for");
    uploader.upload(&source).expect("an upload");
    let end = restored(bucket(&store), &folder.path().join("r"), None).expect("a restore");
    assert_eq!(end, forked.read().point().into());
}
