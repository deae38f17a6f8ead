//! Savepoints: what is rolled back to one leaves nothing, neither in the state nor in the journal.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use annals::storage::{Access, Directory, MemoryDirectory, SystemClock};
use annals::{
    Blob, Command, Database, Error, ErrorKind, FieldNumber, IndexNumber, Level, Options, Result,
    RowId, Savepoint, TableNumber, Timestamp, Transaction, Txid, Type, ValueRef,
};
use annals_simulated::{Fault, SimulatedClock, SimulatedDisk};

use crate::blobs::Log;
use crate::store_model::Random;

const TABLE: TableNumber = TableNumber(0);
const TEXT: FieldNumber = FieldNumber(0);
const KEY: FieldNumber = FieldNumber(1);
const NAME: &str = "db";

fn open_in(directory: Arc<dyn Directory>, memory: u64) -> Database {
    let options = Options::new().background(false).memory(memory);
    options.open_in(directory, NAME, Arc::new(SystemClock)).unwrap()
}

fn open(directory: &MemoryDirectory) -> Database {
    open_in(Arc::new(directory.clone()), 0)
}

fn define(tx: &mut Transaction<'_>) -> Result<()> {
    let field = |name: &str, ty, nullable| {
        let (name, default) = (name.to_owned(), None);
        Command::AddField { table: TABLE, name, ty, nullable, default }
    };
    tx.apply_command(&Command::CreateTable { name: "t".to_owned() })?;
    tx.apply_command(&field("text", Type::String, false))?;
    tx.apply_command(&field("key", Type::Int64, true))?;
    tx.apply_command(&field("content", Type::Blob, true))?;
    let (name, fields) = ("by_key".to_owned(), vec![KEY]);
    tx.apply_command(&Command::CreateIndex {
        name,
        table: TABLE,
        fields,
        descending: Vec::new(),
        collated: Vec::new(),
        unique: true,
    })
}

fn database() -> (MemoryDirectory, Database) {
    let directory = MemoryDirectory::new();
    let db = open(&directory);
    db.write(define).unwrap();
    (directory, db)
}

/// A statement.
#[derive(Clone, Debug)]
enum Statement {
    Insert { text: String, key: i64 },
    Blob(Vec<u8>),
    Append(Vec<u8>),
    Text { id: u64, text: String },
    Key { id: u64, key: i64 },
    Delete(u64),
    Run(Vec<i64>),
    Comment(String),
    Table(String),
    DropTable(u32),
}

impl Statement {
    fn random(random: &mut Random) -> Self {
        let long = if random.chance(10) { 200_000 } else { 40 };
        let len = usize::try_from(random.below(long)).unwrap();
        let letter = *random.pick(&['a', 'b', 'c']);
        let text = letter.to_string().repeat(len);
        let (id, key) = (random.below(20), random.below(1000).cast_signed());
        match random.below(20) {
            0..6 => Self::Insert { text, key },
            6 | 7 => Self::Blob(text.into_bytes()),
            8 => Self::Append(text.into_bytes()),
            9..12 => Self::Text { id, text },
            12..14 => Self::Key { id, key },
            14 | 15 => Self::Delete(id),
            16 => Self::Run(
                (0..random.below(30)).map(|at| 1000 * (key + 1) + at.cast_signed()).collect(),
            ),
            17 => Self::Comment(text),
            18 => Self::Table(format!("t{key}")),
            _ => Self::DropTable(1 + u32::try_from(random.below(3)).unwrap()),
        }
    }

    fn run(&self, tx: &mut Transaction<'_>) -> Result<()> {
        match self {
            Self::Insert { text, key } => {
                let values = [ValueRef::String(text), ValueRef::Int64(*key), ValueRef::Null];
                tx.insert(TABLE, &values).map(drop)
            }
            Self::Blob(bytes) => {
                let blob = tx.write_blob(&bytes[..])?;
                tx.insert(TABLE, &[ValueRef::String(""), ValueRef::Null, blob.into()]).map(drop)
            }
            Self::Append(bytes) => tx.append_blob(bytes).map(drop),
            Self::Text { id, text } => tx.update(TABLE, RowId(*id), TEXT, ValueRef::String(text)),
            Self::Key { id, key } => tx.update(TABLE, RowId(*id), KEY, ValueRef::Int64(*key)),
            Self::Delete(id) => tx.delete(TABLE, RowId(*id)),
            Self::Run(keys) => {
                let first = tx.insert_vector(TABLE, keys.len() as u64)?;
                tx.update_vector(TABLE, first, KEY, &keys[..])
            }
            Self::Comment(text) => tx.comment(text),
            Self::Table(name) => tx.apply_command(&Command::CreateTable { name: name.clone() }),
            Self::DropTable(number) => {
                tx.apply_command(&Command::DropTable { table: TableNumber(*number) })
            }
        }
    }
}

