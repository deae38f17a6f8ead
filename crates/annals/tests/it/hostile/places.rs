//! Files that are none, places that aren't there, names that lead elsewhere.

use std::fs;
use std::path::Path;

use annals::{Database, Error, ErrorKind, Options};
use annals_tools::{inspect, scan};

use super::journals::{Log, schema};

/// Returns the errors of every way to open a file that must exist.
fn errors(path: &Path) -> Vec<Error> {
    let before = fs::read(path).ok();
    let errors = vec![
        Options::new().create(false).open(path).map(|_| ()).unwrap_err(),
        Options::new().open_read_only(path).map(|_| ()).unwrap_err(),
        scan(&Options::new(), path, &mut Log::default()).unwrap_err(),
        inspect(&Options::new(), path).map(|_| ()).unwrap_err(),
    ];
    assert_eq!(fs::read(path).ok(), before, "{} was changed", path.display());
    errors
}

#[track_caller]
fn all_say(path: &Path, kind: ErrorKind, words: &[&str]) {
    for error in errors(path) {
        let text = error.to_string();
        assert_eq!(error.kind(), kind, "{text}");
        for word in words.iter().copied().chain([path.to_str().unwrap()]) {
            assert!(text.contains(word), "no {word:?} in: {text}");
        }
    }
}

#[test]
fn what_is_no_journal_is_named_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for (content, words) in [
        (&b""[..], &["empty", "remove it"][..]),
        (b"a short text\n", &["not an Annals journal", "check the path"]),
        (&[b'x'; 20_000], &["not an Annals journal", "check the path"]),
        (&[0; 20_000], &["not an Annals journal", "check the path"]),
        (b"SQLite format 3\0", &["not an Annals journal"]),
    ] {
        fs::write(&path, content).unwrap();
        all_say(&path, ErrorKind::NotAJournal, words);
        // Not even a default opening takes it for a new one.
        let error = Database::open(&path).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotAJournal);
        assert_eq!(fs::read(&path).unwrap(), content);
    }
    fs::write(&path, [&b"\x89ANNALS\n"[..], &[7; 1000]].concat()).unwrap();
    all_say(&path, ErrorKind::Corrupt, &["damaged", "restore"]);
}

#[test]
fn missing_and_wrong_places_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("nobody.annals");
    all_say(&missing, ErrorKind::NotFound, &["no such file"]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was created");

    let nowhere = folder.path().join("no").join("where.annals");
    let error = Database::open(&nowhere).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("directory is missing"), "{error}");
    assert!(error.to_string().contains(nowhere.to_str().unwrap()), "{error}");

    all_say(folder.path(), ErrorKind::Io, &["directory"]);
    let error = Database::open(folder.path()).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("directory"), "{error}");
}

#[cfg(unix)]
#[test]
fn devices_are_no_journals() {
    all_say(Path::new("/dev/null"), ErrorKind::Io, &["regular file"]);
}

#[test]
fn a_sparse_file_of_any_length_takes_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.annals");
    let database = Options::new().background(false).open_schema(&path, &schema()).unwrap();
    database.close().unwrap();
    set_len(&path, 200 << 20);
    let (database, taken) = super::memory::peak(|| Database::open(&path).unwrap());
    assert!(taken < 8 << 20, "{taken}");
    assert!(database.recovered().unclean && database.recovered().cut.is_none());
    database.close().unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 100_000, "the space was given back");
}

/// Makes a file longer with zeros that take no space.
fn set_len(path: &Path, len: u64) {
    use annals::storage::{Access, FileDirectory};
    let (directory, name) = FileDirectory::split(path).unwrap();
    directory.open(&name, Access::Write).unwrap().set_len(len).unwrap();
}
