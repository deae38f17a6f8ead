//! A statement sees one snapshot, a transaction keeps it, and nothing can be changed.

use annals::Options;
use annals_sql::{Connection, Parameters, SqlError, Value};

use crate::shop::{build, city, open, shop, text};

fn add(db: &shop::Database, name: &str) {
    let new = city::New { name, size: None, people: None, area: None, founded: None };
    db.write(|tx| Ok(tx.insert(new)?)).unwrap();
}

#[test]
fn a_statement_sees_the_newest_state_and_a_transaction_keeps_it() {
    let db = build(3, 3, 3);
    let mut sql = open(&db);
    let count = "SELECT count(*), (SELECT count(*) FROM city WHERE id >= 0) FROM city";
    assert_eq!(text(&mut sql, count), "3|3\n");
    let before = text(&mut sql, "SELECT annals_txid()");
    add(&db, "one");
    assert_eq!(text(&mut sql, count), "4|4\n");
    assert_ne!(text(&mut sql, "SELECT annals_txid()"), before);

    text(&mut sql, "BEGIN");
    add(&db, "two");
    assert_eq!(text(&mut sql, count), "4|4\n", "as of BEGIN");
    add(&db, "three");
    assert_eq!(text(&mut sql, count), "4|4\n");
    // One transaction directly after the other sees the newer state.
    text(&mut sql, "COMMIT");
    text(&mut sql, "BEGIN");
    assert_eq!(text(&mut sql, count), "6|6\n");
    text(&mut sql, "ROLLBACK");
}

#[test]
fn transactions_of_other_programs_are_noticed() {
    let db = build(3, 3, 3);
    let connection = open(&db);
    // As in a program that has loaded the extension: nobody tells us of its statements.
    let sql = connection.inner();
    let count = |query: &str| sql.query_row(query, [], |row| row.get::<_, i64>(0)).unwrap();
    for query in ["SELECT count(*) FROM city", "SELECT annals_txid()"] {
        for end in ["COMMIT", "ROLLBACK"] {
            sql.execute_batch("BEGIN").unwrap();
            let before = count(query);
            add(&db, &format!("{query} {end}"));
            assert_eq!(count(query), before, "{query}");
            sql.execute_batch(end).unwrap();
            sql.execute_batch("BEGIN").unwrap();
            assert_eq!(count(query), before + 1, "{query}: a transaction after {end}");
            sql.execute_batch(end).unwrap();
        }
    }
}

#[test]
fn a_running_statement_stays_as_it_is() {
    let db = build(3, 3, 3);
    let sql = open(&db);
    let mut statement = sql.inner().prepare("SELECT a.id FROM city a, city b ORDER BY 1").unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut count = 0;
    while rows.next().unwrap().is_some() {
        count += 1;
        add(&db, &format!("new {count}"));
        assert!(count < 20, "it never ends");
    }
    assert_eq!(count, 9);
}

#[test]
fn a_file_is_read_as_others_write_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.annals");
    let db = shop::Database::open(&path).unwrap();
    add(&db, "one");
    let reader = Options::new().open_read_only(&path).unwrap();
    let mut sql = Connection::open(reader).unwrap();
    assert_eq!(text(&mut sql, "SELECT name FROM city"), "'one'\n");
    add(&db, "two");
    assert_eq!(text(&mut sql, "SELECT name FROM city"), "'one'\n'two'\n");
}

#[test]
fn a_changed_schema_is_seen_by_the_next_statement() {
    let db = annals::Database::in_memory().unwrap();
    let create = |name: &str| {
        let mut tx = db.begin().unwrap();
        tx.apply_command(&annals::Command::CreateTable { name: name.to_owned() }).unwrap();
        tx.commit().unwrap();
    };
    create("city");
    let mut sql = Connection::open(db.clone()).unwrap();
    let mut prepared = sql.inner().prepare("SELECT count(*) FROM city").unwrap();
    create("street");
    let error = prepared.query_row([], |row| row.get::<_, i64>(0)).unwrap_err();
    assert!(error.to_string().contains("schema of the database has changed"), "{error}");
    drop(prepared);
    assert_eq!(text(&mut sql, "SELECT count(*) FROM street"), "0\n");
    assert_eq!(text(&mut sql, "SELECT count(*) FROM city"), "0\n");
    assert!(text(&mut sql, "DELETE FROM street").contains("SQL reads"));
    assert!(text(&mut sql, "DROP TABLE street").contains("SQL reads"));

    let mut confined = Connection::confined(db.clone(), annals_sql::Limits::default()).unwrap();
    create("lane");
    assert_eq!(text(&mut confined, "SELECT count(*) FROM lane"), "0\n");
    assert!(text(&mut confined, "CREATE TABLE x(a)").starts_with("error: SQL only reads"));
}

