//! Edges: what must never get into a journal, what must not be left beside one, and what must be
//! noticed.

use std::sync::Arc;

use annals::model::OnDelete;
use annals::storage::{Access, Directory, Hold, Lock, MemoryDirectory, SystemClock};
use annals::{
    Command, Committed, Database, ErrorKind, FieldNumber, Level, Options, RowId, TableNumber, Type,
    Value, ValueRef,
};

const TABLE: TableNumber = TableNumber(0);

fn open(directory: &MemoryDirectory) -> Database {
    let directory: Arc<dyn Directory> = Arc::new(directory.clone());
    Options::new().background(false).open_in(directory, "db", Arc::new(SystemClock)).unwrap()
}

fn reference(name: &str, default: Option<Value>) -> Command {
    let (name, ty) = (name.to_owned(), Type::Reference(TABLE, OnDelete::Dangle));
    Command::AddField { table: TABLE, name, ty, nullable: true, default }
}

#[test]
fn a_reference_that_no_row_can_have_is_refused() {
    let directory = MemoryDirectory::new();
    let db = open(&directory);
    let mut tx = db.begin().unwrap();
    tx.apply_command(&Command::CreateTable { name: "t".to_owned() }).unwrap();
    tx.apply_command(&reference("r", None)).unwrap();
    tx.insert(TABLE, &[ValueRef::Reference(RowId::MAX)]).unwrap();
    for id in [RowId::MAX.0 + 1, u64::MAX] {
        let bad = ValueRef::Reference(RowId(id));
        assert_eq!(tx.insert(TABLE, &[bad]).unwrap_err().kind(), ErrorKind::Invalid);
        let updated = tx.update(TABLE, RowId(0), FieldNumber(0), bad);
        assert_eq!(updated.unwrap_err().kind(), ErrorKind::Invalid);
        let added = tx.apply_command(&reference("s", Some(Value::Reference(RowId(id)))));
        assert_eq!(added.unwrap_err().kind(), ErrorKind::Invalid);
    }
    tx.commit().unwrap();
    drop(db);
    let db = open(&directory);
    let row = db.read().table(TABLE).unwrap().get(RowId(0)).unwrap().read(FieldNumber(0));
    assert_eq!(Some(RowId::MAX), row);
}

#[test]
fn the_leftovers_of_a_creation_that_crashed_are_removed_by_the_next() {
    let directory = MemoryDirectory::new();
    let create = |name: &str, len: usize| {
        let file = directory.create(name).unwrap();
        file.write_at(0, &vec![0; len]).unwrap();
        file
    };
    create("db.new-0123456789abcdef", 0);
    create("db.new-fedcba9876543210", 16384);
    let others = ["db.new-0123456789abcde", "db.new-0123456789abcdeg", "odb.new-0123456789abcdef"];
    others.iter().for_each(|name| drop(create(name, 0)));
    // The last name of a journal that was in use, and a creation that continues.
    create("db.new-1111111111111111", 16385);
    let creating = create("db.new-2222222222222222", 0);
    assert!(creating.try_lock(Lock::Head, Hold::Exclusive).unwrap());
    open(&directory).close().unwrap();
    let mut expected =
        [&others[..], &["db", "db.new-1111111111111111", "db.new-2222222222222222"]].concat();
    expected.sort_unstable();
    assert_eq!(directory.list().unwrap(), expected);
    drop(open(&directory));
    assert_eq!(directory.list().unwrap(), expected, "opening removes nothing");
    assert!(directory.open("db", Access::Read).is_ok());
}

#[test]
fn a_transaction_that_was_forgotten_does_not_block_closing() {
    let directory = MemoryDirectory::new();
    let db = open(&directory);
    let mut tx = db.begin().unwrap();
    tx.comment("forgotten").unwrap();
    std::mem::forget(tx);
    db.close().unwrap();
    assert_eq!(open(&directory).read().txid(), annals::Txid(0));
}

/// Takes transactions; after the first, it breaks the file after the reader's back.
struct Breaking {
    directory: MemoryDirectory,
    commits: u64,
}

impl annals::Sink for Breaking {
    fn event(&mut self, _: &annals::Schema, _: &annals::event::Event<'_>) -> annals::Result<()> {
        Ok(())
    }

    fn commit(&mut self, _: &annals::Schema, committed: &Committed) -> annals::Result<()> {
        if self.commits == 0 {
            let file = self.directory.open("db", Access::Write).unwrap();
            // Far enough after that it isn't in the reader's window yet.
            file.write_at(committed.position + (3 << 20), &[1; 64]).unwrap();
        }
        self.commits += 1;
        Ok(())
    }
}

#[test]
fn a_scan_that_cannot_read_on_says_so() {
    let directory = MemoryDirectory::new();
    let db = open(&directory);
    for _ in 0..8 {
        db.write(|tx| tx.comment(&"x".repeat(1 << 20))).unwrap();
    }
    db.close().unwrap();
    let mut sink = Breaking { directory: directory.clone(), commits: 0 };
    let error = annals_tools::scan_in(&Options::new(), &directory, "db", &mut sink).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(sink.commits < 8);
}

#[test]
fn a_panic_in_a_transaction_takes_it_back_and_blocks_nobody() {
    let directory = MemoryDirectory::new();
    let db = open(&directory);
    for text in [10, 3 << 20].map(|len| "x".repeat(len)) {
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            db.write(|tx| {
                tx.apply_command(&Command::CreateTable { name: "t".to_owned() })?;
                tx.comment(&text)?;
                if tx.is_empty() { Ok::<_, annals::Error>(()) } else { panic!("as it may be") }
            })
        }));
        assert!(panicked.is_err());
        assert!(db.read().schema().tables().is_empty());
        db.write(|tx| tx.comment("goes on")).unwrap();
    }
    db.close().unwrap();
    let db = open(&directory);
    assert_eq!((db.read().txid().0, db.read().schema().tables().len()), (2, 0));
    assert!(!db.recovered().unclean);
}

#[test]
fn checkpoints_wait_for_no_transaction_and_tell_of_commits_only() {
    let directory = MemoryDirectory::new();
    let db = open(&directory);
    let table = Command::CreateTable { name: "t".to_owned() };
    db.write(|tx| {
        tx.set_level(Level::Soft);
        tx.apply_command(&table)
    })
    .unwrap();
    let committed = db.read().point();
    let mut tx = db.begin().unwrap();
    // More than a frame, so that a part of it is in the file.
    (0..3).for_each(|_| tx.comment(&"long".repeat(200_000)).unwrap());
    let inspect = || annals_tools::inspect_in(&Options::new(), &directory, "db").unwrap();
    assert_eq!(db.soft_checkpoint().unwrap(), committed);
    assert_eq!(inspect().hard, 16384, "nothing was flushed yet");
    assert_eq!(db.hard_checkpoint().unwrap(), committed);
    let newest =
        inspect().head.slots.iter().flatten().flatten().map(|slot| slot.point.position).max();
    assert_eq!((newest, inspect().hard), (Some(committed.position), committed.position));
    tx.commit().unwrap();
    assert_eq!(db.hard_checkpoint().unwrap(), db.read().point());
}
