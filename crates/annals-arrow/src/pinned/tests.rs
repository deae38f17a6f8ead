//! Buffers outlive their snapshot and their database, and don't change.

use annals::{Database, ValueRef};

use super::*;

const ROWS: u64 = if cfg!(miri) { 20 } else { 5000 };

fn filled() -> (Database, Place) {
    let text = "create_table t\nadd_field t n int64\n";
    let schema = annals_schema::parse(text).unwrap().schema;
    let db = Database::in_memory().unwrap();
    db.upgrade(&schema, &mut |_, _| unreachable!("it has no custom function")).unwrap();
    let table = schema.table_named("t").unwrap();
    let at =
        Place { table: table.number, field: table.fields[0].number, first: RowId(0), count: ROWS };
    db.write(|tx| {
        (0..ROWS.cast_signed())
            .try_for_each(|n| tx.insert(at.table, &[ValueRef::Int64(n)]).map(drop))
    })
    .unwrap();
    (db, at)
}

#[test]
fn a_buffer_outlives_its_snapshot_and_its_database() {
    let (db, at) = filled();
    let snapshot = db.read();
    let part = first_part::<i64>(&snapshot, at).unwrap().unwrap();
    assert!(part.count > 0 && part.count <= ROWS);
    let moved = Box::new(snapshot);
    drop(moved);
    db.write(|tx| {
        (0..ROWS).try_for_each(|id| tx.update(at.table, RowId(id), at.field, ValueRef::Int64(-1)))
    })
    .unwrap();
    let clone = part.buffer.clone();
    drop((db, part.buffer));
    let expected: Vec<u8> = (0..part.count.cast_signed()).flat_map(i64::to_ne_bytes).collect();
    let read = std::thread::spawn(move || clone.as_slice().to_vec());
    assert_eq!(read.join().unwrap(), expected);
}

#[test]
fn the_parts_of_a_field_are_its_values() {
    let (db, mut at) = filled();
    let (snapshot, mut values) = (db.read(), Vec::<i64>::new());
    while at.count > 0 {
        let part = first_part::<i64>(&snapshot, at).unwrap().unwrap();
        values.extend(part.buffer.typed_data::<i64>());
        (at.first.0, at.count) = (at.first.0 + part.count, at.count - part.count);
    }
    assert!(values.into_iter().eq(0..ROWS.cast_signed()));
    // A field of another type is an error, not other bytes.
    assert!(first_part::<f64>(&snapshot, Place { first: RowId(0), count: 1, ..at }).is_err());
}
