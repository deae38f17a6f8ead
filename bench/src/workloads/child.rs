//! One turn of one contestant: this program, started by itself, which receives the number of operations through a
//! pipe.
//!
//! Its output: `ready` or `absent`; for each number that it reads, the nanoseconds of so many operations; after the
//! end of the numbers, a line of JSON with all figures and the sum of its table.

use std::io::{BufRead as _, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::meter::{Reading, Used};
use super::{Workload, named};
use crate::disk;
use crate::engines::{self, Engine, Failure, Table};
use crate::memory;

/// The output of a contestant that can't do it.
pub(super) const ABSENT: &str = "absent";
/// The output of a contestant that can begin.
pub(super) const READY: &str = "ready";

/// The turn of one contestant.
#[derive(clap::Args)]
pub(crate) struct Turn {
    workload: String,
    /// An engine, by its key, or another contestant, by name.
    contestant: String,
    folder: PathBuf,
    /// How many are done in all slices.
    count: u64,
    /// Rows of a large table.
    rows: u64,
}

impl Turn {
    /// Writes its arguments on a command line.
    pub(super) fn arguments(
        (workload, contestant): (&str, &str),
        folder: &Path,
        (count, rows): (u64, u64),
    ) -> [String; 6] {
        let folder = folder.to_string_lossy().into_owned();
        let own = [workload, contestant].map(str::to_owned);
        let [workload, contestant] = own;
        ["turn".to_owned(), workload, contestant, folder, count.to_string(), rows.to_string()]
    }

    /// Takes the turn.
    pub(crate) fn take(&self) -> Result<(), Failure> {
        let workload = named(&self.workload)?;
        let mut run = Run {
            folder: &self.folder,
            count: self.count,
            rows: self.rows,
            used: Used::default(),
            written: None,
            figures: Vec::new(),
            sum: None,
            is_absent: false,
        };
        let beside = workload.beside.iter().find(|(name, _)| *name == self.contestant);
        match beside {
            Some((_, work)) => work(&mut run)?,
            None => (workload.work)(engines::find(&self.contestant)?, &mut run)?,
        }
        if run.is_absent {
            println!("{ABSENT}");
        } else {
            println!("{}", run.told(&workload));
        }
        Ok(())
    }
}

/// The inputs of a workload.
pub(crate) struct Run<'a> {
    pub(crate) folder: &'a Path,
    /// How many are done in all slices.
    pub(crate) count: u64,
    /// Rows of a large table.
    pub(crate) rows: u64,
    used: Used,
    /// Bytes that were written before.
    written: Option<u64>,
    figures: Vec<Value>,
    sum: Option<i64>,
    is_absent: bool,
}

impl Run<'_> {
    /// Notes that this engine has no such call or level. Nothing else may follow.
    pub(crate) const fn absent(&mut self) {
        self.is_absent = true;
    }

    /// Does the measured work: the requested number at a time, numbered from 0 on.
    pub(crate) fn slices(
        &mut self,
        mut work: impl FnMut(Range<u64>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        memory::forget_peak();
        let before = memory::resident();
        self.written = disk::written();
        say(READY)?;
        let mut first = 0;
        for line in std::io::stdin().lock().lines() {
            let count: u64 = line?.parse()?;
            let reading = Reading::begin(self.folder);
            work(first..first + count)?;
            let used = reading.end(self.folder);
            first += count;
            self.add(used);
            say(&used.nanoseconds.to_string())?;
        }
        if first != self.count {
            return Err(format!("{first} were done, not {}", self.count).into());
        }
        if let Some(peak) = memory::peak() {
            self.figure("peak memory", "MiB", bytes(peak) / f64::from(1 << 20));
            let growth = peak.saturating_sub(before.unwrap_or(peak));
            self.each("memory beyond before", "B", bytes(growth));
        }
        Ok(())
    }

    fn add(&mut self, used: Used) {
        let sum = &mut self.used;
        sum.nanoseconds += used.nanoseconds;
        sum.cpu = used.cpu.map(|cpu| cpu + sum.cpu.unwrap_or(0.0));
        sum.flushes = used.flushes.map(|flushes| flushes + sum.flushes.unwrap_or(0));
    }

    /// Adds a figure.
    pub(crate) fn figure(&mut self, measure: &str, unit: &str, value: f64) {
        self.figures.push(json!({ "measure": measure, "unit": unit, "value": value }));
    }

    /// Adds a figure for each operation.
    fn each(&mut self, measure: &str, unit: &str, value: f64) {
        let each = value / bytes(self.count);
        self.figures.push(json!({ "measure": measure, "unit": unit, "each": true, "value": each }));
    }

    /// Adds the median and the 99th percentile of these times, in nanoseconds.
    pub(crate) fn percentiles(&mut self, mut times: Vec<f64>) {
        times.sort_by(f64::total_cmp);
        for (measure, hundredths) in [("median", 50), ("99th percentile", 99)] {
            let place = times.len() * hundredths / 100;
            let time = times.get(place.min(times.len().saturating_sub(1)));
            self.figure(measure, "us", time.map_or(f64::NAN, |time| time / 1e3));
        }
    }

    /// Reports what sum the work found, which must be the same for everybody.
    pub(crate) const fn check(&mut self, sum: i64) {
        self.sum = Some(sum);
    }

    /// Checks and closes a changed table, and reports its size.
    pub(crate) fn close(
        &mut self,
        engine: &dyn Engine,
        mut table: Box<dyn Table>,
    ) -> Result<(), Failure> {
        if let Some(memory) = table.memory() {
            self.each("store", "B", bytes(memory));
        }
        self.check(table.scan()?);
        table.close()?;
        self.written();
        self.each("on disk", "B", bytes(disk::allocated(self.folder)?));
        if let Some(tail) = engine.tail(self.folder)? {
            self.each("journal", "B", bytes(tail.end));
        }
        Ok(())
    }

    /// Reports what has been written since the work began, the end included.
    pub(crate) fn written(&mut self) {
        if let Some((after, before)) = disk::written().zip(self.written) {
            self.each("written", "B", bytes(after - before));
        }
    }

    fn told(&self, workload: &Workload) -> Value {
        let divisor = if workload.unit.1 == "us" { 1e3 } else { 1.0 };
        let count = bytes(self.count);
        let time = |measure, nanoseconds: f64| {
            let value = nanoseconds / count / divisor;
            json!({ "measure": measure, "unit": workload.unit.1, "each": true, "value": value })
        };
        let mut figures = vec![time("time", self.used.nanoseconds)];
        figures.extend(self.used.cpu.map(|cpu| time("CPU", cpu)));
        if let Some(flushes) = self.used.flushes {
            figures.push(json!({ "measure": "flushes", "unit": "", "value": flushes }));
        }
        figures.extend(self.figures.iter().cloned());
        json!({ "figures": figures, "sum": self.sum })
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
const fn bytes(count: u64) -> f64 {
    count as f64
}

fn say(text: &str) -> Result<(), Failure> {
    println!("{text}");
    Ok(std::io::stdout().flush()?)
}
