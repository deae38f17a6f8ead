//! The kept corpus of each fuzz target, and inputs made from it by small random changes.
//!
//! It needs no fuzzer. An input that fails is written below the target directory, and its path is in
//! the message. `ANNALS_TEST_EFFORT=full` makes many more changes.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "the corpus is in files")]

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use annals::mistakes::{Mistake, make};
use annals_fuzz::{ALL, Body};
use annals_simulated::Rng;

/// How many changed inputs each target gets.
fn changes() -> usize {
    if is_full() { 30_000 } else { 2_000 }
}

fn is_full() -> bool {
    std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full")
}

fn body(target: &str) -> Body {
    ALL.iter().find(|(name, _)| *name == target).unwrap().1
}

/// The kept files of a target, by name.
fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    files.sort();
    files
}

/// Changes an input a little, as a fuzzer does: bits, bytes, runs of bytes, and parts of another.
fn changed(rng: &mut Rng, from: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = from.to_vec();
    for _ in 0..=rng.index(4) {
        let at = rng.index(bytes.len());
        let end = (at + 1 + rng.index(16)).min(bytes.len());
        let random = rng.number().to_le_bytes();
        match (rng.index(7), bytes.get_mut(at)) {
            (0, Some(byte)) => *byte ^= 1 << rng.index(8),
            (1, Some(byte)) => *byte = random[0],
            (2, Some(byte)) => *byte = byte.wrapping_add(random[0] % 3).wrapping_sub(1),
            (3, Some(_)) => drop(bytes.drain(at..end)),
            (4, Some(_)) => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
            (5, Some(_)) => drop(bytes.splice(at..at, random[..1 + rng.index(8)].to_vec())),
            _ => {
                let start = rng.index(other.len());
                let end = (start + 1 + rng.index(64)).min(other.len());
                bytes.splice(at..at, other[start..end].to_vec());
            }
        }
    }
    bytes
}

fn run(target: &str, body: Body, input: &[u8], origin: &Path) {
    if catch_unwind(|| body(input)).is_err() {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{target}-failed"));
        fs::write(&path, input).unwrap();
        panic!("{target}: {} or what was made of it fails: {}", origin.display(), path.display());
    }
}

fn run_corpus(target: &str) {
    let (body, files) = (body(target), corpus(target));
    assert!(files.len() > 10, "the corpus of {target} is gone");
    for (path, input) in &files {
        run(target, body, input, path);
    }
    let mut rng = Rng::new(0x00AA_A15F);
    for _ in 0..changes() {
        let ((path, from), (_, other)) =
            (&files[rng.index(files.len())], &files[rng.index(files.len())]);
        run(target, body, &changed(&mut rng, from, other), path);
    }
}

#[test]
fn schema() {
    run_corpus("schema");
}

#[test]
fn codec() {
    run_corpus("codec");
}

#[test]
fn journal() {
    run_corpus("journal");
}

#[test]
fn image() {
    run_corpus("image");
}

#[test]
fn shell() {
    run_corpus("shell");
}

#[test]
fn joedb() {
    run_corpus("joedb");
}

#[test]
fn request() {
    run_corpus("request");
}

#[test]
fn answer() {
    run_corpus("answer");
}

/// Real joedb files that end anywhere, and with a wrong bit in each byte; with full effort with each bit wrong.
#[test]
fn joedb_files_are_cut_and_flipped_everywhere() {
    for (path, input) in corpus("joedb") {
        for end in 0..=input.len() {
            run("joedb", body("joedb"), &input[..end], &path);
        }
        for bit in (8..8 * input.len()).step_by(if is_full() { 1 } else { 7 }) {
            let mut flipped = input.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            run("joedb", body("joedb"), &flipped, &path);
        }
    }
}

/// What must hold can fail: with one of these mistakes in the library, the kept files show it.
#[test]
fn mistakes_are_found() {
    for (target, mistake) in [
        ("codec", Mistake::TornFrameAccepted),
        ("journal", Mistake::UncommittedApplied),
        ("journal", Mistake::TailNotZeroed),
    ] {
        let body = body(target);
        make(Some(mistake));
        let found = corpus(target).iter().any(|(_, input)| catch_unwind(|| body(input)).is_err());
        make(None);
        assert!(found, "{target} doesn't find {mistake:?}");
    }
}

#[test]
fn the_corpus_is_small_and_has_a_folder_for_each_target() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let mut bytes = 0;
    let mut names = Vec::new();
    for entry in fs::read_dir(folder.join("corpus")).unwrap() {
        names.push(entry.unwrap().file_name().into_string().unwrap());
    }
    for (target, _) in ALL {
        bytes += corpus(target).iter().map(|(_, input)| input.len()).sum::<usize>();
        assert!(folder.join("fuzz_targets").join(format!("{target}.rs")).exists(), "{target}");
    }
    names.sort();
    let mut targets = ALL.map(|(target, _)| target);
    targets.sort_unstable();
    assert_eq!(names, targets);
    assert!(bytes < 1 << 20, "{bytes}");
}
