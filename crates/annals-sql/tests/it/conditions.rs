//! Conditions that narrow a search leave out no row that SQLite would find, and let none through.

use annals::model::AnyDecimal;
use annals::{Database, FieldNumber, RowId, TableNumber, ValueRef};
use annals_sql::Connection;

use crate::shop::text;

const SCHEMA: &str = "
create_table person
add_field person name string
create_index person_by_name person name
create_table note
add_field note text string
create_table stop
add_field stop code string
add_field stop other string
create_index stop_by_code stop code
create_table ref
add_field ref code int64
add_field ref f float64
add_field ref s string
create_table t
add_field t v int64
create_table price
add_field price d decimal(2)
create_index price_by_d price d
";

fn build() -> Connection {
    let db = Database::in_memory().unwrap();
    let schema = annals_schema::parse(SCHEMA).unwrap().schema;
    db.upgrade(&schema, &mut |_, _| unreachable!()).unwrap();
    let (text, number) = (ValueRef::String, ValueRef::Int64);
    db.write(|tx| {
        for name in ["Ada", "Bob", "Cyd"] {
            tx.insert(TableNumber(0), &[text(name)])?;
        }
        tx.insert(TableNumber(1), &[text("n")])?;
        for code in ["9", "09", "9.0"] {
            tx.insert(TableNumber(2), &[text(code), text(code)])?;
        }
        for (value, shown) in [(9, "9"), (10, "10")] {
            let float = ValueRef::Float64(f64::from(value));
            tx.insert(TableNumber(3), &[number(value.into()), float, text(shown)])?;
        }
        for units in [-100, 900, 1000, 1250] {
            let price = ValueRef::Decimal(AnyDecimal::new(units, 2));
            tx.insert(TableNumber(5), &[price])?;
        }
        for value in [10, 20, 30] {
            tx.insert(TableNumber(4), &[number(value)])?;
        }
        Ok(())
    })
    .unwrap();
    db.write(|tx| tx.update(TableNumber(4), RowId(1), FieldNumber(0), number(21))).unwrap();
    Connection::open(db).unwrap()
}

fn check(cases: &[(&str, &str)]) {
    let mut sql = build();
    for (query, expected) in cases {
        let said = text(&mut sql, query).replace('\'', "");
        assert_eq!(said.lines().collect::<Vec<_>>().join(" "), *expected, "{query}");
    }
}

#[test]
fn a_pattern_in_the_on_of_an_outer_join_drops_no_row() {
    check(&[
        ("SELECT name FROM person LEFT JOIN note ON name GLOB 'A*' ORDER BY 1", "Ada Bob Cyd"),
        ("SELECT name FROM person LEFT JOIN note ON name LIKE 'a%' ORDER BY 1", "Ada Bob Cyd"),
        (
            "SELECT name, text FROM note RIGHT JOIN person ON name GLOB 'A*' ORDER BY 1",
            "Ada|n Bob|null Cyd|null",
        ),
        ("SELECT name FROM person FULL JOIN note ON name GLOB 'A*' ORDER BY 1", "Ada Bob Cyd"),
        ("SELECT text, name FROM note LEFT JOIN person ON name GLOB 'B*'", "n|Bob"),
        (
            "SELECT name FROM person LEFT JOIN note ON name >= 'A' AND name < 'B' ORDER BY 1",
            "Ada Bob Cyd",
        ),
        (
            "SELECT name FROM person LEFT JOIN note ON name = 'Ada' WHERE text IS NULL ORDER BY 1",
            "Bob Cyd",
        ),
        ("SELECT name FROM person JOIN note ON name GLOB 'A*'", "Ada"),
    ]);
}

#[test]
fn texts_are_compared_with_numbers_as_texts_or_as_numbers() {
    check(&[
        ("SELECT code FROM stop WHERE code IN (SELECT code FROM ref) ORDER BY id", "9 09 9.0"),
        ("SELECT code FROM stop WHERE other IN (SELECT code FROM ref) ORDER BY id", "9 09 9.0"),
        ("SELECT code FROM stop WHERE code IN (SELECT f FROM ref) ORDER BY id", "9 09 9.0"),
        ("SELECT code FROM stop WHERE code IN (SELECT s FROM ref) ORDER BY id", "9"),
        ("SELECT code FROM stop WHERE code NOT IN (SELECT code FROM ref) ORDER BY id", ""),
        ("SELECT code FROM stop WHERE code IN (9, 10) ORDER BY id", "9"),
        ("SELECT code FROM stop WHERE code = 9 ORDER BY id", "9"),
        ("SELECT code FROM stop WHERE code = 9.0 ORDER BY id", "9.0"),
        ("SELECT s.code FROM stop s JOIN ref r ON s.code = r.code ORDER BY s.id", "9 09 9.0"),
        ("SELECT code FROM stop WHERE (code, other) IN (SELECT code, s FROM ref) ORDER BY id", "9"),
        ("SELECT code FROM ref WHERE id IN (SELECT '0' UNION SELECT '7')", "9"),
        ("SELECT code FROM ref WHERE f = '9' AND code = '9.0'", "9"),
    ]);
}

