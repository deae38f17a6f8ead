//! Annals beside its peers: the same work, in the same run.
//!
//! `commits` measures commits of one row in turns so short that all see the same minutes;
//! `backfill-floor` what brings many pages to the disk; without them, the table of bulk work is made. Each engine is used as its own documentation recommends for speed at equal guarantees. Engines
//! take turns; what is printed is the median of all turns.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod annals_engine;
#[cfg(unix)]
mod backfill_floor;
mod commits;
mod engine;
mod floor;
mod race;
mod report;
mod sqlite_engine;
mod workload;

use clap::{Parser, Subcommand};

/// Measures Annals beside its peers.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    /// Rows of the table.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// How often each engine has its turn; at least 5 for numbers to show.
    #[arg(long, default_value_t = 5, global = true)]
    turns: usize,
    /// Print a Markdown table instead of a JSON line for each figure.
    #[arg(long, global = true)]
    table: bool,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Subcommand)]
enum Part {
    /// Commits of one row: beside the disk's own floor, by several threads, beside SQLite.
    Commits {
        /// Only these races.
        #[arg(value_parser = commits::names())]
        races: Vec<String>,
    },
    /// Pages brought to free places of a file, by each engine, beside what the disk does alone.
    #[cfg(unix)]
    BackfillFloor {
        /// How many MiB of pages.
        #[arg(default_value_t = 1024)]
        mib: u64,
    },
}

fn main() -> Result<(), engine::Failure> {
    let arguments = Arguments::parse();
    match arguments.part {
        Some(Part::Commits { races }) => {
            let outcomes = commits::run(&races, arguments.turns)?;
            match arguments.table {
                true => report::print_races(&outcomes),
                false => report::print_race_lines(&outcomes),
            }
            return Ok(());
        }
        #[cfg(unix)]
        Some(Part::BackfillFloor { mib }) => {
            let lines = backfill_floor::run(mib, arguments.turns)?;
            match arguments.table {
                true => report::print_floors(&lines, mib),
                false => report::print_floor_lines(&lines, mib),
            }
            return Ok(());
        }
        None => {}
    }
    let figures = workload::run(arguments.rows, arguments.turns)?;
    if arguments.table {
        report::print_table(&figures, arguments.rows);
    } else {
        report::print_lines(&figures, arguments.rows);
    }
    Ok(())
}
