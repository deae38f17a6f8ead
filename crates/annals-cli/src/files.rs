//! Input files beside the database, plain or compressed, and facts of any file.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use annals::storage::{FileDirectory, Permissions};
use annals::{Error, ErrorKind, Result};
use flate2::bufread::MultiGzDecoder;
use indicatif::{ProgressBar, ProgressStyle};

/// Returns the permissions of a file, so that derived files get the same; `None` if the system has none.
pub(crate) fn permissions(path: &Path) -> Result<Option<Permissions>> {
    let found =
        FileDirectory::split(path).and_then(|(directory, name)| directory.permissions(&name));
    found.map_err(|error| cannot("look for", path, error))
}

/// True if a file is a journal, or a segment of one, perhaps a damaged or a compressed one: its contents may exist
/// nowhere else, so that no output ever replaces it.
pub(crate) fn holds_database(path: &Path) -> bool {
    match annals_tools::inspect_head(path) {
        Ok(_) => true,
        Err(error) => matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported),
    }
}

/// The most bytes of a text that an import keeps: as many as a string may have.
pub(crate) const LONGEST_TEXT: usize = 1 << 30;

/// Reads a whole text file, which must be UTF-8.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    let bytes = fs::read(path).map_err(|error| cannot("read", path, error))?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..valid).unwrap_or_default();
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        Error::invalid(format!("{}: line {line}: invalid UTF-8", path.display()))
    })
}

/// Opens a file for reading, decompressing it if it begins as gzip does. The bar moves with
/// the bytes read from disk.
pub(crate) fn open_input(path: &Path, bar: &ProgressBar) -> Result<Box<dyn BufRead>> {
    let file = open_plain(path)?;
    let mut plain = BufReader::with_capacity(1 << 16, bar.wrap_read(file));
    let start = plain.fill_buf().map_err(|error| cannot("read", path, error))?;
    if start.starts_with(&[0x1f, 0x8b]) {
        return Ok(Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(plain))));
    }
    Ok(Box::new(plain))
}

/// Opens a file for reading as it is.
pub(crate) fn open_plain(path: &Path) -> Result<File> {
    let file = open(path).map_err(|error| cannot("read", path, error))?;
    let metadata = file.metadata().map_err(|error| cannot("read", path, error))?;
    if metadata.is_dir() {
        return Err(Error::invalid(format!("{} is a directory, not a file", path.display())));
    }
    Ok(file)
}

/// Returns the length of a file as it is on disk, 0 if it has none.
pub(crate) fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Makes a progress bar for `total` bytes on standard error, hidden if that is no terminal.
pub(crate) fn progress(total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total);
    bar.set_style(style("{msg} {wide_bar} {bytes}/{total_bytes} {eta}"));
    bar
}

/// Returns how a bar looks.
pub(crate) fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[expect(
    clippy::disallowed_methods,
    reason = "these are inputs of the program, streamed; `storage` is for databases"
)]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Adds the failed operation and the file to an error.
pub(crate) fn cannot(what: &str, path: &Path, error: io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        _ => ErrorKind::Io,
    };
    Error::with_source(kind, format!("cannot {what} {}", path.display()), error)
}

/// Reads the next line into `line`, without its end; returns whether there was one.
pub(crate) fn read_line(
    input: &mut (impl BufRead + ?Sized),
    line: &mut Vec<u8>,
) -> io::Result<bool> {
    line.clear();
    if input.read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(true)
}
