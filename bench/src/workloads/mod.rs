//! The workloads of the table: the work of each engine, in a separate process, and its required cost.
//!
//! A workload is a function that prepares, then runs [`Run::slices`](child::Run::slices), which does the measured
//! work in as many slices as the parent requests. Then it checks the result, and closes. Adding one is a file and an
//! entry in [`WORKLOADS`].

mod bulk;
mod child;
mod commits;
mod meter;
mod read;
mod scan;
mod table;
mod target;
mod turns;
mod update;

use crate::engines::{Engine, Failure, Shape};
use child::Run;
pub(crate) use child::Turn;
pub(crate) use table::{print_lines, print_tables};
use target::Target;
pub(crate) use turns::{Course, run};

/// Rows of the large tables, unless the command line says otherwise. All other counts are a share of them.
pub(crate) const ROWS: u64 = 10_000_000;

/// The work of an engine.
type Work = fn(&dyn Engine, &mut Run<'_>) -> Result<(), Failure>;

/// Other work, for comparison.
type Beside = fn(&mut Run<'_>) -> Result<(), Failure>;

/// One table of figures, and lines of that of the targets.
#[derive(Clone, Copy)]
pub(crate) struct Workload {
    /// Its name on the command line.
    pub(crate) key: &'static str,
    pub(crate) title: &'static str,
    /// The counted operation, and the unit of its time: `ns` or `us`.
    unit: (&'static str, &'static str),
    /// How many there are, of [`ROWS`].
    count: u64,
    /// How many are done before another engine continues; all at once if there is none.
    slice: Option<u64>,
    /// The existing table, with as many rows as a large one has.
    filled: Option<Shape>,
    /// The engines that take part, by their keys.
    engines: fn(&str) -> bool,
    work: Work,
    /// The other contestants: limits of the machine, and Annals in another state.
    beside: &'static [(&'static str, Beside)],
    targets: &'static [Target],
}

/// All workloads, in the order of the table.
const WORKLOADS: [&[Workload]; 5] =
    [bulk::WORKLOADS, commits::WORKLOADS, update::WORKLOADS, read::WORKLOADS, scan::WORKLOADS];

fn all() -> impl Iterator<Item = Workload> {
    WORKLOADS.into_iter().flatten().copied()
}

/// Returns what workloads are called on the command line.
pub(crate) fn keys() -> Vec<&'static str> {
    all().map(|workload| workload.key).collect()
}

fn named(key: &str) -> Result<Workload, Failure> {
    let found = all().find(|workload| workload.key == key);
    found.ok_or_else(|| format!("no workload is called {key}").into())
}

/// True if an engine is more than another way to open Annals.
fn is_engine(key: &str) -> bool {
    key != "replay"
}
