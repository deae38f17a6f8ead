//! Queries of strangers end at limits, and reach nothing but the database.

use std::time::Duration;

use annals_sql::{Connection, Limits, Parameters, SqlError};

use crate::shop::build;

fn confined(limits: Limits) -> Connection {
    let db = build(20, 200, 400);
    Connection::confined(annals::Database::clone(&db), limits).unwrap()
}

#[test]
fn a_query_ends_at_a_limit_and_the_next_one_runs() {
    let limits = Limits { time: Duration::from_millis(30), rows: 1000, ..Limits::default() };
    let mut sql = confined(limits);
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let error = sql.rows(endless, &Parameters::None).unwrap_err();
    assert!(matches!(error, SqlError::Time(_)), "{error:?}");
    let many = "SELECT a.id FROM visit a, visit b";
    let error = sql.rows(many, &Parameters::None).unwrap_err();
    assert!(matches!(error, SqlError::Rows(1000)), "{error:?}");
    assert_eq!(sql.rows("SELECT 1", &Parameters::None).unwrap().len(), 1);
}

#[test]
fn memory_is_limited() {
    let limits = Limits { memory: 24 << 20, time: Duration::from_secs(60), ..Limits::default() };
    let mut sql = confined(limits);
    for query in [
        "SELECT length(zeroblob(1000000000))",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10000000) \
         SELECT max(t) FROM (SELECT i, i || '..............................' t FROM n ORDER BY t)",
    ] {
        let error = sql.rows(query, &Parameters::None).unwrap_err();
        let is_limit =
            matches!(error, SqlError::Memory(_)) || error.to_string().contains("too big");
        assert!(is_limit, "{query}: {error:?}");
    }
}

#[test]
fn only_reading_is_allowed() {
    let mut sql = confined(Limits::default());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stolen.db");
    let file = file.display();
    for query in [
        format!("ATTACH '{file}' AS x"),
        format!("VACUUM INTO '{file}'"),
        "SELECT load_extension('x')".to_owned(),
        "PRAGMA temp_store_directory = '/tmp'".to_owned(),
        "PRAGMA journal_mode = WAL".to_owned(),
        "CREATE TABLE x(a)".to_owned(),
        "CREATE TEMP TABLE x(a)".to_owned(),
        "CREATE VIRTUAL TABLE temp.x USING fts5(a)".to_owned(),
        "INSERT INTO city(name) VALUES('x')".to_owned(),
        "DROP TABLE city".to_owned(),
        "BEGIN".to_owned(),
        "SELECT fts3_tokenizer('simple')".to_owned(),
    ] {
        let error = sql.rows(&query, &Parameters::None).unwrap_err();
        assert!(
            matches!(error, SqlError::ReadOnly(_) | SqlError::Statement(_)),
            "{query}: {error:?}"
        );
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    for query in [
        "SELECT * FROM city",
        "PRAGMA table_info(city)",
        "EXPLAIN SELECT 1",
        "SELECT * FROM city_at(2)",
    ] {
        assert!(!sql.rows(query, &Parameters::None).unwrap().is_empty(), "{query}");
    }
}
