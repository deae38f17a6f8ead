//! Streams of Arrow's own format: what `Accept: application/vnd.apache.arrow.stream` means.

use std::io::{Read, Write};

use annals::Result;
use arrow_array::RecordBatchReader;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;

use crate::{Batches, from_arrow};

/// The media type of a stream.
pub const MEDIA_TYPE: &str = "application/vnd.apache.arrow.stream";

/// Writes batches as a stream; returns the number of rows.
///
/// # Errors
/// Those of the batches and of the writer.
pub fn write(batches: impl RecordBatchReader, out: impl Write) -> Result<u64> {
    let mut writer = StreamWriter::try_new(out, &batches.schema()).map_err(from_arrow)?;
    let mut rows = 0;
    for batch in batches {
        let batch = batch.map_err(from_arrow)?;
        rows += batch.num_rows() as u64;
        writer.write(&batch).map_err(from_arrow)?;
    }
    writer.finish().map_err(from_arrow)?;
    Ok(rows)
}

/// Reads a stream.
///
/// # Errors
/// `Invalid`: it isn't one.
pub fn read(input: impl Read + Send + 'static) -> Result<Batches> {
    Ok(Box::new(StreamReader::try_new(input, None).map_err(from_arrow)?))
}
