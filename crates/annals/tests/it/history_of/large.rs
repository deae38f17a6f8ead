//! Random histories in long transactions: frames that are cut into blocks, vectors of many rows, events that are
//! longer than a frame, and values that are erased.

use std::sync::Arc;

use annals::event::Vector;
use annals::reports::Older;
use annals::storage::{Directory, MemoryDirectory};
use annals::{
    BackfillMode, Command, FieldNumber, RowId, TableNumber, Transaction, Type, Value, ValueRef,
};
use annals_simulated::SimulatedClock;
use annals_tools::Erase;

use super::{NAME, compare_each, open, options};
use crate::store_model::Random;

const TABLES: u64 = 2;
const TYPES: [(Type, bool); 8] = [
    (Type::UInt8, false),
    (Type::String, true),
    (Type::UInt64, false),
    (Type::Int64, true),
    (Type::Float64, false),
    (Type::String, false),
    (Type::Bool, false),
    (Type::Bool, true),
];

/// The most rows of a vector.
const ROWS: u64 = 2500;

fn define(tx: &mut Transaction<'_>) -> annals::Result<()> {
    for table in 0..u32::try_from(TABLES).unwrap() {
        tx.apply_command(&Command::CreateTable { name: format!("t{table}") })?;
        for (number, (ty, nullable)) in TYPES.into_iter().enumerate() {
            let (name, table) = (format!("f{number}"), TableNumber(table));
            tx.apply_command(&Command::AddField { table, name, ty, nullable, default: None })?;
        }
    }
    Ok(())
}

fn value(random: &mut Random, ty: Type, nullable: bool) -> Value {
    match ty {
        _ if nullable && random.chance(30) => Value::Null,
        Type::String => {
            let len = usize::try_from(random.below(40)).unwrap();
            Value::String(format!("{} {}", random.below(1000), "x".repeat(len)))
        }
        _ => random.value(ty, false),
    }
}

/// The fields of a table in a transaction, by its number: type, and whether it may be null.
type Fields = Vec<(FieldNumber, Type, bool)>;

fn fields(tx: &Transaction<'_>, table: TableNumber) -> Fields {
    let table = tx.view().schema().table(table).unwrap();
    table.fields.iter().map(|field| (field.number, field.ty, field.nullable)).collect()
}

/// Adds a field, or drops one.
fn upgrade(tx: &mut Transaction<'_>, table: TableNumber, random: &mut Random) {
    let fields = fields(tx, table);
    let command = match random.chance(30) && fields.len() > 4 {
        true => Command::DropField { table, field: random.pick(&fields).0 },
        false => {
            let (ty, nullable) = *random.pick(&TYPES);
            let default = Some(value(random, ty, false));
            let name = format!("n{}", random.next());
            Command::AddField { table, name, ty, nullable, default }
        }
    };
    tx.apply_command(&command).unwrap();
}

/// Does something to many rows. What can't be is no matter.
fn statement(tx: &mut Transaction<'_>, random: &mut Random) {
    let table = TableNumber(u32::try_from(random.below(TABLES)).unwrap());
    let fields = fields(tx, table);
    let (count, id) = (1 + random.below(ROWS), RowId(random.below(2 * ROWS)));
    match random.below(20) {
        0..3 => drop(tx.insert_vector(table, count)),
        3 => drop(tx.insert_vector_at(table, id, 1 + count / 10)),
        4..10 => {
            let &(field, ty, nullable) = random.pick(&fields);
            let values: Vec<_> = (0..count).map(|_| value(random, ty, nullable)).collect();
            let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
            drop(tx.update_vector(table, id, field, Vector::Values(&values)));
        }
        10 => drop(tx.delete_vector(table, id, 1 + count / 10)),
        11 => upgrade(tx, table, random),
        12 => tx.comment(&format!("comment {}", random.below(10))).unwrap(),
        13 if random.chance(20) => {
            // An event that is longer than a frame.
            let text = "long ".repeat(120_000);
            let _ = tx.update(table, id, FieldNumber(1), ValueRef::String(&text));
        }
        13 | 14 => {
            for _ in 0..1 + random.below(300) {
                let id = RowId(random.below(2 * ROWS));
                let _ = tx.delete(table, id);
            }
        }
        15 | 16 => {
            for _ in 0..1 + random.below(300) {
                let row: Vec<_> = fields.iter().map(|it| value(random, it.1, it.2)).collect();
                let row: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
                drop(tx.insert(table, &row));
            }
        }
        _ => {
            for _ in 0..1 + random.below(400) {
                let &(field, ty, nullable) = random.pick(&fields);
                let value = value(random, ty, nullable);
                let id = RowId(random.below(2 * ROWS));
                let _ = tx.update(table, id, field, value.as_ref());
            }
        }
    }
}

/// Erases a row, or a field of it.
fn erase(directory: &MemoryDirectory, random: &mut Random) {
    let shared: Arc<dyn Directory> = Arc::new(directory.clone());
    let clock = Arc::new(SimulatedClock::new(7));
    let mut what = Erase::new("t0", RowId(random.below(ROWS)));
    what.field = random.chance(50).then(|| "f1".to_owned());
    let _ = annals_tools::erase_in(&options(), &shared, NAME, &(clock as _), &what);
}

fn run(seed: u64, steps: u64) -> usize {
    let mut random = Random::new(seed);
    let directory = MemoryDirectory::new();
    let mut database = open(&directory);
    database.write(define).unwrap();
    for _ in 0..steps {
        match random.below(20) {
            0..13 => {
                let mut tx = database.begin().unwrap();
                (0..1 + random.below(8)).for_each(|_| statement(&mut tx, &mut random));
                match random.chance(5) {
                    true => tx.rollback().unwrap(),
                    false => drop(tx.commit()),
                }
            }
            13..16 => drop(database.backfill(BackfillMode::Passive).unwrap()),
            16 => drop(database.restart(Older::Kept, super::Duration::ZERO).unwrap()),
            17 => {
                database.close().unwrap();
                database = open(&directory);
            }
            18 => {
                database.close().unwrap();
                erase(&directory, &mut random);
                database = open(&directory);
            }
            _ => {}
        }
    }
    let versions = compare_each(&directory, &database, 37);
    database.backfill(BackfillMode::Full).unwrap();
    versions + compare_each(&directory, &database, 41)
}

#[test]
fn the_history_of_rows_in_long_transactions_is_that_of_a_scan() {
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    let seeds = match std::env::var("ANNALS_TEST_HISTORY") {
        Ok(seed) => seed.parse().unwrap()..=seed.parse().unwrap(),
        Err(_) => 1..=if full { 300 } else { 12 },
    };
    let mut versions = 0;
    for seed in seeds {
        println!("repeat the last with ANNALS_TEST_HISTORY={seed}");
        versions += run(seed, 30);
    }
    assert!(versions > 20, "{versions} versions");
}
