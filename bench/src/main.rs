//! Annals beside its peers: the same work, in the same run.
//!
//! `commits` measures commits at other levels in very short turns, so that all see the same conditions. `open` times
//! openings, after a clean close and after a kill; `checkpoint` measures updating a table from its log. `backfill`
//! measures writing many pages to the image, `backfill-floor` to a bare file; `backfill-during` commits meanwhile.
//! `amplification` compares written with committed bytes; `size` measures a small database; `instructions` counts
//! those of each operation. `growth` shows how costs grow with a table, `larger` what one costs that is larger than
//! memory; `past` asks for histories, old rows and differences. `wide` measures rows of many fields with several
//! indexes, `unique` a unique index beside a map, `mixed` readers beside a writer, `sql` lookups, a join and the past in
//! SQL, `network` a server and its replicas, `lazy` replicas that fetch what they read, `log` a node of a shared log,
//! `explore` the explorer in a browser, `compile` the build time of a schema. Without one of them, the table of all
//! workloads is made, or of those after `--only`. Each engine is used as its own documentation recommends for speed at
//! equal guarantees. Engines take turns; what is printed is the median of all turns.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod amplification;
mod archive;
#[cfg(unix)]
mod backfill;
#[cfg(unix)]
mod backfill_floor;
mod checkpoint;
mod commits;
mod compile;
mod disk;
mod engines;
mod explore;
mod figures;
mod floor;
mod growth;
mod instructions;
mod keys;
mod larger;
mod lazy;
mod log;
mod measured;
mod memory;
mod mixed;
mod network;
mod opening;
mod past;
mod processor;
mod race;
mod random;
mod report;
mod scenario;
mod size;
mod sql;
mod unique;
mod wide;
mod workloads;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Measures Annals beside its peers.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    /// Rows of a large table; all other counts are a share of them.
    #[arg(long, default_value_t = workloads::ROWS, value_parser = engines::count())]
    rows: u64,
    /// Only these workloads.
    #[arg(long, value_delimiter = ',', value_parser = workloads::keys())]
    only: Vec<String>,
    /// Only these engines.
    #[arg(long, value_delimiter = ',', value_parser = engines::keys())]
    engines: Vec<String>,
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
    /// Commits at other levels, and of long rows, beside the disk's own floor.
    Commits {
        /// Only these races.
        #[arg(value_parser = commits::names())]
        races: Vec<String>,
    },
    /// Backfills of dirty pages, compared with the disk's rate for as many bytes.
    #[cfg(unix)]
    Backfill(backfill::Dirty),
    /// Commits of one update without and with a large backfill.
    #[cfg(unix)]
    BackfillDuring(backfill::during::Meanwhile),
    /// Bytes written for each byte of journal, with backfills in the background.
    Amplification(amplification::Growth),
    /// Pages written to free places of a file, by each engine, compared with the bare disk.
    #[cfg(unix)]
    BackfillFloor {
        /// How many MiB of pages.
        #[arg(default_value_t = 1024)]
        mib: u64,
    },
    /// Opening up to the first point read, after a clean close and after a kill.
    Open(opening::Course),
    /// Updating a table after random updates.
    Checkpoint(checkpoint::Work),
    /// The build time of a large schema, and its size in a program.
    Compile(compile::Size),
    /// The size of a small database on disk.
    Size(size::Small),
    /// Instructions that each operation takes, beside the accepted ones; fails if one takes more.
    Instructions(instructions::Count),
    /// Bulk work, openings, reads and scans of tables of 1, 10 and 100 million rows.
    Growth(growth::Sizes),
    /// A table larger than memory, with three indexes: its load, questions, memory and bytes.
    Larger(larger::Work),
    /// A unique index on random strings, beside an ordered map in memory.
    Unique(unique::Names),
    /// Readers beside a writer, in parts of what each does alone.
    Mixed(mixed::Work),
    /// A server and its replicas over loopback, beside the bare socket.
    Network(network::Load),
    /// A node of a shared log on three servers, beside bare appends.
    Log(log::Load),
    /// Questions to a lazy replica, through a link of a given rate.
    Lazy(lazy::Link),
    /// The explorer in a real browser, beside an empty page.
    Explore(explore::Looked),
    /// An archive in an S3 server on this machine, beside bare puts.
    Archive(archive::Load),
    /// SQL over tables of Annals and of SQLite, and of the past.
    Sql(sql::Work),
    /// Rows of twelve fields with long strings and three indexes.
    Wide(wide::Work),
    /// Histories, old rows, differences and undoing, beside SQLite with triggers and DoltLite.
    Past(past::Course),
    /// The tasks of child processes.
    #[command(hide = true)]
    Grown(growth::Grown),
    /// The tasks of child processes.
    #[command(hide = true)]
    LargerStep(larger::Step),
    /// The tasks of child processes.
    #[command(hide = true)]
    PastStep(past::Step),
    /// The tasks of child processes.
    #[command(hide = true)]
    Step(opening::Step),
    /// The tasks of processes under valgrind.
    #[command(hide = true)]
    Counted(instructions::Counted),
    /// Further tasks of child processes.
    #[command(hide = true)]
    Turn(workloads::Turn),
}

