//! Numbers of a `uint64` that SQLite's integers don't reach are right in expressions, or an error.

use annals::{Command, Database, FieldNumber, RowId, TableNumber, Type, ValueRef};
use annals_sql::{Connection, Format, Parameters, Render, SqlError, Value};

const TABLE: TableNumber = TableNumber(0);
/// The first number that is no integer of SQLite's, and the last that is one.
const FIRST: u64 = 1 << 63;
const LAST: u64 = FIRST - 1;
const VALUES: [u64; 4] = [5, LAST, FIRST, u64::MAX];

/// Returns a connection to a table with such numbers: `u`, and `i` with an index, are the same.
fn open() -> Connection {
    let db = Database::in_memory().unwrap();
    let mut tx = db.begin().unwrap();
    tx.apply_command(&Command::CreateTable { name: "t".to_owned() }).unwrap();
    for name in ["u", "i"] {
        let (name, ty) = (name.to_owned(), Type::UInt64);
        let add = Command::AddField { table: TABLE, name, ty, nullable: true, default: None };
        tx.apply_command(&add).unwrap();
    }
    let index = Command::CreateIndex {
        name: "t_by_i".to_owned(),
        table: TABLE,
        fields: vec![FieldNumber(1)],
        descending: Vec::new(),
        collated: Vec::new(),
        unique: false,
    };
    tx.apply_command(&index).unwrap();
    tx.commit().unwrap();
    for value in VALUES {
        db.write(|tx| tx.insert(TABLE, &[ValueRef::UInt64(value); 2])).unwrap();
    }
    db.write(|tx| tx.insert(TABLE, &[ValueRef::Null; 2])).unwrap();
    db.write(|tx| tx.update(TABLE, RowId(0), FieldNumber(0), ValueRef::UInt64(6))).unwrap();
    db.write(|tx| tx.update(TABLE, RowId(0), FieldNumber(0), ValueRef::UInt64(5))).unwrap();
    Connection::open(db).unwrap()
}

/// Returns the rows as a program gets them, or the error.
fn ask(sql: &mut Connection, query: &str, parameters: &Parameters) -> Result<String, SqlError> {
    let mut all = String::new();
    let take = |text: &mut String| {
        all.push_str(&std::mem::take(text));
        Ok(())
    };
    sql.run(query, parameters, &mut Render::new(Format::Csv, take))?;
    Ok(all.lines().skip(1).collect::<Vec<_>>().join(" "))
}

#[test]
fn expressions_have_large_numbers() {
    let mut sql = open();
    for (query, expected) in [
        (
            "SELECT i FROM t ORDER BY i",
            " 5 9223372036854775807 9223372036854775808 18446744073709551615",
        ),
        ("SELECT u FROM t ORDER BY u DESC LIMIT 2", "18446744073709551615 9223372036854775808"),
        ("SELECT max(u), min(u), count(DISTINCT u) FROM t", "18446744073709551615,5,4"),
        (
            "SELECT max(i) FROM t WHERE i < annals_uint64('18446744073709551615')",
            "9223372036854775808",
        ),
        ("SELECT coalesce(u, 0) FROM t WHERE id >= 3", "18446744073709551615 0"),
        ("SELECT value FROM t_blame(3) WHERE field = 'u'", "18446744073709551615"),
        ("SELECT new_u FROM t_history(2)", "9223372036854775808"),
        ("SELECT count(*) FROM t a JOIN t b ON a.u = b.u", "4"),
        ("SELECT count(*) FROM t a JOIN t b ON a.u = b.i", "4"),
        ("SELECT count(*) FROM t GROUP BY u", "1 1 1 1 1"),
        // As all numbers beyond its integers, they are floats where SQLite calculates.
        (
            "SELECT sum(u), total(u) FROM t WHERE id >= 2",
            "2.7670116110564327e19,2.7670116110564327e19",
        ),
        ("SELECT avg(u) FROM t WHERE id >= 2", "1.3835058055282164e19"),
        (
            "SELECT sum(u) OVER (ORDER BY id) FROM t WHERE id IN (2, 3)",
            "9.223372036854776e18 2.7670116110564327e19",
        ),
        (
            "SELECT u + 1, u * 2, -u, u / 2, abs(u) FROM t WHERE id = 3",
            "1.8446744073709552e19,3.6893488147419103e19,-1.8446744073709552e19,9.223372036854776e18,1.8446744073709552e19",
        ),
        (
            "SELECT CAST(u AS REAL), round(u), iif(u, 1, 0), NOT u FROM t WHERE id = 2",
            "9.223372036854776e18,9.223372036854776e18,1,0",
        ),
        ("SELECT annals_uint64(u) FROM t WHERE id = 2", "9223372036854775808"),
        ("SELECT u IS TRUE FROM t WHERE u", "1 1 1 1"),
    ] {
        let said = ask(&mut sql, query, &Parameters::None);
        assert_eq!(said.unwrap_or_else(|error| error.to_string()), expected, "{query}");
    }
}

