//! Round trips through record batches, streams and Parquet.

#![allow(clippy::unwrap_used, reason = "a test that fails should panic")]
#![allow(clippy::disallowed_methods, reason = "files of Parquet are ordinary ones")]

mod erased;
mod formats;
mod museum;

use annals::{Database, Result, RowId, Schema, TableNumber, Type, Value, ValueRef};
use annals_arrow::{
    Batches, Incoming, Inserting, Options, PastBatches, TableBatches, from_arrow, ipc, parquet,
};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch, RecordBatchReader};

const TABLE: TableNumber = TableNumber(1);

/// A table with a field of each type, that may be null and that may not.
fn all_types() -> Schema {
    let mut text = "create_table town\ncreate_table all\n".to_owned();
    for (at, ty) in Type::samples().into_iter().enumerate() {
        text += &format!("add_field all n{at} {ty} null\n");
        if ty != Type::Blob {
            text += &format!("add_field all f{at} {ty}\n");
        }
    }
    text += "add_field all town references town\n";
    annals_schema::parse(&text).unwrap().schema
}

fn upgraded(schema: &Schema) -> Database {
    let db = Database::in_memory().unwrap();
    db.upgrade(schema, &mut |_, _| unreachable!("it has no custom function")).unwrap();
    db
}

/// Fills the table: extremes, nulls and holes, and a stretch of consecutive ids.
fn filled(schema: &Schema) -> Database {
    let db = upgraded(schema);
    let table = schema.table(TABLE).unwrap();
    db.write(|tx| {
        let extremes = [i64::MIN, -1, 0, 1, i64::MAX];
        for id in (0..3000_u64).chain([5000, 5001, 1 << 40]).filter(|id| id % 997 != 5) {
            let place = usize::try_from(id).unwrap();
            let number = extremes.get(place).copied().unwrap_or(id as i64 * 31 - 7000);
            let blob = tx.write_blob(&id.to_le_bytes()[..])?;
            let values = table.fields.iter().map(|field| match field.ty {
                Type::Blob => Value::Blob(blob),
                _ if field.nullable && id % 3 == 0 => Value::Null,
                // Arrow has 38 digits.
                Type::Decimal(_) => field.ty.sample(number % 1_000_000_000),
                ty => ty.sample(number),
            });
            let values: Vec<Value> = values.collect();
            let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
            tx.insert_at(TABLE, RowId(id), &values)?;
        }
        Ok(())
    })
    .unwrap();
    db
}

fn rows(db: &Database) -> Vec<String> {
    let now = db.read();
    let blob = |blob| {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut now.blob(blob).unwrap(), &mut bytes).unwrap();
        bytes
    };
    let fields = || now.schema().table(TABLE).unwrap().fields.iter();
    let text = |row: annals::Row<'_>| {
        let values = fields().map(|field| match row.value(field.number) {
            ValueRef::Blob(it) => format!("{:?}", blob(it)),
            ValueRef::Float32(v) => format!("{:x}", v.to_bits()),
            ValueRef::Float64(v) => format!("{:x}", v.to_bits()),
            value => format!("{value:?}"),
        });
        format!("{} {}", row.id().0, values.collect::<Vec<_>>().join(" "))
    };
    now.table(TABLE).unwrap().rows().map(|row| text(row.unwrap())).collect()
}

fn copied(schema: &Schema, batches: impl RecordBatchReader) -> Result<Database> {
    let copy = upgraded(schema);
    let mut incoming = Incoming::new(schema, TABLE, &batches.schema())?;
    copy.write(|tx| {
        for batch in batches {
            incoming.insert(&batch.map_err(from_arrow)?, &mut Inserting::new(tx, TABLE))?;
        }
        Ok(())
    })?;
    Ok(copy)
}

#[test]
fn all_types_go_and_come_back() {
    let schema = all_types();
    let db = filled(&schema);
    let expected = rows(&db);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.parquet");
    for options in [Options::for_memory(), Options::copied(), Options::for_transport()] {
        let batches = || TableBatches::range(&db.read(), TABLE, 0..u64::MAX, options).unwrap();
        assert_eq!(rows(&copied(&schema, batches()).unwrap()), expected);
        let mut stream = Vec::new();
        assert_eq!(ipc::write(batches(), &mut stream).unwrap(), expected.len() as u64);
        let read = ipc::read(std::io::Cursor::new(stream)).unwrap();
        assert_eq!(rows(&copied(&schema, read).unwrap()), expected);
        parquet::write(batches(), std::fs::File::create(&path).unwrap()).unwrap();
        let read = parquet::read(std::fs::File::open(&path).unwrap()).unwrap();
        assert_eq!(rows(&copied(&schema, read).unwrap()), expected);
    }
}

