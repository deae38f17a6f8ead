//! What SQL says of a database, SQLite says of the file that `annals export sqlite` makes of it: random questions with
//! joins and aggregates. `annals-sql` compares types that the export has as plain texts.

use std::fmt::Write as _;
use std::path::Path;

use annals_sql::Parameters;
use rusqlite::types::Value;

use crate::program::succeed;
use crate::sql::rows;

/// Numbers that look random, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 16) % end
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }

    /// One of these texts, or `null` one time in five.
    fn or_null(&mut self, text: impl Into<String>) -> String {
        if self.below(5) == 0 { "null".to_owned() } else { text.into() }
    }
}

const SCHEMA: &str = "create_table city\nadd_field city name string\nadd_field city people int64 null\n\
    add_field city area float64 null\ncreate_unique_index city_by_name city name\n\
    create_table person\nadd_field person name string null\nadd_field person home references city\n\
    add_field person age int16 null\nadd_field person joined timestamp null\nadd_field person active bool\n\
    add_field person photo bytes null\ncreate_index person_by_name person name\n\
    create_index person_by_home person home,age\ncreate_index person_by_age person age desc\n\
    create_table visit\nadd_field visit who references person\nadd_field visit town references city\n\
    add_field visit score float32 null\nadd_field visit note json null\ncreate_index visit_by_who visit who\n\
    create_index visit_by_town visit town,score\ncreate_index visit_by_score visit score\n";

const NAMES: [&str; 9] = ["Ada", "ada", "Bö", "b%b", "a_a", "5", "", "Zoë", "it's"];

fn build(dir: &Path, random: &mut Random) {
    let mut script = SCHEMA.to_owned();
    for number in 0..30 {
        let name = random.one_of(&NAMES);
        let people = random.below(50).to_string();
        let area = format!("{:?}", random.below(40) as f64 / 4.0);
        let (people, area) = (random.or_null(people), random.or_null(area));
        writeln!(script, "insert city \"{name}{number}\" {people} {area}").unwrap();
    }
    for _ in 0..120 {
        let name = format!("\"{}\"", random.one_of(&NAMES));
        let (home, age) = (random.below(30).to_string(), random.below(30).to_string());
        let joined = format!("2024-01-{:02}T00:00:00Z", 1 + random.below(9));
        let active = random.one_of(&["true", "false"]);
        let photo = random.one_of(&["0x0102", "0x", "0xff"]);
        let line = [name, home, age, joined].map(|value| random.or_null(value)).join(" ");
        writeln!(script, "insert person {line} {active} {}", random.or_null(photo)).unwrap();
    }
    for _ in 0..300 {
        let (who, town) = (random.below(120).to_string(), random.below(30).to_string());
        let score = format!("{:?}", random.below(20) as f32 / 8.0);
        let note = random.one_of(&["\"{}\"", "\"[1,2]\"", "\"null\""]);
        let line = [who, town, score, note.to_owned()].map(|value| random.or_null(value)).join(" ");
        writeln!(script, "insert visit {line}").unwrap();
    }
    for id in (0..300).step_by(11) {
        writeln!(script, "delete_from visit {id}").unwrap();
    }
    succeed(dir, &["shell", "a.annals"], &script);
    succeed(dir, &["export", "sqlite", "a.annals", "a.sqlite"], "");
}

const CITY: &[&str] = &["id", "name", "people", "area"];
const PERSON: &[&str] = &["id", "name", "home", "age", "joined", "active", "photo"];
const VISIT: &[&str] = &["id", "who", "town", "score", "note"];
/// Ways through the tables, along references; `a`, `b`, `c` are their rows.
const FROM: [(&str, &[&[&str]]); 6] = [
    ("city a", &[CITY]),
    ("person a", &[PERSON]),
    ("visit a", &[VISIT]),
    ("person a JOIN city b ON b.id = a.home", &[PERSON, CITY]),
    ("city a LEFT JOIN person b ON b.home = a.id", &[CITY, PERSON]),
    (
        "visit a JOIN person b ON b.id = a.who LEFT JOIN city c ON c.id = a.town",
        &[VISIT, PERSON, CITY],
    ),
];
const VALUES: [&str; 14] = [
    "0",
    "3",
    "7",
    "12.5",
    "-1",
    "'Ada'",
    "'ada'",
    "'5'",
    "''",
    "x'0102'",
    "NULL",
    "1.75",
    "1704240000000000",
    "'x'",
];