/// Runs a random transaction; returns the statements that are left of it.
fn run(tx: &mut Transaction<'_>, random: &mut Random) -> Vec<Statement> {
    let (mut kept, mut savepoints) = (Vec::new(), Vec::<(Savepoint, usize)>::new());
    for _ in 0..random.below(60) {
        let place = usize::try_from(random.below(1 + savepoints.len() as u64)).unwrap();
        match random.below(12) {
            0 | 1 => savepoints.push((tx.set_savepoint().unwrap(), kept.len())),
            2 if place < savepoints.len() => {
                tx.roll_back_to(savepoints[place].0).unwrap();
                kept.truncate(savepoints[place].1);
                let gone = savepoints.split_off(place + 1);
                gone.iter().for_each(|(gone, _)| is_unset(tx, *gone));
            }
            3 if place < savepoints.len() => {
                tx.release(savepoints[place].0).unwrap();
                let gone = savepoints.split_off(place);
                gone.iter().for_each(|(gone, _)| is_unset(tx, *gone));
            }
            _ => {
                let statement = Statement::random(random);
                if statement.run(tx).is_ok() {
                    kept.push(statement);
                }
            }
        }
    }
    kept
}

#[track_caller]
fn is_unset(tx: &mut Transaction<'_>, savepoint: Savepoint) {
    assert_eq!(tx.roll_back_to(savepoint).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(tx.release(savepoint).unwrap_err().kind(), ErrorKind::Invalid);
}

/// Returns the schema, all rows, next ids, and the bytes of all blobs.
fn contents(db: &Database) -> String {
    let now = db.read();
    now.check().unwrap();
    let mut text = now.schema().to_text();
    for table in now.schema().tables() {
        let rows = now.table(table.number).unwrap();
        text += &format!("{} {}\n", table.name, rows.next_id());
        for row in rows.rows().map(Result::unwrap) {
            let values: Vec<_> = table.fields.iter().map(|field| row.value(field.number)).collect();
            text += &format!("{:?} {values:?}\n", row.id());
        }
    }
    for number in 1.. {
        let Ok(mut blob) = now.blob(Blob(number)) else { break };
        text += &format!("blob {number} {:?}\n", blob.to_vec(usize::MAX).unwrap());
    }
    text
}

/// Returns the events of the journal as text, and its length.
fn journal(directory: &MemoryDirectory) -> (String, u64) {
    let mut log = Log::default();
    annals_tools::scan_in(&Options::new(), directory, NAME, &mut log).unwrap();
    let length = directory.open(NAME, Access::Read).unwrap().len().unwrap();
    (log.text, length)
}

#[test]
fn what_is_left_is_as_if_nothing_else_had_run() {
    for seed in 1..30 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let (tried_in, tried) = database();
        let (plain_in, plain) = database();
        for _ in 0..8 {
            let mut tx = tried.begin().unwrap();
            let kept = run(&mut tx, &mut random);
            let done = tx.commit();
            let mut tx = plain.begin().unwrap();
            kept.iter().for_each(|statement| statement.run(&mut tx).unwrap());
            let expected = tx.commit();
            match (done, expected) {
                (Ok(done), Ok(expected)) => {
                    assert_eq!((done.txid, done.position), (expected.txid, expected.position));
                }
                (Err(done), Err(expected)) => assert_eq!(done.to_string(), expected.to_string()),
                other => panic!("{other:?}"),
            }
            assert_eq!(contents(&tried), contents(&plain));
        }
        tried.close().unwrap();
        plain.close().unwrap();
        assert_eq!(journal(&tried_in), journal(&plain_in));
        // Both again, from their journals: there is no image, since nothing was done in the background.
        let replayed = [&tried_in, &plain_in].map(|directory| contents(&open(directory)));
        assert_eq!(replayed[0], replayed[1]);
    }
}