fn main() -> Result<(), engines::Failure> {
    let arguments = Arguments::parse();
    if let Some(folder) = &arguments.folder {
        tempfile::env::override_temp_dir(folder).map_err(|_| "the folder is set already")?;
    }
    let (turns, table) = (arguments.turns.max(1), arguments.table);
    let print = |figures: &[figures::Figure], rows: u64, title: &str| match table {
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
        #[cfg(unix)]
        Some(Part::BackfillFloor { mib }) => {
            let lines = backfill_floor::run(*mib, turns)?;
            match table {
                true => report::print_floors(&lines, *mib),
                false => report::print_floor_lines(&lines, *mib),
            }
        }
        Some(Part::Instructions(count)) => instructions::run(count, table)?,
        Some(Part::Counted(counted)) => counted.take()?,
        Some(Part::Growth(sizes)) => growth::run(sizes, table)?,
        Some(Part::Larger(work)) => larger::run(work, table)?,
        Some(Part::LargerStep(step)) => step.take()?,
        Some(Part::PastStep(step)) => step.take()?,
        Some(Part::Grown(grown)) => grown.take()?,
        Some(Part::Step(step)) => step.take()?,
        Some(Part::Turn(turn)) => turn.take()?,
        Some(part) => {
            let (figures, rows, title) = figures_of(part, turns)?;
            print(&figures, rows, &title);
        }
        None => {
            let Arguments { only, engines, rows, .. } = &arguments;
            let outcomes =
                workloads::run(&workloads::Course { only, engines, rows: *rows, turns })?;
            match table {
                true => workloads::print_tables(&outcomes, *rows, turns),
                false => workloads::print_lines(&outcomes, *rows),
            }
        }
    }
    Ok(())
}

/// Runs a part that returns figures; returns the number of rows, and its title, too.
fn figures_of(
    part: &Part,
    turns: usize,
) -> Result<(Vec<figures::Figure>, u64, String), engines::Failure> {
    Ok(match part {
        Part::Checkpoint(work) => {
            let (rows, changed) = (work.rows, work.changed);
            let title = format!("{changed} random updates of {rows} rows, then a checkpoint");
            (checkpoint::run(work, turns)?, rows, title)
        }
        #[cfg(unix)]
        Part::Backfill(dirty) => {
            let title = format!("Backfills of a database of {} MiB", dirty.mib);
            (backfill::run(dirty, turns)?, dirty.mib, title)
        }
        #[cfg(unix)]
        Part::BackfillDuring(meanwhile) => {
            let mib = meanwhile.mib;
            let title = format!("Commits of one update, and backfills of {mib} MiB");
            (backfill::during::run(meanwhile, turns)?, mib, title)
        }
        Part::Amplification(growth) => {
            let title = format!("{} rows, then {} updates", growth.rows, growth.updated);
            (amplification::run(growth)?, growth.rows, title)
        }
        Part::Size(small) => {
            let title = format!("{} rows with an index, each committed by itself", small.rows);
            (size::run(small)?, small.rows, title)
        }
        Part::Compile(size) => (compile::run(size, turns)?, size.tables(), size.title()),
        Part::Past(course) => (past::run(course, turns)?, course.rows, course.title()?),
        Part::Unique(work) => {
            let title = format!("A unique index on {} random strings", work.rows);
            (unique::run(work, turns)?, work.rows, title)
        }
        Part::Mixed(work) => {
            let title = format!("{} readers and a writer, {} rows", work.readers, work.rows);
            (mixed::run(work, turns)?, work.rows, title)
        }
        Part::Network(load) => {
            let title =
                format!("A journal of {} MiB, and {} transactions", load.mib, load.transactions);
            (network::run(load, turns)?, load.mib, title)
        }
        Part::Log(load) => {
            let title =
                format!("A shared log on three servers, {} transactions", load.transactions);
            (log::run(load, turns)?, load.transactions, title)
        }
        Part::Lazy(link) => {
            let title = format!(
                "Questions to a lazy replica of {} MiB through a link of {} MB/s",
                link.mib, link.rate
            );
            (lazy::run(link, turns)?, link.mib, title)
        }
        Part::Explore(looked) => {
            let title = format!("The explorer on a database of {} MiB", looked.mib);
            (explore::run(looked)?, looked.mib, title)
        }
        Part::Archive(load) => {
            let title = format!("An archive of a journal of {} MiB", load.mib);
            (archive::run(load, turns)?, load.mib, title)
        }
        Part::Sql(work) => {
            let title = format!("SQL over {} persons", work.rows);
            (sql::run(work, turns)?, work.rows, title)
        }
        Part::Wide(work) => {
            let title = format!("{} rows of twelve fields with three indexes", work.rows);
            (wide::run(work, turns)?, work.rows, title)
        }
        _ => return Err("this part prints more than figures".into()),
    })
}
