//! Parquet files, compressed with zstd.

use std::fs::File;
use std::io::Write;

use annals::{Error, ErrorKind, Result};
use arrow_array::RecordBatchReader;
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

/// Writes batches as a Parquet file; returns the number of rows. Memory: that of a row group, some 64 MiB.
///
/// # Errors
/// Those of the batches and of the writer.
pub fn write(batches: impl RecordBatchReader, out: impl Write + Send) -> Result<u64> {
    let compression = Compression::ZSTD(Default::default());
    let properties = WriterProperties::builder().set_compression(compression).build();
    let made = ArrowWriter::try_new(out, batches.schema(), Some(properties));
    let mut writer = made.map_err(from_parquet)?;
    let mut rows = 0;
    for batch in batches {
        let batch = batch.map_err(from_arrow)?;
        rows += batch.num_rows() as u64;
        writer.write(&batch).map_err(from_parquet)?;
        if writer.in_progress_size() > GROUP {
            writer.flush().map_err(from_parquet)?;
        }
    }
    writer.close().map_err(from_parquet)?;
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
