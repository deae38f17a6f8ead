//! Loops over rows ask for memory only where pages are added or copied, and never for a row.

use std::ops::Range;

use annals::BackfillMode;

use crate::costs::{Database, keyed, plain};
use crate::counting::{alone, times};
use crate::{STRINGS, names, open};

/// How many operations are counted first; then twice as many, and all before were half of these.
const COUNT: u64 = 10_000;
/// All operations of a loop.
const ALL: u64 = 4 * COUNT;

/// What a loop may ask for, whatever its length: nodes of directories, buffers that grow.
const BEGINNING: u64 = 16;

/// How often a loop may ask for memory.
#[derive(Clone, Copy)]
enum Allowed {
    Never,
    /// Once for each so many operations, as it adds pages, or makes room on them.
    OnceIn(u64),
    /// So often for each operation: for what isn't done in a loop over rows.
    ForEach(u64),
}

/// Runs a loop to warm up, and once more as long and twice as long to be counted. It is given the numbers
/// of the operations.
fn count(what: &str, allowed: Allowed, mut work: impl FnMut(Range<u64>)) {
    work(0..COUNT);
    for part in [COUNT..2 * COUNT, 2 * COUNT..4 * COUNT] {
        let operations = part.end - part.start;
        let times = times(|| work(part));
        let most = match allowed {
            Allowed::Never => 0,
            Allowed::OnceIn(rows) => BEGINNING + operations / rows,
            Allowed::ForEach(most) => most * operations,
        };
        assert!(times <= most, "{what}: {operations} times: memory {times} times, {most} allowed");
    }
}

/// Returns an id that is far from those before and after it.
fn scattered(number: u64) -> u64 {
    number * 7919 % ALL
}

fn int(number: u64) -> i64 {
    number.cast_signed()
}

/// Inserts all rows of the table without indexes, in a transaction.
fn fill(db: &Database, name: &str) {
    let insert = |value| db.write(|tx| Ok(tx.insert(plain::New { name, value })?));
    insert(0).unwrap();
    db.write(|tx| {
        Ok((1..int(ALL)).try_for_each(|value| tx.insert(plain::New { name, value }).map(drop))?)
    })
    .unwrap();
}

/// Inserts all rows of the table with indexes, in a transaction.
fn fill_keyed(db: &Database, names: &[String]) {
    db.write(|tx| {
        let mut rows = names.iter().zip(0..);
        Ok(rows.try_for_each(|(name, value)| tx.insert(keyed::New { name, value }).map(drop))?)
    })
    .unwrap();
}

#[test]
fn inserting_asks_for_pages() {
    let _turn = alone();
    // The cells of 683 rows fill a page of 16 KiB; 264 of the long strings do, with their heads.
    for (name, rows) in STRINGS.into_iter().zip([600, 180]) {
        let folder = tempfile::tempdir().unwrap();
        let db = open(folder.path());
        let mut tx = db.begin().unwrap();
        count("insert", Allowed::OnceIn(rows), |range| {
            for number in range {
                tx.insert(plain::New { name, value: int(number) }).unwrap();
            }
        });
    }
}

#[test]
fn inserting_into_indexes_asks_for_pages() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let (db, names) = (open(folder.path()), names(ALL));
    let mut tx = db.begin().unwrap();
    // Some 330 keys are in a leaf of strings, 680 in one of numbers; a split needs three pieces of memory.
    count("insert", Allowed::OnceIn(50), |range| {
        for number in range {
            tx.insert(keyed::New {
                name: &names[usize::try_from(number).unwrap()],
                value: int(number),
            })
            .unwrap();
        }
    });
}

#[test]
fn inserting_vectors_asks_for_pages_and_for_a_few_pieces_of_memory() {
    const RUN: u64 = 1000;
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let values: Vec<_> = (0..int(RUN)).collect();
    let names = vec![STRINGS[0]; values.len()];
    let mut tx = db.begin().unwrap();
    count("insert by vectors", Allowed::OnceIn(100), |range| {
        for _ in range.step_by(usize::try_from(RUN).unwrap()) {
            tx.insert_vector(plain::Columns { name: &names, value: &values }).unwrap();
        }
    });
}

