//! Lazy replicas over files in a folder: what they fetch, and what they do when something is wrong.

mod faults;
mod world;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use annals::{BackfillMode, ErrorKind, Options};
use annals_replica::{Fetching, Lazy, Ranges, lazy};

use annals_replica::lazy::testing::{QUESTIONS, answers, create, define_again, touch};

use world::{Folder, open, short};

const PERSONS: u64 = 120_000;

#[test]
fn a_question_fetches_a_small_part_of_the_database() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.annals");
    drop(create(&path, PERSONS));
    let expected = answers(&path);
    let ranges = Folder::new(&path);
    let (mut report, mut sum) = (String::new(), 0);
    for ((name, ask), expected) in QUESTIONS.iter().zip(&expected) {
        let lazy = open(&ranges).expect("a lazy replica");
        let opened = lazy.fetched();
        assert_eq!(ask(&lazy.reader()).as_ref().ok(), Some(expected), "{name}");
        let (all, size) = (lazy.fetched(), lazy.size());
        report.push_str(&format!(
            "{name}: {} requests and {} bytes of {size}, opening included ({}, {})\n",
            all.requests, all.bytes, opened.requests, opened.bytes
        ));
        // It asks for two versions of each row that was changed in between.
        let share = if *name == "the difference of near moments" { 9 } else { 15 };
        assert!(all.bytes * share <= size && all.requests <= 80, "{report}");
        sum += all.bytes;
        // Once more costs nothing.
        assert_eq!(ask(&lazy.reader()).as_ref().ok(), Some(expected), "{name}");
        assert_eq!(lazy.fetched(), all, "{name}");
    }
    // One replica that is asked all of it fetches less: some pages are the same.
    let lazy = open(&ranges).expect("a lazy replica");
    for ((name, ask), expected) in QUESTIONS.iter().zip(&expected) {
        assert_eq!(lazy.ask(ask).as_ref().ok(), Some(expected), "{name}");
    }
    let all = lazy.fetched();
    assert!(all.bytes < sum, "{report}all ten: {} requests, {} bytes", all.requests, all.bytes);
}

#[test]
fn what_was_fetched_is_kept_and_bounded() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.annals");
    drop(create(&path, 20_000));
    let (expected, ranges) = (answers(&path), Folder::new(&path));
    let here = folder.path().join("here.annals");
    let open = |cache| {
        let ranges = Arc::clone(&ranges) as Arc<dyn Ranges>;
        Lazy::open_with(ranges, &here, &Options::new(), Fetching { cache, ..short() })
    };
    let ask_all = |lazy: &Lazy| {
        for ((name, ask), expected) in QUESTIONS.iter().zip(&expected) {
            assert_eq!(ask(&lazy.reader()).as_ref().ok(), Some(expected), "{name}");
        }
        lazy.fetched()
    };
    let lazy = open(256 << 20).expect("a lazy replica");
    let first = ask_all(&lazy);
    assert!(lazy.cached() > 0 && lazy.cached() <= first.bytes);
    assert!(!here.exists(), "it isn't whole");
    assert!(here.with_extension("annals.partial").join("blocks").exists());
    drop(lazy);
    let again = open(256 << 20).expect("a lazy replica");
    let second = ask_all(&again);
    assert!(second.bytes == 0 && second.requests < first.requests / 4, "{second:?}");
    // A second process at the same time keeps its own in memory.
    let other = open(256 << 20).expect("a lazy replica");
    assert!(ask_all(&other).bytes > 0);
    drop((again, other));
    let small = open(256 << 10).expect("a lazy replica");
    ask_all(&small);
    assert!(small.cached() <= 256 << 10);
    drop(small);

    // Another source has no business in the folder.
    let elsewhere = folder.path().join("b.annals");
    drop(create(&elsewhere, 1000));
    let error = Lazy::open(Folder::new(&elsewhere), &here).expect_err("another source");
    assert!(
        error.kind() == ErrorKind::Invalid && error.to_string().contains("a.annals"),
        "{error}"
    );
    lazy::remove(&here).expect("a folder less");
    assert_eq!(lazy::origin(&here).expect("no folder"), None);
    let nowhere = folder.path().join("c.annals");
    let error = Lazy::open(Folder::new(&nowhere), &nowhere).expect_err("nothing there");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(!nowhere.with_extension("annals.partial").exists());
}

