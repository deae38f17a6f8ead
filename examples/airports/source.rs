//! Where the data comes from: compressed CSV files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use indicatif::{ProgressBar, ProgressStyle};

use crate::Anything;

/// The fields of one row or change, as text.
pub(crate) trait Fields {
    /// Returns the text of a column; `None` if it isn't there.
    fn field(&self, column: &str) -> Option<&str>;
}

/// One row of a CSV file.
pub(crate) struct CsvRow<'a> {
    columns: &'a csv::StringRecord,
    row: &'a csv::StringRecord,
}

impl Fields for CsvRow<'_> {
    fn field(&self, column: &str) -> Option<&str> {
        let place = self.columns.iter().position(|name| name == column)?;
        self.row.get(place)
    }
}

/// The fields of a change: names and values in turn.
pub(crate) struct Pairs(csv::StringRecord);

impl Pairs {
    /// Returns the names of the fields.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().skip(CHANGE).step_by(2)
    }
}

impl Fields for Pairs {
    fn field(&self, column: &str) -> Option<&str> {
        let place = self.names().position(|name| name == column)?;
        self.0.get(CHANGE + place * 2 + 1)
    }
}

/// The columns of a change before its fields: when, which table, what, which row.
const CHANGE: usize = 4;

/// One change: an insert, update or delete.
pub(crate) struct Change {
    /// When it came in.
    pub(crate) at: String,
    /// The table.
    pub(crate) table: String,
    /// What was done.
    pub(crate) operation: String,
    /// The row.
    pub(crate) id: u64,
    /// The fields with their new values.
    pub(crate) fields: Pairs,
}

fn open(name: &str) -> Result<impl Read, Anything> {
    let path = folder().join(name);
    #[allow(clippy::disallowed_methods, reason = "an example reads its data as any program would")]
    let file = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(GzDecoder::new(file))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/ourairports")
}

/// Calls `each` with every row of a table on one day.
pub(crate) fn rows(
    day: &str,
    table: &str,
    mut each: impl FnMut(u64, &CsvRow<'_>) -> Result<(), Anything>,
) -> Result<(), Anything> {
    let name = format!("{day}/{}.csv.gz", table.replace('_', "-"));
    let mut reader = csv::Reader::from_reader(open(&name)?);
    let columns = reader.headers()?.clone();
    for row in reader.records() {
        let row = row?;
        let fields = CsvRow { columns: &columns, row: &row };
        let id = fields.field("id").ok_or_else(|| format!("{name}: no column id"))?.parse()?;
        each(id, &fields)?;
    }
    Ok(())
}

/// Reads all changes in order of time.
pub(crate) fn changes() -> Result<Vec<Change>, Anything> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(open("changes.csv.gz")?);
    let change = |row: csv::StringRecord| -> Result<Change, Anything> {
        let text = |place: usize| row.get(place).ok_or_else(|| format!("{row:?}: too few columns"));
        Ok(Change {
            at: text(0)?.to_owned(),
            table: text(1)?.replace('-', "_"),
            operation: text(2)?.to_owned(),
            id: text(3)?.parse()?,
            fields: Pairs(row),
        })
    };
    reader.records().map(|row| change(row?)).collect()
}

/// Makes a progress bar, which shows on a terminal only.
pub(crate) fn progress(len: usize, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(len as u64).with_message(what);
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    bar
}
