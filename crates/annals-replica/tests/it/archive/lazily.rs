//! An archive is read without restoring it: only what is needed is fetched.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use annals::reports::Older;
use annals::{BackfillMode, Database, Options};
use annals_replica::archive::{self, Archive, Archiving, Bucket, Uploader};
use annals_replica::frames::Source;
use annals_replica::lazy::testing::{QUESTIONS, answers, create, touch};
use annals_replica::{Fetching, Lazy, Ranges};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt as _};

use super::bucket;

const PERSONS: u64 = 40_000;

fn upload(store: &Arc<InMemory>, database: &Database, how: Archiving) -> Uploader {
    let source = Source::new(database.clone());
    let mut uploader =
        Uploader::open_with(bucket(store), &source, how).expect("an uploader of the journal");
    uploader.upload(&source).expect("an upload");
    uploader
}

fn lazy(bucket: Bucket) -> Lazy {
    let ranges: Arc<dyn Ranges> = Arc::new(Archive::new(bucket));
    Lazy::in_memory(ranges, &Options::new(), Fetching::default()).expect("a lazy replica")
}

#[test]
fn a_question_fetches_a_small_part_of_an_archive() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.annals");
    let database = create(&path, PERSONS);
    let store = Arc::new(InMemory::new());
    let uploader = upload(&store, &database, Archiving::default());
    assert!(uploader.manifest().image.is_some(), "the image is uploaded, too");
    drop(database);
    let expected = answers(&path);
    for ((name, ask), expected) in QUESTIONS.iter().zip(&expected) {
        let lazy = lazy(bucket(&store));
        assert_eq!(ask(&lazy.reader()).as_ref().ok(), Some(expected), "{name}");
        let (all, size) = (lazy.fetched(), lazy.size());
        let report = format!("{name}: {} requests, {} of {size} bytes", all.requests, all.bytes);
        eprintln!("{report}");
        assert!(all.bytes * 4 <= size && all.requests <= 80, "{report}");
    }
    let checked = archive::check(&Archive::new(bucket(&store))).expect("a check");
    assert_eq!((checked.damage, checked.orphans), (Vec::new(), Vec::new()));
}

/// Compares the answers of an archive and of a file.
fn compare(store: &Arc<InMemory>, path: &Path, lazy: &Lazy) {
    lazy.pull().expect("a look");
    for ((name, ask), expected) in QUESTIONS.iter().zip(answers(path)) {
        let found = lazy.ask(ask).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found, expected, "{name}");
    }
    let checked = archive::check(&Archive::new(bucket(store))).expect("a check");
    assert_eq!(checked.damage, Vec::<String>::new());
}

#[test]
fn a_lazy_reader_follows_an_archive_through_segments_and_images() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.annals");
    let database = create(&path, 8000);
    let store = Arc::new(InMemory::new());
    let source = Source::new(database.clone());
    let mut uploader = Uploader::open(bucket(&store), &source).expect("an uploader of the journal");
    uploader.upload(&source).expect("an upload");
    let lazy = lazy(bucket(&store));
    compare(&store, &path, &lazy);
    let rounds = if super::is_full() { 40 } else { 8 };
    for round in 0..rounds {
        for _ in 0..20 {
            touch(&database, 8000);
        }
        match round % 4 {
            1 => drop(database.backfill(BackfillMode::Full).expect("a root")),
            2 => {
                let older = if round % 8 == 2 { Older::NotNeeded } else { Older::Kept };
                database.restart(older, Duration::from_secs(5)).expect("a restart");
            }
            _ => {}
        }
        database.hard_checkpoint().expect("a flush");
        uploader.upload(&source).expect("an upload");
        compare(&store, &path, &lazy);
    }
    // Without an image all of the journal is read, and the answers are the same.
    let other = Arc::new(InMemory::new());
    upload(&other, &database, Archiving { has_images: false, ..Archiving::default() });
    compare(&other, &path, &super::lazily::lazy(bucket(&other)));
}

#[test]
fn damage_in_an_image_is_no_wrong_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.annals");
    let database = create(&path, 20_000);
    let store = Arc::new(InMemory::new());
    let uploader = upload(&store, &database, Archiving::default());
    let index = uploader.manifest().image.clone().expect("an image").name;
    let expected = answers(&path);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let prefix = index.strip_suffix("-index").expect("the name of a list").to_owned();
    let mut answered = 0;
    for number in [0, 1] {
        let at = object_store::path::Path::from(format!("{prefix}-{number:06}"));
        let whole =
            runtime.block_on(async { store.get(&at).await?.bytes().await }).expect("a chunk");
        let mut wrong = whole.to_vec();
        wrong.iter_mut().step_by(997).for_each(|byte| *byte ^= 0x40);
        runtime.block_on(store.put(&at, wrong.into())).expect("damage");
        let found = archive::check(&Archive::new(bucket(&store))).expect("a check");
        assert_eq!(found.damage.len(), 1, "{:?}", found.damage);
        let ranges: Arc<dyn Ranges> = Arc::new(Archive::new(bucket(&store)));
        if let Ok(lazy) = Lazy::in_memory(ranges, &Options::new(), Fetching::default()) {
            for ((name, ask), expected) in QUESTIONS.iter().zip(&expected) {
                let found = lazy.ask(ask);
                answered += u32::from(found.is_ok());
                assert!(found.is_err() || found.as_ref().ok() == Some(expected), "{name}");
            }
        }
        runtime.block_on(store.put(&at, whole.into())).expect("as it was");
    }
    eprintln!("{answered} questions were answered in spite of the damage");
    let _: &dyn ObjectStore = &*store;
}
