//! Restarts that keep the history.

use std::time::Duration;

use annals::reports::Older;
use annals::storage::{Access, Directory};
use annals::{ErrorKind, Options, Reader};
use annals_tools::examine;

use super::{NAME, NOW, content, history, open, split, write};

#[test]
fn a_history_in_segments_is_the_one_in_a_single_file() {
    for segments in 1..4 {
        let (many, database, one) = split(segments);
        let expected = content(&open(&one).read());
        assert_eq!(content(&database.read()), expected);
        let names: Vec<_> = (0..segments).map(|n| format!("db-segment-{n:06}")).collect();
        assert_eq!(many.list().unwrap(), [vec![NAME.to_owned()], names].concat());
        drop(database);
        assert_eq!(content(&open(&many).read()), expected);
        assert_eq!(content(&Reader::open(&many, NAME).unwrap().read()), expected);
        assert_eq!(history(&many), history(&one));

        let (many, one) = (
            annals_tools::examine_in(&Options::new(), &many, NAME),
            annals_tools::examine_in(&Options::new(), &one, NAME),
        );
        let (many, one) = (many.unwrap(), one.unwrap());
        assert_eq!((many.problem, many.events), (None, one.events));
        assert_eq!(many.first.map(|first| first.txid.0), Some(1));
        assert_eq!(content(&many.snapshot), expected);
    }
}

#[test]
fn writing_goes_on_in_the_new_segment() {
    let (many, database, _) = split(2);
    let before = database.read();
    let expected = content(&before);
    write(&database, 20..24);
    assert_eq!(database.read().txid(), before.txid() + 4);
    assert_eq!(content(&before), expected, "a snapshot of before stays what it is");
    let now = content(&database.read());
    database.close().unwrap();
    let database = open(&many);
    assert_eq!(content(&database.read()), now);
    assert!(!database.recovered().unclean);
}

#[test]
fn a_restart_with_nothing_new_does_nothing() {
    let (many, database, _) = split(1);
    let names = many.list().unwrap();
    let restarted = database.restart(Older::Kept, NOW).unwrap();
    assert_eq!((restarted.segment, restarted.is_new), (1, false));
    assert_eq!(many.list().unwrap(), names);
}

#[test]
fn a_reader_goes_after_the_journal() {
    let (many, database, _) = split(1);
    let reader = Reader::open(&many, NAME).unwrap();
    let hard = Options::new().hard_only(true).open_read_only_in(&many, NAME).unwrap();
    write(&database, 10..12);
    // It has to catch up with the rest of its segment, one more, and the newest.
    database.restart(Older::Kept, NOW).unwrap();
    write(&database, 12..13);
    database.restart(Older::Kept, NOW).unwrap();
    write(&database, 13..15);
    assert_eq!(content(&reader.pull().unwrap()), content(&database.read()));
    write(&database, 15..16);
    assert_eq!(content(&reader.pull().unwrap()), content(&database.read()));
    database.hard_checkpoint().unwrap();
    hard.pull().unwrap();
    assert_eq!(content(&hard.pull().unwrap()), content(&database.read()));
}

#[test]
fn a_restart_waits_for_the_writer_only_so_long() {
    let (_, database, _) = split(1);
    std::thread::scope(|scope| {
        let tx = database.begin().unwrap();
        let busy = scope.spawn(|| database.restart(Older::Kept, Duration::from_millis(3)));
        assert_eq!(busy.join().unwrap().unwrap_err().kind(), ErrorKind::Busy);
        assert_eq!(database.restart(Older::Kept, NOW).unwrap_err().kind(), ErrorKind::Invalid);
        tx.rollback().unwrap();
    });
}

#[test]
fn another_file_in_the_way_is_an_error_that_changes_nothing() {
    let (many, database, _) = split(1);
    many.create("db-segment-000001").unwrap();
    write(&database, 8..9);
    let error = database.restart(Older::Kept, NOW).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InUse, "{error}");
    assert_eq!(many.list().unwrap(), [NAME, "db-segment-000000", "db-segment-000001"]);
    write(&database, 9..10);
    many.remove("db-segment-000001").unwrap();
    assert!(database.restart(Older::Kept, NOW).unwrap().is_new);
    let expected = content(&database.read());
    drop(database);
    assert_eq!(content(&open(&many).read()), expected);
}

#[test]
fn kept_segments_can_be_looked_at_by_themselves() {
    let (many, database, _) = split(2);
    database.close().unwrap();
    let inspection = annals_tools::inspect_in(&Options::new(), &many, "db-segment-000001").unwrap();
    assert_eq!((inspection.head.header.segment, &inspection.damage), (1, &None));
    assert!(inspection.is_closed());
    let reader = Reader::open(&many, "db-segment-000000").unwrap();
    assert_eq!(reader.read().txid(), annals::Txid(5));
    let reader = Reader::open(&many, "db-segment-000001").unwrap();
    assert_eq!(reader.read().txid(), annals::Txid(9));
    let storage = many.open("db-segment-000000", Access::Read).unwrap();
    let last = annals_tools::inspect_in(&Options::new(), &many, "db-segment-000000").unwrap();
    assert!(last.end.position < storage.len().unwrap(), "the seal is behind the last commit");
}

#[test]
fn a_real_directory_has_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    let database = Options::new().open(&path).unwrap();
    database.write(super::define).unwrap();
    for round in 0..3 {
        write(&database, round * 4..round * 4 + 4);
        database.restart(Older::Kept, NOW).unwrap();
    }
    let expected = content(&database.read());
    database.close().unwrap();
    assert_eq!(content(&Options::new().open(&path).unwrap().read()), expected);
    assert_eq!(content(&examine(&Options::new(), &path).unwrap().snapshot), expected);
}
