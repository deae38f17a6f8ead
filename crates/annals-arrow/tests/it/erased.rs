//! An erased value is null in a batch, also of a field that may not be null, and the values around it stay.

use annals::{Database, FieldNumber, RowId, Type, ValueRef};
use annals_arrow::{Options, PastBatches, TableBatches, ipc, parquet};
use annals_event::Event;
use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, RecordBatchReader};

use crate::{TABLE, all_types, filled};

const WAYS: [fn() -> Options; 3] = [Options::for_memory, Options::copied, Options::for_transport];

/// Returns the fields that may not be null, by number, name and type.
fn required(db: &Database) -> Vec<(FieldNumber, String, Type)> {
    let now = db.read();
    let fields = now.schema().table(TABLE).unwrap().fields.iter();
    let required = fields.filter(|field| !field.nullable && field.ty != Type::Blob);
    required.map(|field| (field.number, field.name.clone(), field.ty)).collect()
}

/// Erases a row each of all fields that may not be null: at a page's beginning, inside it, beside a hole, and alone.
fn erased() -> (Database, Vec<(RowId, String)>) {
    let db = filled(&all_types());
    let rows = [0, 1500, 1001, 5000];
    let mut erased = Vec::new();
    db.write(|tx| {
        for (place, (field, name, _)) in required(&db).into_iter().enumerate() {
            let id = RowId(rows[place % rows.len()]);
            tx.apply_erased(&Event::Update { table: TABLE, id, field, value: ValueRef::Null })?;
            erased.push((id, name));
        }
        Ok(())
    })
    .unwrap();
    assert!(erased.len() > 15, "{erased:?}");
    (db, erased)
}

/// Returns the ids whose values of a column are null.
fn nulls(batches: &[RecordBatch], column: &str) -> Vec<u64> {
    let of_batch = |batch: &RecordBatch| {
        let ids = batch.column(0).as_primitive::<arrow_array::types::UInt64Type>().clone();
        let values = batch.column_by_name(column).unwrap().clone();
        (0..ids.len())
            .filter(move |&row| values.is_null(row))
            .map(move |row| ids.value(row))
            .collect::<Vec<_>>()
    };
    batches.iter().flat_map(of_batch).collect()
}

#[test]
fn they_are_null_and_their_neighbours_are_not() {
    let (db, erased) = erased();
    let before = filled(&all_types());
    let all = |db: &Database, options| -> Vec<RecordBatch> {
        let batches = TableBatches::range(&db.read(), TABLE, 0..u64::MAX, options).unwrap();
        batches.map(|batch| batch.unwrap()).collect()
    };
    for options in WAYS {
        let (was, is) = (all(&before, options()), all(&db, options()));
        let schema = is[0].schema();
        for (id, name) in &erased {
            assert!(schema.field_with_name(name).unwrap().is_nullable(), "{name}");
            assert_eq!(nulls(&is, name), [id.0], "{name}");
        }
        assert!(!schema.field_with_name("id").unwrap().is_nullable());
        // All else is as it was, cell by cell.
        for (was, is) in was.iter().zip(&is) {
            for (field, (was, is)) in
                schema.fields().iter().zip(was.columns().iter().zip(is.columns()))
            {
                for row in (0..is.len()).filter(|&row| is.is_valid(row) || was.is_null(row)) {
                    assert_eq!(
                        was.slice(row, 1).to_data(),
                        is.slice(row, 1).to_data(),
                        "{} in {row}",
                        field.name()
                    );
                }
            }
        }
    }
}

#[test]
fn streams_files_and_changes_have_them() {
    let (db, erased) = erased();
    let now = db.read();
    let batches =
        || TableBatches::range(&now, TABLE, 0..u64::MAX, Options::for_transport()).unwrap();
    let mut stream = Vec::new();
    ipc::write(batches(), &mut stream).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("erased.parquet");
    parquet::write(batches(), std::fs::File::create(&path).unwrap()).unwrap();
    let read: [Vec<RecordBatch>; 2] = [
        ipc::read(std::io::Cursor::new(stream)).unwrap().map(|batch| batch.unwrap()).collect(),
        parquet::read(std::fs::File::open(&path).unwrap())
            .unwrap()
            .map(|batch| batch.unwrap())
            .collect(),
    ];
    for (id, name) in &erased {
        read.iter().for_each(|batches| assert_eq!(nulls(batches, name), [id.0], "{name}"));
    }
    // As changes: what was there, and nothing in its place.
    for options in WAYS {
        let changes = db.changes(now.txid()..).unwrap();
        let past = PastBatches::changes(&now, TABLE, changes, options()).unwrap();
        let schema = past.schema();
        let batches: Vec<RecordBatch> = past.map(|batch| batch.unwrap()).collect();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 4);
        let batch = &batches[0];
        let ids =
            batch.column_by_name("id").unwrap().as_primitive::<arrow_array::types::UInt64Type>();
        let side = |name: &str| batch.column_by_name(name).unwrap().as_struct().clone();
        assert!(schema.field_with_name("new").unwrap().is_nullable());
        for (id, name) in &erased {
            let row = ids.iter().position(|it| it == Some(id.0)).unwrap();
            let is_null = |it: &str| side(it).column_by_name(name).unwrap().is_null(row);
            assert_eq!((is_null("old"), is_null("new")), (false, true), "{name}");
        }
    }
}
