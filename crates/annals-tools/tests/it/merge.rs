//! Merging: the rows of several files in one, with references that lead to the same rows as before.

use std::collections::BTreeMap;
use std::sync::Arc;

use annals::storage::{Directory, MemoryDirectory};
use annals::{
    Database, ErrorKind, FieldNumber, Options, Reader, Result, RowId, Schema, Snapshot,
    TableNumber, ValueRef,
};
use annals_simulated::{Fault, Rng, SimulatedClock, SimulatedDisk};
use annals_tools::{Merged, OnConflict, merge_in};

const OUT: &str = "merged";
const CITY: TableNumber = TableNumber(1);
const PERSON: TableNumber = TableNumber(2);

const SCHEMA: &str = "
create_table gone
create_table city
add_field city name string
create_unique_index city_by_name city name
create_table person
add_field person name string
add_field person home references city
add_field person boss references person restrict
add_field person photo blob
create_index person_by_name person name
create_table settings
add_field settings volume int32
set_single_row settings true
drop_table gone
";

fn schema(more: &str) -> Schema {
    annals_schema::parse(&format!("{SCHEMA}{more}")).unwrap().schema
}

fn create(directory: &MemoryDirectory, name: &str, schema: &Schema) -> Database {
    let seed = 100 + name.len() as u64;
    let clock = Arc::new(SimulatedClock::new(seed));
    let options = Options::new().background(false);
    let database = options.open_in(Arc::new(directory.clone()), name, clock).unwrap();
    database.upgrade(schema, &mut |_, _| Ok(())).unwrap();
    database
}

/// Fills a file with cities and persons that refer to them, and to each other; some are deleted again.
fn fill(database: &Database, name: &str, rng: &mut Rng) {
    let mut below = |limit: u64| rng.below(limit);
    for round in 0..4 {
        let done = database.write(|tx| {
            let mut cities = Vec::new();
            for number in 0..5 {
                cities.push(
                    tx.insert(CITY, &[ValueRef::String(&format!("{name} {round}.{number}"))])?,
                );
            }
            let shared = tx.write_blob(format!("photo of {name} {round}").as_bytes())?;
            let mut boss = ValueRef::Null;
            for number in 0..8_u64 {
                let home = cities[usize::try_from(below(5)).unwrap()];
                let photo = if below(3) == 0 { ValueRef::Null } else { shared.into() };
                let text = format!("person {number} of {name}");
                let row = [ValueRef::String(&text), ValueRef::Reference(home), boss, photo];
                boss = ValueRef::Reference(tx.insert(PERSON, &row)?);
            }
            tx.delete(CITY, cities[usize::try_from(below(5)).unwrap()])
        });
        done.unwrap();
    }
}

fn merge(directory: &MemoryDirectory, names: &[&str]) -> Result<Merged> {
    merge_so(directory, names, OnConflict::Refuse)
}

fn merge_so(directory: &MemoryDirectory, names: &[&str], so: OnConflict) -> Result<Merged> {
    let place: Arc<dyn Directory> = Arc::new(directory.clone());
    let from: Vec<_> = names.iter().map(|&name| (&*place, name)).collect();
    let clock = Arc::new(SimulatedClock::new(77));
    merge_in(&Options::new(), &from, Arc::clone(&place), OUT, clock, so)
}

fn read(directory: &dyn Directory, name: &str) -> Snapshot {
    let snapshot = Reader::open(directory, name).unwrap().read();
    snapshot.check().unwrap();
    snapshot
}

/// Says what a person is by what it refers to, not by ids.
fn person(snapshot: &Snapshot, id: RowId, depth: u32) -> String {
    let persons = snapshot.table(PERSON).unwrap();
    let Some(row) = persons.find(id).unwrap() else { return "nobody".to_owned() };
    let home = match row.value(FieldNumber(1)) {
        ValueRef::Reference(home) => snapshot.table(CITY).unwrap().find(home).unwrap(),
        _ => panic!("everybody has a home, or had one"),
    };
    let home = home.map(|city| format!("{:?}", city.value(FieldNumber(0))));
    let boss = match row.value(FieldNumber(2)) {
        ValueRef::Reference(boss) if depth > 0 => person(snapshot, boss, depth - 1),
        boss => format!("{:?}", boss == ValueRef::Null),
    };
    let photo = match row.value(FieldNumber(3)) {
        ValueRef::Blob(blob) => snapshot.blob(blob).unwrap().to_vec(1000).unwrap(),
        _ => Vec::new(),
    };
    format!("{:?} {home:?} ({boss}) {photo:?}", row.value(FieldNumber(0)))
}

