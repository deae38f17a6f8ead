//! What `annals dump --format sql` prints is loaded into SQLite, which must hold the same.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::program::succeed;

/// Loads the SQL of a database into SQLite.
fn load(dir: &Path, name: &str) -> Connection {
    let sql = succeed(dir, &["dump", name, "--format", "sql"], "");
    let shown = succeed(dir, &["shell", name], "sql\n");
    assert_eq!(shown, sql, "the shell shows the same");
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(&sql).unwrap_or_else(|error| panic!("{error}\n{sql}"));
    connection
}

pub(crate) fn rows(connection: &Connection, query: &str) -> Vec<Vec<Value>> {
    let mut statement = connection.prepare(query).unwrap();
    let columns = statement.column_count();
    let row = |row: &rusqlite::Row<'_>| (0..columns).map(|column| row.get(column)).collect();
    statement.query_map([], row).unwrap().map(Result::unwrap).collect()
}

/// Checks that SQLite holds what a dump says: the same rows, with the same values.
pub(crate) fn holds_the_same(dir: &Path, name: &str, dump: &str) {
    let connection = load(dir, name);
    let mut schema = annals::Schema::default();
    let mut found: BTreeMap<String, Vec<Vec<Value>>> = BTreeMap::new();
    for line in dump.lines() {
        let tokens = annals_schema::tokenize(line).unwrap();
        if let Some(command) = annals_schema::parse_command(&schema, &tokens).unwrap() {
            schema.apply(command).unwrap();
        }
    }
    for table in schema.tables() {
        let query = format!("SELECT * FROM \"{}\" ORDER BY id DESC", table.name);
        found.insert(table.name.clone(), rows(&connection, &query));
    }
    let mut blobs: Vec<Vec<u8>> = Vec::new();
    for line in dump.lines() {
        let tokens = annals_schema::tokenize(line).unwrap();
        let (table, id, values) = match tokens.as_slice() {
            [word, table, id, values @ ..] if word.text == "insert_at" => (table, id, values),
            [word, bytes] if word.text == "write_blob" => {
                blobs.push(bytes_of(bytes));
                continue;
            }
            [word, bytes] if word.text == "append_blob" => {
                blobs.last_mut().unwrap().extend(bytes_of(bytes));
                continue;
            }
            _ => continue,
        };
        let row = found.get_mut(&*table.text).unwrap().pop().expect("a row is missing");
        assert_eq!(row[0], Value::Integer(id.text.parse().unwrap()), "{line}");
        let fields = &schema.table_named(&table.text).unwrap().fields;
        for ((field, token), found) in fields.iter().zip(values).zip(&row[1..]) {
            let value = annals_schema::parse_value(field.ty, token).unwrap();
            let same = match value {
                annals::Value::Blob(blob) => {
                    let place = usize::try_from(blob.0).unwrap() - 1;
                    *found == Value::Blob(blobs[place].clone())
                }
                _ => is_the_same(&value, found),
            };
            assert!(same, "{line}: {value} is {found:?}");
        }
    }
    let more: usize = found.values().map(Vec::len).sum();
    assert_eq!(more, 0, "rows that the dump doesn't have");
}

/// Checks that the history as SQL gives the same rows as a dump.
pub(crate) fn history_gives_the_same(dir: &Path, name: &str) {
    let sql = succeed(dir, &["dump", name, "--format", "sql", "--dialect", "sqlite"], "");
    let dumped = Connection::open_in_memory().unwrap();
    dumped.execute_batch(&sql).unwrap_or_else(|error| panic!("{error}\n{sql}"));
    let sql = succeed(dir, &["log", name, "--format", "sql"], "");
    let replayed = Connection::open_in_memory().unwrap();
    replayed.execute_batch(&sql).unwrap_or_else(|error| panic!("{error}\n{sql}"));
    // What differs in capitals only may have got its `_` in another order.
    let names = "SELECT name FROM sqlite_master WHERE type = 'table' \
         AND name NOT IN ('annals_blob', 'sqlite_sequence')";
    let tables = |connection: &Connection| -> Vec<String> {
        let text = |value: &Value| match value {
            Value::Text(text) => text.clone(),
            other => panic!("{other:?}"),
        };
        rows(connection, names).iter().map(|row| text(&row[0])).collect()
    };
    let contents = |connection: &Connection| {
        let rows = |name: &String| {
            format!("{:?}", rows(connection, &format!("SELECT * FROM \"{name}\" ORDER BY id")))
        };
        let mut contents: Vec<_> = tables(connection).iter().map(rows).collect();
        contents.sort();
        contents
    };
    assert_eq!(contents(&replayed), contents(&dumped), "{sql}");
}

