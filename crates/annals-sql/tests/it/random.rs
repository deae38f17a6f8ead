//! Random queries have the same answers from our tables as from SQLite's own with the same rows, in one connection.
//!
//! TigerBeetle found its wrong answers by several conditions at once, made at random: so are these.
//!
//! A query names a table as `@T@`: ours is `temp.T`, SQLite's is `main."T"`, also of `T_at(5)`. `«a|b»` is `a` over ours
//! and `b` over SQLite's.

use crate::shop::{NAMES, Random, World, line};
use annals_sql::{Connection, Parameters};

mod mixed;
use mixed::{Any, MOMENTS, Mixed, all};

/// The columns of a table, each with values to compare with.
struct Table {
    name: &'static str,
    columns: &'static [(&'static str, &'static [&'static str])],
}

const IDS: &[&str] = &["0", "3", "'4'", "17", "-1", "5.0", "2.5", "NULL", "'x'", "9999", "1e9"];
const INTEGERS: &[&str] =
    &["0", "5", "'7'", "-3", "12.5", "1e3", "NULL", "'abc'", "'8.5'", "x'05'"];
const DATES: &[&str] =
    &["'1990-01-03'", "'1990'", "'+12345-06-03'", "'-00044-03-03'", "'2024-05-01'", "1990", "NULL"];
const TABLES: [Table; 3] = [
    Table {
        name: "city",
        columns: &[
            ("id", IDS),
            ("name", &["'Ada1'", "'ada'", "'5'", "5", "'b'", "''", "NULL", "x'41'"]),
            ("size", &["'town'", "'village'", "'capital'", "'hamlet'", "1", "NULL"]),
            ("people", INTEGERS),
            ("area", &["0", "2.5", "-1", "'3'", "'NaN'", "1e9", "NULL"]),
            ("founded", DATES),
        ],
    },
    Table {
        name: "person",
        columns: &[
            ("id", IDS),
            ("name", &["'Ada'", "'ada'", "'5'", "5", "'b'", "''", "NULL"]),
            ("home", IDS),
            ("age", INTEGERS),
            ("balance", &["'5.00'", "'5'", "5", "-3.25", "'12.5'", "'x'", "NULL", "1e12"]),
            ("joined", &["1700000000000005", "1.7e15", "0", "'1700000000000007'", "NULL"]),
            (
                "big",
                &[
                    "5",
                    "annals_uint64('9223372036854775808')",
                    "x'8000000000000000'",
                    "1e19",
                    "x'00'",
                    "-1",
                    "NULL",
                ],
            ),
            ("active", &["0", "1", "2", "TRUE", "'1'", "NULL"]),
            ("photo", &["x'0102'", "x'00ff'", "'a'", "7", "NULL"]),
        ],
    },
    Table {
        name: "visit",
        columns: &[
            ("id", IDS),
            ("who", IDS),
            ("town", IDS),
            ("day", DATES),
            ("score", &["0.5", "0.1", "1", "'1.5'", "1e300", "NULL"]),
            ("code", &["'00000000-0c00-0000-0000-000000000000'", "'x'", "'0'", "3", "NULL"]),
        ],
    },
];

/// A query that is being made.
struct Query {
    tables: Vec<usize>,
    random: Random,
}

