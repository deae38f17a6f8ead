//! Realistic rows: twelve fields of mixed types, strings of 4 to 200 bytes, three indexes (a unique one on a string,
//! one on a number, one on a string and a number). They are written at once, read by id with all fields, looked up by
//! each index, and changed one by one with soft commits: one field that is in no index; three, of which one is in an
//! index; all fields, those of the three indexes too.

mod annals;
mod encoding;
mod keys;
mod rows;
mod sqlite;

use std::path::Path;

use crate::disk;
use crate::engines::{self, Failure};
use crate::figures::{Figure, Measured, nanoseconds, settle};
use crate::processor;
use crate::random::Random;
use crate::scenario::{self, Peer, Scenario, keys_from};
use rows::{Fields, Row};

/// How much is done.
#[derive(clap::Args)]
pub(crate) struct Work {
    /// How many rows.
    #[arg(long, default_value_t = 200_000, value_parser = engines::count())]
    pub(crate) rows: u64,
    /// How many updates, each committed by itself.
    #[arg(long, default_value_t = 100_000, value_parser = engines::count())]
    updates: u64,
    /// The engines.
    #[arg(long, value_delimiter = ',', value_parser = keys_from("annals"), default_values = keys_from("annals"))]
    engines: Vec<String>,
}

/// A table of wide rows, whose ids begin at 0.
trait Table {
    /// Inserts rows after all others in one durable transaction.
    fn insert(&mut self, rows: &[Row]) -> Result<(), Failure>;

    /// Returns the sum of the digests of rows.
    fn read(&mut self, ids: &[u64]) -> Result<u64, Failure>;

    /// Returns the sum of the digests of the rows with these codes.
    fn by_code(&mut self, codes: &[&str]) -> Result<u64, Failure>;

    /// Returns the sum of the quantities of all rows of these levels.
    fn by_level(&mut self, levels: &[i32]) -> Result<i64, Failure>;

    /// Returns the sum of the quantities of all rows of these cities and years.
    fn by_city_and_year(&mut self, keys: &[(&str, i16)]) -> Result<i64, Failure>;

    /// Sets the quantities of rows, one a transaction, softly; `false` if there is no such level, and nothing
    /// was done.
    fn set_quantity(&mut self, changes: &[(u64, i64)]) -> Result<bool, Failure>;

    /// Sets the name, the level and the quantity of rows, one a transaction, softly; `false` as above.
    fn set_three(&mut self, changes: &[(u64, Row)]) -> Result<bool, Failure>;

    /// Sets all fields of rows, one a transaction, softly; `false` as above.
    fn set_all(&mut self, changes: &[(u64, Row)]) -> Result<bool, Failure>;

    /// Closes.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

fn create(peer: Peer, folder: &Path) -> Result<Box<dyn Table>, Failure> {
    Ok(match peer {
        Peer::Map => return Err("a map has no wide rows".into()),
        Peer::Annals => Box::new(annals::Annals::create(folder)?),
        Peer::Sqlite => Box::new(sqlite::Sqlite::create(folder)?),
        Peer::Keys(kind) => Box::new(keys::Keys::create(kind, folder)?),
    })
}

/// Runs the scenario with all engines that are asked for.
pub(crate) fn run(work: &Work, turns: usize) -> Result<Vec<Figure>, Failure> {
    let mut plan = Plan::new(work.rows, work.updates)?;
    scenario::run(&mut plan, Peer::of(&work.engines), turns)
}

impl Scenario for Plan {
    type Contestant = Peer;

    fn work(&mut self, peer: Peer, folder: &Path, measured: &mut Measured) -> Result<(), Failure> {
        let mut turn = Turn { peer, plan: self, measured };
        let table = turn.fill(folder)?;
        let table = turn.look(table)?;
        turn.change(table)
    }
}

/// The work, the same for all engines.
struct Plan {
    rows: Vec<Row>,
    ids: Vec<u64>,
    quantities: Vec<(u64, i64)>,
    threes: Vec<(u64, Row)>,
    changes: Vec<(u64, Row)>,
    /// The digests of all rows after all changes.
    end: u64,
}

impl Plan {
    fn new(rows: u64, updates: u64) -> Result<Self, Failure> {
        let mut random = Random::new(12);
        let of = |id| Row::new(id, 0, rows);
        let mut plan = Self {
            rows: (0..rows).map(of).collect(),
            ids: (0..rows).map(|_| random.below(rows)).collect(),
            quantities: Vec::new(),
            threes: Vec::new(),
            changes: Vec::new(),
            end: 0,
        };
        let mut state = plan.rows.clone();
        for version in 1..=u32::try_from(updates)? {
            plan.quantities.push((random.below(rows), version.into()));
            let id = random.below(rows);
            plan.threes.push((id, Row::new(id, version, rows)));
            let id = random.below(rows);
            plan.changes.push((id, Row::new(id, version, rows)));
        }
        let place = |id| usize::try_from(id);
        for &(id, quantity) in &plan.quantities {
            state[place(id)?].set_quantity(quantity);
        }
        for (id, row) in &plan.threes {
            state[place(*id)?].set_three(row);
        }
        for (id, row) in &plan.changes {
            state[place(*id)?] = row.clone();
        }
        plan.end = sum(state.iter().map(|row| row.fields().digest()));
        Ok(plan)
    }

