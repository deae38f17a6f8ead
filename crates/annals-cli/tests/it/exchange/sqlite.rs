//! Databases of SQLite that other programs made.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::same::{Kept, compare};
use crate::identity;
use crate::program::{run, succeed};

/// Makes a database with SQLite and imports it; returns what there is then, and what the program said besides.
fn import(dir: &Path, script: &str) -> (String, String) {
    let connection = Connection::open(dir.join("a.sqlite")).unwrap();
    connection.execute_batch("PRAGMA foreign_keys=OFF").unwrap();
    connection.execute_batch(script).unwrap();
    drop(connection);
    let output = run(dir, &["import", "sqlite", "a.sqlite", "a.annals"], b"");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    assert!(succeed(dir, &["check", "a.annals"], "").starts_with("ok: "));
    (succeed(dir, &["dump", "a.annals"], ""), errors)
}

#[test]
fn a_schema_is_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    let script = "
        CREATE TABLE album (album_id INTEGER PRIMARY KEY, title VARCHAR(160) NOT NULL DEFAULT 'it''s',
            artist INTEGER NOT NULL REFERENCES artist(artist_id) ON DELETE CASCADE,
            price NUMERIC(10,2), made DATETIME DEFAULT CURRENT_TIMESTAMP, rating REAL DEFAULT (-1.5),
            big BIGINT DEFAULT 5, small SMALLINT CHECK (small < 9), cover BLOB, ok BOOLEAN DEFAULT TRUE);
        CREATE TABLE artist (artist_id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, boss REFERENCES artist);
        CREATE TABLE pair (a TEXT, b INT, PRIMARY KEY (a, b)) WITHOUT ROWID;
        CREATE VIEW v AS SELECT 1;
        CREATE INDEX \"by title!\" ON album (title, artist);
        CREATE INDEX partial ON album (title) WHERE small > 1;
        INSERT INTO artist VALUES (5, 'Ada', NULL), (9, NULL, 5), (12, 'gone', NULL);
        DELETE FROM artist WHERE artist_id = 12;
        INSERT INTO album VALUES (2, 'x', 5, 9.99, '2020-01-01', 0.5, 9223372036854775807, -1, X'00ff', 1);
        INSERT INTO pair VALUES ('b', 2), ('a', 1);";
    let (dump, said) = import(dir.path(), script);
    let expected = r#"create_table album
create_table artist
create_table pair
add_field album title string default "it's"
add_field album artist references artist cascade required
add_field album price float64 null
add_field album made string null
add_field album rating float64 null default -1.5
add_field album big int64 null default 5
add_field album small int16 null
add_field album cover bytes null
add_field album ok bool null default true
add_field artist name string null
add_field artist boss references artist
add_field pair a string
add_field pair b int64
insert_into artist 12
delete_from artist 12
insert_at album 2 "x" 5 9.99 "2020-01-01" 0.5 9223372036854775807 -1 0x00ff true
insert_at artist 5 "Ada" null
insert_at artist 9 null 5
insert_at pair 0 "a" 1
insert_at pair 1 "b" 2
create_unique_index pair_by_a_b pair a,b
create_unique_index artist_by_name artist name
create_index by_title_ album title,artist
"#;
    assert_eq!(dump, expected);
    let notes = [
        "the view v was left out",
        "a CHECK of table album was left out",
        "the index partial on album is of some rows only",
        "album.album_id is the id of the row",
        "album.made: the default CURRENT_TIMESTAMP was left out",
        "\"by title!\" becomes by_title_",
    ];
    for note in notes {
        assert!(said.contains(note), "{note} in {said}");
    }
}