#[test]
fn a_journal_of_several_segments_or_without_an_image_has_the_same_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.annals");
    let database = create(&path, 20_000);
    let image = path.with_extension("annals-image");
    for _ in 0..3 {
        database.backfill(BackfillMode::Restart).expect("another segment");
        (0..30).for_each(|_| touch(&database, 20_000));
    }
    drop(database);
    let expected = answers(&path);
    for has_image in [true, false] {
        if !has_image {
            std::fs::remove_file(&image).expect("an image");
        }
        let lazy = open(&Folder::new(&path)).expect("a lazy replica");
        for ((name, ask), expected) in QUESTIONS.iter().zip(&expected) {
            let answer = ask(&lazy.reader());
            assert_eq!(answer.as_ref().ok(), Some(expected), "{name}: {answer:?}");
        }
        let all = lazy.fetched().bytes >= lazy.size();
        assert_eq!(all, !has_image, "without an image all of the journal is read");
    }
}

#[test]
fn news_are_pulled() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.annals");
    let database = create(&path, 20_000);
    let ranges = Folder::new(&path);
    let lazy = open(&ranges).expect("a lazy replica");
    let before = lazy.read();
    let asked = lazy.fetched();
    assert_eq!(lazy.pull().expect("nothing").txid(), before.txid());
    assert_eq!(lazy.fetched().bytes, asked.bytes);
    for round in 0..4 {
        touch(&database, 20_000);
        database.hard_checkpoint().expect("a flush");
        if round == 2 {
            database.backfill(BackfillMode::Full).expect("a root");
        }
        ranges.edition.fetch_add(1, Ordering::SeqCst);
        assert!(lazy.read().txid() < database.read().txid());
        assert_eq!(lazy.pull().expect("news").txid(), database.read().txid());
        let expected = answers(&path);
        for ((name, ask), expected) in QUESTIONS.iter().zip(&expected) {
            assert_eq!(ask(&lazy.reader()).as_ref().ok(), Some(expected), "{name}");
        }
    }
    assert!(before.txid() < lazy.read().txid(), "a snapshot stays as it is");
    // Another database at the same place.
    drop(database);
    std::fs::remove_file(path.with_extension("annals-image")).expect("an image");
    std::fs::remove_file(&path).expect("a journal");
    define_again(&path);
    ranges.edition.fetch_add(1, Ordering::SeqCst);
    assert_eq!(lazy.pull().expect("another").txid().0, 8);
}

#[test]
fn a_file_that_is_read_in_order_is_fetched_by_a_few_requests_at_the_same_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.annals");
    define_again(&path);
    let database = Options::new().open(&path).expect("a database");
    let city = annals::TableNumber(1);
    for number in 0..32 {
        let name = format!("{number:04} ").repeat(200_000);
        let insert = |tx: &mut annals::Transaction<'_>| {
            tx.insert(city, &[annals::ValueRef::String(&name)]).map(drop)
        };
        database.write(insert).expect("a long name");
    }
    database.backfill(BackfillMode::Full).expect("an image");
    database.close().expect("a file");
    let here = std::fs::read(&path).expect("a file");

    for (cache, most) in [(256 << 20, 4), (4 << 20, 1), (32 << 10, 1)] {
        let ranges = Folder::new(&path);
        let lazy = Lazy::in_memory(
            Arc::clone(&ranges) as Arc<dyn Ranges>,
            &Options::new(),
            Fetching { cache, ..short() },
        );
        let (directory, name) = lazy.expect("a lazy replica").files();
        let there = directory.open(&name, annals_storage::Access::Read).expect("a journal");
        ranges.traffic.millis.store(5, Ordering::SeqCst);
        let requests = || ranges.traffic.requests.load(Ordering::SeqCst);
        let rounds = || ranges.traffic.rounds.load(Ordering::SeqCst);
        let (before, rounds_before) = (requests(), rounds());
        for (at, expected) in (0..).step_by(100_000).zip(here.chunks(100_000)) {
            let mut read = vec![0; expected.len()];
            assert_eq!(there.read_at(at, &mut read).expect("bytes"), expected.len());
            assert!(read == expected, "at {at}");
        }
        let (requests, rounds) = (requests() - before, rounds() - rounds_before);
        let at_once = ranges.traffic.most.load(Ordering::SeqCst);
        assert!(at_once <= most, "{at_once} at the same time");
        if most > 1 {
            assert!(at_once > 1 && rounds < requests, "{rounds} round trips, {requests} requests");
            assert!(requests < 40, "{requests} requests for {} bytes", here.len());
        }
        // Nothing is fetched twice.
        let blocks = here.len().div_ceil(32 << 10) as u64;
        assert!(requests <= blocks + 3, "{requests} requests for {blocks} blocks");
    }
}
