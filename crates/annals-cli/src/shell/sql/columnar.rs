//! Answers as Parquet or Arrow: binary, with types, and one for each output.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use annals::Result;
use annals_arrow::{Batches, from_arrow, ipc, parquet};
use annals_sql::{Answer, Columns, SqlError, ValueRef};
use arrow_array::{RecordBatch, RecordBatchReader as _};
use arrow_schema::SchemaRef;

use super::format::Format;
use crate::output::Output;

/// Bytes that a writer has made, and the output has not got yet.
#[derive(Clone, Default)]
struct Made(Arc<Mutex<Vec<u8>>>);

impl Made {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Made {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Writer {
    Parquet(parquet::Writer<Made>),
    Arrow(ipc::Writer<Made>),
}

/// Writes batches to the output.
struct File<'o> {
    output: &'o mut Output,
    format: Format,
    made: Made,
    writer: Option<Writer>,
}

impl<'o> File<'o> {
    fn new(format: Format, output: &'o mut Output) -> Self {
        Self { output, format, made: Made::default(), writer: None }
    }

    fn begin(&mut self) -> Result<()> {
        self.output.begin_binary(if self.format == Format::Parquet { "parquet" } else { "arrow" })
    }

    /// Writes batches; the first ones set the columns.
    fn write(&mut self, columns: &SchemaRef, batches: &[RecordBatch]) -> Result<()> {
        let made = || self.made.clone();
        if self.writer.is_none() {
            self.writer = Some(match self.format {
                Format::Parquet => {
                    Writer::Parquet(parquet::Writer::new(made(), Arc::clone(columns))?)
                }
                _ => Writer::Arrow(ipc::Writer::new(made(), columns)?),
            });
        }
        for batch in batches {
            match &mut self.writer {
                Some(Writer::Parquet(writer)) => writer.write(batch)?,
                Some(Writer::Arrow(writer)) => writer.write(batch)?,
                None => {}
            }
            self.output.write_bytes(&self.made.take())?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        match self.writer.take() {
            Some(Writer::Parquet(writer)) => writer.finish()?,
            Some(Writer::Arrow(writer)) => writer.finish()?,
            None => {}
        }
        self.output.write_bytes(&self.made.take())
    }
}

/// Writes the answer of a statement. Memory: that of the answer, unless all columns are those of tables: then of some batches.
pub(super) struct Columnar<'o> {
    file: File<'o>,
    columns: Columns,
}

impl<'o> Columnar<'o> {
    pub(super) fn new(format: Format, output: &'o mut Output) -> Self {
        Self { file: File::new(format, output), columns: Columns::new(u64::MAX) }
    }
}

impl Answer for Columnar<'_> {
    fn begin(&mut self, columns: &[(String, Option<String>)]) -> Result<(), SqlError> {
        self.file.begin()?;
        self.columns.begin(columns)
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        self.columns.row(values)?;
        let whole = self.columns.take_whole()?;
        if !whole.is_empty() {
            self.file.write(&self.columns.schema(), &whole)?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), SqlError> {
        let rest = self.columns.take_all()?;
        self.file.write(&self.columns.schema(), &rest)?;
        Ok(self.file.finish()?)
    }
}

/// Writes a stream of Arrow that a server answered with.
#[cfg(feature = "net")]
pub(super) fn write(format: Format, stream: Vec<u8>, output: &mut Output) -> Result<()> {
    let batches: Batches = ipc::read(io::Cursor::new(stream))
        .map_err(|error| error.within("the server's answer is no stream of Arrow"))?;
    let columns = batches.schema();
    let mut file = File::new(format, output);
    file.begin()?;
    file.write(&columns, &[])?;
    for batch in batches {
        file.write(&columns, &[batch.map_err(from_arrow)?])?;
    }
    file.finish()
}
