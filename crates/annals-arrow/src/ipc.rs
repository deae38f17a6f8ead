//! Streams of Arrow's own format: what `Accept: application/vnd.apache.arrow.stream` means.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Write};

use annals::{Error, ErrorKind, Result};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::Schema;

use crate::{Batches, from_arrow};

/// The media type of a stream.
pub const MEDIA_TYPE: &str = "application/vnd.apache.arrow.stream";

/// Writes a stream batch by batch.
pub struct Writer<W: Write>(StreamWriter<W>);

impl<W: Write> std::fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl<W: Write> Writer<W> {
    /// Begins a stream with these columns.
    ///
    /// # Errors
    /// `Io`: those of the output.
    pub fn new(out: W, columns: &Schema) -> Result<Self> {
        StreamWriter::try_new(out, columns).map(Self).map_err(from_arrow)
    }

    /// Writes a batch.
    ///
    /// # Errors
    /// `Invalid`: it has other columns. `Io`: those of the output.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.write(batch).map_err(from_arrow)
    }

    /// Writes the end of the stream.
    ///
    /// # Errors
    /// `Io`: those of the output.
    pub fn finish(mut self) -> Result<()> {
        self.0.finish().map_err(from_arrow)
    }
}

/// Writes batches as a stream; returns the number of rows.
///
/// # Errors
/// Those of the batches and of the writer.
pub fn write(batches: impl RecordBatchReader, out: impl Write) -> Result<u64> {
    let mut writer = Writer::new(out, &batches.schema())?;
    let mut rows = 0;
    for batch in batches {
        let batch = batch.map_err(from_arrow)?;
        rows += batch.num_rows() as u64;
        writer.write(&batch)?;
    }
    writer.finish()?;
    Ok(rows)
}

/// The pieces of a stream: the first begins with the schema; each has a batch, and the last one the end. An error is the
/// last item. Memory: that of one batch, and its piece.
pub struct Pieces {
    batches: Batches,
    writer: Option<StreamWriter<Vec<u8>>>,
}

impl std::fmt::Debug for Pieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pieces").field("is_over", &self.writer.is_none()).finish_non_exhaustive()
    }
}

impl Pieces {
    /// Begins a stream.
    ///
    /// # Errors
    /// The schema of the batches can't be written.
    pub fn new(batches: impl RecordBatchReader + Send + 'static) -> Result<Self> {
        let writer = StreamWriter::try_new(Vec::new(), &batches.schema()).map_err(from_arrow)?;
        Ok(Self { batches: Box::new(batches), writer: Some(writer) })
    }
}

impl Iterator for Pieces {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut writer = self.writer.take()?;
        let batch = self.batches.next();
        let is_over = batch.is_none();
        let written = match batch {
            Some(batch) => batch.and_then(|batch| writer.write(&batch)),
            None => writer.finish(),
        };
        if let Err(error) = written {
            return Some(Err(from_arrow(error)));
        }
        let piece = std::mem::take(writer.get_mut());
        self.writer = (!is_over).then_some(writer);
        Some(Ok(piece))
    }
}

/// Reads a file of Arrow: one with the batches' places at its end, as Feather's second version is, or a stream.
///
/// # Errors
/// `Invalid`: it is neither; `Io`.
pub fn read_file(file: File) -> Result<Batches> {
    let mut input = BufReader::new(file);
    let start = input.fill_buf().map_err(|error| Error::io("cannot read", error))?;
    if start.starts_with(b"ARROW1") {
        return Ok(Box::new(FileReader::try_new(input, None).map_err(from_arrow)?));
    }
    if start.starts_with(b"FEA1") {
        let what = "it is of the first version of Feather; write it with the second, which is Arrow's format of files";
        return Err(Error::new(ErrorKind::Unsupported, what));
    }
    read(input)
}

/// Reads a stream.
///
/// # Errors
/// `Invalid`: it isn't one.
pub fn read(input: impl Read + Send + 'static) -> Result<Batches> {
    Ok(Box::new(StreamReader::try_new(input, None).map_err(from_arrow)?))
}