#[test]
fn everything_that_is_left_out_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let script = "
        PRAGMA user_version=7; PRAGMA application_id=8;
        CREATE TABLE city (id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE, area INT,
            twice INT GENERATED ALWAYS AS (area * 2), code TEXT UNIQUE ON CONFLICT REPLACE, CHECK (area > 0));
        CREATE TABLE house (id INTEGER PRIMARY KEY, note TEXT DEFAULT 'no check, no collate',
            city INT REFERENCES city ON UPDATE CASCADE ON DELETE SET DEFAULT);
        CREATE TABLE key (word TEXT PRIMARY KEY) WITHOUT ROWID;
        CREATE INDEX by_area ON city (area DESC, name);
        CREATE INDEX by_lower ON city (lower(name));
        CREATE UNIQUE INDEX large ON city (area) WHERE area > 5;
        CREATE VIRTUAL TABLE words USING fts5(text);
        CREATE VIEW cities AS SELECT name FROM city;
        CREATE TRIGGER watch AFTER INSERT ON city BEGIN DELETE FROM key; END;";
    let (dump, said) = import(dir.path(), script);
    let notes = [
        "the user_version, 7, was left out",
        "the application_id, 8, was left out",
        "a COLLATE of table city was left out",
        "an ON CONFLICT of table city was left out",
        "a CHECK of table city was left out",
        "city.twice is generated: its values become plain ones",
        "house.city: ON UPDATE CASCADE was left out",
        "house.city: ON DELETE SET DEFAULT was left out",
        "the table key is WITHOUT ROWID: its rows get ids",
        "the index by_area sorts by NOCASE",
        "the index by_lower on city is on an expression: it was left out",
        "the index large on city is of some rows only: it was left out",
        "the virtual table words was left out",
        "the view cities was left out",
        "the trigger watch was left out",
    ];
    for note in notes {
        assert!(said.contains(note), "{note} in {said}");
    }
    assert!(!said.contains("table house was left out"), "a word of a text is no clause: {said}");
    assert!(dump.contains("create_index by_area city area desc,name\n"), "{dump}");
}

/// The first opening then has nothing to replay.
#[test]
fn an_import_leaves_an_image() {
    let dir = tempfile::tempdir().unwrap();
    let script = "
        CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
            INSERT INTO t SELECT i, 'name ' || i FROM n;";
    import(dir.path(), script);
    succeed(dir.path(), &["export", "joedb", "a.annals", "a.joedb"], "");
    succeed(dir.path(), &["import", "joedb", "a.joedb", "b.annals"], "");
    succeed(dir.path(), &["export", "csv", "a.annals", "csv"], "");
    succeed(dir.path(), &["import", "csv", "csv", "c.annals"], "");
    for file in ["a.annals", "b.annals", "c.annals"] {
        let info = succeed(dir.path(), &["info", file], "");
        assert!(dir.path().join(format!("{file}-image")).exists(), "{file}");
        assert!(info.contains("; 0 bytes of the journal"), "{file}: {info}");
    }
    let names = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().contains(".import-")).collect();
    assert_eq!(left, [] as [std::ffi::OsString; 0]);
}

#[test]
fn values_widen_the_types_of_their_columns() {
    let dir = tempfile::tempdir().unwrap();
    let script = "
        CREATE TABLE t (tiny TINYINT, whole INTEGER, text TEXT, free, mixed, bits UINT64, f FLOAT32,
            late REFERENCES t(a), a UNIQUE);
        INSERT INTO t VALUES (300, 0.5, X'00ff', 1, 'x', X'ffffffffffffffff', 0.1, 77, 1);
        INSERT INTO t VALUES (1, 2, 'y', 9007199254740993, 1, 7, 'NaN', 0, '1');
        INSERT INTO t(text) VALUES (CAST(X'fe61' AS TEXT));";
    let (dump, said) = import(dir.path(), script);
    let expected = r#"create_table t
add_field t tiny int64 null
add_field t whole float64 null
add_field t text bytes null
add_field t free int64 null
add_field t mixed string null
add_field t bits uint64 null
add_field t f float64 null
add_field t late int64 null
add_field t a string null
insert_at t 0 300 0.5 0x00ff 1 "x" 18446744073709551615 0.1 77 "1"
insert_at t 1 1 2 0x79 9007199254740993 "1" 7 nan 0 "1"
insert_at t 2 null null 0xfe61 null null null null null null
create_index t_by_a t a
"#;
    assert_eq!(dump, expected);
    for note in [
        "t.tiny is declared TINYINT and holds other values, as 300 in row number 1: it becomes int64",
        "t.mixed holds values of several kinds: they become texts",
        "t.text holds values of several kinds: they become bytes",
        "t.late refers to t, but not to ids of rows",
        "can't be unique",
    ] {
        assert!(said.contains(note), "{note} in {said}");
    }
}

