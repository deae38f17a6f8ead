//! Frames that are kept in memory while they are verified are those of the files.

use std::sync::Arc;

use annals::{Command, Cursor, Database, ErrorKind, Options, TableNumber, Type, ValueRef};
use annals_replica::frames::{Batch, Source};
use annals_simulated::SimulatedClock;
use annals_storage::{Access, Directory as _, MemoryDirectory, Spool, Storage as _};

const NAME: &str = "journal";
const ITEM: TableNumber = TableNumber(0);

/// Makes a history of transactions of all lengths; returns their ends, too.
fn history(directory: &MemoryDirectory) -> (Database, Vec<Cursor>) {
    let clock = Arc::new(SimulatedClock::new(1));
    let database = Options::new().open_in(directory.again(), NAME, clock).unwrap();
    let cursor = |database: &Database| Cursor::from(database.read().point());
    let created = database.write(|tx| {
        tx.apply_command(&Command::CreateTable { name: "item".to_owned() })?;
        let (name, ty) = ("value".to_owned(), Type::Bytes);
        let (table, nullable, default) = (ITEM, false, None);
        tx.apply_command(&Command::AddField { table, name, ty, nullable, default })
    });
    created.unwrap();
    let mut ends = vec![cursor(&database)];
    for len in [1, 3000, 20, 20, 70_000, 0, 500, 20, 9000, 20, 1 << 17, 4, 5, 6] {
        database.write(|tx| tx.insert(ITEM, &[ValueRef::Bytes(&vec![7; len])])).unwrap();
        ends.push(cursor(&database));
    }
    (database, ends)
}

fn bytes_of(batch: &Batch) -> Vec<u8> {
    let mut spool = Spool::new(MemoryDirectory::new().again(), "spool".to_owned(), 0);
    batch.copy_to(&mut spool).unwrap();
    let mut bytes = vec![0; usize::try_from(spool.end()).unwrap()];
    assert_eq!(spool.read_at(0, &mut bytes).unwrap(), bytes.len());
    bytes
}

/// Returns a buffer that holds something else, longer or shorter than is needed.
fn room(count: usize) -> Option<Vec<u8>> {
    Some(vec![0xee; if count.is_multiple_of(3) { count * 2 } else { count / 2 }])
}

#[test]
fn what_is_kept_in_memory_is_what_the_file_has() {
    let directory = MemoryDirectory::new();
    let (database, ends) = history(&directory);
    let source = Source::new(database);
    let mut kept = 0;
    for &after in &ends {
        for most in [0, 1, 99, 100, 101, 600, 4000, 80_000, 200_000, 1 << 20] {
            let batch = source.after_into(Some(after), most, room).unwrap();
            let expected = source.after(Some(after), most).unwrap();
            assert_eq!((batch.next, batch.transactions), (expected.next, expected.transactions));
            assert!(expected.bytes.is_none());
            let bytes = bytes_of(&expected);
            assert_eq!(bytes_of(&batch), bytes);
            kept += batch.bytes.iter().len();
            assert!(batch.bytes.is_none_or(|kept| kept == bytes), "after {after}, {most} bytes");
        }
    }
    assert!(kept > 50, "{kept}");
}

#[test]
fn a_damaged_frame_is_never_passed_on() {
    let directory = MemoryDirectory::new();
    let (database, ends) = history(&directory);
    let whole = bytes_of(&Source::new(database.clone()).after(Some(ends[0]), 1 << 30).unwrap());
    let file = directory.open(NAME, Access::Write).unwrap();
    let at = file.len().unwrap() - 100_000;
    let mut byte = [0];
    file.read_at(at, &mut byte).unwrap();
    file.write_at(at, &[byte[0] ^ 1]).unwrap();
    for most in [50, 5000, 100_000, 1 << 30] {
        let source = Source::new(database.clone());
        let (mut after, mut bytes) = (ends[0], Vec::new());
        let error = loop {
            match source.after_into(Some(after), most, room) {
                Ok(batch) => {
                    assert!(!batch.is_empty(), "the damage is passed over, by {most} bytes");
                    bytes.extend(bytes_of(&batch));
                    after = batch.next;
                }
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(whole.starts_with(&bytes));
    }
}
