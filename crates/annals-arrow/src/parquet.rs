//! Parquet files: written with zstd, and read with each compression in use.

use std::fs::File;
use std::io::Write;

use annals::{Error, ErrorKind, Result};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::{Batches, from_arrow};

/// The bytes of values, about, after which a row group ends: what a reader holds at least.
const GROUP: usize = 64 << 20;

fn from_parquet(error: ParquetError) -> Error {
    match error {
        ParquetError::External(error) => match error.downcast::<arrow_schema::ArrowError>() {
            Ok(error) => from_arrow(*error),
            Err(error) => match error.downcast::<std::io::Error>() {
                Ok(error) => Error::io("the file", *error),
                Err(error) => Error::new(ErrorKind::Invalid, error.to_string()),
            },
        },
        error => Error::new(ErrorKind::Invalid, error.to_string()),
    }
}

/// Writes a Parquet file batch by batch. Memory: that of a row group, some 64 MiB.
pub struct Writer<W: Write + Send>(ArrowWriter<W>);

impl<W: Write + Send> std::fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl<W: Write + Send> Writer<W> {
    /// Begins a file with these columns.
    ///
    /// # Errors
    /// `Invalid`: Parquet doesn't have a column's type. `Io`: those of the output.
    pub fn new(out: W, columns: SchemaRef) -> Result<Self> {
        let compression = Compression::ZSTD(Default::default());
        let properties = WriterProperties::builder().set_compression(compression).build();
        ArrowWriter::try_new(out, columns, Some(properties)).map(Self).map_err(from_parquet)
    }

    /// Writes a batch.
    ///
    /// # Errors
    /// `Invalid`: it has other columns. `Io`: those of the output.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.write(batch).map_err(from_parquet)?;
        if self.0.in_progress_size() > GROUP {
            self.0.flush().map_err(from_parquet)?;
        }
        Ok(())
    }

    /// Writes the end of the file; without it the file can't be read.
    ///
    /// # Errors
    /// `Io`: those of the output.
    pub fn finish(self) -> Result<()> {
        self.0.close().map(drop).map_err(from_parquet)
    }
}

/// Writes batches as a Parquet file; returns the number of rows. Memory: that of a row group, some 64 MiB.
///
/// # Errors
/// Those of the batches and of the writer.
pub fn write(batches: impl RecordBatchReader, out: impl Write + Send) -> Result<u64> {
    let mut writer = Writer::new(out, batches.schema())?;
    let mut rows = 0;
    for batch in batches {
        let batch = batch.map_err(from_arrow)?;
        rows += batch.num_rows() as u64;
        writer.write(&batch)?;
    }
    writer.finish()?;
    Ok(rows)
}

/// Reads a Parquet file.
///
/// # Errors
/// `Invalid`: it isn't one.
pub fn read(file: File) -> Result<Batches> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(from_parquet)?;
    Ok(Box::new(builder.build().map_err(from_parquet)?))
}
