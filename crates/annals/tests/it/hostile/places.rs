//! Files that are none, places that aren't there, names that lead elsewhere.

use std::fs;
use std::path::Path;

use annals::{Database, Error, ErrorKind, Options, inspect, scan};

use super::journals::{Log, schema};

/// Gives the errors of every way to open a file that must exist.
fn errors(path: &Path) -> Vec<Error> {
    let before = fs::read(path).ok();
    let errors = vec![
        Options::new().create(false).open(path).map(|_| ()).unwrap_err(),
        Options::new().open_read_only(path).map(|_| ()).unwrap_err(),
        scan(path, &mut Log::default()).unwrap_err(),
        inspect(path).map(|_| ()).unwrap_err(),
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
fn devices_and_missing_permissions_are_errors() {
    use std::os::unix::fs::PermissionsExt as _;
    all_say(Path::new("/dev/null"), ErrorKind::Io, &["regular file"]);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locked.annals");
    Database::open(&path).unwrap().close().unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        println!("skipped: this user is not bound by permissions (root)");
        return;
    }
    for error in errors(&path) {
        assert!(error.to_string().contains("permission"), "{error}");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let error = Database::open(&path).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("open it read-only"), "{error}");
    Options::new().open_read_only(&path).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let error = Database::open(folder.path().join("new.annals")).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("can't create"), "{error}");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_second_writer_in_this_process_is_told_who_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.annals");
    let database = Database::open(&path).unwrap();
    let error = Database::open(&path).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    let pid = format!("pid {}", std::process::id());
    assert!(error.to_string().contains(&pid), "{error}");
    // The one who was refused did no harm, and reading is allowed.
    database.write(|transaction| transaction.comment("still here")).unwrap();
    Options::new().open_read_only(&path).unwrap();
    database.close().unwrap();
    Database::open(&path).unwrap();
}

#[cfg(unix)]
#[test]
fn a_link_leads_to_the_same_lock() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("real.annals"), folder.path().join("link.annals"));
    std::os::unix::fs::symlink(&path, &link).unwrap();
    // A link that leads nowhere creates nothing.
    let error = Database::open(&link).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("link"), "{error}");
    let database = Database::open(&path).unwrap();
    assert_eq!(Database::open(&link).map(|_| ()).unwrap_err().kind(), ErrorKind::Busy);
    database.close().unwrap();
    let database = Database::open(&link).unwrap();
    assert_eq!(Database::open(&path).map(|_| ()).unwrap_err().kind(), ErrorKind::Busy);
    drop(database);
    let hard = folder.path().join("hard.annals");
    fs::hard_link(&path, &hard).unwrap();
    let _database = Database::open(&hard).unwrap();
    assert_eq!(Database::open(&path).map(|_| ()).unwrap_err().kind(), ErrorKind::Busy);
}

#[cfg(unix)]
#[test]
fn a_file_replaced_under_its_lock_is_another_file() {
    use super::journals::CITY;
    use annals::ValueRef;
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("a.annals"), folder.path().join("b.annals"));
    let lille = |database: &Database| {
        database.write(|transaction| {
            transaction.insert(CITY, &[ValueRef::String("Lille"), ValueRef::Null])
        })
    };
    let first = Options::new().open_schema(&path, &schema()).unwrap();
    lille(&first).unwrap();
    Options::new().open_schema(&other, &schema()).unwrap().close().unwrap();
    fs::rename(&other, &path).unwrap();
    // The name leads to another inode now, which nobody holds.
    let second = Database::open(&path).unwrap();
    assert_eq!(second.read().table(CITY).unwrap().len(), 0);
    lille(&second).unwrap();
    // The first goes on writing to the file that it has, and harms nobody.
    first.write(|transaction| transaction.delete(CITY, annals::RowId(0))).unwrap();
    first.close().unwrap();
    second.close().unwrap();
    let reader = Options::new().open_read_only(&path).unwrap();
    assert_eq!(reader.read().table(CITY).unwrap().len(), 1);
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
