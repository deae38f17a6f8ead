//! A music shop like the database Chinook: seven queries in Annals and in SQLite, compared.
//!
//! `cargo run --release -p annals-music --example music` makes 200,000 rows, and prints the times of both.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "it shows times")]

mod data;
mod load;
mod queries;
mod sql;

use std::fmt::Debug;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use data::Shop;
use music::Snapshot;

annals::schema!("music.schema");

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// So many times Chinook's rows.
const SCALE: usize = 29;

/// The time of a query is the median of so many runs.
const RUNS: usize = 15;

struct Comparison {
    query: &'static str,
    annals: Duration,
    sqlite: Duration,
}

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let shop = Shop::generate(SCALE);
    let db = music::Database::open(folder.path().join("music.annals"))?;
    let mut sqlite = Connection::open(folder.path().join("music.sqlite"))?;
    let (annals_time, loaded) = time(|| load::into_annals(&shop, &db));
    loaded?;
    let (sqlite_time, loaded) = time(|| load::into_sqlite(&shop, &mut sqlite));
    loaded?;
    println!("{} rows, loaded in {annals_time:.1?}, by SQLite in {sqlite_time:.1?}\n", shop.rows());
    print(&compare_all(&db.read(), &sqlite, &shop, RUNS)?);
    Ok(db.close()?)
}

fn compare_all(
    now: &Snapshot,
    db: &Connection,
    shop: &Shop,
    runs: usize,
) -> Result<Vec<Comparison>> {
    macro_rules! compare {
        ($query:ident($($argument:expr),*)) => {
            compare(
                stringify!($query),
                runs,
                || queries::$query(now, $($argument),*),
                || sql::$query(db, $($argument),*),
            )?
        };
    }
    let artist = shop.artist_with_most_albums();
    Ok(vec![
        compare!(tracks_of_artist(artist)),
        compare!(revenue_by_genre()),
        compare!(best_artists()),
        compare!(search("fire")),
        compare!(page(37)),
        compare!(revenue_by_month_and_country()),
        compare!(long_albums(15)),
    ])
}

/// Runs a query in both, each time one after the other, and compares the results.
fn compare<T: PartialEq + Debug>(
    query: &'static str,
    runs: usize,
    annals: impl Fn() -> annals::Result<T>,
    sqlite: impl Fn() -> rusqlite::Result<T>,
) -> Result<Comparison> {
    let (mut annals_times, mut sqlite_times) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let (took, rows) = time(&annals);
        annals_times.push(took);
        let (took, expected) = time(&sqlite);
        sqlite_times.push(took);
        assert_eq!(rows?, expected?, "{query}");
    }
    Ok(Comparison { query, annals: median(annals_times), sqlite: median(sqlite_times) })
}

fn time<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn print(comparisons: &[Comparison]) {
    println!("{:<30} {:>9} {:>9} {:>15}", "", "Annals", "SQLite", "lines");
    let mut sums = (0, 0);
    for Comparison { query, annals, sqlite } in comparisons {
        let lines =
            (lines(include_str!("queries.rs"), query), lines(include_str!("sql.rs"), query));
        sums = (sums.0 + lines.0, sums.1 + lines.1);
        let [annals, sqlite] =
            [annals, sqlite].map(|time| format!("{:.2} ms", time.as_secs_f64() * 1e3));
        println!("{query:<30} {annals:>9} {sqlite:>9} {:>7} {:>7}", lines.0, lines.1);
    }
    println!("{:<50} {:>7} {:>7}", "", sums.0, sums.1);
}

/// Counts the lines of a function.
fn lines(source: &str, function: &str) -> usize {
    let begin = format!("fn {function}(");
    let from_there = source.lines().skip_while(|line| !line.contains(&begin));
    from_there.take_while(|line| *line != "}").count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_give_the_same_answers() -> Result<()> {
        let shop = Shop::generate(1);
        let db = music::Database::in_memory()?;
        let mut sqlite = Connection::open_in_memory()?;
        load::into_annals(&shop, &db)?;
        load::into_sqlite(&shop, &mut sqlite)?;
        let comparisons = compare_all(&db.read(), &sqlite, &shop, 1)?;
        assert_eq!(comparisons.len(), 7);
        Ok(())
    }

    #[test]
    fn the_shop_is_the_same_on_every_run() {
        let [one, other] = [(); 2].map(|()| Shop::generate(1));
        assert_eq!(one.rows(), other.rows());
        assert!(one.tracks.iter().zip(&other.tracks).all(|(a, b)| a.name == b.name));
    }
}
