//! SQL over our tables, beside SQLite's own tables with the same rows: lookups by an index, a join with groups, a join
//! without any index. And what only ours have: the history of a row among many commits, and the difference of two moments
//! one row apart.

use std::path::Path;

use annals::{BackfillMode, Level};
use annals_sql::{Connection as Ours, Parameters};
use rusqlite::Connection;

use crate::engines::{self, Failure};
use crate::figures::{Figure, Measured, nanoseconds};
use crate::random::Random;

annals::schema!("sql.schema");

use sql::{city, halt, person, sale, trip};

/// The work.
#[derive(clap::Args)]
pub(crate) struct Work {
    /// Persons; there are as many sales, and a thousandth of cities.
    #[arg(long = "persons", default_value_t = 1_000_000, value_parser = engines::count())]
    pub(crate) rows: u64,
    /// Commits of one change each.
    #[arg(long, default_value_t = 1_000_000, value_parser = engines::count())]
    commits: u64,
}

/// Lookups of a turn.
const LOOKUPS: u64 = 20_000;
/// Questions about the past of a turn.
const QUESTIONS: u64 = 50;
/// Every so many commits change the same person.
const HOT: u64 = 10;

const LOOKUP: &str = "SELECT id, age FROM person WHERE name = ?";
const JOIN: &str = "SELECT c.name, count(*), sum(s.amount) FROM sale s JOIN person p ON p.id = s.person \
                    JOIN city c ON c.id = p.home GROUP BY c.id ORDER BY 3 DESC, 1";
const TRIPS: u64 = 1000;
const HALTS: u64 = 20_000;
const UNINDEXED: &str = "SELECT count(*), sum(h.place) FROM trip t JOIN halt h ON h.trip = t.code";
const TABLES: &str = "CREATE TABLE city(id INTEGER PRIMARY KEY, name TEXT); \
    CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT, home INTEGER, age INTEGER); \
    CREATE TABLE sale(id INTEGER PRIMARY KEY, person INTEGER, amount INTEGER); \
    CREATE TABLE trip(id INTEGER PRIMARY KEY, code TEXT, route TEXT); \
    CREATE TABLE halt(id INTEGER PRIMARY KEY, trip TEXT, place INTEGER);";
const INDEXES: &str = "CREATE UNIQUE INDEX c ON city(name); CREATE UNIQUE INDEX p ON person(name); \
    CREATE INDEX h ON person(home); CREATE INDEX s ON sale(person); ANALYZE;";

/// Runs the turns.
pub(crate) fn run(work: &Work, turns: usize) -> Result<Vec<Figure>, Failure> {
    let folder = tempfile::tempdir()?;
    let database = build(&folder.path().join("sql.annals"), work)?;
    let mut ours = Ours::open(annals::Database::clone(&database))?;
    let native = copy(&ours, &folder.path().join("sql.sqlite"))?;
    let mut measured = Measured::default();
    for _ in 0..turns {
        for (engine, connection) in [("Annals", ours.inner()), ("SQLite", &native)] {
            lookups(engine, connection, work.rows, &mut measured)?;
            let figure = "join of three tables, grouped";
            join(engine, connection, JOIN, figure, &mut measured)?;
            let figure = "join of 1,000 by 20,000 rows, no index";
            join(engine, connection, UNINDEXED, figure, &mut measured)?;
        }
        past(&mut ours, work, &mut measured)?;
    }
    drop(ours);
    database.close()?;
    Ok(measured.medians())
}

fn name(number: u64) -> String {
    format!("person {number:08}")
}

fn build(path: &Path, work: &Work) -> Result<sql::Database, Failure> {
    let database = sql::Database::open(path)?;
    let cities = (work.rows / 1000).max(1);
    let mut random = Random::new(3);
    database.write(|tx| {
        for number in 0..cities {
            tx.insert(city::New { name: &format!("city {number}") })?;
        }
        for number in 0..work.rows {
            let home = city::Id::from_u64(random.below(cities)).into();
            let age = i32::try_from(random.below(100)).unwrap_or(0);
            tx.insert(person::New { name: &name(number), home, age })?;
        }
        for _ in 0..work.rows {
            let person = person::Id::from_u64(random.below(work.rows)).into();
            let amount = i64::try_from(random.below(1000)).unwrap_or(0);
            tx.insert(sale::New { person, amount })?;
        }
        for number in 0..TRIPS {
            tx.insert(trip::New { code: &format!("T{number}"), route: "R" })?;
        }
        for number in 0..HALTS {
            let place = i32::try_from(number / TRIPS).unwrap_or(0);
            tx.insert(halt::New { trip: &format!("T{}", number % TRIPS), place })?;
        }
        Ok(())
    })?;
    for commit in 0..work.commits {
        // One person is changed ten times, evenly.
        let is_hot = commit % (work.commits / HOT).max(1) == 0;
        let id = if is_hot { 7 } else { random.below(work.rows) };
        // Another value each time: what changes nothing is no version.
        let age = i32::try_from(commit * 7919 % 1009).unwrap_or(0);
        database.write(|tx| {
            tx.set_level(Level::Soft);
            tx.edit(person::Id::from_u64(id))?.set_age(age)?;
            Ok(())
        })?;
    }
    database.backfill(BackfillMode::Full)?;
    Ok(database)
}