#[test]
fn a_text_is_more_than_a_number_of_a_column_without_a_type() {
    // SQLite makes a text of a number only for a comparison with no other column, and then the decimals decide.
    let values = "(SELECT value FROM t_blame WHERE id = 0)";
    check(&[
        ("SELECT d FROM price WHERE d >= 10 ORDER BY id", "10.00 12.50"),
        ("SELECT d FROM price WHERE d > (SELECT 10) ORDER BY id", "12.50"),
        ("SELECT d FROM price WHERE d > (SELECT v FROM t WHERE id = 0) ORDER BY id", "12.50"),
        (
            &format!("SELECT d FROM {values} a CROSS JOIN price ON d >= a.value ORDER BY id"),
            "-1.00 9.00 10.00 12.50",
        ),
        (
            &format!(
                "SELECT d FROM {values} a CROSS JOIN price ON d > a.value AND +d > a.value ORDER BY id"
            ),
            "-1.00 9.00 10.00 12.50",
        ),
        (&format!("SELECT d FROM {values} a CROSS JOIN price ON d < a.value"), ""),
        (&format!("SELECT d FROM {values} a CROSS JOIN price ON d = a.value"), ""),
        (
            &format!("SELECT name FROM {values} a CROSS JOIN person ON name > a.value ORDER BY id"),
            "Ada Bob Cyd",
        ),
    ]);
}

#[test]
fn texts_that_are_numbers_are_less_than_a_text_of_a_column_of_numbers() {
    let mut sql = build();
    let own = "CREATE TEMP TABLE own(k INTEGER, s TEXT); INSERT INTO own VALUES('!', '!')";
    assert_eq!(text(&mut sql, own), "");
    for (condition, expected) in [
        ("code < k", "'9'\n'09'\n'9.0'\n"),
        ("code <= k", "'9'\n'09'\n'9.0'\n"),
        ("code > k", ""),
        ("code < s", ""),
        ("code > s", "'9'\n'09'\n'9.0'\n"),
    ] {
        let query = format!("SELECT code FROM own CROSS JOIN stop ON {condition} ORDER BY id");
        assert_eq!(text(&mut sql, &query), expected, "{query}");
    }
    // A parameter is compared as a text, and narrows the search.
    let steps = |condition: &str, value: &dyn rusqlite::ToSql| {
        let query = format!("SELECT count(*) FROM {condition}");
        let mut statement = sql.inner().prepare(&query).unwrap();
        let found: i64 = statement.query_row([value], |row| row.get(0)).unwrap();
        (found, statement.get_status(rusqlite::StatementStatus::VmStep))
    };
    let (all, many) = steps("stop WHERE code < ?", &"A");
    let (none, few) = steps("stop WHERE code < ?", &"!");
    assert_eq!((all, none), (3, 0));
    assert!(few < many, "{few} steps for no row, {many} for all");
    let (some, few) = steps("price WHERE d > ?", &11);
    let (all, many) = steps("price WHERE d > ?", &-5);
    assert_eq!((some, all), (1, 4));
    assert!(few < many, "{few} steps for one row, {many} for all");
}

#[test]
fn the_row_of_a_function_and_a_condition_on_the_id_both_hold() {
    check(&[
        ("SELECT id FROM t_history(1) WHERE id = 2", ""),
        ("SELECT id FROM t_history(1) WHERE id IN (0, 2)", ""),
        ("SELECT id FROM t_history(1) WHERE id IN (0, 1)", "1 1"),
        ("SELECT t.id, h.id FROM t, t_history(t.id) h WHERE h.id = 2", "2|2"),
        ("SELECT t.id, h.id FROM t, t_history(t.id) h WHERE h.id IN (0, 2)", "0|0 2|2"),
        ("SELECT DISTINCT t.id, b.id FROM t, t_blame(t.id) b WHERE b.id = 2", "2|2"),
        ("SELECT t.id, h.id FROM t, t_history(t.id) h WHERE h.id = t.id AND t.id > 1", "2|2"),
        ("SELECT t.id, h.id FROM t JOIN t_history(1) h ON h.id = t.id", "1|1 1|1"),
        (
            "SELECT t.id, h.id FROM t LEFT JOIN t_history(1) h ON h.id = t.id ORDER BY 1",
            "0|null 1|1 1|1 2|null",
        ),
        ("SELECT id FROM t_history WHERE id = 1 AND id = 2", ""),
        ("SELECT id FROM t_history WHERE id = 1 AND id > 1", ""),
        ("SELECT id FROM t_history WHERE id = 2.0", "2"),
        ("SELECT id FROM t_history WHERE id = '2'", "2"),
        ("SELECT id FROM t_history WHERE id = '2.0'", "2"),
        ("SELECT id FROM t_history WHERE id = 2.5", ""),
        ("SELECT id FROM t_history WHERE id IN (2.0, 0) ORDER BY 1", "0 2"),
        ("SELECT id FROM t_history(2.0)", "2"),
        ("SELECT id FROM t_history('2')", "2"),
        ("SELECT id FROM t_history(NULL)", ""),
        ("SELECT id FROM t_history('x')", ""),
        ("SELECT id FROM t_blame WHERE id = 2.0", "2"),
        ("SELECT id FROM t WHERE id = 2.0", "2"),
        ("SELECT id FROM t_history WHERE txid = 3", "1"),
        ("SELECT id FROM t_history WHERE txid > 2.5", "1"),
        ("SELECT id FROM t_history WHERE txid < '3' AND id = 1", "1"),
        ("SELECT id FROM t_changes(2) WHERE id = 0", ""),
        ("SELECT id FROM t_changes(2) WHERE id = '1'", "1"),
        ("SELECT txid FROM annals_log WHERE txid = '3'", "3"),
        ("SELECT txid FROM annals_log WHERE txid IN (3.0, 9, 'x')", "3"),
        ("SELECT txid FROM annals_log WHERE txid > 2.5 AND txid < 1e9", "3"),
    ]);
}
