//! Random histories with all kinds of events, upgrades, restarts of the journal, and history that is forgotten.

use annals::model::OnDelete;
use annals::reports::Older;
use annals::storage::{Directory, MemoryDirectory};
use annals::{
    BackfillMode, Command, Database, FieldNumber, RowId, Snapshot, TableNumber, Timestamp,
    Transaction, Type, Value, ValueRef,
};

use super::lazily::compare_lazily;
use super::{IMAGE, NAME, compare, has_index, open, options};
use crate::store_model::Random;

const TYPES: [Type; 5] = [Type::String, Type::UInt32, Type::Float64, Type::Bool, Type::Int64];

/// Returns any row of a table.
fn row(now: &Snapshot, table: TableNumber, random: &mut Random) -> Option<RowId> {
    let view = now.table(table).unwrap();
    let from = RowId(random.below(view.next_id().max(1)));
    let mut rows = view.range(from..).chain(view.rows());
    rows.next().map(|row| row.unwrap().id())
}

fn table(now: &Snapshot, random: &mut Random) -> Option<TableNumber> {
    let tables = now.schema().tables();
    (!tables.is_empty()).then(|| random.pick(tables).number)
}

fn values(now: &Snapshot, table: TableNumber, random: &mut Random) -> Vec<Value> {
    let fields = &now.schema().table(table).unwrap().fields;
    let mut value = |ty, nullable| match ty {
        Type::Reference(to, _) => row(now, to, random).map_or(Value::Null, Value::Reference),
        Type::String => Value::String(format!("name {}", random.below(1000))),
        _ => random.value(ty, nullable),
    };
    fields.iter().map(|field| value(field.ty, field.nullable)).collect()
}

/// Does something to rows. What can't be is no matter.
fn statement(tx: &mut Transaction<'_>, now: &Snapshot, random: &mut Random) {
    let Some(table) = table(now, random) else { return };
    let new = values(now, table, random);
    let refs: Vec<ValueRef<'_>> = new.iter().map(Value::as_ref).collect();
    let id = row(now, table, random).unwrap_or(RowId(0));
    let free = RowId(random.below(60));
    let _ = match random.below(14) {
        0..4 => tx.insert(table, &refs).map(drop),
        4 => tx.insert_at(table, free, &refs).map(drop),
        5 => tx.insert_vector(table, 1 + random.below(20)).map(drop),
        6 => tx.insert_vector_at(table, free, 1 + random.below(5)),
        7 | 8 => tx.delete(table, id),
        9 => tx.delete_vector(table, id, 1 + random.below(3)),
        10 => tx.comment(&format!("comment {}", random.below(10))),
        _ => match now.schema().table(table).unwrap().fields.iter().zip(&refs).next_back() {
            Some((field, value)) => tx.update(table, id, field.number, *value),
            None => Ok(()),
        },
    };
}

/// Changes the schema. What can't be is no matter.
fn upgrade(tx: &mut Transaction<'_>, now: &Snapshot, random: &mut Random) {
    let name = format!("name_{}", random.below(1 << 30));
    let table = table(now, random).unwrap_or(TableNumber(0));
    let fields = now.schema().table(table).map_or(0, |table| table.fields.len());
    let command = match random.below(13) {
        0 | 1 => Command::CreateTable { name },
        2 if now.schema().tables().len() > 2 => Command::DropTable { table },
        3 if fields > 1 => {
            let field = FieldNumber(u32::try_from(random.below(fields as u64 + 2)).unwrap());
            Command::DropField { table, field }
        }
        4 => Command::RenameTable { table, name },
        10..13 => Command::SetHistoryIndex { table, indexed: random.chance(50) },
        5 => {
            let rule = *random.pick(&[OnDelete::Cascade, OnDelete::SetNull]);
            let ty = Type::Reference(TableNumber(0), rule);
            Command::AddField { table, name, ty, nullable: true, default: None }
        }
        _ => {
            let (ty, nullable) = (*random.pick(&TYPES), random.chance(50));
            let default = random.chance(50).then(|| random.value(ty, nullable));
            Command::AddField { table, name, ty, nullable, default }
        }
    };
    let _ = tx.apply_command(&command);
}

fn transaction(database: &Database, random: &mut Random) {
    let now = database.read();
    let mut tx = database.begin().unwrap();
    let most = if random.chance(5) { 200 } else { 8 };
    let count = 1 + random.below(most);
    match random.chance(12) || now.schema().tables().is_empty() {
        true => upgrade(&mut tx, &now, random),
        false => (0..count).for_each(|_| statement(&mut tx, &now, random)),
    }
    if random.chance(20) {
        tx.set_time(Timestamp(random.next().cast_signed() >> 20));
    }
    match random.chance(5) {
        true => tx.rollback().unwrap(),
        false => drop(tx.commit()),
    }
}

fn run(seed: u64, steps: u64) -> (usize, bool) {
    let mut random = Random::new(seed);
    let directory = MemoryDirectory::new();
    let mut database = open(&directory);
    let (mut versions, mut seen) = (0, false);
    for step in 0..steps {
        match random.below(100) {
            0..84 => transaction(&database, &mut random),
            84..90 => drop(database.backfill(BackfillMode::Passive).unwrap()),
            90..93 => {
                let older = *random.pick(&[Older::Kept, Older::Kept, Older::NotNeeded]);
                database.restart(older, super::Duration::ZERO).unwrap();
            }
            93 => {
                let bases = database.segments().unwrap();
                let base = bases.iter().rfind(|facts| facts.begins_with_state);
                base.map(|base| database.forget_before(base.number).unwrap());
            }
            94 => {
                database.close().unwrap();
                database = open(&directory);
            }
            95 => {
                database.close().unwrap();
                let _ = directory.remove(IMAGE);
                database = open(&directory);
            }
            96 => {
                // A program that keeps none.
                database.close().unwrap();
                let options = options().history_index(false);
                database = super::open_with(&directory, &options);
            }
            _ => {}
        }
        seen |= has_index(&database);
        if step % 40 == 39 {
            versions += compare(&directory, &database);
            compare_lazily(&database, &mut random);
            let error = database.history_error();
            assert!(error.is_none(), "{error:?}");
        }
    }
    let end = Database::read(&database).txid();
    assert!(end > annals::Txid(steps / 2), "{NAME} has only {end} transactions");
    (versions + compare(&directory, &database), seen)
}

#[test]
fn the_history_of_every_row_is_that_of_a_scan() {
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    let seeds = match std::env::var("ANNALS_TEST_HISTORY") {
        Ok(seed) => seed.parse().unwrap()..=seed.parse().unwrap(),
        Err(_) => 1..=if full { 400 } else { 20 },
    };
    let (mut indexed, mut versions) = (0, 0);
    for seed in seeds {
        println!("repeat the last with ANNALS_TEST_HISTORY={seed}");
        let (found, seen) = run(seed, if full { 500 } else { 160 });
        (indexed, versions) = (indexed + u64::from(seen), versions + found);
    }
    assert!(indexed > 0 && versions > 20, "{indexed} indexes, {versions} versions");
}
