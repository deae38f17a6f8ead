//! Parquet and Arrow's streams: a file for each table, and a file with the schema beside them, as with CSV.

use std::path::Path;

use annals::{Blob, Error, ErrorKind, Result, RowId, Table, TableNumber, Value, ValueRef};
use annals_arrow::{Batches, Incoming, Options, Sink, TableBatches, from_arrow, ipc, parquet};
use arrow_array::RecordBatchReader as _;

use crate::exchange::arrival::Loading;
use crate::exchange::csv::Format;
use crate::files::cannot;
use crate::new_file::NewFile;
use crate::present::Present;
use crate::progress::Rows;

/// Parquet.
pub(crate) const PARQUET: Format = Format {
    ending: "parquet",
    write: |present, table, file, rows| {
        write(present, table, file, rows, |batches, file| parquet::write(batches, file))
    },
};

/// Streams of Arrow.
pub(crate) const ARROW: Format = Format {
    ending: "arrows",
    write: |present, table, file, rows| {
        write(present, table, file, rows, |batches, file| ipc::write(batches, file))
    },
};

fn write(
    present: &Present<'_>,
    table: &Table,
    file: &mut NewFile,
    rows: &mut Rows,
    how: impl FnOnce(Counting<'_>, &mut NewFile) -> Result<u64>,
) -> Result<()> {
    let Present::Committed(snapshot) = present else {
        return Err(Error::invalid("commit first: only what is committed is exported"));
    };
    let batches =
        TableBatches::range(snapshot, table.number, 0..u64::MAX, Options::for_transport())?;
    let path = file.target().display().to_string();
    how(Counting { batches, rows }, file).map(drop).map_err(|error| error.within(path))
}

/// Batches, counted for the progress bar.
struct Counting<'r> {
    batches: TableBatches,
    rows: &'r mut Rows,
}

impl Iterator for Counting<'_> {
    type Item = <TableBatches as Iterator>::Item;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batches.next();
        if let Some(Ok(batch)) = &batch {
            (0..batch.num_rows()).for_each(|_| self.rows.count());
        }
        batch
    }
}

impl arrow_array::RecordBatchReader for Counting<'_> {
    fn schema(&self) -> arrow_schema::SchemaRef {
        self.batches.columns()
    }
}

/// A file, and the table that its rows go to.
pub(crate) struct Source {
    table: TableNumber,
    shown: String,
    batches: Batches,
}

impl Source {
    /// Opens a file for a table.
    pub(crate) fn open(table: TableNumber, path: &Path, is_parquet: bool) -> Result<Self> {
        let shown = path.display().to_string();
        #[expect(
            clippy::disallowed_methods,
            reason = "it is a file of another program, not of a database"
        )]
        let file = std::fs::File::open(path).map_err(|error| cannot("open", path, error))?;
        let batches =
            if is_parquet { parquet::read(file) } else { ipc::read(std::io::BufReader::new(file)) };
        let batches = batches.map_err(|error| error.within(&shown))?;
        Ok(Self { table, shown, batches })
    }

    /// Inserts all rows.
    pub(crate) fn import(&mut self, loading: &mut Loading<'_>) -> Result<()> {
        let columns = self.batches.schema();
        let within = |error: Error| error.within(&self.shown);
        let incoming = Incoming::new(loading.schema(), self.table, &columns).map_err(within)?;
        let mut rows = Arriving { loading, table: self.table };
        for batch in &mut self.batches {
            let inserted = batch.map_err(from_arrow).and_then(|it| incoming.insert(&it, &mut rows));
            inserted.map_err(within)?;
        }
        Ok(())
    }
}

/// Passes rows on to the import.
struct Arriving<'l, 'db> {
    loading: &'l mut Loading<'db>,
    table: TableNumber,
}

impl Sink for Arriving<'_, '_> {
    fn insert(&mut self, id: Option<RowId>, values: &[ValueRef<'_>]) -> Result<()> {
        let values: Vec<Value> = values.iter().map(|value| value.to_value()).collect();
        self.loading.insert(self.table, id, &values)
    }

    fn write_blob(&mut self, bytes: &[u8]) -> Result<Blob> {
        self.loading.write_blob(bytes)
    }
}

/// Returns the error for files that have no schema.
pub(crate) fn no_schema(path: &Path) -> Error {
    let message = format!(
        "{}: there is no schema.annals beside the tables; say the --schema",
        path.display()
    );
    Error::new(ErrorKind::NotFound, message)
}