/// The numbers of consecutive rows are those in the store's pages, and stay there whatever happens to the database.
#[test]
fn numbers_are_not_copied() {
    let schema = annals_schema::parse("create_table x\ncreate_table t\nadd_field t n int64\n");
    let schema = schema.unwrap().schema;
    let db = upgraded(&schema);
    db.write(|tx| (0..10_000).try_for_each(|n| tx.insert(TABLE, &[ValueRef::Int64(n)]).map(drop)))
        .unwrap();
    let now = db.read();
    let batches: Vec<RecordBatch> =
        TableBatches::of(&now, TABLE).unwrap().map(|batch| batch.unwrap()).collect();
    let numbers = |batch: &RecordBatch| batch.column(1).as_primitive::<Int64Type>().clone();
    let place = |batch: &RecordBatch| numbers(batch).values().as_ptr();
    let vector = now.table(TABLE).unwrap();
    let vector = vector.vector(annals::FieldNumber(0), RowId(0), 10_000).unwrap();
    let pages: Vec<_> =
        vector.chunks::<i64>().unwrap().map(|chunk| chunk.unwrap().as_ptr()).collect();
    assert!(batches.len() > 1 && batches.iter().map(place).eq(pages), "each is a page");
    db.write(|tx| {
        (0..10_000).try_for_each(|n| {
            tx.update(TABLE, RowId(n), annals::FieldNumber(0), ValueRef::Int64(-1))
        })
    })
    .unwrap();
    db.close().unwrap();
    drop(now);
    let kept: Vec<i64> = batches.iter().flat_map(|it| numbers(it).values().to_vec()).collect();
    assert_eq!(kept, (0..10_000).collect::<Vec<_>>());
}

#[test]
fn ranges_rows_and_the_past() {
    let schema = all_types();
    let db = filled(&schema);
    let now = db.read();
    let count = |batches: TableBatches| -> u64 {
        batches.map(|batch| batch.unwrap().num_rows() as u64).sum()
    };
    let range = TableBatches::range(&now, TABLE, 10..5001, Options::for_memory()).unwrap();
    let expected = now.table(TABLE).unwrap().range(RowId(10)..RowId(5001)).count() as u64;
    assert_eq!(count(range), expected);
    let some = vec![RowId(7), RowId(3), RowId(5000)];
    let mut some = TableBatches::rows(&now, TABLE, some, Options::copied()).unwrap();
    let batch = some.next().unwrap().unwrap();
    let ids = batch.column(0).as_primitive::<arrow_array::types::UInt64Type>();
    assert_eq!(ids.values().to_vec(), [7, 3, 5000]);
    assert!(some.next().is_none());

    let before = now.txid();
    db.write(|tx| {
        tx.comment("away")?;
        tx.delete(TABLE, RowId(3))
    })
    .unwrap();
    let then = db.at(before).unwrap();
    assert_eq!(count(TableBatches::of(&then, TABLE).unwrap()), now.table(TABLE).unwrap().len());
    let changes = db.changes(annals::Txid(before.0 + 1)..).unwrap();
    let mut past = PastBatches::changes(&db.read(), TABLE, changes, Options::default()).unwrap();
    let batch = past.next().unwrap().unwrap();
    assert_eq!(batch.num_rows(), 1);
    let text =
        |name: &str| batch.column_by_name(name).unwrap().as_string_view().value(0).to_owned();
    assert_eq!((text("comment"), text("kind")), ("away".to_owned(), "delete".to_owned()));
    assert!(batch.column_by_name("old").unwrap().is_valid(0));
    assert!(batch.column_by_name("new").unwrap().is_null(0));
    let history = db.history_of(TABLE, RowId(3)).unwrap();
    let past = PastBatches::history(&db.read(), TABLE, history, Options::default()).unwrap();
    assert_eq!(past.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 2);
}