#[test]
fn ids_and_references_that_cannot_be_stay_values() {
    let dir = tempfile::tempdir().unwrap();
    let script = "
        CREATE TABLE t (id INTEGER PRIMARY KEY, up INTEGER REFERENCES t(id) ON DELETE RESTRICT);
        CREATE TABLE u (id INTEGER PRIMARY KEY, up INTEGER REFERENCES u(id) ON DELETE RESTRICT);
        INSERT INTO t VALUES (-5, NULL), (3, -5);
        INSERT INTO u VALUES (1, 2), (3, 1);";
    let (dump, said) = import(dir.path(), script);
    let expected = r#"create_table t
create_table u
add_field t id int64 null
add_field t up int64 null
add_field u up references u
insert_at t 0 -5 null
insert_at t 1 3 -5
insert_at u 1 2
insert_at u 3 1
"#;
    assert_eq!(dump, expected);
    assert!(said.contains("t: a primary key is negative"), "{said}");
    assert!(said.contains("u.up leads to rows that aren't there"), "{said}");
}

#[test]
fn sqlite_enforces_what_was_enforced() {
    let dir = tempfile::tempdir().unwrap();
    let script = "create_table a\ncreate_table b\nadd_field b c references a cascade\nadd_field b r references a restrict\n\
        add_field b n references a set_null\nadd_field b d references a\ncreate_unique_index u b c\n\
        insert a\ninsert a\ninsert a\ninsert a\ninsert b 0 1 2 3\n";
    succeed(dir.path(), &["shell", "a.annals"], script);
    succeed(dir.path(), &["export", "sqlite", "a.annals", "a.sqlite"], "");
    let connection = Connection::open(dir.path().join("a.sqlite")).unwrap();
    connection.execute_batch("PRAGMA foreign_keys=ON").unwrap();
    let count = |query: &str| connection.query_row(query, [], |row| row.get::<_, i64>(0)).unwrap();
    assert!(connection.execute("DELETE FROM a WHERE id = 1", []).is_err(), "restrict");
    connection.execute("DELETE FROM a WHERE id = 2", []).unwrap();
    assert_eq!(count("SELECT count(*) FROM b WHERE n IS NULL"), 1);
    assert!(connection.execute("INSERT INTO b VALUES (9, 0, 0, 0, 0)", []).is_err(), "unique");
    connection.execute("DELETE FROM a WHERE id = 0", []).unwrap();
    assert_eq!(count("SELECT count(*) FROM b"), 0);
    connection.execute("INSERT INTO a DEFAULT VALUES", []).unwrap();
    assert_eq!(count("SELECT max(id) FROM a"), 4);
    assert_eq!(
        connection.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).unwrap(),
        "ok"
    );
}

#[test]
fn a_script_for_sqlite_makes_the_file_that_an_export_makes() {
    for seed in 2000..2010 {
        let dir = tempfile::tempdir().unwrap();
        succeed(dir.path(), &["shell", "a.annals"], &identity::script(seed));
        let sql = succeed(
            dir.path(),
            &["dump", "a.annals", "--format", "sql", "--dialect", "sqlite"],
            "",
        );
        let connection = Connection::open(dir.path().join("a.sqlite")).unwrap();
        connection.execute_batch(&sql).unwrap();
        drop(connection);
        succeed(dir.path(), &["import", "sqlite", "a.sqlite", "b.annals"], "");
        compare(&dir.path().join("a.annals"), &dir.path().join("b.annals"), Kept::TheRest);
    }
}

