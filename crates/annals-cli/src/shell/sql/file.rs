//! Where answers go: to the output, or to a file, which appears when all is written.

use std::cell::RefCell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use annals::Result;
use annals_sql::Parameters;

use super::{Asking, Sink};
use crate::new_file::NewFile;
use crate::output::Output;

/// How answers are printed, and where.
#[derive(Debug)]
pub(crate) struct Printing {
    pub(crate) sink: Sink,
    /// The file of the next answer.
    pub(crate) once: Option<PathBuf>,
}

impl Printing {
    /// Asks, and prints the answers.
    pub(crate) fn ask(
        &mut self,
        asking: &mut Asking,
        sql: &str,
        parameters: &Parameters,
        output: &mut Output,
    ) -> Result<()> {
        let sink = self.sink;
        match self.once.take() {
            Some(path) => to_file(&path, sink, |file| asking.ask(sql, parameters, &sink, file)),
            None => asking.ask(sql, parameters, &sink, output),
        }
    }
}

/// A file that an output writes to and that is finished after it.
struct Shared(Rc<RefCell<Option<NewFile>>>);

impl Write for Shared {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().as_mut().map_or(Ok(data.len()), |file| file.write(data))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Passes an output to `run` that is a file; it replaces another one once all is written.
///
/// # Errors
/// Those of `run`; `Invalid`: no statement has an answer, and the format has no file without one; those of [`NewFile`].
pub(crate) fn to_file<T>(
    path: &Path,
    sink: Sink,
    run: impl FnOnce(&mut Output) -> Result<T>,
) -> Result<T> {
    let file = Rc::new(RefCell::new(Some(NewFile::create(path)?)));
    let mut output = Output::to_file(Shared(Rc::clone(&file)), path.display().to_string());
    let done = run(&mut output)?;
    sink.check(&output)?;
    output.flush()?;
    let file = file.borrow_mut().take();
    file.map_or(Ok(()), NewFile::finish)?;
    Ok(done)
}
