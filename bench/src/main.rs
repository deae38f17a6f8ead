//! Annals beside its peers: the same work, in the same run.
//!
//! Each engine is used as its own documentation recommends for speed at equal guarantees. Engines
//! take turns; what is printed is the median of all turns.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod annals_engine;
mod engine;
mod report;
mod sqlite_engine;
mod workload;

use clap::Parser;

/// Measures Annals beside its peers.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    /// Rows of the table.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// How often each engine has its turn; at least 5 for numbers to show.
    #[arg(long, default_value_t = 5)]
    turns: usize,
    /// Print a Markdown table instead of a JSON line for each figure.
    #[arg(long)]
    table: bool,
}

fn main() -> Result<(), engine::Failure> {
    let arguments = Arguments::parse();
    let figures = workload::run(arguments.rows, arguments.turns)?;
    if arguments.table {
        report::print_table(&figures, arguments.rows);
    } else {
        report::print_lines(&figures, arguments.rows);
    }
    Ok(())
}