/// Returns the persons and cities, in order.
fn world(snapshot: &Snapshot) -> Vec<String> {
    let persons = snapshot.table(PERSON).unwrap();
    let persons = persons.rows().map(|row| person(snapshot, row.unwrap().id(), 2));
    let cities = snapshot.table(CITY).unwrap();
    let cities = cities.rows().map(|row| format!("{:?}", row.unwrap().value(FieldNumber(0))));
    persons.chain(cities).collect()
}

#[test]
fn the_rows_of_all_files_are_there_and_refer_to_the_same() {
    for seed in 0..10 {
        let (directory, mut rng) = (MemoryDirectory::new(), Rng::new(seed));
        let names = ["a", "bb", "ccc"];
        for name in names {
            let database = create(&directory, name, &schema(""));
            fill(&database, name, &mut rng);
            database.close().unwrap();
        }
        let merged = merge(&directory, &names).unwrap();
        let mut expected = BTreeMap::new();
        for name in names {
            for line in world(&read(&directory, name)) {
                *expected.entry(line).or_insert(0) += 1;
            }
        }
        let mut found = BTreeMap::new();
        let snapshot = read(&directory, OUT);
        for line in world(&snapshot) {
            *found.entry(line).or_insert(0) += 1;
        }
        assert_eq!(found, expected);
        assert_eq!(merged.rows, 3 * (4 * 4 + 4 * 8) + 1);
        assert_eq!((merged.blobs, merged.lost_references), (12, 0), "shared blobs are copied once");
        // The first file's rows keep their ids, and its numbers are all the same.
        let first = read(&directory, "a");
        assert_eq!(first.schema().commands(), snapshot.schema().commands());
        let cities = |snapshot: &Snapshot| -> Vec<String> {
            snapshot.table(CITY).unwrap().rows().take(10).map(|row| format!("{row:?}")).collect()
        };
        assert_eq!(cities(&first), cities(&snapshot));
        let next: u64 =
            names.iter().map(|name| read(&directory, name).table(CITY).unwrap().next_id()).sum();
        assert_eq!(snapshot.table(CITY).unwrap().next_id(), next, "ids that are gone stay so");
        assert_eq!(merge(&directory, &names).unwrap_err().kind(), ErrorKind::InUse);
    }
}