#[test]
fn comparisons_with_floats_that_look_like_them_are_refused() {
    let mut sql = open();
    let large = "18446744073709551615";
    let listed = |value| Parameters::from([value]);
    for column in ["u", "i"] {
        for condition in [
            format!("{column} = {large}"),
            format!("{large} = {column}"),
            format!("{column} = '{large}'"),
            format!("{column} > 9223372036854775808"),
            format!("{column} BETWEEN 5 AND 1e19"),
            format!("{column} <> {large}"),
            format!("{column} IS NOT {large}"),
            format!("{column} IN ({large})"),
            format!("{column} IN (5, {large})"),
            format!("{column} IN (SELECT 1e19)"),
            format!("{column} < (SELECT 1e19)"),
            format!("id = 1 AND {column} = {large}"),
        ] {
            for table in ["t", "t_at(4)", "t_as_it_was(4)"] {
                let query = format!("SELECT id FROM {table} WHERE {condition}");
                let said = ask(&mut sql, &query, &Parameters::None).unwrap_err().to_string();
                assert!(said.contains("write annals_uint64("), "{query}: {said}");
                assert!(said.contains(&format!("`{column}`")), "{said}");
            }
        }
        for value in [Value::Real(1e19), Value::Text(large.to_owned())] {
            let query = format!("SELECT id FROM t WHERE {column} <= ?");
            let said = ask(&mut sql, &query, &listed(value)).unwrap_err().to_string();
            assert!(said.contains("write annals_uint64("), "{query}: {said}");
        }
        for values in ["SELECT 1e19 AS k", "SELECT 5 AS k UNION ALL SELECT 1e19"] {
            let query = format!("SELECT id FROM ({values}) o LEFT JOIN t ON {column} = o.k");
            let said = ask(&mut sql, &query, &Parameters::None).unwrap_err().to_string();
            assert!(said.contains("write annals_uint64("), "{query}: {said}");
        }
    }
    for query in [
        "SELECT id FROM t_history WHERE new_u = 18446744073709551615",
        "SELECT id FROM t_history(3) WHERE new_i > 1e19",
        "SELECT id FROM t_changes(2) WHERE old_u < 18446744073709551615",
    ] {
        let said = ask(&mut sql, query, &Parameters::None).unwrap_err().to_string();
        assert!(said.contains("write annals_uint64("), "{query}: {said}");
    }
}

#[test]
fn comparisons_with_other_numbers_are_right() {
    let mut sql = open();
    for column in ["u", "i"] {
        for (condition, expected) in [
            ("= annals_uint64('18446744073709551615')", "3"),
            ("IN (annals_uint64('9223372036854775808'), 5, NULL)", "0 2"),
            ("> 9223372036854775807", "2 3"),
            (">= 9223372036854775807", "1 2 3"),
            ("> 1e18", "1 2 3"),
            ("< 5.5", "0"),
            ("> -1e300", "0 1 2 3"),
            ("< annals_uint64('18446744073709551615')", "0 1 2"),
            ("IS NOT annals_uint64('9223372036854775808')", "0 1 3 4"),
        ] {
            let query = format!("SELECT id FROM t WHERE {column} {condition} ORDER BY id");
            let said = ask(&mut sql, &query, &Parameters::None);
            assert_eq!(said.unwrap_or_else(|error| error.to_string()), expected, "{query}");
        }
    }
}