#[test]
fn wrong_batches_are_errors() {
    let schema = annals_schema::parse("create_table x\ncreate_table t\nadd_field t n int8\n");
    let schema = schema.unwrap().schema;
    let wide = annals_schema::parse("create_table x\ncreate_table t\nadd_field t n int64\n");
    let wide = wide.unwrap().schema;
    let db = upgraded(&wide);
    db.write(|tx| tx.insert(TABLE, &[ValueRef::Int64(128)]).map(drop)).unwrap();
    let batches: Batches = Box::new(TableBatches::of(&db.read(), TABLE).unwrap());
    let error = copied(&schema, batches).unwrap_err().to_string();
    assert!(error.contains("row 0") && error.contains("`n`") && error.contains("128"), "{error}");
    let other = annals_schema::parse("create_table x\ncreate_table t\nadd_field t m int8\n");
    let batches = TableBatches::of(&db.read(), TABLE).unwrap();
    let error = copied(&other.unwrap().schema, batches).unwrap_err().to_string();
    assert!(error.contains("no field \"n\"") && error.contains("id, m"), "{error}");
    assert!(ipc::read(std::io::Cursor::new(b"nothing".to_vec())).is_err());
}

/// Arrow's decimals have 38 digits, ours up to 39: whoever exports 600 tables hears which value it is.
#[test]
fn a_decimal_that_arrow_has_no_room_for_is_named() {
    let text = "create_table account\nadd_field account note string\nadd_field account amount decimal(2) null\n";
    let db = upgraded(&annals_schema::parse(text).unwrap().schema);
    let table = db.read().schema().table_named("account").unwrap().number;
    let amount = |units| ValueRef::Decimal(annals::model::AnyDecimal::new(units, 2));
    const AMOUNT: annals::FieldNumber = annals::FieldNumber(1);
    let most = 10_i128.pow(38) - 1;
    db.write(|tx| {
        for id in 0..3000 {
            let value = if id % 2 == 0 { amount(most) } else { ValueRef::Null };
            tx.insert_at(table, RowId(id), &[ValueRef::String("held"), value])?;
        }
        Ok(())
    })
    .unwrap();
    let message = |mut batches: Batches| {
        let error = batches.find_map(Result::err);
        // One that went on had skipped rows: redb 4.3, <https://github.com/cberner/redb/blob/master/CHANGELOG.md>.
        assert!(batches.next().is_none(), "it goes on after {error:?}");
        error.map_or(Ok(()), |error| Err(annals_arrow::from_arrow(error).to_string()))
    };
    let all = |now: &annals::Snapshot, options| -> [Batches; 2] {
        let rows = (0..3000)
            .rev()
            .map(RowId)
            .filter(|id| now.table(table).unwrap().contains(*id).unwrap());
        let rows = TableBatches::rows(now, table, rows.collect(), options).unwrap();
        [Box::new(TableBatches::range(now, table, 0..u64::MAX, options).unwrap()), Box::new(rows)]
    };
    let ways = [Options::for_memory(), Options::copied(), Options::for_transport()];
    for options in ways {
        all(&db.read(), options).into_iter().for_each(|batches| message(batches).unwrap());
    }
    // In a stretch of consecutive ids, and beside a hole.
    for (row, hole) in [(1500, None), (2, Some(1))] {
        let before = db.read().txid();
        db.write(|tx| {
            hole.into_iter().try_for_each(|id| tx.delete(table, RowId(id)))?;
            tx.update(table, RowId(row), AMOUNT, amount(-most - 1))
        })
        .unwrap();
        let now = db.read();
        let expected = format!(
            "table `account`, row {row}, field `amount`: -1{}.00 has 39 digits, and Arrow's decimals have 38; ask \
             for texts, with SQL: CAST(amount AS TEXT)",
            "0".repeat(36)
        );
        for options in ways {
            for batches in all(&now, options) {
                assert_eq!(message(batches).unwrap_err(), expected);
            }
            let changes = db.changes(annals::Txid(before.0 + 1)..=now.txid()).unwrap();
            let past = PastBatches::changes(&now, table, changes, options).unwrap();
            assert_eq!(message(Box::new(past)).unwrap_err(), expected);
        }
        db.write(|tx| tx.update(table, RowId(row), AMOUNT, amount(0))).unwrap();
    }
}