impl Query {
    fn table(&self, place: usize) -> &'static Table {
        &TABLES[self.tables[place]]
    }

    fn column(&mut self) -> (String, &'static [&'static str]) {
        let place = self.random.below(self.tables.len() as u64) as usize;
        let columns = self.table(place).columns;
        let (name, values) = self.random.one_of(columns);
        (format!("t{place}.{name}"), values)
    }

    fn condition(&mut self) -> String {
        let (column, values) = self.column();
        let value = self.random.one_of(values);
        let other = self.random.one_of(values);
        match self.random.below(14) {
            0..=3 => format!("{column} = {value}"),
            4 => format!("{column} > {value}"),
            5 => format!("{column} <= {value}"),
            6 => format!("{column} >= {value} AND {column} < {other}"),
            7 => format!("{column} BETWEEN {other} AND {value}"),
            8 => format!("{column} IN ({value}, {other}, {value})"),
            9 => format!("{column} IS {value}"),
            10 => format!("{column} IS NOT NULL"),
            11 => {
                let start = self.random.one_of(&NAMES).to_owned().replace('\'', "");
                let end = self.random.one_of(&["%", "_", "%a%", ""]);
                format!("{column} LIKE '{start}{end}'")
            }
            12 => {
                let start = self.random.one_of(&NAMES);
                format!("{column} GLOB '{start}{}'", self.random.one_of(&["*", "?", "", "[0-5]*"]))
            }
            _ => {
                let (second, _) = self.column();
                format!("{column} = {second}")
            }
        }
    }

    fn from(&mut self) -> String {
        let mut from = format!("@{}@ t0", self.table(0).name);
        for place in 1..self.tables.len() {
            let kind = self.random.one_of(&["JOIN", "LEFT JOIN"]);
            let on = match (self.table(place).name, self.table(place - 1).name) {
                ("city", "person") => format!("t{place}.id = t{}.home", place - 1),
                ("person", "city") => format!("t{place}.home = t{}.id", place - 1),
                ("person", "visit") => format!("t{place}.id = t{}.who", place - 1),
                ("visit", "person") => format!("t{place}.who = t{}.id", place - 1),
                ("visit", "city") => format!("t{place}.town = t{}.id", place - 1),
                ("city", "visit") => format!("t{place}.id = t{}.town", place - 1),
                _ => format!("t{place}.id = t{}.id", place - 1),
            };
            from.push_str(&format!(" {kind} @{}@ t{place} ON {on}", self.table(place).name));
        }
        from
    }

    fn filter(&mut self) -> String {
        let conditions: Vec<_> = (0..self.random.below(4)).map(|_| self.condition()).collect();
        let word = self.random.one_of(&[" AND ", " AND ", " OR "]);
        if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(word))
        }
    }

    /// Rows in an order that leaves nothing open.
    fn rows(&mut self) -> String {
        let (from, filter) = (self.from(), self.filter());
        let columns: Vec<_> = (0..1 + self.random.below(3)).map(|_| self.column().0).collect();
        let mut order: Vec<_> = (0..self.random.below(3))
            .map(|_| self.column().0 + self.random.one_of(&["", " DESC"]))
            .collect();
        order.extend(
            (0..self.tables.len())
                .map(|place| format!("t{place}.id{}", self.random.one_of(&["", " DESC"]))),
        );
        let limit = match self.random.below(3) {
            0 => format!(" LIMIT {} OFFSET {}", self.random.below(20), self.random.below(5)),
            _ => String::new(),
        };
        let ids: Vec<_> = (0..self.tables.len()).map(|place| format!("t{place}.id")).collect();
        let (columns, ids) = (columns.join(", "), ids.join(", "));
        format!("SELECT {ids}, {columns} FROM {from}{filter} ORDER BY {}{limit}", order.join(", "))
    }

    /// Groups, in any order.
    fn groups(&mut self) -> String {
        let (from, filter) = (self.from(), self.filter());
        let (by, counted) = (self.column().0, self.column().0);
        let (least, most) = (self.column().0, self.column().0);
        let having = self.random.one_of(&["", " HAVING count(*) > 1"]);
        format!(
            "SELECT {by}, count(*), count({counted}), count(DISTINCT {counted}), min({least}), max({most}), \
             sum(t0.id) FROM {from}{filter} GROUP BY {by}{having}"
        )
    }

    fn aggregate(&mut self) -> String {
        let (from, filter) = (self.from(), self.filter());
        let (least, most) = (self.column().0, self.column().0);
        format!("SELECT count(*), min({least}), max({most}), avg(t0.id) FROM {from}{filter}")
    }

    fn others(&mut self) -> String {
        let (column, _) = self.column();
        let (from, filter) = (self.from(), self.filter());
        match self.random.below(4) {
            0 => format!("SELECT DISTINCT {column} FROM {from}{filter}"),
            1 => format!(
                "SELECT t0.id FROM {from} WHERE t0.id IN (SELECT home FROM @person@ WHERE age > {}) ORDER BY 1",
                self.random.below(30)
            ),
            2 => format!(
                "SELECT id, (SELECT count(*) FROM @visit@ v WHERE v.who = p.id) FROM @person@ p ORDER BY age, id LIMIT {}",
                self.random.below(9)
            ),
            _ => format!(
                "SELECT {column} FROM {from}{filter} UNION SELECT name FROM @city@ ORDER BY 1"
            ),
        }
    }
}