/// Reads what is written to a blob: text or bytes.
fn bytes_of(token: &annals_schema::Token) -> Vec<u8> {
    match annals_schema::parse_value(annals::Type::Bytes, token) {
        Ok(annals::Value::Bytes(bytes)) => bytes,
        _ => token.text.as_bytes().to_vec(),
    }
}

/// True if SQLite's value stands for one of ours.
fn is_the_same(value: &annals::Value, found: &Value) -> bool {
    use annals::Value as V;
    let integer = |value: i128| match found {
        Value::Integer(found) => i128::from(*found) == value,
        // Where SQLite has no integers.
        Value::Blob(found) => {
            found.iter().fold(0, |sum, &byte| sum << 8 | i128::from(byte)) == value
        }
        _ => false,
    };
    match value {
        V::Null => *found == Value::Null,
        V::Bool(value) => integer(i128::from(*value)),
        V::Int8(value) => integer(i128::from(*value)),
        V::Int16(value) => integer(i128::from(*value)),
        V::Int32(value) => integer(i128::from(*value)),
        V::Int64(value) | V::Timestamp(value) => integer(i128::from(*value)),
        V::UInt8(value) => integer(i128::from(*value)),
        V::UInt16(value) => integer(i128::from(*value)),
        V::UInt32(value) => integer(i128::from(*value)),
        V::UInt64(value) => integer(i128::from(*value)),
        V::Reference(value) => integer(i128::from(value.0)),
        V::Float32(value) if *value == 0.0 && value.is_sign_negative() => *found == minus_zero(),
        V::Float64(value) if *value == 0.0 && value.is_sign_negative() => *found == minus_zero(),
        V::Float32(value) if value.is_nan() => *found == text("NaN"),
        V::Float64(value) if value.is_nan() => *found == text("NaN"),
        V::Float32(value) => match found {
            #[allow(clippy::cast_possible_truncation, reason = "the nearest is what it is about")]
            Value::Real(found) => *found as f32 == *value,
            _ => false,
        },
        V::Float64(value) => match found {
            Value::Real(found) => is_near(*value, *found),
            _ => false,
        },
        V::String(value) => *found == text(value),
        V::Date(_) | V::Uuid(_) | V::Decimal(_) | V::Enum(_) => *found == text(&value.to_string()),
        V::Bytes(value) => *found == Value::Blob(value.clone()),
        V::Blob(_) => false, // its bytes are elsewhere
    }
}

/// True if SQLite read a float well: where many powers of ten are multiplied, it gives another
/// one close by.
fn is_near(number: f64, found: f64) -> bool {
    let away = found.to_bits().abs_diff(number.to_bits());
    let is_moderate = (1e-20..1e20).contains(&number.abs());
    number == found || (!is_moderate && away <= 4)
}