    /// Returns the rows that are looked up, in their order.
    fn looked_up(&self) -> impl Iterator<Item = &Row> {
        self.ids.iter().filter_map(|&id| self.rows.get(usize::try_from(id).ok()?))
    }
}

/// One engine's turn.
struct Turn<'a> {
    peer: Peer,
    plan: &'a Plan,
    measured: &'a mut Measured,
}

impl Turn<'_> {
    fn add(&mut self, workload: &'static str, unit: &'static str, value: f64) {
        self.measured.add(self.peer.name(), (workload, unit), value);
    }

    fn check<T: PartialEq + std::fmt::Display>(
        &self,
        found: T,
        expected: T,
    ) -> Result<(), Failure> {
        match found == expected {
            true => Ok(()),
            false => Err(format!("{} found {found}, not {expected}", self.peer.name()).into()),
        }
    }

    fn fill(&mut self, folder: &Path) -> Result<Box<dyn Table>, Failure> {
        settle();
        let rows = &self.plan.rows;
        let mut table = create(self.peer, folder)?;
        let each = nanoseconds(rows.len() as u64, || table.insert(rows))?;
        self.add("wide rows: inserts, one durable commit", "ns/row", each);
        #[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
        let bytes = disk::length(folder)? as f64 / rows.len() as f64;
        self.add("wide rows: on disk after that, open", "bytes/row", bytes);
        Ok(table)
    }

    fn look(&mut self, mut table: Box<dyn Table>) -> Result<Box<dyn Table>, Failure> {
        let plan = self.plan;
        let ids = &plan.ids;
        let count = ids.len() as u64;
        let expected = sum(plan.looked_up().map(|row| row.fields().digest()));
        let each = nanoseconds(count, || self.check(table.read(ids)?, expected))?;
        self.add("wide rows: all fields by random id", "ns/read", each);

        let codes: Vec<_> = plan.looked_up().map(|row| row.fields().code).collect();
        let each = nanoseconds(count, || self.check(table.by_code(&codes)?, expected))?;
        self.add("wide rows: all fields by the unique index", "ns/lookup", each);

        // A tenth of as many: each finds about ten rows.
        let some = ids.len().div_ceil(10);
        let levels: Vec<_> = plan.looked_up().take(some).map(|row| row.fields().level).collect();
        let expected = of_each(&plan.rows, &levels, |row| row.level);
        let each = nanoseconds(some as u64, || self.check(table.by_level(&levels)?, expected))?;
        self.add("wide rows: about ten rows by the index of a number", "ns/lookup", each);

        let keys: Vec<_> =
            plan.looked_up().take(some).map(|row| (row.fields().city, row.fields().year)).collect();
        let expected = of_each(&plan.rows, &keys, |row| (row.city, row.year));
        let each =
            nanoseconds(some as u64, || self.check(table.by_city_and_year(&keys)?, expected))?;
        self.add("wide rows: about five rows by the index of two fields", "ns/lookup", each);
        Ok(table)
    }

    fn change(&mut self, mut table: Box<dyn Table>) -> Result<(), Failure> {
        let plan = self.plan;
        let one =
            self.soft("wide rows: soft commits of one field", plan.quantities.len(), || {
                table.set_quantity(&plan.quantities)
            })?;
        let three = self.soft(
            "wide rows: soft commits of three fields, one index changed",
            plan.threes.len(),
            || table.set_three(&plan.threes),
        )?;
        let all = self.soft(
            "wide rows: soft commits of all fields, three indexes changed",
            plan.changes.len(),
            || table.set_all(&plan.changes),
        )?;
        if one && three && all {
            let ids: Vec<_> = (0..plan.rows.len() as u64).collect();
            self.check(table.read(&ids)?, plan.end)?;
        }
        table.close()
    }

    /// Measures commits by the clock, and by what the processor did in all threads; returns whether the engine
    /// makes such.
    fn soft(
        &mut self,
        workload: &'static str,
        count: usize,
        work: impl FnOnce() -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        settle();
        let before = processor::of_process();
        let mut done = false;
        let each = nanoseconds(count as u64, || {
            done = work()?;
            Ok(())
        })?;
        if done {
            self.add(workload, "us/commit", each / 1e3);
            if let Some((before, after)) = before.zip(processor::of_process()) {
                #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
                let each = (after - before) * 1e6 / count as f64;
                self.add(workload, "us of processor time", each);
            }
        }
        Ok(done)
    }
}

fn sum(digests: impl Iterator<Item = u64>) -> u64 {
    digests.fold(0, u64::wrapping_add)
}

/// Returns the sum of the quantities of all rows with each of the keys.
fn of_each<'a, K: Ord>(rows: &'a [Row], keys: &[K], key: impl Fn(Fields<'a>) -> K) -> i64 {
    let mut sums = std::collections::BTreeMap::new();
    for row in rows {
        *sums.entry(key(row.fields())).or_insert(0) += row.fields().quantity;
    }
    keys.iter().filter_map(|key| sums.get(key)).sum()
}
