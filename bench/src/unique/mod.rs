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
use crate::random::Random;
use crate::scenario::{self, Peer, Scenario, keys_from};

/// How much is done.
#[derive(clap::Args)]
pub(crate) struct Names {
    /// How many strings.
    #[arg(long, default_value_t = 1_000_000, value_parser = engines::count())]
    pub(crate) rows: u64,
    /// The engines.
    #[arg(long, value_delimiter = ',', value_parser = keys_from("map"), default_values = keys_from("map"))]
    engines: Vec<String>,
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

fn create(peer: Peer, folder: &Path) -> Result<Box<dyn Table>, Failure> {
    Ok(match peer {
        Peer::Map => Box::<map::Map>::default(),
        Peer::Annals => Box::new(annals::Annals::create(folder)?),
        Peer::Sqlite => Box::new(sqlite::Sqlite::create(folder)?),
        Peer::Keys(kind) => Box::new(keys::Keys::create(kind, folder)?),
    })
}

/// Runs the scenario with all engines that are asked for.
pub(crate) fn run(work: &Names, turns: usize) -> Result<Vec<Figure>, Failure> {
    scenario::run(&mut Unique::new(work.rows)?, Peer::of(&work.engines), turns)
}

/// The names, and the expected result of every engine.
struct Unique {
    names: Vec<String>,
    shuffled: Vec<String>,
    /// The sum of all values.
    sum: i64,
    /// What [`in_order`] makes of the values in the order of the names.
    ordered: i64,
}

impl Unique {
    fn new(rows: u64) -> Result<Self, Failure> {
        let mut random = Random::new(16);
        let names: Vec<_> = (0..rows).map(|row| name(row, &mut random)).collect();
        let mut shuffled = names.clone();
        for end in (1..shuffled.len()).rev() {
            let other = random.below(end as u64 + 1);
            shuffled.swap(end, usize::try_from(other)?);
        }
        let mut values: Vec<_> = names.iter().zip(0..).collect();
        values.sort_unstable();
        let ordered = values.iter().fold(0, |sum, (_, value)| in_order(sum, *value));
        Ok(Self { names, shuffled, sum: (0..i64::try_from(rows)?).sum(), ordered })
    }
}

impl Scenario for Unique {
    type Contestant = Peer;

    fn work(&mut self, peer: Peer, folder: &Path, measured: &mut Measured) -> Result<(), Failure> {
        settle();
        let (count, name) = (self.names.len() as u64, peer.name());
        let mut table = create(peer, folder)?;
        let check = |found: i64, expected: i64| match found == expected {
            true => Ok(()),
            false => Err(Failure::from(format!("{name} found {found}, not {expected}"))),
        };
        let each = nanoseconds(count, || table.insert(&self.names))?;
        measured.add(name, ("unique strings: random inserts, one durable commit", "ns/row"), each);
        let each = nanoseconds(count, || check(table.find(&self.shuffled)?, self.sum))?;
        measured.add(name, ("unique strings: random lookups", "ns/lookup"), each);
        let each = nanoseconds(count, || check(table.scan()?, self.ordered))?;
        measured.add(name, ("unique strings: scan in their order", "ns/row"), each);
        table.close()
    }
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
    use crate::scenario::PEERS;

    #[test]
    fn a_name_that_is_there_is_refused() {
        for (key, peer) in PEERS {
            let folder = tempfile::tempdir().unwrap();
            let mut table = create(peer, folder.path()).unwrap();
            let names = ["one", "two"].map(str::to_owned);
            table.insert(&names).unwrap();
            assert!(table.insert(&names[1..]).is_err(), "{key}");
            assert!(table.find(&["three".to_owned()]).is_err(), "{key}");
        }
    }
}
