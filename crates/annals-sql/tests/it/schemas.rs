//! No schema ends SQL: names that virtual tables have themselves, tables of more columns than SQLite has, long types.

use std::fmt::Write as _;

use annals::{Database, TableNumber, ValueRef};
use annals_sql::{Connection, Limits};

use crate::shop::text;

/// Returns a database with this schema, in text.
fn of(schema: &str) -> Database {
    let db = Database::in_memory().unwrap();
    upgrade(&db, schema);
    db
}

fn upgrade(db: &Database, schema: &str) {
    let schema = annals_schema::parse(schema).unwrap().schema;
    db.upgrade(&schema, &mut |_, _| unreachable!()).unwrap();
}

/// Appends a table with so many fields, `c0` and so on.
fn wide(schema: &mut String, name: &str, fields: usize) {
    writeln!(schema, "create_table {name}").unwrap();
    for number in 0..fields {
        writeln!(schema, "add_field {name} c{number} int64 null").unwrap();
    }
}

#[test]
fn a_table_that_is_too_wide_stops_no_other() {
    let mut schema = "create_table small\nadd_field small v int64\n".to_owned();
    for (name, fields) in [("fits", 997), ("wide", 998), ("wider", 2000)] {
        wide(&mut schema, name, fields);
    }
    let db = of(&schema);
    db.write(|tx| tx.insert(TableNumber(0), &[ValueRef::Int64(7)])).unwrap();
    let confined = Connection::confined(db.clone(), Limits::default()).unwrap();
    for mut sql in [Connection::open(db).unwrap(), confined] {
        for (query, expected) in [
            ("SELECT v FROM small", "7\n"),
            ("SELECT new_v FROM small_history", "7\n"),
            ("SELECT count(*) FROM annals_log", "2\n"),
            ("SELECT count(*) FROM annals_schema WHERE kind = 'field'", "3996\n"),
            ("SELECT count(new_c996) FROM fits_history", "0\n"),
            ("SELECT count(c997) FROM wide", "0\n"),
            ("SELECT count(*) FROM wide_at(1)", "0\n"),
            ("SELECT * FROM wide_changes(1)", ""),
            ("SELECT count(*) FROM wider_blame", "0\n"),
        ] {
            assert_eq!(text(&mut sql, query), expected, "{query}");
        }
        for (query, name, columns) in [
            ("SELECT * FROM wide_history", "wide_history", 2002),
            ("SELECT * FROM wider", "wider", 2001),
            ("SELECT c1 FROM temp.wider WHERE id = 1", "wider", 2001),
            ("SELECT * FROM \"WIDER_AT\"(1)", "wider_at", 2002),
        ] {
            let said = text(&mut sql, query);
            let reason = format!("it would have {columns} columns, and SQLite has at most 2000");
            assert_eq!(said, format!("error: `{name}` isn't there: {reason}\n"), "{query}");
        }
    }
}

/// The names of columns that SQLite or a virtual table has itself, and relatives of them.
const FIELDS: [&str; 27] = [
    "id",
    "rowid",
    "oid",
    "_rowid_",
    "annals_moment",
    "annals_moment_",
    "annals_row",
    "annals_from",
    "annals_to",
    "txid",
    "time",
    "comment",
    "kind",
    "changes",
    "field",
    "value",
    "table",
    "old_time",
    "new_time",
    "old_new_time",
    "old_",
    "new_",
    "hidden",
    "HIDDEN_",
    "ID_",
    "Kind",
    "TXID",
];