fn column(random: &mut Random, tables: &[&[&str]]) -> String {
    let place = usize::try_from(random.below(tables.len() as u64)).unwrap();
    format!("{}.{}", ["a", "b", "c"][place], random.one_of(tables[place]))
}

fn condition(random: &mut Random, tables: &[&[&str]]) -> String {
    let (column, other) = (column(random, tables), column(random, tables));
    let (value, second) = (random.one_of(&VALUES), random.one_of(&VALUES));
    match random.below(10) {
        0..=2 => format!("{column} = {value}"),
        3 => format!("{column} > {value}"),
        4 => format!("{column} BETWEEN {value} AND {second}"),
        5 => format!("{column} IN ({value}, {second})"),
        6 => format!("{column} IS NOT {value}"),
        7 => format!("{column} LIKE '{}%'", random.one_of(&["a", "A", "b", "5", "", "Z"])),
        8 => format!("{column} < {other}"),
        _ => format!("NOT ({column} >= {value} OR {other} = {second})"),
    }
}

fn query(random: &mut Random) -> String {
    let (from, tables) = random.one_of(&FROM);
    let count = random.below(3);
    let conditions: Vec<_> = (0..count).map(|_| condition(random, tables)).collect();
    let filter = match conditions.is_empty() {
        true => String::new(),
        false => format!(" WHERE {}", conditions.join(random.one_of(&[" AND ", " OR "]))),
    };
    let mut some = || column(random, tables);
    let (first, second, third) = (some(), some(), some());
    match random.below(4) {
        0 => format!(
            "SELECT {first}, count(*), count(DISTINCT {second}), min({third}), max({second}), sum(a.id) \
             FROM {from}{filter} GROUP BY {first}"
        ),
        1 => {
            format!("SELECT count(*), avg(a.id), total({second}), max({third}) FROM {from}{filter}")
        }
        2 => format!("SELECT DISTINCT {first}, {second} FROM {from}{filter}"),
        _ => {
            let ids = ["a.id", "a.id, b.id", "a.id, b.id, c.id"][tables.len() - 1];
            let way = random.one_of(&["", " DESC"]);
            let limit = random.one_of(&["", " LIMIT 7 OFFSET 3"]);
            format!(
                "SELECT {ids}, {first}, {third} FROM {from}{filter} ORDER BY {second}{way}, {ids}{limit}"
            )
        }
    }
}

#[test]
fn answers_are_those_of_the_exported_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(5);
    build(dir.path(), &mut random);
    let reader = annals::Options::new().open_read_only(dir.path().join("a.annals")).unwrap();
    let mut ours = annals_sql::Connection::open(reader).unwrap();
    let theirs = rusqlite::Connection::open(dir.path().join("a.sqlite")).unwrap();
    let mut found = 0;
    for _ in 0..3000 {
        let query = query(&mut random);
        let said = ours.rows(&query, &Parameters::None);
        let mut said = said.unwrap_or_else(|error| panic!("{query}: {error}"));
        let mut expected: Vec<Vec<Value>> = rows(&theirs, &query);
        if !query.contains("ORDER BY") {
            let key = |row: &Vec<Value>| format!("{row:?}");
            said.sort_by_key(key);
            expected.sort_by_key(key);
        }
        found += said.len();
        assert_eq!(said, expected, "{query}");
    }
    assert!(found > 50_000, "the questions find something: {found}");
}
