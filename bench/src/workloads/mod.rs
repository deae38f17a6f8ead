//! The workloads of the table: what each engine does, in a process of its own, and what that must cost.
//!
//! A workload is a function that makes ready, lets [`Run::slices`](child::Run::slices) do the measured work in
//! as many slices as the program that started it asks for, checks the result, and closes. Adding one is a file
//! and an entry in [`WORKLOADS`].

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

/// What an engine does.
type Work = fn(&dyn Engine, &mut Run<'_>) -> Result<(), Failure>;

/// What something else does, for comparison.
type Beside = fn(&mut Run<'_>) -> Result<(), Failure>;

/// One table of figures, and lines of that of the targets.
#[derive(Clone, Copy)]
pub(crate) struct Workload {
    /// What it is called on the command line.
    pub(crate) key: &'static str,
    pub(crate) title: &'static str,
    /// What is counted, and in what its time is told: `ns` or `us`.
    unit: (&'static str, &'static str),
    /// How many there are, of [`ROWS`].
    count: u64,
    /// How many are done before another engine continues; all at once if there is none.
    slice: Option<u64>,
    /// The table that is there before, of as many rows as there are in a large one.
    filled: Option<Shape>,
    /// The engines that take part, by their keys.
    engines: fn(&str) -> bool,
    work: Work,
    /// Who takes part beside the engines: limits of the machine, and Annals in another state.
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
