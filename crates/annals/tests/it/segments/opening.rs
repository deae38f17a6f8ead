//! Opening: what is missing or damaged before the newest segment.

use annals::reports::Older;
use annals::storage::{Access, Directory, MemoryDirectory};
use annals::{ErrorKind, Options, Reader};
use annals_tools::scan_in;

use super::{NAME, NOW, Text, content, history, open, split, try_replay, write};

/// Tries all ways to read a journal that isn't whole, without an image; each names the file.
fn refused(directory: &MemoryDirectory, file: &str) {
    let errors = [
        try_replay(directory).unwrap_err(),
        Reader::open(directory, NAME).unwrap_err(),
        scan_in(&Options::new(), directory, NAME, &mut Text::default()).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains(file), "{error}");
    }
    let problem =
        annals_tools::examine_in(&Options::new(), directory, NAME).unwrap().problem.unwrap();
    assert!(problem.contains(file), "{problem}");
}

#[test]
fn a_missing_segment_is_named() {
    for missing in ["db-segment-000000", "db-segment-000001"] {
        let (many, database, _) = split(2);
        drop(database);
        many.remove(missing).unwrap();
        refused(&many, missing);
    }
}

#[test]
fn what_the_image_has_is_not_read_again() {
    let (many, database, one) = split(2);
    let (expected, last) = (content(&database.read()), database.read().txid());
    drop(database);
    let first = bytes(&many, "db-segment-000000");
    for name in ["db-segment-000000", "db-segment-000001"] {
        let segment = bytes(&many, name);
        many.remove(name).unwrap();
        // Who writes on must have them.
        let error = super::options().open_in(
            std::sync::Arc::new(many.clone()),
            NAME,
            std::sync::Arc::new(annals_simulated::SimulatedClock::new(9)),
        );
        assert!(error.unwrap_err().to_string().contains("is missing"), "{name}");
        // Who only reads needs it for its blobs alone.
        let read = annals::Reader::open(&many, NAME).unwrap().read();
        read.check().unwrap();
        assert_eq!(read.txid(), last);
        put(&many, name, &segment);
    }
    assert_eq!(content(&open(&many).read()), expected);
    assert_eq!(bytes(&many, "db-segment-000000"), first);
    assert_eq!(history(&many), history(&one));
}

#[test]
fn a_segment_of_another_journal_is_found_out() {
    let (many, database, _) = split(2);
    drop(database);
    let others = MemoryDirectory::new();
    let clock = std::sync::Arc::new(annals_simulated::SimulatedClock::new(8));
    let other = super::options().open_in(std::sync::Arc::new(others.clone()), NAME, clock).unwrap();
    other.write(super::define).unwrap();
    other.close().unwrap();
    put(&many, "db-segment-000000", &bytes(&others, NAME));
    refused(&many, "db-segment-000000");
    let (many, database, _) = split(2);
    drop(database);
    put(&many, "db-segment-000000", &bytes(&many, "db-segment-000001"));
    refused(&many, "db-segment-000000");
}

#[test]
fn another_history_of_the_same_journal_is_found_out() {
    border().unwrap();
}

/// Puts a segment in the place of the one before another, whose history it isn't; tells if nobody sees.
pub(crate) fn border() -> Result<(), String> {
    let (many, database, _) = split(1);
    drop(database);
    // The same segment, but a copy of it continued before it was sealed.
    let end =
        annals_tools::inspect_in(&Options::new(), &many, "db-segment-000000").unwrap().end.position;
    let first = bytes(&many, "db-segment-000000");
    let copy = MemoryDirectory::new();
    put(&copy, NAME, &first[..usize::try_from(end).unwrap()]);
    let database = open(&copy);
    write(&database, 50..51);
    database.restart(Older::Kept, NOW).unwrap();
    put(&many, "db-segment-000000", &bytes(&copy, "db-segment-000000"));
    match try_replay(&many) {
        Ok(_) => return Err("a segment of another history was taken".to_owned()),
        Err(error) if error.kind() == ErrorKind::Corrupt => {}
        Err(error) => return Err(error.to_string()),
    }
    refused(&many, "db-segment-000000");
    Ok(())
}

/// Every byte of a kept segment counts, but those that are there more than once and the live block.
/// SpacetimeDB: damage in the first frame of the last segment was no error.
/// <https://github.com/clockworklabs/SpacetimeDB/pull/3506>
#[test]
fn a_flipped_byte_in_a_kept_segment_is_found() {
    let (many, database, _) = split(1);
    let expected = content(&database.read());
    drop(database);
    let whole = bytes(&many, "db-segment-000000");
    for at in (0..whole.len()).step_by(997).chain(whole.len() - 60..whole.len()) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        put(&many, "db-segment-000000", &flipped);
        match try_replay(&many) {
            Ok(database) => {
                assert!(at < 16_384, "byte {at} of {}", whole.len());
                assert_eq!(content(&database.read()), expected);
            }
            Err(error) => assert!(error.to_string().contains("db-segment-000000"), "{error}"),
        }
    }
    for len in [0, 100, 16_384, 20_000, whole.len() - 1] {
        put(&many, "db-segment-000000", &whole[..len]);
        let error = try_replay(&many).unwrap_err();
        assert!(error.to_string().contains("db-segment-000000"), "{error}");
    }
}

#[test]
fn a_sealed_segment_at_the_path_goes_on() {
    let (many, database, one) = split(2);
    let expected = content(&database.read());
    drop(database);
    // As if the rename had not happened, with or without the name that it is kept by.
    for is_kept in [true, false] {
        let copy = MemoryDirectory::new();
        put(&copy, "db-segment-000000", &bytes(&many, "db-segment-000000"));
        put(&copy, NAME, &bytes(&many, "db-segment-000001"));
        put(&copy, "db.next-0123456789abcdef", &bytes(&many, NAME));
        if is_kept {
            copy.link(NAME, "db-segment-000001").unwrap();
        }
        assert_eq!(content(&Reader::open(&copy, NAME).unwrap().read()), expected);
        assert_eq!(history(&copy), history(&one));
        let database = open(&copy);
        assert_eq!(content(&database.read()), expected);
        assert_eq!(copy.list().unwrap(), [NAME, "db-segment-000000", "db-segment-000001"]);
        write(&database, 60..61);
        let expected = content(&database.read());
        drop(database);
        assert_eq!(content(&open(&copy).read()), expected);
        assert_eq!(
            annals_tools::inspect_in(&Options::new(), &copy, NAME).unwrap().head.header.segment,
            2
        );
    }
}

pub(crate) fn bytes(directory: &MemoryDirectory, name: &str) -> Vec<u8> {
    let storage = directory.open(name, Access::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(storage.len().unwrap()).unwrap()];
    storage.read_at(0, &mut bytes).unwrap();
    bytes
}

pub(crate) fn put(directory: &MemoryDirectory, name: &str, bytes: &[u8]) {
    let _ = directory.remove(name);
    directory.create(name).unwrap().write_at(0, bytes).unwrap();
}