/// Returns what all values of a table say, whatever their types: numbers as texts, without zeros at their ends.
fn texts(path: &Path, query: &str) -> Vec<Vec<Vec<u8>>> {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection.prepare(query).unwrap();
    let columns = statement.column_count();
    let text = |value: ValueRef<'_>| match value {
        ValueRef::Null => b"(null)".to_vec(),
        ValueRef::Integer(value) => value.to_string().into_bytes(),
        ValueRef::Real(value) => value.to_string().into_bytes(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.to_vec(),
    };
    let text = |value: ValueRef<'_>| {
        let mut text = text(value);
        if std::str::from_utf8(&text).is_ok_and(|it| it.contains('.') && it.parse::<f64>().is_ok())
        {
            let kept = text.iter().rposition(|byte| *byte != b'0').map_or(0, |last| last + 1);
            let kept = kept - usize::from(text[kept - 1] == b'.');
            text.truncate(kept);
        }
        text
    };
    let rows = statement
        .query_map([], |row| (0..columns).map(|at| row.get_ref(at).map(text)).collect())
        .unwrap();
    rows.map(|row| row.unwrap()).collect()
}

/// The file is an export of ours, and SQLite changes one value after the other. The oracle is SQLite itself: an import
/// that is exported again says the same.
#[test]
fn values_that_are_none_of_their_declared_type_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let script = "create_table v\nadd_field v day date null\nadd_field v price decimal(2) null\n\
        add_field v key uuid null\nadd_field v data json null\nadd_field v hash bytes(4) null\n\
        add_field v kind enum(a, b) null\nadd_field v n int8 null\nadd_field v f float32 null\n\
        insert v 2024-03-01 12.50 67e55044-10b1-426f-9247-bb680e5fe0c8 \"{}\" 0x01020304 a 1 0.5\n\
        insert v null null null null null null null null\n";
    succeed(dir.path(), &["shell", "a.annals"], script);
    succeed(dir.path(), &["export", "sqlite", "a.annals", "own.sqlite"], "");
    let columns = ["day", "price", "key", "data", "hash", "kind", "n", "f"];
    let values = [
        "''",
        "'x'",
        "'2024-02-30'",
        "'0999-12-31'",
        "'12.505'",
        "'12.5'",
        "'1e3'",
        "'C'",
        "'{\"a\":1}'",
        "x'01'",
        "x'01020304'",
        "x'ff'",
        "7",
        "1000",
        "2.5",
        "-0.1",
        "9007199254740993",
        "NULL",
    ];
    for column in columns {
        for value in values {
            std::fs::copy(file("own.sqlite"), file("x.sqlite")).unwrap();
            let connection = Connection::open(file("x.sqlite")).unwrap();
            // A `CHECK` has the names of an enum.
            connection.execute_batch("PRAGMA ignore_check_constraints=ON").unwrap();
            connection
                .execute_batch(&format!("UPDATE v SET {column} = {value} WHERE id = 0"))
                .unwrap();
            drop(connection);
            let output = run(dir.path(), &["import", "sqlite", "x.sqlite", "x.annals"], b"");
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success(), "{column} = {value}: {said}");
            succeed(dir.path(), &["export", "sqlite", "x.annals", "y.sqlite", "--replace"], "");
            let query = "SELECT * FROM v ORDER BY id";
            let same = texts(&file("x.sqlite"), query) == texts(&file("y.sqlite"), query);
            assert!(same, "{column} = {value}: {said}");
            let names_it = said.contains(&format!("v.{column} is declared"));
            assert!(
                !names_it || said.contains(" in row 0: it becomes "),
                "{column} = {value}: {said}"
            );
            std::fs::remove_file(file("x.annals")).unwrap();
        }
    }
}

#[test]
fn a_file_of_sqlite_is_named_where_one_of_ours_is_wanted() {
    let dir = tempfile::tempdir().unwrap();
    import(dir.path(), "CREATE TABLE t (v);");
    for command in [&["dump"][..], &["info"], &["check"], &["log"], &["shell"], &["sql"]] {
        let output = run(dir.path(), &[command, &["a.sqlite"]].concat(), b"");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("`annals import sqlite a.sqlite NEW.annals`"), "{command:?}: {said}");
        assert!(!output.status.success());
    }
}

