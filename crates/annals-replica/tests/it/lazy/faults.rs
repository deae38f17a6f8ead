//! What goes wrong on the way: damage, cuts, silence, files that are replaced under the hands of a reader.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use annals::{BackfillMode, ErrorKind};
use annals_simulated::Rng;
use annals_storage::{Clock as _, SystemClock};

use annals_replica::lazy::testing::{QUESTIONS, answers, create, touch};

use super::world::{Folder, open};

const PERSONS: u64 = 20_000;

/// Returns the length of a file.
fn len(path: &std::path::Path) -> u64 {
    std::fs::metadata(path).expect("a file").len()
}

#[test]
fn a_flipped_byte_is_noticed_and_fetched_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.annals");
    drop(create(&path, PERSONS));
    let expected = answers(&path);
    let ranges = Folder::new(&path);
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    let step = if full { 4096 } else { 256 << 10 };
    let mut rng = Rng::new(5);
    for (suffix, file) in [("", path.clone()), ("-image", path.with_extension("annals-image"))] {
        let mut at = 0;
        while at < len(&file) {
            *ranges.flip.lock().unwrap() = Some((suffix, at, 1));
            match open(&ranges) {
                Ok(lazy) => {
                    for ((name, ask), expected) in QUESTIONS.iter().zip(&expected) {
                        match ask(&lazy.reader()) {
                            Ok(answer) => assert_eq!(&answer, expected, "{suffix} {at}: {name}"),
                            Err(error) => panic!("{suffix} {at}: {name}: {error}"),
                        }
                    }
                    assert!(lazy.fetched().bytes < lazy.size(), "{suffix} {at}");
                }
                // The head can't be verified without another copy of it.
                Err(error) => assert!(at < 16384, "{suffix} {at}: {error}"),
            }
            at += 1 + rng.below(step);
        }
    }
}

#[test]
fn damage_that_stays_is_an_error_and_never_an_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.annals");
    drop(create(&path, PERSONS));
    let expected = answers(&path);
    let ranges = Folder::new(&path);
    let mut rng = Rng::new(6);
    let image = path.with_extension("annals-image");
    let (mut errors, mut stayed, mut at) = (0, 0, 40_000);
    while at < len(&image) {
        *ranges.flip.lock().unwrap() = Some(("-image", at, u64::MAX));
        if let Ok(lazy) = open(&ranges) {
            for ((name, ask), expected) in QUESTIONS.iter().zip(&expected) {
                match ask(&lazy.reader()) {
                    Ok(answer) => assert_eq!(&answer, expected, "{at}: {name}"),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::PageLost, "{at}: {name}: {error}");
                        errors += 1;
                        // A past state may be found from another root; nothing else is fetched.
                        let before = lazy.fetched();
                        match ask(&lazy.reader()) {
                            Ok(answer) => assert_eq!(&answer, expected, "{at}: {name}"),
                            Err(_) => {
                                assert_eq!(lazy.fetched(), before, "{at}: {name}");
                                stayed += 1;
                            }
                        }
                    }
                }
            }
        }
        at += 1 + rng.below(128 << 10);
    }
    assert!(errors > 0 && stayed > 0, "some of it was read, and stays lost");
    // Once it is whole again, so is the replica.
    let lazy = open(&ranges).expect("a lazy replica");
    *ranges.flip.lock().unwrap() = None;
    lazy.pull().expect("a look");
    for ((name, ask), expected) in QUESTIONS.iter().zip(&expected) {
        assert_eq!(ask(&lazy.reader()).as_ref().ok(), Some(expected), "{name}");
    }
}

#[test]
fn cuts_are_tried_again_and_silence_is_an_error_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.annals");
    drop(create(&path, PERSONS));
    let expected = answers(&path);
    let ranges = Folder::new(&path);
    let whole = open(&ranges).expect("a lazy replica");
    let ask = |place: usize, lazy: &annals_replica::Lazy| QUESTIONS[place].1(&lazy.reader());
    assert_eq!(ask(0, &whole).as_ref().ok(), Some(&expected[0]));
    let undisturbed = whole.fetched();
    ranges.cuts.store(3, Ordering::SeqCst);
    let cut = open(&ranges).expect("a lazy replica");
    assert_eq!(ask(0, &cut).as_ref().ok(), Some(&expected[0]));
    assert_eq!(cut.fetched().requests, undisturbed.requests + 3);
    assert_eq!(cut.fetched().bytes, undisturbed.bytes);

    ranges.is_down.store(true, Ordering::SeqCst);
    for (place, (name, ask)) in QUESTIONS.iter().enumerate() {
        match ask(&cut.reader()) {
            Ok(answer) => assert_eq!(answer, expected[place], "{name}: from what is here"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unreachable, "{name}: {error}");
                assert!(error.to_string().contains("nobody answers"), "{error}");
                assert!(place > 0, "{name} was asked before");
            }
        }
    }
    assert_eq!(ask(1, &whole).expect_err("down").kind(), ErrorKind::Unreachable);
    assert_eq!(cut.pull().expect_err("down").kind(), ErrorKind::Unreachable);
    assert_eq!(open(&ranges).expect_err("down").kind(), ErrorKind::Unreachable);
    ranges.is_down.store(false, Ordering::SeqCst);
    SystemClock.pause(std::time::Duration::from_millis(1100));
    for ((name, ask), expected) in QUESTIONS.iter().zip(&expected) {
        let answer = ask(&cut.reader());
        assert_eq!(answer.as_ref().ok(), Some(expected), "{name}: {answer:?}");
    }
}

#[test]
fn a_file_that_is_replaced_under_way_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.annals");
    let database = create(&path, PERSONS);
    for is_untagged in [false, true] {
        let ranges = Folder::new(&path);
        ranges.is_untagged.store(is_untagged, Ordering::SeqCst);
        for _ in 0..4 {
            let lazy = open(&ranges).expect("a lazy replica");
            let before = lazy.read().txid();
            // Two roots later the space of the one that is read is used again.
            for _ in 0..3 {
                (0..50).for_each(|_| touch(&database, PERSONS));
                database.backfill(BackfillMode::Full).expect("a root");
            }
            ranges.edition.fetch_add(1, Ordering::SeqCst);
            let expected = answers(&path);
            for ((name, ask), expected) in QUESTIONS.iter().zip(&expected) {
                match ask(&lazy.reader()) {
                    Err(error) if is_untagged => {
                        assert_eq!(error.kind(), ErrorKind::PageLost, "{name}: {error}");
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Forgotten, "{name}: {error}"),
                    Ok(answer) => assert!(lazy.read().txid() == before || answer == *expected),
                }
            }
            // One that is asked starts over by itself.
            if !is_untagged {
                assert_eq!(lazy.ask(QUESTIONS[1].1).as_ref().ok(), Some(&expected[1]));
            }
            lazy.pull().expect("a look");
            for ((name, ask), expected) in QUESTIONS.iter().zip(&expected) {
                let answer = ask(&lazy.reader());
                assert_eq!(answer.as_ref().ok(), Some(expected), "{name}: {answer:?}");
            }
        }
        drop(Arc::clone(&ranges));
    }
}
