//! Packing keeps the present as it is, and never makes it larger.

use std::sync::Arc;

use annals::reports::{Older, Packed};
use annals::storage::{Clock, Directory, MemoryDirectory};
use annals::{
    BackfillMode, Command, Database, ErrorKind, Options, Reader, Result, RowId, TableNumber, Txid,
    Type, ValueRef,
};
use annals_simulated::{Rng, SimulatedClock, SimulatedDisk};

use crate::segments::{NAME, NOW, content, define, open, options, split, write};

const OUT: &str = "packed";

fn clock() -> Arc<dyn Clock> {
    Arc::new(SimulatedClock::new(31))
}

/// Packs a database into another file of its directory.
fn pack(directory: &MemoryDirectory) -> Result<Packed> {
    let place: Arc<dyn Directory> = Arc::new(directory.clone());
    annals_tools::pack_in(&Options::new(), Arc::clone(&place), NAME, place, OUT, &clock())
}

/// Adds what a state must not forget: dropped tables and fields, an index, a single row, ids that are gone.
fn complicate(database: &Database) {
    let table = |number| TableNumber(number);
    let field = |table, name: &str, ty| Command::AddField {
        table,
        name: name.to_owned(),
        ty,
        nullable: false,
        default: None,
    };
    let changed = database.write(|tx| {
        tx.apply_command(&Command::CreateTable { name: "gone".to_owned() })?;
        tx.apply_command(&field(table(1), "number", Type::Int64))?;
        tx.insert(table(1), &[7_i64.into()])?;
        tx.apply_command(&Command::CreateTable { name: "settings".to_owned() })?;
        tx.apply_command(&field(table(2), "volume", Type::Int32))?;
        tx.insert(table(2), &[11_i32.into()])?;
        tx.apply_command(&Command::SetSingleRow { table: table(2), single: true })?;
        tx.apply_command(&Command::CreateTable { name: "sparse".to_owned() })?;
        tx.apply_command(&field(table(3), "text", Type::String))?;
        tx.insert_at(table(3), RowId(1 << 40), &[ValueRef::String("far")])?;
        tx.insert_at(table(3), RowId(1 << 41), &[ValueRef::String("farther")])?;
        tx.delete(table(3), RowId(1 << 41))?;
        tx.apply_command(&Command::DropTable { table: table(1) })
    });
    changed.unwrap();
}

#[test]
fn a_database_is_packed_in_place_with_and_without_an_image() {
    for with_image in [false, true] {
        let (directory, database, _) = split(2);
        complicate(&database);
        if with_image {
            database.backfill(BackfillMode::Full).unwrap();
        }
        let (before, txid) = (content(&database.read()), database.read().txid());
        let old = database.read();
        let packed = database.pack(NOW).unwrap();
        assert!(packed.is_done && packed.after < packed.before, "{packed:?}");
        assert_eq!(packed.forgotten.unwrap().transactions, (Txid(1), txid));
        assert_eq!(content(&database.read()), before);
        assert_eq!(content(&old), before, "snapshots stay, with their blobs");
        drop(old);
        let again = database.pack(NOW).unwrap();
        assert_eq!((again.is_done, again.forgotten, again.after), (true, None, packed.after));
        write(&database, 90..91);
        let (after, last) = (content(&database.read()), database.read().txid());
        assert_eq!(last, txid + 1, "txids go on");
        database.close().unwrap();
        let names = directory.list().unwrap();
        assert!(names.iter().all(|name| [NAME, "db-image"].contains(&&**name)), "{names:?}");
        let reopened = open(&directory);
        assert_eq!(reopened.recovered().findings, [""; 0]);
        assert_eq!(content(&reopened.read()), after);
        reopened.close().unwrap();
    }
}

#[test]
fn a_packed_copy_is_a_journal_of_its_own_with_the_same_state() {
    let (directory, database, _) = split(2);
    complicate(&database);
    let before = content(&database.read());
    database.close().unwrap();
    let packed = pack(&directory).unwrap();
    assert!(packed.is_done && packed.after < packed.before, "{packed:?}");
    let [original, copy] = [NAME, OUT]
        .map(|name| annals_tools::inspect_in(&Options::new(), &directory, name).unwrap());
    assert_ne!(copy.head.header.journal_id, original.head.header.journal_id);
    assert_eq!(
        (copy.head.header.segment, copy.end.txid.0, copy.is_closed(), copy.len),
        (0, 1, true, packed.after)
    );
    assert_eq!(content(&Reader::open(&directory, OUT).unwrap().read()), before);
    let written = options().open_in(Arc::new(directory.clone()), OUT, clock()).unwrap();
    assert_eq!(content(&written.read()), before);
    for database in [&written, &open(&directory)] {
        write(database, 90..93);
    }
    let contents = [content(&written.read()), content(&open(&directory).read())];
    assert_eq!(contents[0], contents[1], "both go on with the same ids");
    assert_eq!(pack(&directory).unwrap_err().kind(), ErrorKind::InUse);
}

#[test]
fn what_would_be_larger_is_left_as_it_is() {
    let directory = MemoryDirectory::new();
    let database = open(&directory);
    database.write(define).unwrap();
    // A million rows in a few bytes of the journal: as rows they are more.
    database.write(|tx| tx.insert_vector(crate::segments::TABLE, 1 << 20).map(drop)).unwrap();
    let files = || {
        let mut names = directory.list().unwrap();
        names.retain(|name| !name.ends_with("-image"));
        names
    };
    database.hard_checkpoint().unwrap();
    let before = (files(), database.read().point());
    let packed = database.pack(NOW).unwrap();
    assert!(!packed.is_done && packed.after > packed.before, "{packed:?}");
    assert_eq!((files(), database.read().point()), before);
    let packed = pack(&directory).unwrap();
    assert!(!packed.is_done);
    assert_eq!(files(), before.0);
    write(&database, 90..91);
    database.close().unwrap();
}

#[test]
fn a_power_cut_while_it_packs_leaves_the_same_state() {
    let make = |seed| {
        let disk = SimulatedDisk::new(seed);
        let directory: Arc<dyn Directory> = Arc::new(disk.clone());
        let database = options().open_in(directory, NAME, clock()).unwrap();
        database.write(define).unwrap();
        write(&database, 30..36);
        database.restart(Older::Kept, NOW).unwrap();
        write(&database, 36..39);
        (disk, database)
    };
    let (disk, database) = make(2);
    let (start, expected) = (disk.operations(), content(&database.read()));
    database.pack(NOW).unwrap();
    let mut packed_states = 0;
    for operation in start..=disk.operations() {
        let (disk, database) = make(2);
        disk.crash_at(operation);
        let done = database.pack(NOW);
        assert!(done.is_ok() || disk.is_off(), "{done:?}");
        let states = disk.crash_states();
        let random = (0..4).map(|seed| states.random(&mut Rng::new(operation * 100 + seed)));
        for left in [states.oldest(), states.newest()].into_iter().chain(random) {
            let database = options().open_in(Arc::new(left.clone()), NAME, clock()).unwrap();
            assert_eq!(content(&database.read()), expected, "operation {operation}");
            packed_states += u32::from(database.segments().unwrap().len() == 1);
        }
        std::mem::forget(database);
    }
    assert!(packed_states > 0);
}