#[test]
fn a_field_may_have_any_name_of_ours() {
    let mut schema = "create_table t\n".to_owned();
    for name in FIELDS {
        writeln!(schema, "add_field t {name} int64").unwrap();
    }
    let db = of(&schema);
    let values: Vec<_> = (100..).take(FIELDS.len()).map(ValueRef::Int64).collect();
    db.write(|tx| tx.insert(TableNumber(0), &values)).unwrap();
    let now = db.read().txid().0;
    let mut sql = Connection::open(db).unwrap();
    let listed =
        text(&mut sql, "SELECT name FROM pragma_table_info('t') WHERE cid > 0 ORDER BY cid");
    let names: Vec<_> = listed.lines().map(|line| line.trim_matches('\'').to_owned()).collect();
    assert_eq!(names.len(), FIELDS.len());
    for ((name, field), value) in names.iter().zip(FIELDS).zip(100..) {
        let is_same =
            name == field || *name == format!("t.{field}") || *name == format!("{field}_");
        assert!(is_same, "{name} is {field}");
        for table in ["t".to_owned(), format!("t_at({now})"), format!("t_as_it_was({now})")] {
            let query = format!("SELECT id, \"{name}\" FROM {table} WHERE \"{name}\" = {value}");
            assert_eq!(text(&mut sql, &query), format!("0|{value}\n"), "{query}");
        }
        for table in ["t_history", "t_history(0)", "t_changes(1)"] {
            let query = format!("SELECT id, kind, \"old_{name}\", \"new_{name}\" FROM {table}");
            assert_eq!(text(&mut sql, &query), format!("0|'insert'|null|{value}\n"), "{query}");
        }
        let query = format!("SELECT id, value FROM t_blame(0) WHERE field = '{name}'");
        assert_eq!(text(&mut sql, &query), format!("0|{value}\n"), "{query}");
    }
}

/// The names of tables that SQLite or SQL over a database has itself, and relatives of them.
const TABLES: [&str; 22] = [
    "annals_log",
    "annals_schema",
    "annals_log_at",
    "x",
    "x_at",
    "x_history",
    "x_changes",
    "x_blame",
    "x_as_it_was",
    "x_at_at",
    "X_AT",
    "sqlite_master",
    "_sqlite_master",
    "sqlite_stat1",
    "pragma_collation_list",
    "pragma_table_info",
    "json_each",
    "temp",
    "main",
    "annals_time",
    "table",
    "dbstat",
];

#[test]
fn a_table_may_have_any_name_of_ours() {
    let mut schema = String::new();
    for name in TABLES {
        writeln!(schema, "create_table {name}\nadd_field {name} v int64").unwrap();
    }
    let db = of(&schema);
    let tables = (0..).map(TableNumber).zip(100..).take(TABLES.len());
    db.write(|tx| {
        for (table, value) in tables {
            tx.insert(table, &[ValueRef::Int64(value)])?;
        }
        Ok(())
    })
    .unwrap();
    let confined = Connection::confined(db.clone(), Limits::default()).unwrap();
    let mut all = [Connection::open(db.clone()).unwrap(), confined];
    let dropped = schema + "drop_table temp\n";
    for is_changed in [false, true] {
        for sql in &mut all {
            for (name, value) in
                TABLES.iter().zip(100..).filter(|(name, _)| !is_changed || **name != "temp")
            {
                let first = if name.starts_with("sqlite_") { "_" } else { "" };
                // The first table of all that has the row, under its name or the next free ones.
                let found = (0..3)
                    .map(|more| format!("\"{first}{name}{}\"", "_".repeat(more)))
                    .find(|name| {
                        text(sql, &format!("SELECT v FROM temp.{name}")) == format!("{value}\n")
                    });
                let found = found.unwrap_or_else(|| panic!("{name} can't be asked for"));
                let query = format!("SELECT count(*) FROM temp.{found} JOIN annals_log ON 1");
                assert_eq!(text(sql, &query), if is_changed { "3\n" } else { "2\n" }, "{query}");
            }
            assert_eq!(text(sql, "SELECT txid FROM annals_log WHERE txid = 2"), "2\n");
            let count = "SELECT count(*) FROM annals_schema WHERE kind = 'table'";
            assert_eq!(text(sql, count), format!("{}\n", TABLES.len() - usize::from(is_changed)));
        }
        if !is_changed {
            upgrade(&db, &dropped);
        }
    }
}

#[test]
fn long_types_are_seen_after_the_schema_has_changed() {
    let variants: Vec<_> = (0..4096).map(|number| format!("v{number:0240}")).collect();
    let mut schema = "create_table t\n".to_owned();
    for number in 0..3 {
        writeln!(schema, "add_field t e{number} enum({}) null", variants.join(",")).unwrap();
    }
    let db = of(&schema);
    let mut sql = Connection::confined(db.clone(), Limits::default()).unwrap();
    upgrade(&db, &(schema + "create_table u\nadd_field u v int64\n"));
    for query in
        ["SELECT count(*) FROM u", "SELECT count(*) FROM t", "SELECT count(new_e2) FROM t_history"]
    {
        assert_eq!(text(&mut sql, query), "0\n", "{query}");
    }
}