#[test]
fn an_error_of_a_part_rolls_back_only_that_part() {
    let (_, db) = database();
    let mut tx = db.begin().unwrap();
    let insert = |tx: &mut Transaction<'_>, key: i64| {
        tx.insert(TABLE, &[ValueRef::String(""), ValueRef::Int64(key), ValueRef::Null])
    };
    let kept = tx.savepoint(|tx| insert(tx, 1)).unwrap();
    let failed = tx.savepoint(|tx| {
        insert(tx, 2)?;
        tx.savepoint(|tx| insert(tx, 3))?;
        insert(tx, 1)
    });
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Unique);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        tx.savepoint(|tx| -> Result<()> {
            insert(tx, 4)?;
            tx.set_level(Level::Soft);
            tx.set_time(Timestamp(7));
            tx.savepoint(|_| -> Result<()> { panic!("as it must") })
        })
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"as it must"));
    assert_eq!(insert(&mut tx, 5).unwrap(), RowId(kept.0 + 1), "ids are given out again");
    let commit = tx.commit().unwrap();
    assert_eq!(commit.level, Level::Checksummed);
    assert_ne!(db.changes(Txid(2)..).unwrap().next().unwrap().unwrap().time, Timestamp(7));
    let now = db.read();
    let keys: Vec<_> = now.index(IndexNumber(0)).unwrap().rows().map(Result::unwrap).collect();
    assert_eq!(keys.iter().map(|row| row.id().0).collect::<Vec<_>>(), [0, 1]);
}

/// An error type of a program.
#[derive(Debug)]
enum Mine {
    Annals(Error),
    Refused,
}

impl From<Error> for Mine {
    fn from(error: Error) -> Self {
        Self::Annals(error)
    }
}

#[test]
fn an_error_of_the_program_comes_back_whole() {
    let (_, db) = database();
    let mut tx = db.begin().unwrap();
    let refused = tx.savepoint(|tx| {
        tx.comment("gone")?;
        Err::<(), _>(Mine::Refused)
    });
    assert!(matches!(refused, Err(Mine::Refused)));
    assert!(tx.is_empty(), "nothing is left");
    let failed = tx.savepoint(|tx| Ok::<_, Mine>(tx.delete(TABLE, RowId(9))?));
    assert!(matches!(failed, Err(Mine::Annals(error)) if error.kind() == ErrorKind::NotFound));
}

/// Keys that are twice, and references, are checked by the commit: not those of a part that was rolled back.
#[test]
fn what_a_commit_checks_is_forgotten_with_its_part() {
    let (_, db) = database();
    let mut tx = db.begin().unwrap();
    for key in 0..3 {
        tx.insert(TABLE, &[ValueRef::String(""), ValueRef::Int64(key), ValueRef::Null]).unwrap();
    }
    let savepoint = tx.set_savepoint().unwrap();
    tx.update(TABLE, RowId(1), KEY, ValueRef::Int64(0)).unwrap();
    tx.roll_back_to(savepoint).unwrap();
    tx.commit().unwrap();
    // A key that was twice before the savepoint is still to be checked, though a part has mended it.
    let mut tx = db.begin().unwrap();
    tx.update(TABLE, RowId(1), KEY, ValueRef::Int64(0)).unwrap();
    let savepoint = tx.set_savepoint().unwrap();
    let (name, fields) = ("other".to_owned(), vec![TEXT]);
    tx.apply_command(&Command::DropIndex { index: IndexNumber(0) }).unwrap();
    tx.apply_command(&Command::CreateIndex {
        name,
        table: TABLE,
        fields,
        descending: Vec::new(),
        collated: Vec::new(),
        unique: false,
    })
    .unwrap();
    tx.roll_back_to(savepoint).unwrap();
    assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::Unique);
}

/// The operations of a disk that a transaction with a savepoint for each row takes.
#[test]
fn a_savepoint_takes_no_operation_of_the_disk() {
    let operations = |has_savepoints: bool| {
        let disk = SimulatedDisk::new(1);
        let options = Options::new().background(false);
        let clock = Arc::new(SimulatedClock::new(1));
        let db = options.open_in(Arc::new(disk.clone()), NAME, clock).unwrap();
        db.write(define).unwrap();
        let before = disk.operations();
        let mut tx = db.begin().unwrap();
        let values = |key| [ValueRef::String("some text"), ValueRef::Int64(key), ValueRef::Null];
        for key in 0..1000 {
            if has_savepoints {
                let outer = tx.set_savepoint().unwrap();
                tx.insert(TABLE, &values(key)).unwrap();
                tx.savepoint(|tx| tx.insert(TABLE, &values(key))).unwrap_err();
                tx.release(outer).unwrap();
            } else {
                tx.insert(TABLE, &values(key)).unwrap();
            }
        }
        let commit = tx.commit().unwrap();
        (disk.operations() - before, commit.position)
    };
    assert_eq!(operations(true), operations(false));
}

