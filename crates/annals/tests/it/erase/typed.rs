//! Erased values through the typed API: a field that may not be null reads as zero or empty, and nothing about other rows,
//! indexes or the past fails.

use annals::event::Event;
use annals::{Date, Decimal, RowId, TableNumber, Uuid, ValueRef};

use crate::generated_for_tests::{enums, exact, required};
use enums::job::{self, State};
use exact::payment;
use required::{owner, pet};

/// Erases all values of a row, as far as they may not be null.
fn erase(db: &annals::Database, table: TableNumber, id: u64) {
    let fields = db.read().schema().table(table).unwrap().fields.clone();
    db.write(|tx| {
        for field in fields.into_iter().filter(|field| !field.nullable) {
            let (id, field) = (RowId(id), field.number);
            tx.apply_erased(&Event::Update { table, id, field, value: ValueRef::Null })?;
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn exact_values_are_zero_and_indexes_have_all_rows() {
    let db = exact::Database::in_memory().unwrap();
    let ids = db.write(|tx| {
        let row = |number: u8| payment::New {
            day: Date(number.into()),
            key: Uuid([number; 16]),
            amount: Decimal::from_units(i128::from(number) * 100),
            hash: &[7; 4],
            note: "{}",
            ..payment::New::default()
        };
        (1..=3).map(|number| Ok(tx.insert(row(number))?)).collect::<Result<Vec<_>, annals::Abort>>()
    });
    let ids = ids.unwrap();
    let before = db.read().txid();
    erase(&db, TableNumber(0), 1);
    let now = db.read();
    let all = now.payment();
    let row = all.require(ids[1]).unwrap();
    let zero = Decimal::<2>::from_units(0);
    assert_eq!((row.day(), row.key(), row.amount()), (Date(0), Uuid([0; 16]), zero));
    assert_eq!((row.hash(), row.note()), (&[0; 4], ""));
    assert_eq!(row.to_owned().amount, zero);
    let ids_of = |rows: annals::typed::IndexRows<'_, payment::Kind>| {
        rows.map(|row| row.unwrap().id().as_u64()).collect::<Vec<_>>()
    };
    assert_eq!(ids_of(all.by_amount().iter()), [1, 0, 2]);
    assert_eq!(ids_of(all.by_key().iter()), [1, 0, 2]);
    assert_eq!(ids_of(all.by_amount().range(zero..)), [0, 2], "null isn't in a range");
    assert!(all.by_key().get(Uuid([0; 16])).unwrap().is_none(), "it isn't a key");
    assert_eq!(all.by_key().get(Uuid([3; 16])).unwrap().unwrap().id(), ids[2]);
    assert_eq!(all.by_amount().groups(1).count().unwrap(), 3);
    assert_eq!(all.query().sum(|row| row.amount()).unwrap(), Decimal::<2>::from_units(400));
    assert_eq!(all.vector_of(payment::AMOUNT, ids[0], 3).unwrap()[1], zero);
    let versions: Vec<_> = db.history_of(ids[1]).unwrap().map(|version| version.unwrap()).collect();
    assert_eq!(versions.last().unwrap().change.after.as_ref().unwrap().amount, zero);
    // Before that transaction, which is no real erasure, it is what it was.
    let then = db.at(before).unwrap();
    assert_eq!(then.payment().require(ids[1]).unwrap().day(), Date(2));
}

#[test]
fn enums_and_required_references_are_the_first_ones() {
    let db = enums::Database::in_memory().unwrap();
    let ids = db.write(|tx| {
        let row = |name| job::New { name, state: State::Active, kind: None };
        ["a", "b", "c"]
            .into_iter()
            .map(|name| Ok(tx.insert(row(name))?))
            .collect::<Result<Vec<_>, annals::Abort>>()
    });
    let ids = ids.unwrap();
    erase(&db, TableNumber(0), 1);
    let now = db.read();
    let row = now.job().require(ids[1]).unwrap();
    assert_eq!((row.name(), row.state()), ("", State::Ready));
    let rows = now.job().by_state().iter().map(|row| row.unwrap().id()).collect::<Vec<_>>();
    assert_eq!(rows.len(), 3);
    assert_eq!(now.job().by_state().with_state(State::Active).count(), 2);
    assert_eq!(now.job().by_state().with_state(State::Ready).count(), 0);
    assert_eq!(now.job().query().group_by(|row| row.state()).count().count().unwrap(), 2);

    let db = required::Database::in_memory().unwrap();
    let (ada, rex) = db
        .write(|tx| {
            let ada = tx.insert(owner::New { name: "Ada" })?;
            let friend = pet::Id::from_u64(0);
            let rex = tx.insert(pet::New { name: "Rex", owner: ada, friend })?;
            tx.insert(pet::New { name: "Max", owner: ada, friend: rex })?;
            Ok((ada, rex))
        })
        .unwrap();
    erase(&db, TableNumber(1), 1);
    let now = db.read();
    assert_eq!(now.pet().by_owner().with_owner(ada).count(), 1);
    assert_eq!(now.pet().by_owner().iter().count(), 2);
    let max = now.pet().require(pet::Id::from_u64(1)).unwrap();
    let _: (owner::Id, pet::Id) = (max.owner(), max.friend());
    // The rest can still be changed: what was erased refers to nothing.
    db.write(|tx| {
        tx.edit(rex)?.set_name("Rex II")?;
        Ok(())
    })
    .unwrap();
    db.write(|tx| {
        tx.edit(pet::Id::from_u64(1))?.set_owner(ada)?;
        Ok(())
    })
    .unwrap();
    assert_eq!(db.read().pet().by_owner().with_owner(ada).count(), 2);
}
