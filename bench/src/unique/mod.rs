//! A unique index on random strings of 16 letters: inserts in random order in one transaction, lookups of all
//! in another order, a scan in the order of the index; beside the ordered map of the standard library in
//! the same turn, which keeps nothing and is the limit.

mod annals;
mod keys;
mod map;
mod sqlite;

use std::path::Path;

use crate::engines::{self, Failure, in_order};
use crate::figures::{Figure, Measured, nanoseconds, settle};
use crate::keys::Kind;
use crate::random::Random;

/// How much is done.
#[derive(clap::Args)]
pub(crate) struct Names {
    /// How many strings.
    #[arg(long, default_value_t = 1_000_000, value_parser = engines::count())]
    pub(crate) rows: u64,
    /// The engines.
    #[arg(long, value_delimiter = ',', value_parser = ENGINES.map(|(key, _)| key),
        default_values = ENGINES.map(|(key, _)| key))]
    engines: Vec<String>,
}

const ENGINES: [(&str, Engine); 6] = [
    ("map", Engine::Map),
    ("annals", Engine::Annals),
    ("sqlite", Engine::Sqlite),
    ("lmdb", Engine::Keys(Kind::Lmdb)),
    ("redb", Engine::Keys(Kind::Redb)),
    ("fjall", Engine::Keys(Kind::Fjall)),
];

#[derive(Clone, Copy, Debug)]
enum Engine {
    Map,
    Annals,
    Sqlite,
    Keys(Kind),
}

/// A table of a name and a value, with a unique index on the name.
trait Table {
    /// Inserts a row for each name, whose value is its index, in one durable transaction.
    fn insert(&mut self, names: &[String]) -> Result<(), Failure>;

    /// Returns the sum of the values of the rows with these names.
    fn find(&mut self, names: &[String]) -> Result<i64, Failure>;

    /// Returns what [`in_order`] makes of all values in the order of the names.
    fn scan(&mut self) -> Result<i64, Failure>;

    /// Closes.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

impl Engine {
    const fn name(self) -> &'static str {
        match self {
            Self::Map => "BTreeMap<String, u64>",
            Self::Annals => "Annals",
            Self::Sqlite => "SQLite WAL",
            Self::Keys(kind) => kind.name(),
        }
    }

    fn create(self, folder: &Path) -> Result<Box<dyn Table>, Failure> {
        Ok(match self {
            Self::Map => Box::<map::Map>::default(),
            Self::Annals => Box::new(annals::Annals::create(folder)?),
            Self::Sqlite => Box::new(sqlite::Sqlite::create(folder)?),
            Self::Keys(kind) => Box::new(keys::Keys::create(kind, folder)?),
        })
    }
}

/// Runs the turns of all engines.
pub(crate) fn run(work: &Names, turns: usize) -> Result<Vec<Figure>, Failure> {
    let mut random = Random::new(16);
    let names: Vec<_> = (0..work.rows).map(|row| name(row, &mut random)).collect();
    let mut shuffled = names.clone();
    for end in (1..shuffled.len()).rev() {
        let other = random.below(end as u64 + 1);
        shuffled.swap(end, usize::try_from(other)?);
    }
    let mut ordered: Vec<_> = names.iter().zip(0..).collect();
    ordered.sort_unstable();
    let sums = Sums {
        all: (0..i64::try_from(work.rows)?).sum(),
        ordered: ordered.iter().fold(0, |sum, (_, value)| in_order(sum, *value)),
    };
    let all = tempfile::tempdir()?;
    let mut measured = Measured::default();
    for number in 0..turns {
        let mut engines: Vec<_> = ENGINES
            .into_iter()
            .filter(|(key, _)| work.engines.iter().any(|wanted| wanted == key))
            .map(|(_, engine)| engine)
            .collect();
        let begin = number % engines.len().max(1);
        engines.rotate_left(begin);
        for engine in engines {
            let folder = all.path().join(format!("{number} {}", engine.name()));
            std::fs::create_dir_all(&folder)?;
            turn(engine, (&names, &shuffled, &sums), &folder, &mut measured)?;
        }
    }
    Ok(measured.medians())
}

/// The expected result of every engine.
struct Sums {
    all: i64,
    ordered: i64,
}

fn turn(
    engine: Engine,
    (names, shuffled, sums): (&[String], &[String], &Sums),
    folder: &Path,
    measured: &mut Measured,
) -> Result<(), Failure> {
    settle();
    let (count, name) = (names.len() as u64, engine.name());
    let mut table = engine.create(folder)?;
    let check = |found: i64, expected: i64| match found == expected {
        true => Ok(()),
        false => Err(Failure::from(format!("{name} found {found}, not {expected}"))),
    };
    let each = nanoseconds(count, || table.insert(names))?;
    measured.add(name, ("unique strings: random inserts, one durable commit", "ns/row"), each);
    let each = nanoseconds(count, || check(table.find(shuffled)?, sums.all))?;
    measured.add(name, ("unique strings: random lookups", "ns/lookup"), each);
    let each = nanoseconds(count, || check(table.scan()?, sums.ordered))?;
    measured.add(name, ("unique strings: scan in their order", "ns/row"), each);
    table.close()
}

/// Makes the name of a row: 16 letters that look random, and that no other row has.
fn name(row: u64, random: &mut Random) -> String {
    // An odd factor maps the numbers of 32 bits one to one.
    let own = row.wrapping_mul(0x9E37_79B9) & 0xFFFF_FFFF;
    format!("{own:08x}{:08x}", random.below(1 << 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_there_is_refused() {
        for (key, engine) in ENGINES {
            let folder = tempfile::tempdir().unwrap();
            let mut table = engine.create(folder.path()).unwrap();
            let names = ["one", "two"].map(str::to_owned);
            table.insert(&names).unwrap();
            assert!(table.insert(&names[1..]).is_err(), "{key}");
            assert!(table.find(&["three".to_owned()]).is_err(), "{key}");
        }
    }
}