/// Copies the tables into a file of SQLite.
fn copy(ours: &Ours, path: &Path) -> Result<Connection, Failure> {
    let native = Connection::open(path)?;
    native.execute_batch("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; BEGIN")?;
    native.execute_batch(TABLES)?;
    for (table, places) in [
        ("city", "?,?"),
        ("person", "?,?,?,?"),
        ("sale", "?,?,?"),
        ("trip", "?,?,?"),
        ("halt", "?,?,?"),
    ] {
        let mut read = ours.inner().prepare(&format!("SELECT * FROM {table}"))?;
        let columns = read.column_count();
        let mut rows = read.query([])?;
        let mut insert = native.prepare(&format!("INSERT INTO {table} VALUES({places})"))?;
        while let Some(row) = rows.next()? {
            for place in 0..columns {
                insert.raw_bind_parameter(
                    place + 1,
                    rusqlite::types::ToSqlOutput::Borrowed(row.get_ref(place)?),
                )?;
            }
            insert.raw_execute()?;
        }
    }
    native.execute_batch(INDEXES)?;
    native.execute_batch("COMMIT")?;
    Ok(native)
}

fn lookups(
    engine: &'static str,
    connection: &Connection,
    rows: u64,
    measured: &mut Measured,
) -> Result<(), Failure> {
    let names: Vec<_> = (0..LOOKUPS).map(|number| name(number * 7919 % rows)).collect();
    let mut statement = connection.prepare(LOOKUP)?;
    let mut ask = || -> Result<(), Failure> {
        for name in &names {
            let age: i64 = statement.query_row([name], |row| row.get(1))?;
            std::hint::black_box(age);
        }
        Ok(())
    };
    let alone = nanoseconds(LOOKUPS, &mut ask)?;
    measured.add(engine, ("lookup by an index, a statement alone", "ns"), alone);
    connection.execute_batch("BEGIN")?;
    let together = nanoseconds(LOOKUPS, &mut ask)?;
    connection.execute_batch("COMMIT")?;
    measured.add(engine, ("lookup by an index, in a transaction", "ns"), together);
    Ok(())
}

fn join(
    engine: &'static str,
    connection: &Connection,
    query: &str,
    figure: &'static str,
    measured: &mut Measured,
) -> Result<(), Failure> {
    let mut statement = connection.prepare(query)?;
    let took = nanoseconds(1, || {
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            std::hint::black_box(row.get_ref(1)?);
        }
        Ok(())
    })?;
    measured.add(engine, (figure, "ms"), took / 1e6);
    Ok(())
}

fn past(ours: &mut Ours, work: &Work, measured: &mut Measured) -> Result<(), Failure> {
    let last = ours.snapshot()?.txid().0;
    let mut ask = |what, query: &dyn Fn(u64) -> String, rows: usize| -> Result<(), Failure> {
        let took = nanoseconds(QUESTIONS, || {
            for number in 0..QUESTIONS {
                let answer = ours.rows(&query(number), &Parameters::None)?;
                if answer.len() < rows {
                    return Err(format!("{what}: {} rows", answer.len()).into());
                }
            }
            Ok(())
        })?;
        measured.add("Annals", (what, "us"), took / 1e3);
        Ok(())
    };
    let hot = usize::try_from(HOT).unwrap_or(0);
    ask("history of a row, ten versions", &|_| "SELECT * FROM person_history(7)".to_owned(), hot)?;
    let moment =
        |number: u64| last - work.commits + 1 + number * (work.commits / (QUESTIONS + 1)).max(1);
    ask(
        "difference of two moments, a row apart",
        &|number| {
            let moment = moment(number);
            format!("SELECT * FROM person_changes({moment}, {})", moment + 1)
        },
        0,
    )?;
    ask(
        "a row at a moment, by its id",
        &|number| format!("SELECT age FROM person_at({}) WHERE id = 7", moment(number)),
        1,
    )?;
    ask(
        "the last ten transactions",
        &|_| "SELECT * FROM annals_log ORDER BY txid DESC LIMIT 10".to_owned(),
        10,
    )
}
