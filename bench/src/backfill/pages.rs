//! A database whose pages are made dirty in seconds.

use std::path::Path;
use std::time::{Duration, Instant};

use annals::reports::BackfillOutcome;
use annals::{BackfillMode, Backfilled, Level, Options};

use crate::engines::Failure;
use crate::figures::settle;
use crate::random::Random;

annals::schema!("benchmark.schema");

use benchmark::benchmark::{Columns, Id};

/// Rows of a transaction.
const AT_ONCE: u64 = 64 << 10;
/// How long a quarter of the names is: too long for a cell.
const LONG: usize = 40;
/// The bytes that a row takes: a number, the cell of a name, a share of the long ones.
const ROW: u64 = 8 + 16 + LONG as u64 / 4;
/// Rows whose numbers, or the cells of whose names, fill a page.
const NUMBERS: u64 = 2048;
const CELLS: u64 = 1024;

/// A database with as many rows as fill a given number of MiB.
pub(super) struct Pages {
    database: benchmark::Database,
    pub(super) rows: u64,
    random: Random,
}

/// Returns a number whose bytes are in no order, so that pages aren't compressed: what is measured is writing.
fn mixed(number: u64) -> u64 {
    (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns the name of a row of each transaction.
fn name(row: u64) -> String {
    let digits: String = (0..3).map(|part| format!("{:016x}", mixed(row * 3 + part))).collect();
    digits[..if row.is_multiple_of(4) { LONG } else { 10 }].to_owned()
}

impl Pages {
    /// Fills a new database in an existing folder: all of its pages are dirty.
    pub(super) fn fill(folder: &Path, mib: u64, options: &Options) -> Result<Self, Failure> {
        let rows = ((mib << 20) / ROW).next_multiple_of(NUMBERS);
        let pages = Self::open(folder, rows, options)?;
        let names: Vec<_> = (0..AT_ONCE).map(name).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        for first in (0..rows).step_by(usize::try_from(AT_ONCE)?) {
            let end = rows.min(first + AT_ONCE);
            let values: Vec<_> = (first..end).map(|row| mixed(row).cast_signed()).collect();
            let columns = Columns { name: &names[..values.len()], value: &values };
            pages.database.write(|tx| {
                tx.set_level(Level::Soft);
                Ok(tx.insert_vector(columns)?)
            })?;
        }
        Ok(pages)
    }

    /// Opens the database in a folder, with a given number of rows.
    pub(super) fn open(folder: &Path, rows: u64, options: &Options) -> Result<Self, Failure> {
        let database = benchmark::Database::open_with(folder.join("pages.annals"), options)?;
        Ok(Self { database, rows, random: Random::new(rows) })
    }

    /// Changes a row in randomly chosen pages of numbers and of cells, in one transaction.
    pub(super) fn touch(&mut self, one_of: u64) -> Result<(), Failure> {
        let Self { database, rows, random } = self;
        Ok(database.write(|tx| {
            tx.set_level(Level::Soft);
            let mut chosen = |first: u64, each: u64| {
                // An odd one, whose name was short before.
                let row = Id::from_u64(first + (random.below(each) | 1));
                (random.below(one_of) == 0).then_some(row)
            };
            for first in (0..*rows).step_by(1024) {
                if let Some(row) = chosen(first, CELLS) {
                    tx.edit(row)?.set_name("other")?;
                }
                if first % NUMBERS == 0
                    && let Some(row) = chosen(first, NUMBERS)
                {
                    tx.edit(row)?.set_value(-1)?;
                }
            }
            Ok(())
        })?)
    }

    /// Updates the image; returns its report, and the duration of the call. The journal is hard before, and no dirty
    /// pages are left.
    pub(super) fn backfill(&self, mode: BackfillMode) -> Result<(Backfilled, Duration), Failure> {
        self.database.hard_checkpoint()?;
        settle();
        self.backfill_now(mode)
    }

    /// Updates the image in the present state.
    pub(super) fn backfill_now(
        &self,
        mode: BackfillMode,
    ) -> Result<(Backfilled, Duration), Failure> {
        #[allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]
        let start = Instant::now();
        let report = self.database.backfill(mode)?;
        let took = start.elapsed();
        match report.outcome {
            BackfillOutcome::Advanced => Ok((report, took)),
            other => Err(format!("a backfill that should have advanced was {other:?}").into()),
        }
    }

    /// Updates one random row, in a separate transaction.
    pub(super) fn commit(&self, level: Level, random: &mut Random) -> Result<(), Failure> {
        let row = Id::from_u64(random.below(self.rows));
        Ok(self.database.write(|tx| {
            tx.set_level(level);
            tx.edit(row)?.set_value(7)?;
            Ok(())
        })?)
    }

    /// Closes.
    pub(super) fn close(self) -> Result<(), Failure> {
        Ok(self.database.close()?)
    }
}
