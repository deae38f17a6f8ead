//! Parquet and Arrow's files: one for each table, and a file with the schema beside them, as with CSV.

use std::path::{Path, PathBuf};

use annals::{Blob, Command, Error, Result, RowId, Schema, Table, TableNumber, Value, ValueRef};
use annals_arrow::{
    Batches, Incoming, Options, Sink, TableBatches, are_ids, field_type_of, from_arrow, ipc,
    parquet,
};
use arrow_array::RecordBatchReader as _;
use arrow_schema::{DataType, Schema as Columns};

use crate::exchange::arrival::Loading;
use crate::exchange::csv::Format;
use crate::exchange::naming::Naming;
use crate::files::cannot;
use crate::new_file::NewFile;
use crate::notes::note;
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
    /// The columns, with the names of their fields.
    columns: Columns,
}

impl Source {
    /// Opens a file for a table.
    pub(crate) fn open(table: TableNumber, path: &Path, is_parquet: bool) -> Result<Self> {
        let batches = batches(path, is_parquet)?;
        let columns = Columns::clone(&batches.schema());
        Ok(Self { table, shown: path.display().to_string(), batches, columns })
    }

    /// Inserts all rows.
    pub(crate) fn import(&mut self, loading: &mut Loading<'_>) -> Result<()> {
        let within = |error: Error| error.within(&self.shown);
        let incoming = Incoming::new(loading.schema(), self.table, &self.columns);
        let mut incoming = incoming.map_err(within)?;
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

fn batches(path: &Path, is_parquet: bool) -> Result<Batches> {
    #[expect(
        clippy::disallowed_methods,
        reason = "it is a file of another program, not of a database"
    )]
    let file = std::fs::File::open(path).map_err(|error| cannot("open", path, error))?;
    let batches = if is_parquet { parquet::read(file) } else { ipc::read_file(file) };
    batches.map_err(|error| error.within(path.display()))
}

/// Returns a schema that holds all columns of files, and the files to be read with it. The column `id` is the id of the
/// row if all its values are ids and ascend.
pub(crate) fn infer(
    files: &[(String, PathBuf)],
    is_parquet: bool,
) -> Result<(Schema, Vec<Source>)> {
    let (mut schema, mut names, mut sources) = (Schema::default(), Naming::default(), Vec::new());
    for (table, (name, path)) in (0..).map(TableNumber).zip(files) {
        let within = |error: Error| error.within(path.display());
        let mut source = Source::open(table, path, is_parquet)?;
        let mut add = |command| {
            schema.apply(command).map_err(|error| within(Error::invalid(error.to_string())))
        };
        let name = names.take(name);
        add(Command::CreateTable { name: name.clone() })?;
        let (mut fields, mut columns) = (Naming::default(), Vec::new());
        for (place, column) in source.columns.fields().iter().enumerate() {
            let original = column.name();
            let ty = field_type_of(column).map_err(within)?;
            if original == "id" && column.data_type().is_integer() {
                if are_ids(batches(path, is_parquet)?, place).map_err(within)? {
                    columns.push(column.clone());
                    continue;
                }
                note(&format!(
                    "{}: column \"id\" holds no ascending ids: it is a field",
                    path.display()
                ));
            }
            let field = fields.take(original);
            if field != *original {
                note(&format!("{}: column {original:?} becomes {field}", path.display()));
            }
            if matches!(column.data_type(), DataType::Timestamp(_, None)) {
                let what = "has times without a zone: they are taken as those of UTC";
                note(&format!("{}: column {original:?} {what}", path.display()));
            }
            let key = if field == "id" { format!("{name}.id") } else { field.clone() };
            let nullable = column.is_nullable() || ty.is_always_nullable();
            columns.push(column.as_ref().clone().with_name(key).into());
            add(Command::AddField { table, name: field, ty, nullable, default: None })?;
        }
        source.columns = Columns::new(columns);
        sources.push(source);
    }
    Ok((schema, sources))
}
