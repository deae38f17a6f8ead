//! How costs grow as a table grows: the same work on tables of ten and a hundred times as many rows.
//!
//! One process fills each table, and another one reads it, with all of it in memory, and with memory for a part. The
//! machine's cost of the same is measured for comparison: reads of a `Vec` with as many rows, which need as many of
//! its caches, and reads of whole pages of a file in the page cache.

mod clocks;
mod deeds;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::engines;
use crate::engines::Failure;
use deeds::Deed;

/// The size of a row of the table in the store, in bytes.
const ROW: u64 = 24;

/// How large tables are made.
#[derive(clap::Args)]
pub(crate) struct Sizes {
    /// Rows of the tables.
    #[arg(long, value_delimiter = ',', value_parser = engines::count())]
    #[arg(default_value = "1000000,10000000,100000000")]
    rows: Vec<u64>,
    /// Random reads of each.
    #[arg(long, default_value_t = 1_000_000, value_parser = engines::count())]
    reads: u64,
    /// The part of the data that memory is sufficient for: the divisor.
    #[arg(long, default_value_t = 4, value_parser = engines::count())]
    part: u64,
}

/// The tasks of child processes.
#[derive(clap::Args)]
pub(crate) struct Grown {
    deed: Deed,
    #[command(flatten)]
    work: Work,
}

/// A deed's table.
#[derive(clap::Args, Clone)]
struct Work {
    folder: std::path::PathBuf,
    rows: u64,
    reads: u64,
    /// `Options::memory`; 0 leaves the default.
    memory: u64,
}

impl Grown {
    /// Does it, and prints the measurements.
    pub(crate) fn take(&self) -> Result<(), Failure> {
        for (what, value) in self.deed.run(&self.work)? {
            println!("{value} {what}");
        }
        Ok(())
    }
}

/// The measurements of one table, by their meaning.
type Measured = BTreeMap<String, f64>;

/// Makes the tables, one after the other, and prints what they cost.
pub(crate) fn run(sizes: &Sizes, table: bool) -> Result<(), Failure> {
    let mut columns = Vec::new();
    for &rows in &sizes.rows {
        let limited = rows * ROW / sizes.part;
        for memory in [0, limited] {
            let column = (rows, memory, measure(rows, memory, sizes.reads)?);
            if !table {
                print_lines(&column);
            }
            columns.push(column);
        }
    }
    if table {
        print_table(&columns);
    }
    Ok(())
}

fn measure(rows: u64, memory: u64, reads: u64) -> Result<Measured, Failure> {
    let folder = tempfile::tempdir()?;
    let work = Work { folder: folder.path().to_owned(), rows, reads, memory };
    let mut measured = Measured::new();
    for deed in [Deed::Fill, Deed::Look, Deed::Compare] {
        measured.extend(start(deed, &work)?);
    }
    Ok(measured)
}

/// Does it in a separate process, and returns the measurements.
fn start(deed: Deed, work: &Work) -> Result<Measured, Failure> {
    let Work { folder, rows, reads, memory } = work;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["grown", deed.name()]).arg(Path::new(folder));
    command.args([rows, reads, memory].map(u64::to_string));
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{} of {rows} rows: {}", deed.name(), output.status).into());
    }
    parse(&String::from_utf8(output.stdout)?)
}

fn parse(text: &str) -> Result<Measured, Failure> {
    let line = |line: &str| {
        let (value, what) = line.split_once(' ').ok_or("a line is no measurement")?;
        Ok((what.to_owned(), value.parse()?))
    };
    text.lines().map(line).collect()
}

type Column = (u64, u64, Measured);

fn print_lines((rows, memory, measured): &Column) {
    for (what, value) in measured {
        let limit = Some(memory).filter(|&&memory| memory > 0);
        let line = serde_json::json!({
            "rows": rows, "memory": limit, "what": what, "value": value
        });
        println!("{line}");
    }
}

/// Prints a line for each measurement, in the order of the deeds, and a column for each table.
fn print_table(columns: &[Column]) {
    print!("| |");
    for (rows, memory, _) in columns {
        match memory {
            0 => print!(" {} rows |", grouped(*rows)),
            _ => print!(" {} MiB for them |", memory.div_ceil(1 << 20)),
        }
    }
    println!("\n|---|{}", "---:|".repeat(columns.len()));
    for what in deeds::MEASUREMENTS {
        print!("| {what} |");
        for (_, _, measured) in columns {
            match measured.get(*what) {
                Some(value) => print!(" {} |", shown(*value)),
                None => print!(" |"),
            }
        }
        println!();
    }
}

fn shown(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Writes a number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_are_read_and_shown() {
        let measured = parse("12.5 read, ns\n3 open, us\n").unwrap();
        assert_eq!(measured.get("read, ns"), Some(&12.5));
        assert_eq!(measured.len(), 2);
        assert!(parse("many rows").is_err());
        assert!(parse("12").is_err());
        assert_eq!([1, 1000, 1_234_567].map(grouped), ["1", "1,000", "1,234,567"]);
        assert_eq!([9.96, 99.94, 123.4].map(shown), ["10.0", "99.9", "123"]);
    }
}
