//! Standard output: buffered, and every error of writing is one of the command.

use std::io::{self, BufWriter, StdoutLock, Write};

use annals::{Error, Result};

/// Standard output, held for the whole command.
pub(crate) struct Output(BufWriter<StdoutLock<'static>>);

impl Output {
    /// Takes standard output.
    pub(crate) fn new() -> Self {
        Self(BufWriter::with_capacity(1 << 16, io::stdout().lock()))
    }

    /// Writes text as it is.
    pub(crate) fn write(&mut self, text: &str) -> Result<()> {
        self.0.write_all(text.as_bytes()).map_err(cannot_write)
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, text: &str) -> Result<()> {
        self.write(text)?;
        self.write("\n")
    }

    /// Hands everything written so far to whoever reads it. The last call of every command: an
    /// error of a write that was buffered shows up only here.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.0.flush().map_err(cannot_write)
    }
}

fn cannot_write(error: io::Error) -> Error {
    Error::io("cannot write to standard output", error)
}
