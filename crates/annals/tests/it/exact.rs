//! The typed API of dates, UUIDs, decimals, JSON and bytes of one length.

use std::ops::Bound;

use super::generated_for_tests::exact;
use annals::{Date, Decimal, ErrorKind, FieldNumber, TableNumber, Txid, Uuid, Value, ValueRef};
use exact::Change;
use exact::payment::{self, New};

fn day(text: &str) -> Date {
    text.parse().unwrap()
}

fn row(number: u8, amount: &str) -> New<'static> {
    New {
        day: Date(i32::from(number)),
        key: Uuid([number; 16]),
        amount: amount.parse().unwrap(),
        hash: &[1, 2, 3, 4],
        note: "{\"a\": [1]}",
        ..New::default()
    }
}

#[test]
fn values_are_written_read_and_found_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("exact.annals");
    let db = exact::Database::open(&path).unwrap();
    let amounts = ["10.00", "-0.01", "9.99", "-1701411834604692317316873037158841057.28", "0.05"];
    let first = db
        .write(|tx| {
            for (number, amount) in (0..).zip(amounts) {
                tx.insert(row(number, amount))?;
            }
            Ok(tx.insert(New { rate: None, check: Some(&[7, 8]), ..row(9, "3.00") })?)
        })
        .unwrap();
    db.backfill(annals::BackfillMode::Restart).unwrap();
    drop(db);
    let db = exact::Database::open(&path).unwrap();
    db.write(|tx| {
        tx.edit(first)?.set_due(day("2024-02-29"))?.set_check(&[7, 8])?;
        Ok(())
    })
    .unwrap();
    let now = db.read();
    let found = now.payment().require(first).unwrap();
    assert_eq!((found.day(), found.due()), (day("1970-01-10"), Some(day("2024-02-29"))));
    assert_eq!((found.hash(), found.check()), (&[1, 2, 3, 4], Some(&[7, 8])));
    assert_eq!((found.rate(), found.note()), (None, "{\"a\": [1]}"));
    assert_eq!(now.payment().by_key().get(Uuid([9; 16])).unwrap().unwrap().id(), first);
    let sorted: Vec<_> =
        now.payment().by_amount().iter().map(|row| row.unwrap().amount()).collect();
    assert!(sorted.is_sorted() && sorted.len() == 6, "{sorted:?}");
    let cents = |units| Decimal::<2>::from_units(units);
    let small = now.payment().by_amount().range(cents(-1)..cents(1000));
    let small: Vec<_> = small.map(|row| row.unwrap().amount().to_string()).collect();
    assert_eq!(small, ["-0.01", "0.05", "3.00", "9.99"]);
    assert_eq!(Decimal::checked_sum(sorted[1..].iter().copied()), Some(cents(2303)));
    assert_eq!(now.payment().by_rate().nulls().count(), 1);
    let owned = found.to_owned();
    assert_eq!((owned.hash, owned.check, owned.amount), ([1, 2, 3, 4], Some([7, 8]), cents(300)));
    let shown = format!("{found:?}");
    assert!(shown.contains("amount: 3.00") && shown.contains("due: Some(2024-02-29)"), "{shown}");
}

#[test]
fn a_descending_column_has_bounds_as_an_ascending_one() {
    let db = exact::Database::in_memory().unwrap();
    db.write(|tx| {
        for (number, due) in (0..).zip([Some(3), None, Some(-1), Some(3), Some(9)]) {
            tx.insert(New { due: due.map(Date), ..row(number, "1.00") })?;
        }
        Ok(())
    })
    .unwrap();
    let now = db.read();
    let by_due = now.payment().by_due();
    let ids = |rows: annals::typed::IndexRows<'_, payment::Kind>| -> Vec<u64> {
        rows.map(|row| row.unwrap().id().as_u64()).collect()
    };
    assert_eq!(ids(by_due.iter()), [4, 3, 0, 2, 1]);
    assert_eq!(ids(by_due.range(Date(3)..)), [4, 3, 0]);
    assert_eq!(ids(by_due.range(..Date(9))), [3, 0, 2]);
    assert_eq!(ids(by_due.range(Date(-1)..=Date(3))), [3, 0, 2]);
    assert_eq!(ids(by_due.range((Bound::Excluded(Date(-1)), Bound::Unbounded))), [4, 3, 0]);
    assert_eq!(ids(by_due.nulls()), [1]);
    assert_eq!(ids(by_due.with_due(Date(3))), [3, 0]);
    assert_eq!(
        by_due.cursor_at(Date(2), &[0; 4], Date(0)).unwrap().next().unwrap().unwrap().id().as_u64(),
        2
    );
}

