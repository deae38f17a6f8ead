//! The verbs of a typed transaction, compared with a model.

use std::collections::BTreeMap;

use annals::{Abort, Error, ErrorKind, Result};

use super::generated_for_tests::{tutorial, verbs};
use verbs::account::{self, Id, New};
use verbs::{Database, Transaction, mark};

const NAMES: [&str; 4] = ["", "a", "b", "a name that is longer than a cell"];
const NUMBERS: [Option<i32>; 4] = [None, None, Some(-1), Some(7)];
const BALANCES: [f64; 4] = [0.0, -0.0, 1.5, f64::NAN];

/// The rows by id, as they should be. Balances are compared by their bits.
type Model = BTreeMap<u64, (&'static str, Option<i32>, u64)>;

/// A small generator of random numbers (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % 4).unwrap()
    }

    fn row(&mut self) -> New<'static> {
        let (name, number) = (NAMES[self.next()], NUMBERS[self.next()]);
        New { name, number, balance: BALANCES[self.next()] }
    }
}

fn values(row: &New<'static>) -> (&'static str, Option<i32>, u64) {
    (row.name, row.number, row.balance.to_bits())
}

/// True if no two rows have the same key.
fn has_distinct_keys(model: &Model) -> bool {
    let mut pairs = model.iter().flat_map(|one| model.iter().map(move |other| (one, other)));
    pairs.all(|((id, one), (other_id, other))| {
        id == other_id || (one.0 != other.0 && (one.1.is_none() || one.1 != other.1))
    })
}

fn rows(db: &Database) -> Model {
    let name = |row: &account::Row<'_>| NAMES.into_iter().find(|name| *name == row.name()).unwrap();
    let row = |row: account::Row<'_>| {
        (row.id().as_u64(), (name(&row), row.number(), row.balance().to_bits()))
    };
    db.read().account().iter().map(|it| row(it.unwrap())).collect()
}

/// Does something in a transaction and in a copy of the model. Both are kept only if the keys stay distinct.
fn both<T>(
    db: &Database,
    model: &mut Model,
    write: impl FnOnce(&mut Transaction<'_>) -> Result<T, Abort>,
    change: impl FnOnce(&mut Model),
) -> Result<T> {
    let mut after = model.clone();
    change(&mut after);
    let written = db.write(write);
    if has_distinct_keys(&after) {
        assert!(written.is_ok(), "{:?} of {model:?} to {after:?}", written.err());
        *model = after;
    } else {
        let kind = written.as_ref().map_err(Error::kind).err();
        assert_eq!(kind, Some(ErrorKind::Unique), "{model:?} to {after:?}");
    }
    written
}

/// Returns the id of the row that `upsert` should find.
fn found(model: &Model, row: &New<'_>) -> Option<u64> {
    let by_name = model.iter().find(|(_, values)| values.0 == row.name);
    let same_number =
        |values: &(&str, Option<i32>, u64)| row.number.is_some() && values.1 == row.number;
    let found = by_name.or_else(|| model.iter().find(|(_, values)| same_number(values)));
    found.map(|(id, _)| *id)
}

#[test]
fn verbs_do_as_a_model() {
    let db = Database::in_memory().unwrap();
    let (mut random, mut model) = (Random(31), Model::new());
    let mut next = 0;
    let mut counts = [0; 4];
    for _ in 0..2000 {
        let row = random.row();
        let ids: Vec<_> = model.keys().copied().collect();
        let id = ids.get(random.next() % ids.len().max(1)).copied();
        let verb = random.next();
        counts[verb] += 1;
        match (verb, id) {
            (0, Some(id)) => drop(both(
                &db,
                &mut model,
                |tx| Ok(tx.update(Id::from_u64(id), row)?),
                |model| {
                    let _before = model.insert(id, values(&row));
                },
            )),
            (1, Some(id)) => both(
                &db,
                &mut model,
                |tx| Ok(tx.delete(Id::from_u64(id))?),
                |model| {
                    let _row = model.remove(&id);
                },
            )
            .unwrap(),
            (2, Some(id)) => drop(both(
                &db,
                &mut model,
                |tx| {
                    tx.edit(Id::from_u64(id))?.set_number(row.number)?.set_name(row.name)?;
                    Ok(())
                },
                |model| {
                    let balance = model[&id].2;
                    model.insert(id, (row.name, row.number, balance));
                },
            )),
            _ => {
                let id = found(&model, &row).unwrap_or(next);
                let upserted = both(
                    &db,
                    &mut model,
                    |tx| Ok(tx.upsert(row)?),
                    |model| {
                        model.insert(id, values(&row));
                    },
                );
                assert!(upserted.is_err() || upserted.unwrap().as_u64() == id);
                next = next.max(model.keys().next_back().map_or(0, |last| last + 1));
            }
        }
        assert_eq!(rows(&db), model);
    }
    assert!(counts.iter().all(|&count| count > 100), "{counts:?}");
}

#[test]
fn an_update_writes_only_fields_that_differ() {
    let db = Database::in_memory().unwrap();
    let row = New { name: "a name that is longer than a cell", number: Some(1), balance: f64::NAN };
    let id = db.write(|tx| Ok(tx.insert(row)?)).unwrap();
    let position = || db.read().as_dynamic().point().position;
    let before = position();
    db.write(|tx| {
        tx.edit(id)?.set_number(2)?;
        Ok(())
    })
    .unwrap();
    let of_one_field = position() - before;
    db.write(|tx| Ok(tx.update(id, New { number: Some(3), ..row })?)).unwrap();
    assert_eq!(position() - before, 2 * of_one_field, "one field");
    db.write(|tx| Ok(tx.upsert(New { number: Some(4), ..row })?)).unwrap();
    assert_eq!(position() - before, 3 * of_one_field, "one field");
    db.write(|tx| Ok(tx.update(id, New { number: Some(4), ..row })?)).unwrap();
    assert_eq!(position() - before, 3 * of_one_field, "none differs");
}

#[test]
fn upsert_needs_a_unique_index() {
    let db = tutorial::Database::in_memory().unwrap();
    let person = tutorial::person::New { first_name: "Rémi", ..Default::default() };
    let refused = db.write(|tx| Ok(tx.upsert(person)?)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    assert!(refused.to_string().contains("`person` has no unique index"), "{refused}");
    assert!(db.read().person().is_empty(), "nothing was inserted");
}

#[test]
fn rows_without_fields_are_inserted() {
    let db = Database::in_memory().unwrap();
    let (first, at) = (db.write(|tx| Ok(tx.insert(mark::New {})?)).unwrap(), mark::Id::from_u64(9));
    db.write(|tx| Ok(tx.insert_at(at, mark::New {})?)).unwrap();
    let ids: Vec<_> = db.read().mark().iter().map(|row| row.unwrap().id()).collect();
    assert_eq!(ids, [first, at]);
    db.write(|tx| Ok(tx.update(at, mark::New {})?)).unwrap();
    let missing = db.write(|tx| Ok(tx.update(mark::Id::from_u64(3), mark::New {})?)).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound, "{missing}");
}
