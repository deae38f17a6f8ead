//! Vectors and rows that are read from an image.

use std::sync::Arc;

use annals_schema::{Command, TableNumber, Type, ValueRef};

use super::*;
use crate::{Store, TestImage, View};
use annals_event::Vector;

const TABLE: TableNumber = TableNumber(0);
const NUMBER: FieldNumber = FieldNumber(0);
const TEXT: FieldNumber = FieldNumber(1);
const TRUTH: FieldNumber = FieldNumber(2);
const BYTES: FieldNumber = FieldNumber(3);
const ROWS: u64 = if cfg!(miri) { 100 } else { 5000 };

fn text(row: u64) -> String {
    "text ".repeat(place(row % 9))
}

fn bytes(row: u64) -> Option<Vec<u8>> {
    (!row.is_multiple_of(7)).then(|| vec![7; place(row * 3 % 50)])
}

/// Makes a view of rows.
fn written() -> Arc<View> {
    let mut store = Store::new();
    store.apply_command(&Command::CreateTable { name: "t".to_owned() }).unwrap();
    let fields = [
        ("number", Type::Int64, false),
        ("text", Type::String, false),
        ("truth", Type::Bool, false),
        ("bytes", Type::Bytes, true),
    ];
    for (name, ty, nullable) in fields {
        let (name, table) = (name.to_owned(), TABLE);
        store
            .apply_command(&Command::AddField { table, name, ty, nullable, default: None })
            .unwrap();
    }
    let numbers: Vec<_> = (0..ROWS).flat_map(u64::to_le_bytes).collect();
    let truths: Vec<_> = (0..ROWS).map(|row| u8::from(row % 3 == 0)).collect();
    let texts: Vec<_> = (0..ROWS).map(text).collect();
    let texts: Vec<_> = texts.iter().map(|text| ValueRef::String(text)).collect();
    let many: Vec<_> = (0..ROWS).map(bytes).collect();
    let many: Vec<_> = many.iter().map(|bytes| bytes.as_deref().into()).collect();
    store.insert_vector(TABLE, RowId(0), ROWS, true).unwrap();
    for (field, values) in [
        (NUMBER, Vector::Cells(&numbers)),
        (TEXT, Vector::Values(&texts)),
        (TRUTH, Vector::Cells(&truths)),
        (BYTES, Vector::Values(&many)),
    ] {
        store.update_vector(TABLE, RowId(0), field, values, true).unwrap();
    }
    store.commit()
}

/// Stores the view in an image, and loads it.
fn loaded(keeps: bool) -> (Arc<TestImage>, View) {
    let (image, pager) = TestImage::new(50_000, keeps);
    let saved = written().save(&pager, &mut image.keeper(true)).unwrap();
    let view = View::load(&saved.metadata, &saved.roots, &pager).unwrap();
    (image, view)
}

#[test]
fn vectors_are_read_from_an_image() {
    for keeps in [true, false] {
        let (_image, view) = loaded(keeps);
        let table = view.table(TABLE).unwrap();
        let vector = |field, first, count| table.vector(field, RowId(first), count).unwrap();
        let numbers: Vec<_> = (0..ROWS.cast_signed()).collect();
        assert_eq!(vector(NUMBER, 0, ROWS).to_vec::<i64>().unwrap(), numbers);
        let mut copied = [0_i64; 50];
        vector(NUMBER, 20, 50).copy_to(&mut copied).unwrap();
        assert_eq!(copied, numbers[20..70]);
        let texts: Vec<_> = vector(TEXT, 0, ROWS).strings().unwrap().map(Result::unwrap).collect();
        assert!(texts.iter().eq((0..ROWS).map(text).collect::<Vec<_>>().iter()));
        let truths = vector(TRUTH, 0, ROWS).values().map(Result::unwrap);
        assert!(truths.zip(0..).all(|(truth, row)| truth == ValueRef::Bool(row % 3 == 0)));
        let many = vector(BYTES, 0, ROWS).values().map(Result::unwrap);
        assert!(many.zip(0..).all(|(found, row)| found == bytes(row).as_deref().into()));
        for field in [TEXT, TRUTH, BYTES, NUMBER] {
            let (vector, mut each) = (vector(field, 3, ROWS - 5), Vec::new());
            let taken = vector.for_each(&mut |value| {
                each.push(value.to_value());
                if each.len() == 40 { Err(crate::Error::invalid("no more")) } else { Ok(()) }
            });
            assert!(taken.is_err() && each.len() == 40);
            each.clear();
            let all = vector.for_each(&mut |value| {
                each.push(value.to_value());
                Ok(())
            });
            assert!(all.is_ok());
            assert!(vector.values().map(|value| value.unwrap().into_value()).eq(each));
        }
        assert!(
            vector(BYTES, 0, 3).strings().is_err() && table.vector(TEXT, RowId(1), ROWS).is_err()
        );
    }
}

