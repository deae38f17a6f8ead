//! Outputs: files that appear whole or not at all, in place of others but never of a database.
//!
//! ```text
//! 1. create .annals-ID.tmp beside the target, exclusively, with its permissions
//! 2. write it, flush it
//! 3. see again that no database is replaced; rename it to the target; flush the directory
//! ```

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use annals::storage::{Clock as _, Directory, FileDirectory, Permissions, Storage, SystemClock};
use annals::{Error, ErrorKind, Result};

use crate::files::{cannot, holds_database};
use crate::unfinished::Unfinished;

/// A file being written under a temporary name beside the one it will have. Dropped before
/// [`finish`](NewFile::finish), it is removed. A link is kept: its target is replaced. A pipe or a character device
/// is written to as it is.
pub(crate) struct NewFile {
    writer: Option<BufWriter<Out>>,
    /// The temporary place of the file until it is whole; `None` if it is written in place.
    place: Option<Place>,
    target: PathBuf,
}

struct Place {
    directory: Arc<dyn Directory>,
    temporary: String,
    name: String,
    storage: Arc<dyn Storage>,
    /// The option by which another file of the name may be replaced, if it wasn't given.
    unless: Option<&'static str>,
    /// Until the file has its name.
    _unfinished: Unfinished,
}

/// The target of the output.
enum Out {
    /// A regular file of ours, and the position of the next byte.
    File(Arc<dyn Storage>, u64),
    Stream(File),
}

impl NewFile {
    /// Begins a new file that replaces `target` and, if `target` exists, has its permissions.
    ///
    /// # Errors
    /// `InUse` if `target` is a database; `Invalid` if it is a directory or a block device; `Io`.
    pub(crate) fn create(target: &Path) -> Result<Self> {
        let there = crate::files::permissions(target).unwrap_or_default();
        Self::like(there, target, None)
    }

    /// Begins a file that is made of another one, and gets these permissions. It doesn't replace `target` if there is
    /// an option for that which wasn't given.
    ///
    /// # Errors
    /// As [`Self::create`]; `InUse` if there is such a file, and it isn't to be replaced.
    pub(crate) fn like(
        permissions: Option<Permissions>,
        target: &Path,
        unless: Option<&'static str>,
    ) -> Result<Self> {
        let present = fs::metadata(target).ok();
        if present.as_ref().is_some_and(fs::Metadata::is_dir) {
            let message = format!("{} is a directory, not a file", target.display());
            return Err(Error::invalid(message));
        }
        if present.as_ref().is_some_and(|present| !present.is_file()) {
            let stream = open_stream(target)?;
            let writer = Some(BufWriter::with_capacity(1 << 16, Out::Stream(stream)));
            return Ok(Self { writer, place: None, target: target.to_owned() });
        }
        let target = match fs::read_link(target) {
            Ok(_) if present.is_some() => {
                fs::canonicalize(target).map_err(|error| cannot("write", target, error))?
            }
            Ok(link) => target.parent().unwrap_or(Path::new("")).join(link),
            Err(_) => target.to_owned(),
        };
        check_target(&target, unless)?;
        let split = FileDirectory::split(&target);
        let (directory, name) = split.map_err(|error| cannot("write", &target, error))?;
        let temporary = format!(".annals-{:016x}.tmp", SystemClock.random());
        let directory = directory.for_journal(&temporary, permissions).unwrap_or(directory);
        let _unfinished = Unfinished::new(&target, &temporary);
        let created = directory.create(&temporary);
        let storage = created.map_err(|error| cannot("write", &target, error))?;
        let out = Out::File(Arc::clone(&storage), 0);
        let writer = Some(BufWriter::with_capacity(1 << 16, out));
        let place = Some(Place { directory, temporary, name, storage, unless, _unfinished });
        Ok(Self { writer, place, target })
    }

    /// Returns its path until it is finished, for writers by path; `None` if the target is no file.
    #[cfg(feature = "sqlite")]
    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.place.as_ref().map(|place| self.target.with_file_name(&place.temporary))
    }

    /// Returns its final name.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// Flushes everything to permanent storage.
    pub(crate) fn complete(&mut self) -> Result<()> {
        let flushed = self.flush().and_then(|()| match (&self.place, self.writer.take()) {
            (Some(place), Some(_)) => place.storage.flush(),
            _ => Ok(()),
        });
        flushed.map_err(|error| cannot("write", &self.target, error))
    }

    /// Moves the file to its name, once everything is on permanent storage.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.complete()?;
        let Some(Place { directory, temporary, name, unless, .. }) = &self.place else {
            return Ok(());
        };
        // Another program may have created a file of that name meanwhile.
        check_target(&self.target, *unless)?;
        let named = directory.rename(temporary, name).and_then(|()| directory.flush());
        named.map_err(|error| cannot("write", &self.target, error))
    }
}

/// Refuses to replace a database, or any file `unless` an option is given.
fn check_target(target: &Path, unless: Option<&'static str>) -> Result<()> {
    let shown = target.display();
    if fs::symlink_metadata(target).is_err() {
        return Ok(());
    }
    if holds_database(target) {
        let message = format!("{shown}: it is a database; choose another name");
        return Err(Error::new(ErrorKind::InUse, message));
    }
    if let Some(option) = unless {
        let message =
            format!("{shown}: there is such a file already; choose another name, or say {option}");
        return Err(Error::new(ErrorKind::InUse, message));
    }
    Ok(())
}

/// Opens a target that is neither a file nor a directory, nor a block device: the contents of that have no other
/// place.
#[expect(clippy::disallowed_methods, reason = "this is no database")]
fn open_stream(target: &Path) -> Result<File> {
    let io = |error| cannot("write", target, error);
    let stream = fs::OpenOptions::new().write(true).open(target).map_err(io)?;
    let kind = stream.metadata().map_err(io)?.file_type();
    if is_block_device(kind) {
        return Err(Error::invalid(format!(
            "{} is a block device, which may hold a database or a file system: write to a file, and copy that",
            target.display()
        )));
    }
    Ok(stream)
}

#[cfg(unix)]
fn is_block_device(kind: fs::FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_block_device(&kind)
}

#[cfg(not(unix))]
const fn is_block_device(_kind: fs::FileType) -> bool {
    false
}

impl Write for Out {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(storage, at) => {
                storage.write_at(*at, data)?;
                *at += data.len() as u64;
                Ok(data.len())
            }
            Self::Stream(stream) => stream.write(data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Out {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::File(storage, at) => {
                let from = match to {
                    SeekFrom::Start(place) => Some(place),
                    SeekFrom::Current(by) => at.checked_add_signed(by),
                    SeekFrom::End(by) => storage.len()?.checked_add_signed(by),
                };
                *at = from.ok_or(io::ErrorKind::InvalidInput)?;
                Ok(*at)
            }
            Self::Stream(stream) => stream.seek(to),
        }
    }
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
        if let Some(Place { directory, temporary, .. }) = &self.place {
            // After `finish` the temporary name doesn't exist, and there is nothing to remove.
            let _ = directory.remove(temporary);
        }
    }
}