#[test]
fn columns_and_changes_have_the_types_of_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    let db = exact::Database::open(folder.path().join("exact.annals")).unwrap();
    let (days, keys) = ([Date(1), Date(2)], [Uuid([3; 16]), Uuid([4; 16])]);
    let amounts = [Decimal::from_units(5), Decimal::MAX];
    let (hashes, checks) = ([[9; 4], [8; 4]], [None, Some(&[1, 2])]);
    let first = db
        .write(|tx| {
            Ok(tx.insert_vector(payment::Columns {
                day: &days,
                key: &keys,
                amount: &amounts,
                rate: &[None, Some(Decimal::from_units(1))],
                hash: &[&hashes[0], &hashes[1]],
                check: &checks,
                note: &["1", "null"],
                due: &[None; 2],
            })?)
        })
        .unwrap();
    db.write(|tx| {
        tx.update_vector(payment::HASH, first, &[[6; 4]])?;
        tx.update_vector(payment::RATE, first, &[Decimal::from_units(2)])?;
        Ok(tx.update_vector(payment::DUE, first, &[Date(7)])?)
    })
    .unwrap();
    let now = db.read();
    let table = now.payment();
    assert_eq!(table.vector_of(payment::DAY, first, 2).unwrap(), days);
    assert_eq!(table.vector_of(payment::KEY, first, 2).unwrap(), keys);
    assert_eq!(table.vector_of(payment::AMOUNT, first, 2).unwrap(), amounts);
    assert_eq!(table.vector_of(payment::HASH, first, 2).unwrap(), [[6; 4], [8; 4]]);
    assert_eq!(table.vector_of(payment::CHECK, first, 2).unwrap(), [None, Some([1, 2])]);
    let rates = table.vector_of(payment::RATE, first, 2).unwrap();
    assert_eq!(rates, [2, 1].map(|units| Some(Decimal::from_units(units))));
    let slices: Vec<_> = table
        .slices_of(payment::AMOUNT, first, 2)
        .unwrap()
        .flat_map(|slice| slice.unwrap().into_owned())
        .collect();
    assert_eq!(slices, amounts);
    let changed = db.changes(Txid(3)..).unwrap().next().unwrap().unwrap();
    let Change::Payment(change) = &changed.changes[0];
    let (before, after) = (change.before.as_ref().unwrap(), change.after.as_ref().unwrap());
    assert_eq!((before.hash, after.hash), ([9; 4], [6; 4]));
    assert_eq!((before.due, after.due), (None, Some(Date(7))));
    assert_eq!((after.amount, after.key), (Decimal::from_units(5), Uuid([3; 16])));
}

#[test]
fn values_that_a_type_does_not_have_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let db = exact::Database::open(folder.path().join("exact.annals")).unwrap();
    let id = db.write(|tx| Ok(tx.insert(row(1, "1.00"))?)).unwrap();
    let set = |field: u32, value: Value| {
        let (table, field) = (TableNumber(0), FieldNumber(field));
        let done = (*db).write(|tx| tx.update(table, id.into(), field, value.as_ref()));
        let error = done.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        error.to_string()
    };
    let scaled = Decimal::<3>::from_units(1500);
    let of_scale = match ValueRef::from(scaled) {
        ValueRef::Decimal(number) => Value::Decimal(number),
        _ => unreachable!(),
    };
    let refused = set(2, of_scale);
    assert!(refused.contains("`amount`: 1.500 is not a value of type decimal(2)"), "{refused}");
    let refused = set(4, Value::Bytes(vec![1; 5]));
    assert!(refused.contains("`hash`: 5 bytes is not a value of type bytes(4)"), "{refused}");
    let refused = set(6, Value::String("{a: 1}".to_owned()));
    assert!(refused.contains("`note`: \"{a: 1}\" is not a value of type json"), "{refused}");
    let error = db.write(|tx| Ok(tx.edit(id)?.set_note("[").map(drop)?)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let error = db.write(|tx| Ok(tx.update_vector(payment::NOTE, id, &["["])?)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[test]
fn decimals_are_exact() {
    let number = |text: &str| text.parse::<Decimal<2>>().unwrap();
    assert_eq!(number("0.10").checked_add(number("0.20")), Some(number("0.30")));
    assert_eq!(Decimal::<2>::MAX.checked_add(number("0.01")), None);
    assert_eq!(Decimal::<2>::MIN.checked_neg(), None);
    assert_eq!(number("-1.50").checked_sub(number("1.50")), Some(number("-3.00")));
    for (text, rounded) in [("0.50", "0"), ("1.50", "2"), ("-0.50", "0"), ("-1.50", "-2")] {
        assert_eq!(number(text).round::<0>().unwrap().to_string(), rounded);
    }
    for (text, rounded) in [("2.51", "3"), ("-2.51", "-3"), ("-2.49", "-2"), ("2.49", "2")] {
        assert_eq!(number(text).round::<0>().unwrap().to_string(), rounded);
    }
    assert_eq!(number("1.50").rescale::<1>().unwrap().to_string(), "1.5");
    assert_eq!(number("1.55").rescale::<1>(), None);
    assert_eq!(Decimal::<2>::MAX.rescale::<3>(), None);
    assert_eq!(number("1.50").checked_mul::<2, 2>(number("0.50")), Some(number("0.75")));
    assert_eq!(number("1.55").checked_mul::<2, 2>(number("0.55")), None);
    assert_eq!(Decimal::<38>::MAX.round::<0>(), Some(Decimal::from_units(2)));
}
