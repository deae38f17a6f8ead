//! A database with a history, and ten questions about it, for tests of lazy replicas.

#![allow(clippy::missing_panics_doc, reason = "a test that fails should panic")]

use std::ops::Bound;
use std::path::Path;

use annals::{
    BackfillMode, Database, FieldNumber, IndexNumber, Level, Options, Reader, Result, RowId,
    TableNumber, Txid, ValueRef,
};
use annals_storage::bytes::hash;

const PERSON: TableNumber = TableNumber(0);
const CITY: TableNumber = TableNumber(1);
const NAME: FieldNumber = FieldNumber(0);
const AGE: FieldNumber = FieldNumber(1);
const NOTE: FieldNumber = FieldNumber(2);
const BY_NAME: IndexNumber = IndexNumber(0);
const BY_AGE: IndexNumber = IndexNumber(1);
const SCHEMA: &str = "create_table person; create_table city; add_field person name string; \
    add_field person age int32; add_field person note string; add_field city name string; \
    create_unique_index by_name person name; create_index by_age person age";

/// A row whose history is long.
const BUSY: RowId = RowId(777);

/// Applies the commands of a schema.
fn define(database: &Database) {
    for command in SCHEMA.split("; ") {
        let schema = database.read().schema().clone();
        let tokens = annals_schema::tokenize(command).expect("words");
        let parsed = annals_schema::parse_command(&schema, &tokens).expect("a command");
        let parsed = parsed.expect("a command");
        database.write(|tx| tx.apply_command(&parsed)).expect("a schema");
    }
}

/// Makes a database without rows.
pub fn define_again(path: &Path) {
    let database = Options::new().open(path).expect("a database");
    define(&database);
    database.close().expect("a file");
}

/// Makes a database of so many persons, with changes, an image, and transactions after that.
pub fn create(path: &Path, persons: u64) -> Database {
    let options = Options::new().level(Level::Soft).background(false);
    let database = options.open(path).expect("a database");
    define(&database);
    for city in ["Lille", "Lyon", "Nantes", "Paris"] {
        database.write(|tx| tx.insert(CITY, &[ValueRef::String(city)]).map(drop)).expect("a city");
    }
    for begin in (0..persons).step_by(10_000) {
        let insert = |tx: &mut annals::Transaction<'_>| -> Result<()> {
            for id in begin..persons.min(begin + 10_000) {
                let note: String =
                    (0..3).map(|part| format!("{:016x}", random(id * 3 + part))).collect();
                tx.insert(
                    PERSON,
                    &[
                        ValueRef::String(&format!("person {id:07}")),
                        ValueRef::Int32(age(id)),
                        ValueRef::String(&note),
                    ],
                )?;
            }
            Ok(())
        };
        database.write(insert).expect("persons");
    }
    for change in 0..300 {
        if change % 100 == 50 {
            database.backfill(BackfillMode::Full).expect("a root");
        }
        touch(&database, persons);
    }
    database.backfill(BackfillMode::Full).expect("a root");
    for _ in 0..20 {
        touch(&database, persons);
    }
    database.hard_checkpoint().expect("a flush");
    database
}

/// Changes a row, and the one whose history is long.
pub fn touch(database: &Database, persons: u64) {
    let random = random(database.read().txid().0);
    let change = |tx: &mut annals::Transaction<'_>| {
        tx.update(PERSON, RowId(random % persons), AGE, ValueRef::Int32(age(random)))?;
        tx.update(PERSON, BUSY, NOTE, ValueRef::String(&format!("note {random}")))
    };
    database.write(change).expect("a change");
}

/// Returns a number that looks random.
fn random(number: u64) -> u64 {
    hash(&number.to_le_bytes())
}

fn age(random: u64) -> i32 {
    i32::try_from(random % 100).unwrap_or(0)
}

/// A question, with its name.
pub type Question = (&'static str, fn(&Reader) -> Result<String>);

/// What people ask.
pub const QUESTIONS: [Question; 10] = [
    ("a row", |reader| {
        let now = reader.read();
        let row = now.table(PERSON)?.get(RowId(4321))?;
        Ok(format!("{:?} {:?} {:?}", row.value(NAME), row.value(AGE), row.value(NOTE)))
    }),
    ("an index lookup", |reader| {
        let now = reader.read();
        let found = now.index(BY_NAME)?.require(&[ValueRef::String("person 0001234")])?;
        Ok(format!("{} {:?}", found.id().0, found.value(NOTE)))
    }),
    ("a range", |reader| {
        let now = reader.read();
        let (from, to) = (ValueRef::String("person 0001000"), ValueRef::String("person 0001020"));
        let rows = now.index(BY_NAME)?.range(&[], Bound::Included(from), Bound::Excluded(to));
        let names: Result<Vec<_>> = rows.map(|row| Ok(format!("{:?}", row?.value(NAME)))).collect();
        Ok(names?.join(" "))
    }),
    ("a count", |reader| {
        let now = reader.read();
        Ok(now.index(BY_AGE)?.equal(&[ValueRef::Int32(42)]).left()?.to_string())
    }),
    ("the history of a row", |reader| {
        let versions: Vec<_> = reader.history_of(PERSON, BUSY)?.newest(10)?;
        Ok(format!("{versions:?}"))
    }),
    ("blame", |reader| Ok(format!("{:?}", reader.blame(PERSON, BUSY)?))),
    ("a row at a moment", |reader| {
        let then = reader.at(Txid(reader.read().txid().0 - 25))?;
        Ok(format!("{:?}", then.table(PERSON)?.get(BUSY)?.value(NOTE)))
    }),
    ("the difference of near moments", |reader| {
        let end = reader.read().txid().0;
        Ok(format!("{:?}", reader.read().differences(Txid(end - 40), Txid(end - 30))?))
    }),
    ("the first rows", |reader| {
        let now = reader.read();
        let rows = now.table(PERSON)?.rows().take(20);
        let rows: Result<Vec<_>> = rows.map(|row| Ok(format!("{:?}", row?.value(NAME)))).collect();
        Ok(rows?.join(" "))
    }),
    ("a small table", |reader| {
        let now = reader.read();
        let rows = now.table(CITY)?.rows();
        let rows: Result<Vec<_>> = rows.map(|row| Ok(format!("{:?}", row?.value(NAME)))).collect();
        Ok(rows?.join(" "))
    }),
];

/// Returns the answers of a file here.
pub fn answers(path: &Path) -> Vec<String> {
    let reader = Options::new().open_read_only(path).expect("a database");
    QUESTIONS
        .iter()
        .map(|(name, ask)| ask(&reader).unwrap_or_else(|error| panic!("{name}: {error}")))
        .collect()
}
