//! Annals beside its peers: the same work, in the same run.
//!
//! `commits` measures commits of one row in turns so short that all see the same minutes; `open` times
//! openings, after a clean close and after a kill; `checkpoint` what brings a table up to date with its
//! log; `backfill` what brings many pages to the image, `backfill-floor` to a file with nothing around it;
//! `backfill-during` commits meanwhile; `amplification` tells how much is written for what is committed;
//! `size` how small a small database is. Without one of them, the table of bulk work is made.
//! Each engine is used as its own documentation recommends for speed at equal guarantees. Engines take
//! turns; what is printed is the median of all turns.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod amplification;
#[cfg(unix)]
mod backfill;
#[cfg(unix)]
mod backfill_floor;
mod checkpoint;
mod commits;
mod compile;
mod disk;
mod engines;
mod floor;
mod keys;
mod mixed;
mod opening;
mod processor;
mod race;
mod random;
mod report;
mod size;
mod unique;
mod wide;
mod workload;

use std::path::PathBuf;

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
    /// Where the databases are made: on the disk that is to be measured. The folder for temporary files
    /// unless set.
    #[arg(long, global = true)]
    folder: Option<PathBuf>,
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
    /// Dirty pages brought to the image, beside what the disk does with as many bytes.
    #[cfg(unix)]
    Backfill(backfill::Dirty),
    /// Commits of one update without and with a large backfill.
    #[cfg(unix)]
    BackfillDuring(backfill::during::Meanwhile),
    /// Bytes written for each byte of journal, with the image brought forward in the background.
    Amplification(amplification::Growth),
    /// Pages brought to free places of a file, by each engine, beside what the disk does alone.
    #[cfg(unix)]
    BackfillFloor {
        /// How many MiB of pages.
        #[arg(default_value_t = 1024)]
        mib: u64,
    },
    /// Opening up to the first point read, after a clean close and after a kill.
    Open(opening::Course),
    /// What brings a table up to date after random updates.
    Checkpoint(checkpoint::Work),
    /// What a large schema adds to the time of a build, and to a program.
    Compile(compile::Size),
    /// What a small database takes on disk.
    Size(size::Small),
    /// A unique index on random strings, beside an ordered map in memory.
    Unique(unique::Names),
    /// Readers beside a writer, in parts of what each does alone.
    Mixed(mixed::Work),
    /// Rows of twelve fields with long strings and three indexes.
    Wide(wide::Work),
    /// What this program starts itself for.
    #[command(hide = true)]
    Step(opening::Step),
}

fn main() -> Result<(), engines::Failure> {
    let arguments = Arguments::parse();
    if let Some(folder) = &arguments.folder {
        tempfile::env::override_temp_dir(folder).map_err(|_| "the folder is set already")?;
    }
    let (turns, table) = (arguments.turns.max(1), arguments.table);
    let print = |figures: &[workload::Figure], rows: u64, title: &str| match table {
        true => report::print_table(figures, title),
        false => report::print_lines(figures, rows),
    };
    match &arguments.part {
        Some(Part::Commits { races }) => {
            let outcomes = commits::run(races, turns)?;
            match table {
                true => report::print_races(&outcomes),
                false => report::print_race_lines(&outcomes),
            }
        }
        Some(Part::Open(course)) => {
            for opened in opening::run(course, turns)? {
                print(&opened.figures, opened.rows, &opened.title);
            }
        }
        Some(Part::Checkpoint(work)) => {
            let (rows, changed) = (work.rows, work.changed);
            let title = format!("{changed} random updates of {rows} rows, then a checkpoint");
            print(&checkpoint::run(work, turns)?, rows, &title);
        }
        #[cfg(unix)]
        Some(Part::BackfillFloor { mib }) => {
            let lines = backfill_floor::run(*mib, turns)?;
            match table {
                true => report::print_floors(&lines, *mib),
                false => report::print_floor_lines(&lines, *mib),
            }
        }
        #[cfg(unix)]
        Some(Part::Backfill(dirty)) => {
            let title = format!("Backfills of a database of {} MiB", dirty.mib);
            print(&backfill::run(dirty, turns)?, dirty.mib, &title);
        }
        #[cfg(unix)]
        Some(Part::BackfillDuring(meanwhile)) => {
            let mib = meanwhile.mib;
            let title = format!("Commits of one update, and backfills of {mib} MiB");
            print(&backfill::during::run(meanwhile, turns)?, mib, &title);
        }
        Some(Part::Amplification(growth)) => {
            let title = format!("{} rows, then {} updates", growth.rows, growth.updated);
            print(&amplification::run(growth)?, growth.rows, &title);
        }
        Some(Part::Size(small)) => {
            let title = format!("{} rows with an index, each committed by itself", small.rows);
            print(&size::run(small)?, small.rows, &title);
        }
        Some(Part::Compile(size)) => {
            print(&compile::run(size, turns)?, size.tables(), &size.title());
        }
        Some(Part::Unique(work)) => {
            let title = format!("A unique index on {} random strings", work.rows);
            print(&unique::run(work, turns)?, work.rows, &title);
        }
        Some(Part::Wide(work)) => {
            let title = format!("{} rows of twelve fields with three indexes", work.rows);
            print(&wide::run(work, turns)?, work.rows, &title);
        }
        Some(Part::Mixed(work)) => {
            let title = format!("{} readers and a writer, {} rows", work.readers, work.rows);
            print(&mixed::run(work, turns)?, work.rows, &title);
        }
        Some(Part::Step(step)) => step.take()?,
        None => {
            let title = format!("{} rows of (\"TOTO\", i)", arguments.rows);
            print(&workload::run(arguments.rows, turns)?, arguments.rows, &title);
        }
    }
    Ok(())
}