#[test]
fn keys_that_are_there_twice_are_named_with_their_files() {
    let directory = MemoryDirectory::new();
    for (name, cities) in
        [("a", vec!["Arras", "Lille"]), ("bb", vec!["Paris"]), ("ccc", vec!["Lyon", "Paris"])]
    {
        let database = create(&directory, name, &schema(""));
        let written = database.write(|tx| {
            cities.iter().try_for_each(|&city| tx.insert(CITY, &[ValueRef::String(city)]).map(drop))
        });
        written.unwrap();
    }
    let before = directory.list().unwrap();
    let error = merge(&directory, &["a", "bb", "ccc"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unique);
    assert_eq!(
        error.to_string(),
        "nothing was written: memory:ccc: index `city_by_name`: \"Paris\" is the key of row 1 of `city` in \
         memory:ccc, and of row 0 in memory:bb: keys of a unique index must be distinct, so change or \
         delete one of them first"
    );
    assert_eq!(directory.list().unwrap(), before);
    let error = merge(&directory, &["a", "a"]).unwrap_err();
    assert!(
        error.to_string().contains("row 0 of `city` in memory:a, and of row 0 in memory:a"),
        "{error}"
    );
}

#[test]
fn other_schemas_and_other_single_rows_are_refused() {
    let directory = MemoryDirectory::new();
    create(&directory, "a", &schema("")).close().unwrap();
    create(&directory, "bb", &schema("add_field city people uint32\n")).close().unwrap();
    let louder = create(&directory, "ccc", &schema(""));
    let settings = TableNumber(3);
    let id = louder.read().table(settings).unwrap().single().unwrap().id();
    louder.write(|tx| tx.update(settings, id, FieldNumber(0), 11_i32.into())).unwrap();
    let error = merge(&directory, &["a", "bb"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    assert!(error.to_string().contains("add_field city people uint32"), "{error}");
    let error = merge(&directory, &["a", "ccc"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("whose `volume` is 11 there and 0 in memory:a"), "{error}");
    assert_eq!(merge(&directory, &[]).unwrap_err().kind(), ErrorKind::Invalid);
    assert!(directory.open(OUT, annals::storage::Access::Read).is_err());
}

#[test]
fn a_reference_to_a_row_that_never_was_becomes_null() {
    let directory = MemoryDirectory::new();
    for name in ["a", "bb"] {
        let database = create(&directory, name, &schema(""));
        let written = database.write(|tx| {
            let home = ValueRef::Reference(RowId(7));
            let none = ValueRef::Null;
            tx.insert(PERSON, &[ValueRef::String(name), home, none, none]).map(drop)
        });
        written.unwrap();
    }
    assert_eq!(merge(&directory, &["a", "bb"]).unwrap().lost_references, 2);
    let snapshot = read(&directory, OUT);
    assert_eq!(snapshot.dangling_references().unwrap().len(), 0);
}

#[test]
fn a_failed_operation_leaves_nothing() {
    let from = MemoryDirectory::new();
    for name in ["a", "bb"] {
        let database = create(&from, name, &schema(""));
        fill(&database, name, &mut Rng::new(5));
        database.close().unwrap();
    }
    let merge = |disk: &SimulatedDisk| {
        let from: &dyn Directory = &from;
        let clock = Arc::new(SimulatedClock::new(9));
        merge_in(
            &Options::new(),
            &[(from, "a"), (from, "bb")],
            Arc::new(disk.clone()),
            OUT,
            clock,
            OnConflict::Refuse,
        )
    };
    let whole = SimulatedDisk::new(1);
    merge(&whole).unwrap();
    let expected = world(&read(&whole, OUT));
    for operation in 0..whole.operations() {
        let disk = SimulatedDisk::new(1);
        disk.fail_at(operation, Fault::Io);
        let is_done = merge(&disk).is_ok();
        assert_eq!(Reader::open(&disk, OUT).is_ok(), is_done, "operation {operation}");
        let disk = SimulatedDisk::new(1);
        disk.crash_at(operation);
        let _ = merge(&disk);
        let states = disk.crash_states();
        for left in [states.oldest(), states.newest(), states.all_but_last()] {
            if let Ok(reader) = Reader::open(&left, OUT) {
                assert!(world(&reader.read()) == expected, "operation {operation}");
            }
        }
    }
}

/// Two files in which cities and persons have the same names, with references to each other in both directions.
fn rivals(directory: &MemoryDirectory) {
    let schema = schema("create_unique_index person_name person name\n");
    let fill =
        |name: &str, cities: [&str; 2], persons: &[(&str, u64, Option<u64>, &str)], volume: i32| {
            let database = create(directory, name, &schema);
            let done = database.write(|tx| {
                for city in cities {
                    tx.insert(CITY, &[ValueRef::String(city)])?;
                }
                for (name, home, boss, photo) in persons {
                    let boss = boss.map_or(ValueRef::Null, |boss| ValueRef::Reference(RowId(boss)));
                    let photo = tx.write_blob(photo.as_bytes())?.into();
                    let home = ValueRef::Reference(RowId(*home));
                    tx.insert(PERSON, &[ValueRef::String(name), home, boss, photo])?;
                }
                let settings = TableNumber(3);
                let id = tx.view().table(settings)?.single()?.id();
                tx.update(settings, id, FieldNumber(0), volume.into())
            });
            done.unwrap();
            database.close().unwrap();
        };
    fill("a", ["Lille", "Lyon"], &[("Ada", 0, None, "ada"), ("Zoe", 1, Some(0), "zoe")], 1);
    // Here Ada's boss comes after her.
    let persons =
        [("Ada", 0, Some(1), "new ada"), ("Zoe", 1, None, "new zoe"), ("Cid", 0, Some(0), "cid")];
    fill("b", ["Lyon", "Nice"], &persons, 2);
}

#[test]
fn rows_with_the_same_key_become_one_as_is_asked() {
    let expected = |persons: [&str; 3], volume: i32| {
        let persons = persons.map(str::to_owned);
        (persons, vec!["Lille", "Lyon", "Nice"], volume)
    };
    let kept = expected(["Ada Lille - ada", "Zoe Lyon Ada zoe", "Cid Lyon Ada cid"], 1);
    let replaced = expected(["Ada Lyon Zoe new ada", "Zoe Nice - new zoe", "Cid Lyon Ada cid"], 2);
    for (so, expected) in [(OnConflict::Keep, kept), (OnConflict::Replace, replaced)] {
        let directory = MemoryDirectory::new();
        rivals(&directory);
        assert_eq!(merge(&directory, &["a", "b"]).unwrap_err().kind(), ErrorKind::Unique);
        let merged = merge_so(&directory, &["a", "b"], so).unwrap();
        // Lyon, Ada, Zoe, and the settings.
        assert_eq!(
            (merged.conflicts, merged.rows, merged.lost_references),
            (4, 2 + 1 + 2 + 1 + 1, 0)
        );
        let now = read(&directory, OUT);
        let name =
            |table, id| match now.table(table).unwrap().get(id).unwrap().value(FieldNumber(0)) {
                ValueRef::String(name) => name.to_owned(),
                other => panic!("{other:?}"),
            };
        let persons = now.table(PERSON).unwrap();
        let told: Vec<_> = persons
            .rows()
            .map(|row| {
                let row = row.unwrap();
                let of = |table, field| match row.value(FieldNumber(field)) {
                    ValueRef::Reference(id) => name(table, id),
                    _ => "-".to_owned(),
                };
                let ValueRef::Blob(photo) = row.value(FieldNumber(3)) else { panic!("no photo") };
                let photo = now.blob(photo).unwrap().to_vec(99).unwrap();
                let photo = String::from_utf8(photo).unwrap();
                format!("{} {} {} {photo}", name(PERSON, row.id()), of(CITY, 1), of(PERSON, 2))
            })
            .collect();
        let cities: Vec<_> =
            now.table(CITY).unwrap().rows().map(|row| name(CITY, row.unwrap().id())).collect();
        let single = now.table(TableNumber(3)).unwrap().single().unwrap();
        assert_eq!(told, expected.0, "{so:?}");
        assert_eq!(cities, expected.1, "{so:?}");
        assert_eq!(single.value(FieldNumber(0)), ValueRef::Int32(expected.2));
    }
}

#[test]
fn a_row_with_keys_of_two_rows_is_refused() {
    let directory = MemoryDirectory::new();
    let schema = schema(
        "create_unique_index person_home person home\n create_unique_index person_name person name\n",
    );
    for (name, persons) in [("a", [("Ada", 0), ("Zoe", 1)]), ("b", [("Ada", 1), ("Cid", 0)])] {
        let database = create(&directory, name, &schema);
        let done = database.write(|tx| {
            for city in ["Lille", "Lyon"] {
                tx.insert(CITY, &[ValueRef::String(city)])?;
            }
            for (name, home) in persons {
                let home = ValueRef::Reference(RowId(home));
                tx.insert(PERSON, &[ValueRef::String(name), home, ValueRef::Null, ValueRef::Null])?;
            }
            Ok(())
        });
        done.unwrap();
        database.close().unwrap();
    }
    for so in [OnConflict::Keep, OnConflict::Replace] {
        let error = merge_so(&directory, &["a", "b"], so).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unique);
        assert!(error.to_string().contains("has keys of two rows"), "{error}");
    }
}