/// SQLite forgets the sign of a zero.
fn minus_zero() -> Value {
    Value::Blob(vec![0x80, 0, 0, 0, 0, 0, 0, 0])
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

#[test]
fn sqlite_holds_the_same_values() {
    let dir = tempfile::tempdir().unwrap();
    let script = r#"
create_table other
create_table t
add_field t b bool
add_field t small int8
add_field t large int64
add_field t natural uint64
add_field t single float32
add_field t double float64
add_field t text string null
add_field t raw bytes
add_field t time timestamp
add_field t row references other
insert t true -128 -9223372036854775808 18446744073709551615 0.1 1e300 "it's\n\"é\"\t\000\033" 0x00ff @-1 7
insert t false 127 9223372036854775807 9223372036854775807 inf -inf null 0x @1635891025500000 null
insert_at t 9223372036854775806 false 0 0 0 nan 5e-324 "" 0x27 @-9223372036854775808 0
"#;
    succeed(dir.path(), &["shell", "a.annals"], script);
    let found = rows(&load(dir.path(), "a.annals"), "SELECT * FROM t ORDER BY id");
    let expected = vec![
        vec![
            Value::Integer(0),
            Value::Integer(1),
            Value::Integer(-128),
            Value::Integer(i64::MIN),
            Value::Blob(vec![0xff; 8]),
            Value::Real(0.1),
            Value::Real(1e300),
            text("it's\n\"é\"\t\0\u{1b}"),
            Value::Blob(vec![0, 255]),
            Value::Integer(-1),
            Value::Integer(7),
        ],
        vec![
            Value::Integer(1),
            Value::Integer(0),
            Value::Integer(127),
            Value::Integer(i64::MAX),
            Value::Integer(i64::MAX),
            Value::Real(f64::INFINITY),
            Value::Real(f64::NEG_INFINITY),
            Value::Null,
            Value::Blob(vec![]),
            Value::Integer(1_635_891_025_500_000),
            Value::Null,
        ],
        vec![
            Value::Integer(i64::MAX - 1),
            Value::Integer(0),
            Value::Integer(0),
            Value::Integer(0),
            Value::Integer(0),
            text("NaN"),
            Value::Real(5e-324),
            text(""),
            Value::Blob(vec![0x27]),
            Value::Integer(i64::MIN),
            Value::Integer(0),
        ],
    ];
    assert_eq!(found, expected);
}

#[test]
fn rows_have_what_is_appended_to_their_blob() {
    let script = "create_table t\nadd_field t b blob\nadd_field t c blob\nwrite_blob 0x6f\n\
        insert t blob:1 null\nwrite_blob 0x61\ninsert t blob:2 blob:2\ninsert t blob:2 null\n\
        update t 1 c blob:1\nupdate t 0 c blob:2\ndelete_from t 2\nappend_blob 0x62\nappend_blob 0x63\ncommit\n";
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["shell", "a.annals"], script);
    history_gives_the_same(dir.path(), "a.annals");
}

#[test]
fn floats_are_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let mut script = String::from("create_table t\nadd_field t x float64\n");
    let mut state = 1_u64;
    let mut written = Vec::new();
    while written.len() < 2000 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = f64::from_bits(state ^ (state >> 29));
        if number.is_finite() {
            writeln!(script, "insert t {number:e}").unwrap();
            written.push(number);
        }
    }
    succeed(dir.path(), &["shell", "a.annals"], &script);
    let found = rows(&load(dir.path(), "a.annals"), "SELECT x FROM t ORDER BY id");
    for (number, row) in written.into_iter().zip(found) {
        let [Value::Real(found)] = row[..] else { panic!("{row:?}") };
        assert!(is_near(number, found), "{number:e} is {found:e}");
    }
}

#[test]
fn names_indexes_and_defaults_are_there() {
    let dir = tempfile::tempdir().unwrap();
    let script = r#"
create_table select
add_field select id string = "it's"
add_field select ID int8 null
add_field select from references select
create_table SELECT
add_field SELECT x int32
create_table sqlite_master
create_unique_index select select id,ID desc
create_index by_from select from
insert select "a" null 5
insert select "a" null null
insert select "a" 1 0
"#;
    succeed(dir.path(), &["shell", "a.annals"], script);
    let connection = load(dir.path(), "a.annals");
    let tables = rows(&connection, "SELECT name FROM sqlite_master WHERE sql LIKE '%\"id\"%'");
    assert_eq!(tables.concat(), [text("select"), text("SELECT_"), text("_sqlite_master")]);
    let indexes = rows(&connection, "SELECT name, sql FROM sqlite_master WHERE type = 'index'");
    let unique = "CREATE UNIQUE INDEX \"select__\" ON \"select\" (\"select.id\", \"ID_\" DESC)";
    let plain = "CREATE INDEX \"by_from\" ON \"select\" (\"from\")";
    assert_eq!(indexes, [vec![text("select__"), text(unique)], vec![text("by_from"), text(plain)]]);
    connection.execute_batch("INSERT INTO \"select\"(id) VALUES (50)").unwrap();
    let row = rows(&connection, "SELECT * FROM \"select\" WHERE id = 50");
    assert_eq!(row, [vec![Value::Integer(50), text("it's"), Value::Null, Value::Null]]);
    let refused = "INSERT INTO \"select\" VALUES (60, 'a', 1, NULL)";
    assert!(connection.execute_batch(refused).is_err(), "the unique index is one");
}