#[test]
fn runs_and_nulls_are_those_of_the_rows() {
    let mut store = Store::resume(View::clone(&written()));
    let deleted = [0, 1, 40, 77, ROWS - 1];
    deleted.iter().for_each(|&id| store.delete(TABLE, RowId(id)).unwrap());
    let view = store.commit();
    let table = view.table(TABLE).unwrap();
    let (mut from, mut found, mut null) = (0, Vec::new(), Vec::new());
    while let Some(run) = table.dense(RowId(from), 33).unwrap() {
        assert!(run.end - run.start <= 33);
        from = run.end;
        let vector = table.vector(BYTES, RowId(run.start), run.end - run.start).unwrap();
        null.extend(vector.nulls().map(|at| at.unwrap() + run.start));
        found.extend(run);
    }
    let rows = || (0..ROWS).filter(|id| !deleted.contains(id));
    assert!(rows().eq(found));
    assert!(rows().filter(|id| id.is_multiple_of(7)).eq(null));
}

#[test]
fn an_error_is_the_last_item_of_a_vector() {
    let (image, view) = loaded(true);
    let table = view.table(TABLE).unwrap();
    // The existence of the rows is loaded now, and one page of their values.
    let numbers = table.vector(NUMBER, RowId(0), ROWS).unwrap();
    let texts = table.vector(TEXT, RowId(0), ROWS).unwrap();
    texts.values().next().unwrap().unwrap();
    numbers.values().next().unwrap().unwrap();
    image.set_broken(true);
    let mut chunks = numbers.chunks::<i64>().unwrap();
    assert!(cfg!(miri) || chunks.next().unwrap().is_ok());
    assert!(cfg!(miri) || chunks.next().unwrap().is_err());
    assert!(cfg!(miri) || chunks.next().is_none());
    let texts: Vec<_> = texts.strings().unwrap().collect();
    let mut given = 0;
    let again = table.vector(TEXT, RowId(0), ROWS).unwrap();
    let taken = again.for_each(&mut |_| {
        given += 1;
        Ok(())
    });
    assert!(taken.is_err() && given == texts.len() - 1);
    assert!(texts[..texts.len() - 1].iter().all(Result::is_ok) && texts[texts.len() - 1].is_err());
    assert!(numbers.to_vec::<i64>().is_err() || cfg!(miri));
}

/// A row's values can be read whatever happens to the image.
#[test]
fn a_row_has_its_values() {
    for keeps in [true, false] {
        let (image, view) = loaded(keeps);
        let table = view.table(TABLE).unwrap();
        let some = (0..ROWS).step_by(17).map(|row| table.get(RowId(row)).unwrap());
        let rows: Vec<_> = some.chain(table.rows().rev().take(10).map(Result::unwrap)).collect();
        image.set_broken(true);
        for row in &rows {
            let id = row.id().0;
            assert_eq!(row.read::<i64>(NUMBER), id.cast_signed());
            assert_eq!(row.read::<&str>(TEXT), text(id));
            assert_eq!(row.clone().read::<bool>(TRUTH), id % 3 == 0);
            assert_eq!(row.read::<Option<&[u8]>>(BYTES), bytes(id).as_deref());
            assert!(format!("{row:?}").contains(&format!("number: {id}")));
        }
        // Others can't be read any more.
        let (image, view) = loaded(keeps);
        image.set_broken(true);
        let table = view.table(TABLE).unwrap();
        assert!(table.get(RowId(5)).is_err() && table.rows().next().unwrap().is_err());
    }
}
