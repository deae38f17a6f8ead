//! Compressed files are read as what they were, and unpacked they have the same bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use annals::reports::Older;
use annals::{Database, ErrorKind, Options, Reader, Result};

use crate::segments::{Text, content, define, write};

/// Makes a database of some segments; returns its path.
fn make(folder: &Path) -> PathBuf {
    let path = folder.join("db.annals");
    let database = Options::new().background(false).open(&path).unwrap();
    database.write(define).unwrap();
    for round in 0..3 {
        write(&database, round * 20..round * 20 + 20);
        let older = if round == 1 { Older::NotNeeded } else { Older::Kept };
        // The background may be bringing the image forward.
        database.restart(older, Duration::from_secs(60)).unwrap();
    }
    write(&database, 90..95);
    database.close().unwrap();
    path
}

fn convert(from: &Path, to: &Path, compress: bool) -> Result<annals_tools::Converted> {
    annals_tools::convert(&Options::new(), from, to, compress)
}

fn read(path: &Path) -> (String, String) {
    let reader: Reader = Options::new().open_read_only(path).unwrap();
    let mut text = Text::default();
    annals_tools::scan(&Options::new(), path, &mut text).unwrap();
    (content(&reader.read()), text.1)
}

/// Returns the files of a database, without what is made of them.
fn files(path: &Path) -> Vec<(String, Vec<u8>)> {
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut files = Vec::new();
    for entry in fs::read_dir(path.parent().unwrap()).unwrap() {
        let entry = entry.unwrap();
        let found = entry.file_name().into_string().unwrap();
        if let Some(rest) = found.strip_prefix(&name).filter(|rest| *rest != "-image") {
            files.push((rest.to_owned(), fs::read(entry.path()).unwrap()));
        }
    }
    files.sort();
    files
}

#[test]
fn a_compressed_database_reads_as_it_was_and_unpacks_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path());
    let [packed, plain, again] =
        ["p.zst", "plain", "again.zst"].map(|name| folder.path().join(name));
    let done = convert(&path, &packed, true).unwrap();
    assert_eq!(done.segments, 4);
    assert!(done.written < done.plain, "{done:?}");
    assert_eq!(read(&packed), read(&path));
    let examined = annals_tools::examine(&Options::new(), &packed).unwrap();
    assert_eq!((examined.problem, examined.segments.len()), (None, 4));
    convert(&packed, &plain, false).unwrap();
    assert!(files(&plain) == files(&path), "unpacked");
    convert(&packed, &again, true).unwrap();
    assert!(files(&again) == files(&packed), "compressed again");
    // Nothing but these lies about.
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 4 * 4 + 1, "with the image of the original");

    let error = Options::new().open(&packed).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("annals convert"), "{error}");
    assert_eq!(convert(&path, &packed, true).unwrap_err().kind(), ErrorKind::InUse);
    // A backup unpacks, too.
    let backup = folder.path().join("backup");
    annals_tools::backup(&Options::new(), &packed, &backup).unwrap();
    assert_eq!(read(&backup), read(&path));
}

#[test]
fn what_is_being_written_is_converted_up_to_its_hard_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path());
    let database = Database::open(&path).unwrap();
    database.write(|tx| tx.comment("the last durable word")).unwrap();
    let hard = (database.hard_checkpoint().unwrap().txid, content(&database.read()));
    for compress in [false, true] {
        let to = folder.path().join(format!("copy {compress}"));
        let done = convert(&path, &to, compress).unwrap();
        assert_eq!(done.soft, 0);
        let copy = Options::new().open_read_only(&to).unwrap().read();
        assert_eq!((copy.txid(), content(&copy)), hard);
    }
    // What isn't known to be durable is left out, and counted.
    let mut soft = database.begin().unwrap();
    soft.set_level(annals::Level::Soft);
    soft.comment("a soft word").unwrap();
    soft.commit().unwrap();
    let to = folder.path().join("soft");
    let done = convert(&path, &to, true).unwrap();
    assert_eq!(done.soft, 1);
    assert_eq!(Options::new().open_read_only(&to).unwrap().read().txid(), hard.0);
    // One that was killed.
    let killed = folder.path().join("killed");
    for (rest, bytes) in files(&path) {
        fs::write(format!("{}{rest}", killed.display()), bytes).unwrap();
    }
    let to = folder.path().join("of killed");
    convert(&killed, &to, false).unwrap();
    assert!(Options::new().open_read_only(&to).unwrap().read().txid() >= hard.0);
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left = |name: &std::ffi::OsString| name.to_string_lossy().contains(".backup-");
    assert!(!names.into_iter().any(|name| left(&name)), "a temporary copy is left");
}

#[test]
fn a_compressed_file_that_is_damaged_is_an_error_or_reads_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.annals");
    let database = Database::open(&path).unwrap();
    database.write(define).unwrap();
    write(&database, 0..4);
    database.close().unwrap();
    let packed = folder.path().join("packed");
    convert(&path, &packed, true).unwrap();
    let (whole, expected) = (fs::read(&packed).unwrap(), read(&packed));
    let mut wrong = 0;
    let head_and_table = (0..64).chain(whole.len() - 60..whole.len());
    for at in head_and_table.chain((64..whole.len() - 60).step_by(131)) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(&packed, &bytes).unwrap();
        match Options::new().open_read_only(&packed) {
            Ok(reader) => assert_eq!(content(&reader.read()), expected.0, "byte {at}"),
            Err(_) => wrong += 1,
        }
    }
    assert!(wrong > 64, "{wrong}");
    for len in [0, 7, 40, 64, 70, whole.len() - 1] {
        fs::write(&packed, &whole[..len]).unwrap();
        assert!(Options::new().open_read_only(&packed).is_err(), "{len} bytes");
    }
}