/// After an I/O error in a part the transaction continues from the savepoint, if its frames can be cut off.
#[test]
fn a_part_that_could_not_be_written_is_rolled_back() {
    for fault in [Fault::Io, Fault::NoSpace, Fault::ShortWrite { bytes: 600 }] {
        let disk = SimulatedDisk::new(1);
        let (options, clock) = (Options::new().background(false), Arc::new(SimulatedClock::new(1)));
        let open =
            || options.open_in(Arc::new(disk.clone()), NAME, Arc::clone(&clock) as _).unwrap();
        let db = open();
        db.write(define).unwrap();
        let long = "x".repeat(700_000);
        let insert = |tx: &mut Transaction<'_>, text: &str| {
            tx.insert(TABLE, &[ValueRef::String(text), ValueRef::Null, ValueRef::Null])
        };
        let mut tx = db.begin().unwrap();
        insert(&mut tx, "first").unwrap();
        let failed = tx.savepoint(|tx| {
            insert(tx, &long)?;
            disk.fail_at(disk.operations(), fault);
            insert(tx, &long)
        });
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Io, "{fault:?}");
        insert(&mut tx, "second").unwrap();
        tx.commit().unwrap();
        let before = contents(&db);
        assert_eq!(before.matches("String(").count(), 2);
        drop(db);
        assert_eq!(contents(&open()), before);
    }
}

/// Frames that a part wrote before it was rolled back are zeroed: after the commit there are only zeros.
pub(crate) fn zeroed() {
    let (directory, db) = database();
    let long = "x".repeat(1_500_000);
    let values = |text| [ValueRef::String(text), ValueRef::Null, ValueRef::Null];
    let mut tx = db.begin().unwrap();
    tx.insert(TABLE, &values("before")).unwrap();
    let part = tx.savepoint(|tx| {
        tx.insert(TABLE, &values(&long))?;
        Err::<(), _>(Error::invalid("rolled back"))
    });
    assert_eq!(part.unwrap_err().kind(), ErrorKind::Invalid);
    let end = tx.commit().unwrap().position;
    let file = directory.open(NAME, Access::Read).unwrap();
    let mut rest = vec![0; usize::try_from(file.len().unwrap() - end).unwrap()];
    assert!(rest.len() > long.len() / 2, "the part was in the file");
    assert_eq!(file.read_at(end, &mut rest).unwrap(), rest.len());
    assert!(rest.iter().all(|byte| *byte == 0), "something follows the commit");
}

#[test]
fn frames_of_a_part_that_is_rolled_back_are_zeroed() {
    zeroed();
}

/// A part of what is rolled back, and of what is kept, is in the image already.
#[test]
fn a_transaction_larger_than_memory_returns_to_each_savepoint() {
    let directory = MemoryDirectory::new();
    let db = open_in(Arc::new(directory.clone()), 1 << 20);
    db.write(define).unwrap();
    let fill = |tx: &mut Transaction<'_>, rows: i64, letter: &str| {
        for _ in 0..rows {
            let values = [ValueRef::String(&letter.repeat(200)), ValueRef::Null, ValueRef::Null];
            tx.insert(TABLE, &values).unwrap();
        }
    };
    let shown = |tx: &Transaction<'_>| {
        let table = tx.view().table(TABLE).unwrap();
        let texts = table.rows().map(|row| row.unwrap().read::<&str>(TEXT)[..1].to_owned());
        texts.collect::<String>()
    };
    for round in 0..4u64 {
        let mut tx = db.begin().unwrap();
        let mut states = Vec::new();
        for (rows, letter) in [(3, "a"), (9000, "b"), (9000, "c"), (5, "d"), (9000, "e")] {
            states.push((tx.set_savepoint().unwrap(), shown(&tx)));
            fill(&mut tx, rows, letter);
            (0..3).for_each(|id| {
                tx.update(TABLE, RowId(id), TEXT, ValueRef::String(letter)).unwrap()
            });
        }
        let first = usize::try_from(round).unwrap();
        for (savepoint, state) in states[first..].iter().rev() {
            tx.roll_back_to(*savepoint).unwrap();
            assert!(shown(&tx) == *state, "round {round}");
            tx.view().check().unwrap();
            fill(&mut tx, 6000, "f");
            tx.roll_back_to(*savepoint).unwrap();
            assert!(shown(&tx) == *state, "round {round}, again");
        }
        fill(&mut tx, 4000, "g");
        let last = shown(&tx);
        tx.commit().unwrap();
        db.backfill(annals::BackfillMode::Full).unwrap();
        let now = db.read();
        now.check().unwrap();
        let texts = now.table(TABLE).unwrap();
        let texts = texts.rows().map(|row| row.unwrap().read::<&str>(TEXT)[..1].to_owned());
        assert!(texts.collect::<String>() == last);
    }
    let before = contents(&db);
    db.close().unwrap();
    assert!(contents(&open(&directory)) == before);
}