/// Returns a query over our tables, or over SQLite's.
fn over(query: &str, is_ours: bool) -> String {
    let mut text = String::new();
    for (place, part) in query.split('@').enumerate() {
        match (place % 2, is_ours) {
            (0, _) => text.push_str(part),
            (_, true) => text.push_str(&format!("temp.{part}")),
            (_, false) => text.push_str(&format!("main.\"{part}\"")),
        }
    }
    while let (Some(start), Some(end)) = (text.find('«'), text.find('»')) {
        let (ours, native) = text[start + '«'.len_utf8()..end].split_once('|').unwrap();
        let chosen = if is_ours { ours } else { native }.to_owned();
        text.replace_range(start..end + '»'.len_utf8(), &chosen);
    }
    text
}

fn make(random: &mut Random, all: &[Any]) -> (String, bool) {
    if random.is(2) {
        let mut mixed = Mixed { all, random: random.clone() };
        let made = mixed.query();
        *random = mixed.random;
        return (made, false);
    }
    let count = random.one_of(&[1, 1, 1, 2, 2, 3]);
    let tables = (0..count).map(|_| random.below(3) as usize).collect();
    let mut query = Query { tables, random: random.clone() };
    let made = match query.random.below(8) {
        0..=3 => (query.rows(), true),
        4 | 5 => (query.groups(), false),
        6 => (query.aggregate(), true),
        _ => (query.others(), false),
    };
    *random = query.random;
    made
}

/// Stands for the plan of a query that is refused.
const REFUSED: &str = "refused";

/// Asks both kinds of tables; returns the number of rows, and our plan.
fn compare(sql: &mut Connection, query: &str, is_ordered: bool) -> (usize, String) {
    let [ours, native] = [true, false].map(|is_ours| over(query, is_ours));
    let mut ask = |query: &str| match sql.rows(query, &Parameters::None) {
        Ok(rows) => {
            let mut rows: Vec<_> = rows.iter().map(|row| line(row)).collect();
            if !is_ordered {
                rows.sort();
            }
            Ok(rows)
        }
        Err(error) => Err(error.to_string()),
    };
    let plan = ask(&format!("EXPLAIN QUERY PLAN {ours}")).unwrap_or_default().concat();
    match (ask(&ours), ask(&native)) {
        (Ok(ours), Ok(native)) if ours == native => (ours.len(), plan),
        (Err(_), Err(_)) => (0, plan),
        // Ours refuse what would compare numbers from 2^63 on wrongly.
        (Err(refused), _) if refused.contains("a float in SQLite, not a uint64") => {
            (0, REFUSED.to_owned())
        }
        (ours_said, native_said) => {
            panic!("{ours}\n{plan}ours:\n{ours_said:?}\n{native}\nnative:\n{native_said:?}")
        }
    }
}

#[test]
fn answers_are_those_of_sqlite() {
    let is_full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    let count = if is_full { 1_000_000 } else { 10_000 };
    let seed = std::env::var("ANNALS_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut sql = World::open(&MOMENTS);
    let (mut random, all) = (Random(seed.unwrap_or(11)), all());
    let (mut rows, mut planned, mut made_for, mut refused) = (0, 0, 0, 0);
    for number in 0..count {
        if number % 1000 == 0 {
            let setting = random.one_of(&["ON", "OFF"]);
            sql.inner().execute_batch(&format!("PRAGMA case_sensitive_like = {setting}")).unwrap();
        }
        let (query, is_ordered) = make(&mut random, &all);
        let (found, plan) = compare(&mut sql, &query, is_ordered);
        rows += found;
        planned += usize::from(plan.contains("_by_"));
        refused += usize::from(plan == REFUSED);
        made_for += usize::from(plan.contains("index for this statement"));
    }
    assert!(rows > count * 3, "the queries find something: {rows}");
    assert!(refused < count / 50, "few queries are refused: {refused}");
    assert!(planned > count / 8, "indexes are used: {planned}");
    assert!(made_for > count / 40, "indexes are made for statements: {made_for}");
}

/// Compares the queries in a file, one a line, as they are in this file's first lines.
#[test]
#[ignore = "compares the queries of the file ANNALS_TEST_QUERIES"]
fn answers_to_some_queries_are_those_of_sqlite() {
    let Ok(file) = std::env::var("ANNALS_TEST_QUERIES") else { return };
    let mut sql = World::open(&MOMENTS);
    for query in std::fs::read_to_string(file).unwrap().lines() {
        let [ours, native] = [true, false].map(|is_ours| over(query, is_ours));
        for query in [&ours, &native] {
            let plan = crate::shop::text(&mut sql, &format!("EXPLAIN QUERY PLAN {query}"));
            eprintln!("{query}\n{plan}{}", crate::shop::text(&mut sql, query));
        }
    }
}
