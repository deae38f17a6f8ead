//! Files beside the database: plain or compressed inputs, and outputs that appear whole or not
//! at all.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use annals::storage::FileDirectory;
use annals::{Error, ErrorKind, Result};
use flate2::bufread::MultiGzDecoder;
use indicatif::{ProgressBar, ProgressStyle};

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

/// Gives the length of a file as it is on disk, 0 if it has none.
pub(crate) fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Makes a bar for `total` bytes on standard error; it is hidden if that is no terminal.
pub(crate) fn progress(total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total);
    bar.set_style(style("{msg} {wide_bar} {bytes}/{total_bytes} {eta}"));
    bar
}

/// Gives how a bar looks.
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

#[expect(clippy::disallowed_methods, reason = "this is no database")]
fn open_device(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new().write(true).open(path)
}

/// A file being written under a temporary name beside the one it will have. Dropped before
/// [`finish`](NewFile::finish), it is removed. A link stays one: the file that it leads to is
/// replaced. What is no file (a device, a pipe) is written to as it is.
pub(crate) struct NewFile {
    writer: Option<BufWriter<File>>,
    /// Where it is until it is whole; none if it is written where it is.
    temporary: Option<PathBuf>,
    target: PathBuf,
}

impl NewFile {
    /// Begins a file that will replace `target`, unless that is a database.
    pub(crate) fn create(target: &Path) -> Result<Self> {
        let present = fs::metadata(target).ok();
        if present.as_ref().is_some_and(fs::Metadata::is_dir) {
            let message = format!("{} is a directory, not a file", target.display());
            return Err(Error::invalid(message));
        }
        if present.as_ref().is_some_and(|present| !present.is_file()) {
            let file = open_device(target).map_err(|error| cannot("write", target, error))?;
            return Ok(Self { writer: buffered(file), temporary: None, target: target.to_owned() });
        }
        let target = match fs::read_link(target) {
            Ok(_) if present.is_some() => {
                fs::canonicalize(target).map_err(|error| cannot("write", target, error))?
            }
            Ok(link) => target.parent().unwrap_or(Path::new("")).join(link),
            Err(_) => target.to_owned(),
        };
        let name = target.file_name().ok_or_else(|| {
            Error::invalid(format!("{} is not the name of a file", target.display()))
        })?;
        if present.is_some() && holds_database(&target) {
            let message = format!("{}: it is a database; choose another name", target.display());
            return Err(Error::new(ErrorKind::InUse, message));
        }
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.tmp", std::process::id()));
        let temporary = target.with_file_name(hidden);
        let file = File::create(&temporary).map_err(|error| cannot("write", &target, error))?;
        Ok(Self { writer: buffered(file), temporary: Some(temporary), target })
    }

    /// Gives where it is until then, for what writes it by its path; none if the target is no file.
    #[cfg(feature = "sqlite")]
    pub(crate) fn path(&self) -> Option<&Path> {
        self.temporary.as_deref()
    }

    /// Brings everything to permanent storage.
    pub(crate) fn complete(&mut self) -> Result<()> {
        self.flush().map_err(|error| cannot("write", &self.target, error))?;
        match (&self.temporary, self.writer.take()) {
            (Some(_), Some(writer)) => writer.get_ref().sync_all(),
            _ => Ok(()),
        }
        .map_err(|error| cannot("write", &self.target, error))
    }

    /// Gives the file its name, once everything is on permanent storage.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.complete()?;
        let Some(temporary) = &self.temporary else { return Ok(()) };
        let named = fs::rename(temporary, &self.target).and_then(|()| {
            let (directory, _) = FileDirectory::split(&self.target)?;
            directory.flush()
        });
        named.map_err(|error| cannot("write", &self.target, error))
    }
}

/// Tells whether a file is a journal, or a segment of one, perhaps a damaged or a compressed one: what is in it may be
/// nowhere else, so that no output ever replaces it.
fn holds_database(path: &Path) -> bool {
    match annals::inspect_head(path) {
        Ok(_) => true,
        Err(error) => matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it is what the field holds")]
fn buffered(file: File) -> Option<BufWriter<File>> {
    Some(BufWriter::with_capacity(1 << 16, file))
}

impl Write for NewFile {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.writer.as_mut().map_or(Ok(data.len()), |writer| writer.write(data))
    }
    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), BufWriter::flush)
    }
}

impl Seek for NewFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.writer.as_mut().map_or(Ok(0), |writer| writer.seek(to))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // After `finish` the temporary name is gone, and there is nothing to remove.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Says what could not be done with which file.
pub(crate) fn cannot(what: &str, path: &Path, error: io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        _ => ErrorKind::Io,
    };
    Error::with_source(kind, format!("cannot {what} {}", path.display()), error)
}

/// Reads the next line into `line`, without its end; gives whether there was one.
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