#[test]
fn nothing_is_changed() {
    let db = build(2, 2, 2);
    let mut sql = open(&db);
    for change in [
        "INSERT INTO city(name) VALUES('x')",
        "UPDATE city SET name = 'x' WHERE id = 0",
        "DELETE FROM city WHERE id = 0",
        "INSERT INTO city_history(id) VALUES(1)",
        "DELETE FROM annals_log",
    ] {
        let error = sql.rows(change, &Parameters::None).unwrap_err();
        assert!(matches!(error, SqlError::ReadOnly(_)), "{change}: {error:?}");
        assert!(error.to_string().contains("SQL reads"), "{error}");
    }
    assert_eq!(text(&mut sql, "SELECT count(*) FROM city"), "2\n");
}

#[test]
fn parameters_are_bound_by_place_and_by_name() {
    let db = build(2, 2, 2);
    let mut sql = open(&db);
    let listed = Parameters::from([Value::Integer(1), Value::Integer(2)]);
    assert_eq!(sql.rows("SELECT ?1 + ?2", &listed).unwrap(), [[Value::Integer(3)]]);
    let named = Parameters::Named(vec![("x".to_owned(), Value::Integer(4))]);
    assert_eq!(sql.rows("SELECT :x * @x", &named).unwrap(), [[Value::Integer(16)]]);
    for (query, parameters) in
        [("SELECT ?", &Parameters::None), ("SELECT :y", &named), ("SELECT ?", &listed)]
    {
        assert!(sql.rows(query, parameters).is_err(), "{query}");
    }
}

#[test]
fn what_looks_like_a_change_is_refused() {
    let db = build(3, 3, 3);
    let mut sql = open(&db);
    for statement in [
        "DELETE FROM city WHERE 0",
        "UPDATE City SET name = 'x' WHERE id = -1",
        "INSERT INTO city VALUES (1)",
        "DROP TABLE city",
        "DROP TABLE temp.city_history",
        "CREATE TABLE t(a)",
        "CREATE TABLE t AS SELECT * FROM city",
        "CREATE VIEW v AS SELECT 1",
    ] {
        let error = sql.rows(statement, &Parameters::None).unwrap_err();
        assert!(matches!(error, SqlError::ReadOnly(_)), "{statement}: {error:?}");
        assert!(error.to_string().contains("CREATE TEMP TABLE"), "{statement}: {error}");
    }
    assert_eq!(text(&mut sql, "SELECT count(*) FROM city"), "3\n");
    let own = "CREATE TEMP TABLE t AS SELECT * FROM city; CREATE TEMP VIEW v AS SELECT id FROM t; \
               SELECT count(*) FROM v; DROP VIEW v; DROP TABLE t";
    assert_eq!(text(&mut sql, own), "3\n");
}

#[test]
fn a_name_that_is_a_word_of_sql_is_said_to_need_quotes() {
    let db = annals::Database::in_memory().unwrap();
    let schema = "create_table order\nadd_field order from string\n";
    let schema = annals_schema::parse(schema).unwrap().schema;
    db.upgrade(&schema, &mut |_, _| unreachable!()).unwrap();
    let mut sql = Connection::open(db).unwrap();
    for (query, word) in [("SELECT * FROM order", "order"), ("SELECT from FROM \"order\"", "from")]
    {
        let error = sql.rows(query, &Parameters::None).unwrap_err().to_string();
        assert!(error.to_lowercase().contains(&format!("needs quotes: \"{word}\"")), "{error}");
    }
    let error = sql.rows("SELECT * FROM where", &Parameters::None).unwrap_err().to_string();
    assert!(!error.contains("quotes"), "{error}");
}
