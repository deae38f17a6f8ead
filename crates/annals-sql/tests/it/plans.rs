//! Queries use indexes, and their order; `EXPLAIN QUERY PLAN` shows how.

use crate::shop::{build, open, text};

/// Returns the plan of a query: a line for each table, and one for each sorting.
fn plan(sql: &mut annals_sql::Connection, query: &str) -> String {
    let plan = sql.rows(&format!("EXPLAIN QUERY PLAN {query}"), &annals_sql::Parameters::None);
    let details = plan.unwrap().into_iter().map(|row| match &row[3] {
        annals_sql::Value::Text(detail) => {
            let start = detail.find("INDEX ").map_or(0, |at| at + "INDEX ".len());
            let shown = &detail[start..];
            shown.split_once(':').map_or(shown, |(_, plan)| plan).trim().to_owned()
        }
        other => format!("{other:?}"),
    });
    details.collect::<Vec<_>>().join("; ")
}

#[test]
fn conditions_and_orders_use_indexes() {
    let db = build(40, 2000, 4000);
    let mut sql = open(&db);
    for (query, expected) in [
        ("SELECT * FROM city WHERE id = 7", "id = ?"),
        ("SELECT * FROM city WHERE rowid = 7", "id = ?"),
        ("SELECT * FROM city WHERE id > 7 ORDER BY id DESC", "id > ? backward"),
        ("SELECT * FROM city WHERE name = 'Ada1'", "city_by_name: name = ?"),
        ("SELECT * FROM city WHERE name IN ('a', 'b')", "city_by_name: name = ?"),
        ("SELECT * FROM city WHERE name GLOB 'Ada1*'", "city_by_name: name GLOB ?"),
        ("SELECT * FROM city WHERE name LIKE 'Ada1%'", "city_by_name: name LIKE ?"),
        ("SELECT * FROM city WHERE name LIKE '%a'", "all"),
        ("SELECT * FROM city WHERE name = 'a' COLLATE NOCASE", "all"),
        ("SELECT * FROM person ORDER BY age LIMIT 3", "person_by_age:"),
        ("SELECT * FROM person ORDER BY age DESC, id DESC LIMIT 3", "person_by_age:  backward"),
        ("SELECT * FROM person ORDER BY age DESC, id LIMIT 3", "all; USE TEMP B-TREE FOR ORDER BY"),
        ("SELECT * FROM person WHERE home = 3 ORDER BY age", "person_by_home: home = ?"),
        (
            "SELECT * FROM person WHERE home = 3 AND age >= 5 AND age < 7",
            "person_by_home: home = ? AND age >= ? AND age < ?",
        ),
        ("SELECT * FROM city WHERE size = 'town' ORDER BY people DESC", "city_by_size: size = ?"),
        ("SELECT * FROM visit ORDER BY score DESC LIMIT 2", "visit_by_score:"),
        ("SELECT * FROM person WHERE balance > '12.00'", "person_by_balance: balance > ?"),
    ] {
        assert_eq!(plan(&mut sql, query), expected, "{query}");
    }
}

#[test]
fn the_more_selective_index_is_used() {
    let db = build(40, 2000, 4000);
    let mut sql = open(&db);
    // Exact counts decide between two indexes: few have the age, many the name; then the other way round.
    let few = "SELECT * FROM person WHERE name = 'Ada' AND age < 1";
    assert_eq!(plan(&mut sql, few), "person_by_age: age < ?");
    let many = "SELECT * FROM person WHERE name = 'Ada' AND age < 25";
    assert_eq!(plan(&mut sql, many), "person_by_name: name = ?");
}

#[test]
fn joins_follow_references() {
    let db = build(40, 2000, 4000);
    let mut sql = open(&db);
    let query = "SELECT count(*) FROM visit v JOIN person p ON p.id = v.who JOIN city c ON c.id = p.home \
                 WHERE v.day = '2024-05-01' AND v.town = 5";
    assert_eq!(plan(&mut sql, query), "visit_by_town: town = ? AND day = ?; id = ?; id = ?");
    let said = text(&mut sql, query);
    assert!(said.trim().parse::<u64>().is_ok(), "{said}");
}
