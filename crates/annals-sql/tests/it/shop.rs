//! A database of cities, persons and visits, with values of many kinds, and SQLite's own tables with the same rows.

use annals::{Date, FieldNumber, RowId, TableNumber, Timestamp, Uuid, ValueRef};
use annals_event::Event;
use annals_sql::{Connection, Parameters, Value};

annals::schema!("tests/it/shop.schema");
pub(crate) use shop::{city, person, visit};

/// Numbers that look random, the same in each run.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 16
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// One time in `times`.
    pub(crate) fn is(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// Names with both cases, signs of patterns, digits, and letters that aren't ASCII.
pub(crate) const NAMES: [&str; 14] =
    ["Ada", "ada", "ADA", "Adam", "Bob", "Bö", "b%b", "a_a", "5", "05", "", "Zoë", "zz", "Élan"];

pub(crate) fn build(cities: u64, persons: u64, visits: u64) -> shop::Database {
    let db = shop::Database::in_memory().unwrap();
    let mut random = Random(7);
    db.write(|tx| {
        for number in 0..cities {
            let sizes = [city::Size::Village, city::Size::Town, city::Size::Capital];
            let years = [-44, 0, 1066, 1989, 1990, 1990, 9999, 12_345];
            let founded = Date::new(random.one_of(&years), 1 + random.below(12) as u32, 3);
            tx.insert(city::New {
                name: &format!("{}{number}", random.one_of(&NAMES)),
                size: (!random.is(5)).then(|| random.one_of(&sizes)),
                people: (!random.is(4)).then(|| random.below(50) as i64 - 5),
                area: match random.below(6) {
                    0 => None,
                    1 => Some(f64::NAN),
                    2 => Some(-0.0),
                    _ => Some(random.below(40) as f64 / 4.0),
                },
                founded: founded.filter(|_| !random.is(5)),
            })?;
        }
        for _ in 0..persons {
            let home = random.below(cities + 3);
            let big = [0, 1, 5, 1 << 40, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX];
            tx.insert(person::New {
                name: random.one_of(&NAMES),
                home: (!random.is(6)).then_some(city::Id::from_u64(home)),
                age: (!random.is(5)).then(|| random.below(30) as i16),
                balance: (!random.is(5))
                    .then(|| annals::Decimal::from_units(random.below(3000) as i128 - 1000)),
                joined: (!random.is(5))
                    .then(|| Timestamp(1_700_000_000_000_000 + random.below(20) as i64)),
                big: (!random.is(5)).then(|| random.one_of(&big)),
                active: random.is(2),
                photo: (random.is(2)).then(|| &[[1_u8, 2], [0, 255]][random.below(2) as usize][..]),
            })?;
        }
        for _ in 0..visits {
            tx.insert(visit::New {
                who: (!random.is(9)).then_some(person::Id::from_u64(random.below(persons))),
                town: (!random.is(9)).then_some(city::Id::from_u64(random.below(cities))),
                day: Date::new(2024, 1 + random.below(12) as u32, 1 + random.below(28) as u32)
                    .unwrap(),
                score: (!random.is(4)).then(|| random.below(20) as f32 / 10.0),
                code: (!random.is(4)).then(|| Uuid::from_u128(u128::from(random.below(30)) << 90)),
            })?;
        }
        for id in (0..persons).step_by(7) {
            tx.delete(person::Id::from_u64(id))?;
        }
        Ok(())
    })
    .unwrap();
    db
}

pub(crate) fn open(db: &shop::Database) -> Connection {
    Connection::open(annals::Database::clone(db)).unwrap()
}

const TABLES: [(&str, &str, &[&str]); 3] = [
    (
        "city",
        "name TEXT, size TEXT COLLATE \"annals_enum(village,town,capital)\", people INT64, area FLOAT64, \
         founded TEXT COLLATE annals_date",
        &["(name)", "(size, people DESC)", "(founded)"],
    ),
    (
        "person",
        "name TEXT, home INTEGER, age INT16, balance TEXT COLLATE annals_decimal, \
         joined TIMESTAMP_MICROSECONDS, big UINT64, active BOOLEAN, photo BLOB",
        &["(name)", "(home, age)", "(age)", "(balance)", "(joined)", "(big)"],
    ),
    (
        "visit",
        "who INTEGER, town INTEGER, day TEXT COLLATE annals_date, score FLOAT32, code TEXT",
        &["(who)", "(town, day)", "(score DESC)", "(code)"],
    ),
];

/// Returns a connection in which SQLite's own tables have the same names and rows.
pub(crate) fn native(db: &shop::Database) -> Connection {
    let (mut ours, mut native) = (open(db), open(db));
    // Its tables are replaced by others of the same names.
    let none = None::<fn(rusqlite::hooks::AuthContext<'_>) -> rusqlite::hooks::Authorization>;
    native.inner_mut().authorizer(none).unwrap();
    for (table, columns, indexes) in TABLES {
        let rows = ours.rows(&format!("SELECT * FROM {table}"), &Parameters::None).unwrap();
        let sql = native.inner();
        sql.execute_batch(&format!(
            "DROP TABLE temp.{table}; CREATE TABLE main.{table}(id INTEGER PRIMARY KEY, {columns}); BEGIN"
        ))
        .unwrap();
        for (place, index) in indexes.iter().enumerate() {
            let index = format!("CREATE INDEX {table}_{place} ON {table}{index}");
            sql.execute_batch(&index).unwrap();
        }
        for row in rows {
            let places = vec!["?"; row.len()].join(",");
            let insert = format!("INSERT INTO {table} VALUES({places})");
            native.rows(&insert, &Parameters::Listed(row)).unwrap();
        }
        native.inner().execute_batch("COMMIT").unwrap();
    }
    native.inner().execute_batch("ANALYZE").unwrap();
    native
}

/// A database with a history, and SQLite's own tables with the same rows.
pub(crate) struct World;

impl World {
    /// Returns a connection with our tables in `temp`, and SQLite's own in `main`, also for the past of these moments.
    pub(crate) fn open(moments: &[u64]) -> Connection {
        let db = build(30, 80, 120);
        change(&db);
        let mut sql = open(&db);
        let none = None::<fn(rusqlite::hooks::AuthContext<'_>) -> rusqlite::hooks::Authorization>;
        sql.inner_mut().authorizer(none).unwrap();
        let run = |text: &str| {
            sql.inner().execute_batch(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        };
        // As a name of SQLite's own table, and as a table function of ours.
        let copy = |name: &str, columns: &str| {
            run(&format!(
                "CREATE TABLE main.\"{name}\"({columns}); INSERT INTO main.\"{name}\" SELECT * FROM temp.{name}"
            ));
        };
        run("BEGIN");
        copy(
            "annals_log",
            "txid INTEGER PRIMARY KEY, time TIMESTAMP_MICROSECONDS, comment TEXT, changes INTEGER",
        );
        for (table, columns, indexes) in TABLES {
            let rows = format!("id INTEGER PRIMARY KEY, {columns}");
            copy(table, &rows);
            for (place, index) in indexes.iter().enumerate() {
                run(&format!("CREATE INDEX main.{table}_{place} ON {table}{index}"));
            }
            run(&format!("CREATE TABLE main.{table}_at(id INTEGER, {columns}, annals_moment)"));
            for moment in moments {
                copy(&format!("{table}_at({moment})"), &rows);
                copy(&format!("{table}_as_it_was({moment})"), &rows);
                run(&format!(
                    "INSERT INTO main.{table}_at SELECT *, {moment} FROM temp.{table}_at({moment})"
                ));
            }
            let side = |side: &str| {
                columns.split(", ").map(|it| format!(", {side}_{it}")).collect::<String>()
            };
            let sides = side("old") + &side("new");
            let origin = "txid INTEGER, time TIMESTAMP_MICROSECONDS, comment TEXT, kind TEXT";
            copy(&format!("{table}_history"), &format!("id INTEGER, {origin}{sides}"));
            copy(&format!("{table}_changes(2, 7)"), &format!("id INTEGER, kind TEXT{sides}"));
            copy(&format!("{table}_blame"), &format!("id INTEGER, field TEXT, value, {origin}"));
        }
        run("COMMIT; ANALYZE");
        sql
    }
}

/// Changes, deletes and erases rows in several transactions.
fn change(db: &annals::Database) {
    let (city, person, visit) = (TableNumber(0), TableNumber(1), TableNumber(2));
    let mut random = Random(5);
    for number in 0..7 {
        let mut tx = db.begin().unwrap();
        for _ in 0..6 {
            let id = RowId(1 + random.below(79));
            let name = random.one_of(&NAMES);
            let age = ValueRef::Int16(random.below(40) as i16);
            // Deleted ones stay as they are.
            if db.read().table(person).unwrap().contains(id).unwrap() {
                tx.update(person, id, FieldNumber(0), ValueRef::String(name)).unwrap();
                tx.update(person, id, FieldNumber(2), age).unwrap();
            }
        }
        tx.delete(visit, RowId(number * 11)).unwrap();
        tx.update(city, RowId(number), FieldNumber(2), ValueRef::Null).unwrap();
        if number == 2 {
            for (table, id, field) in [
                (city, 3, 0),
                (city, 4, 0),
                (person, 15, 0),
                (person, 16, 0),
                (person, 17, 6),
                (person, 18, 6),
                (visit, 5, 2),
                (visit, 6, 2),
            ] {
                let value = ValueRef::Null;
                let event =
                    Event::Update { table, id: RowId(id), field: FieldNumber(field), value };
                tx.apply_erased(&event).unwrap();
            }
        }
        tx.commit().unwrap();
    }
}

/// Returns the rows of a query as text, one a line.
pub(crate) fn text(connection: &mut Connection, sql: &str) -> String {
    let rows = connection.rows(sql, &Parameters::None);
    match rows {
        Ok(rows) => rows.iter().map(|row| line(row)).collect(),
        Err(error) => format!("error: {error}\n"),
    }
}

pub(crate) fn line(row: &[Value]) -> String {
    let values = row.iter().map(|value| match value {
        Value::Null => "null".to_owned(),
        Value::Integer(value) => value.to_string(),
        Value::Real(value) => format!("{value:?}").replace("-0.0", "0.0"),
        Value::Text(value) => format!("'{value}'"),
        Value::Blob(value) => format!("{value:02x?}"),
    });
    values.collect::<Vec<_>>().join("|") + "\n"
}