#[test]
fn updating_asks_for_copies_of_pages_and_then_for_nothing() {
    let _turn = alone();
    for (name, strings) in STRINGS.into_iter().zip([Allowed::Never, Allowed::OnceIn(50)]) {
        let folder = tempfile::tempdir().unwrap();
        let db = open(folder.path());
        fill(&db, name);
        let mut tx = db.begin().unwrap();
        let mut set_all = || {
            for id in 0..ALL {
                tx.edit(plain::Id::from_u64(scattered(id))).unwrap().set_value(7).unwrap();
            }
        };
        // A page has 2,048 numbers.
        let first = times(&mut set_all);
        assert!(first <= ALL / 2048 + BEGINNING, "{first} copies of pages");
        count("update a number", Allowed::Never, |range| {
            for id in range {
                tx.edit(plain::Id::from_u64(scattered(id))).unwrap().set_value(int(id)).unwrap();
            }
        });
        // All cells are copied; then short strings are written over, and others onto new pages, of
        // which none is ever more than half empty.
        for id in 0..ALL {
            tx.edit(plain::Id::from_u64(id)).unwrap().set_name(name).unwrap();
        }
        count("update a string", strings, |range| {
            for id in range {
                tx.edit(plain::Id::from_u64(scattered(id))).unwrap().set_name(name).unwrap();
            }
        });
    }
}

#[test]
fn updating_indexes_asks_for_nodes_that_split() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let (db, names) = (open(folder.path()), names(ALL));
    fill_keyed(&db, &names);
    let mut tx = db.begin().unwrap();
    count("update an indexed number", Allowed::OnceIn(50), |range| {
        for id in range {
            tx.edit(keyed::Id::from_u64(scattered(id))).unwrap().set_value(-int(id)).unwrap();
        }
    });
    count("update a unique string", Allowed::OnceIn(50), |range| {
        for id in range {
            let name = names[usize::try_from(id).unwrap()].get(1..).unwrap();
            tx.edit(keyed::Id::from_u64(id)).unwrap().set_name(name).unwrap();
        }
    });
}

#[test]
fn deleting_asks_for_lists_of_what_is_free() {
    let _turn = alone();
    for (name, rows) in STRINGS.into_iter().zip([50, 5]) {
        let folder = tempfile::tempdir().unwrap();
        let db = open(folder.path());
        fill(&db, name);
        let mut tx = db.begin().unwrap();
        count("delete", Allowed::OnceIn(rows), |range| {
            for id in range {
                tx.delete(plain::Id::from_u64(id)).unwrap();
            }
        });
    }
}

/// Counts reading of all kinds.
fn read(db: &Database, name: &str, names: &[String]) {
    let now = db.read();
    count("read by id", Allowed::Never, |range| {
        for id in range {
            let row = now.plain().require(plain::Id::from_u64(scattered(id))).unwrap();
            assert!(row.value() >= 0 && row.name() == name);
        }
    });
    let some = |range: &Range<u64>| usize::try_from(range.end - range.start).unwrap();
    count("scan by rows", Allowed::Never, |range| {
        for row in now.plain().iter().take(some(&range)) {
            assert_eq!(row.unwrap().name(), name);
        }
    });
    count("scan by slices", Allowed::Never, |range| {
        let (first, rows) = (plain::Id::from_u64(range.start), range.end - range.start);
        for slice in now.plain().slices_of(plain::VALUE, first, rows).unwrap() {
            assert!(slice.unwrap().iter().all(|&value| value >= 0));
        }
    });
    count("scan in the order of an index", Allowed::Never, |range| {
        for row in now.keyed().by_name().iter().take(some(&range)) {
            assert_eq!(row.unwrap().name().len(), 16);
        }
    });
    count("lookup in an index", Allowed::Never, |range| {
        for number in range {
            let name = &names[usize::try_from(scattered(number)).unwrap()];
            assert_eq!(now.keyed().by_name().get(name).unwrap().unwrap().name(), name);
        }
    });
    count("snapshot", Allowed::Never, |range| range.for_each(|_| drop(db.read())));
}

#[test]
fn reading_asks_for_nothing_in_memory_and_from_an_image() {
    let _turn = alone();
    let names = names(ALL);
    for name in STRINGS {
        let folder = tempfile::tempdir().unwrap();
        let db = open(folder.path());
        fill(&db, name);
        fill_keyed(&db, &names);
        read(&db, name, &names);
        db.backfill(BackfillMode::Full).unwrap();
        db.close().unwrap();
        let db = open(folder.path());
        // What is looked at for the first time is loaded.
        let now = db.read();
        now.plain().iter().for_each(|row| assert!(row.unwrap().name() == name));
        now.keyed().by_name().iter().for_each(|row| assert!(row.unwrap().value() >= 0));
        read(&db, name, &names);
    }
}

#[test]
fn a_soft_commit_asks_for_a_few_pieces_of_memory() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    fill(&db, STRINGS[0]);
    count("insert and commit", Allowed::ForEach(16), |range| {
        for number in range {
            db.write(|tx| Ok(tx.insert(plain::New { name: STRINGS[0], value: int(number) })?))
                .unwrap();
        }
    });
}