#[test]
fn an_index_may_name_a_column_twice() {
    let dir = tempfile::tempdir().unwrap();
    let script = "
        CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, age INT);
        CREATE INDEX by_name ON person (name COLLATE NOCASE, age, name);
        CREATE UNIQUE INDEX by_age ON person (age, age);
        INSERT INTO person VALUES (1, 'Ada', 36);";
    let (dump, said) = import(dir.path(), script);
    assert!(dump.contains("create_index by_name person name,age\n"), "{dump}");
    assert!(dump.contains("create_unique_index by_age person age\n"), "{dump}");
    assert!(said.contains("by_name names a column twice: here it has it once: name"), "{said}");
    assert!(said.contains("by_age names a column twice: here it has it once: age"), "{said}");
}

#[test]
fn collations_of_other_programs_are_no_obstacle() {
    let dir = tempfile::tempdir().unwrap();
    let connection = Connection::open(dir.path().join("a.sqlite")).unwrap();
    let compare = |a: &str, b: &str| a.to_lowercase().cmp(&b.to_lowercase());
    connection.create_collation("OWN", compare).unwrap();
    let script = "
        CREATE TABLE pair (a TEXT COLLATE OWN, b TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID;
        CREATE TABLE word (id INTEGER PRIMARY KEY, w TEXT COLLATE OWN, up TEXT COLLATE OWN REFERENCES word(w));
        CREATE UNIQUE INDEX by_w ON word (w);
        CREATE INDEX by_b ON pair (b COLLATE OWN);
        INSERT INTO pair VALUES ('b', 'x'), ('A', 'y'), ('C', 'X');
        INSERT INTO word VALUES (1, 'b', NULL), (2, 'A', 'b');";
    connection.execute_batch(script).unwrap();
    drop(connection);
    let (dump, said) = import(dir.path(), "");
    for row in
        ["pair 0 \"A\" \"y\"", "pair 1 \"b\" \"x\"", "pair 2 \"C\" \"X\"", "word 2 \"A\" \"b\""]
    {
        assert!(dump.contains(&format!("insert_at {row}\n")), "{dump}");
    }
    assert!(said.contains("the index by_w sorts by OWN: here it sorts by bytes"), "{said}");
}

#[test]
fn each_reference_that_cannot_be_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let script = "
        CREATE TABLE a (id INTEGER PRIMARY KEY);
        CREATE TABLE b (id INTEGER PRIMARY KEY REFERENCES a(id));
        CREATE TABLE c (id INTEGER PRIMARY KEY, x INT REFERENCES a(id) ON DELETE RESTRICT REFERENCES b(id));
        INSERT INTO a VALUES (1); INSERT INTO b VALUES (1); INSERT INTO c VALUES (1, 1);";
    let (dump, said) = import(dir.path(), script);
    assert!(dump.contains("add_field c x references a restrict\n"), "{dump}");
    assert!(said.contains("c.x refers to b, too: a field is one reference"), "{said}");
    assert!(
        said.contains("b.id is the id of the row, and can't be a reference, too: that to a"),
        "{said}"
    );
}

#[test]
fn a_computed_column_that_sqlite_cannot_compute_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let script = "
        CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, h INT AS (length(a)) VIRTUAL, z INT AS (1 + 1) VIRTUAL);
        CREATE INDEX by_a ON t (a);
        INSERT INTO t (a) VALUES ('xy');
        CREATE TABLE u (v); INSERT INTO u VALUES (1);
        PRAGMA writable_schema=ON;
        UPDATE sqlite_schema SET sql = replace(sql, 'length(', 'own_function(');";
    let (dump, said) = import(dir.path(), script);
    assert!(dump.contains("insert_at t 1 \"xy\" 2\n"), "{dump}");
    assert!(dump.contains("insert_at u 0 1\n"), "{dump}");
    assert!(
        said.contains("t.h is computed, and SQLite can't: ") && said.contains("own_function"),
        "{said}"
    );
}
