//! Real files in a real directory.

#![allow(clippy::disallowed_methods, reason = "this is where files are opened")]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::engines::Engines;
use super::interrupted::retry;
use super::names::Names;
use super::open_file::OpenFile;
use super::permissions::{self, Permissions};
use super::{Access, Directory, Engine, Storage, check_name, compressed};

/// A directory of the file system.
#[derive(Clone, Debug)]
pub struct FileDirectory {
    /// As it was given, for messages.
    shown: PathBuf,
    /// The absolute path, so that a later change of the working directory changes nothing.
    path: PathBuf,
    /// The engine for batches, if not the best available.
    engine: Option<Engine>,
    names: Names,
    /// The file whose permissions new files get, if it exists.
    journal: Option<String>,
    /// Those that they get as long as it isn't.
    origin: Option<Permissions>,
}

impl FileDirectory {
    /// Makes a handle of the directory at `path`, which need not exist until it is used.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let mut shown: PathBuf = path.into();
        if shown.as_os_str().is_empty() {
            shown.push(".");
        }
        // This fails only where there is no working directory; then the path is as good as any.
        let path = std::path::absolute(&shown).unwrap_or_else(|_| shown.clone());
        let (engine, names, journal, origin) = (None, Names::default(), None, None);
        Self { shown, path, engine, names, journal, origin }
    }

    /// Sets one engine for batches in the files that are opened from now on, instead of the fastest for each. If the
    /// system lacks it, the next slower one is used, as [`Batched::engine`](crate::Batched::engine) reports.
    #[must_use]
    pub fn with_engine(self, engine: Engine) -> Self {
        Self { engine: Some(engine), ..self }
    }

    fn opened(&self, file: File, path: &Path, access: Access) -> Arc<dyn Storage> {
        let mut file = OpenFile::new(file, path, access);
        file.engines = Engines::new(self.engine);
        file.names = self.names.clone();
        Arc::new(file)
    }

    /// Splits the path of a file into its directory and its name there.
    ///
    /// A symbolic link is resolved to the file itself first. So files beside it, and its locks, belong to the
    /// directory of the real file. The file need not exist. A name that isn't UTF-8 gets one
    /// that only this directory knows.
    ///
    /// # Errors
    /// `NotFound`: a dangling link; `InvalidInput`: the path doesn't end with the name of a file; `IsADirectory`: it
    /// ends with a separator.
    pub fn split(path: impl AsRef<Path>) -> io::Result<(Arc<dyn Directory>, String)> {
        let given = path.as_ref();
        let is_link = fs::symlink_metadata(given).is_ok_and(|metadata| metadata.is_symlink());
        let real = if is_link {
            let explain = |error: io::Error| {
                let message =
                    format!("the symbolic link {} can't be followed: {error}", given.display());
                io::Error::new(error.kind(), message)
            };
            fs::canonicalize(given).map_err(explain)?
        } else {
            given.to_owned()
        };
        let name = real.file_name().ok_or_else(|| {
            let message = "it doesn't end with the name of a file";
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })?;
        // A separator follows the name, and perhaps a dot.
        let last = given.file_name().unwrap_or(name).as_encoded_bytes();
        if !given.as_os_str().as_encoded_bytes().ends_with(last) {
            let message = "it ends as the path of a directory does, not as that of a file";
            return Err(io::Error::new(io::ErrorKind::IsADirectory, message));
        }
        let mut directory = Self::new(real.parent().unwrap_or(Path::new("")));
        let (names, name) = Names::of(name);
        directory.names = names;
        Ok((Arc::new(directory), name))
    }

    fn path_of(&self, name: &str) -> io::Result<PathBuf> {
        check_name(name)?;
        Ok(self.path.join(self.names.real(name)))
    }

    /// Returns the permissions that a new file gets; `None` if the system chooses.
    fn permissions_of_new(&self) -> io::Result<Option<Permissions>> {
        let found =
            self.journal.as_deref().map_or(Ok(None), |journal| self.permissions(journal))?;
        Ok(found.or(self.origin))
    }
}

impl Directory for FileDirectory {
    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn Storage>> {
        let path = self.path_of(name)?;
        // Opening a pipe would wait for its other end, and a directory can be "opened" too.
        let metadata = retry(|| fs::metadata(&path))?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        #[cfg(unix)]
        if std::os::unix::fs::FileTypeExt::is_block_device(&metadata.file_type()) {
            return Ok(Arc::new(super::device::DeviceFile::open(&path, access)?));
        }
        if !metadata.is_file() {
            let message =
                format!("{} is neither a regular file nor a block device", self.display(name));
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let file = OpenOptions::new().read(true).write(access == Access::Write).open(&path)?;
        let file = self.opened(file, &path, access);
        match access {
            Access::Read => compressed::unpacked(file),
            Access::Write => Ok(file),
        }
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Storage>> {
        let (path, like) = (self.path_of(name)?, self.permissions_of_new()?);
        let file = permissions::create_new(&path, like)?;
        Ok(self.opened(file, &path, Access::Write))
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (self.path_of(from)?, self.path_of(to)?);
        retry(|| fs::hard_link(&from, &to))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (self.path_of(from)?, self.path_of(to)?);
        retry(|| fs::rename(&from, &to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path_of(name)?;
        retry(|| fs::remove_file(&path))
    }

    fn copy(&self, from: &str, to: &str) -> io::Result<()> {
        let mut from = OpenOptions::new().read(true).open(self.path_of(from)?)?;
        let (path, like) = (self.path_of(to)?, Permissions::of(&from.metadata()?));
        let mut copy = permissions::create_new(&path, like)?;
        // The standard library lets the system copy, which shares the bytes where it can.
        let copied = io::copy(&mut from, &mut copy).and_then(|_| copy.sync_all());
        if copied.is_err() {
            // The error of writing it is the relevant one.
            let _ = fs::remove_file(path);
        }
        copied
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in retry(|| fs::read_dir(&self.path))? {
            let entry = entry?;
            // Through the path, for a link to a file is as good as a file. A file that was removed meanwhile, or a
            // dangling link, doesn't exist.
            let is_file = fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_file());
            // Another name that isn't UTF-8 can't be given to `open`, and isn't one of ours.
            if let (true, Some(name)) = (is_file, self.names.shown(&entry.file_name())) {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    #[cfg(unix)]
    fn flush(&self) -> io::Result<()> {
        match File::open(&self.path)?.sync_all() {
            // `EINVAL`: a file system that doesn't know how to flush a directory.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            result => result,
        }
    }

    /// Flushes nothing, for a directory can't be opened here, and the system keeps names in a
    /// journal; one that is missing is an error as elsewhere.
    #[cfg(not(unix))]
    fn flush(&self) -> io::Result<()> {
        fs::metadata(&self.path).map(drop)
    }

    fn for_copies(&self, storage: &dyn Storage) -> Option<Arc<dyn Directory>> {
        storage.has_fixed_len().then(|| {
            // Without facts of the device, no rights are granted.
            let origin = self.permissions_of_new().unwrap_or_default();
            let names = self.names.clone();
            Arc::new(Self { origin, names, ..Self::new("") }) as Arc<dyn Directory>
        })
    }

    fn permissions(&self, name: &str) -> io::Result<Option<Permissions>> {
        let path = self.path_of(name)?;
        match retry(|| fs::metadata(&path)) {
            Ok(metadata) => Ok(Permissions::of(&metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn for_journal(&self, name: &str, origin: Option<Permissions>) -> Option<Arc<dyn Directory>> {
        let (journal, origin) = (Some(name.to_owned()), origin.or(self.origin));
        Some(Arc::new(Self { journal, origin, ..self.clone() }))
    }

    fn again(&self) -> Arc<dyn Directory> {
        Arc::new(self.clone())
    }

    fn display(&self, name: &str) -> String {
        // A user who wrote `x` doesn't want to read `./x`.
        let parent = if self.shown == Path::new(".") { Path::new("") } else { &self.shown };
        parent.join(name).display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_split_into_directory_and_name() {
        let (directory, name) = FileDirectory::split("some/where/file.annals").unwrap();
        assert_eq!(name, "file.annals");
        let other = Path::new("some/where").join("other");
        assert_eq!(directory.display("other"), other.display().to_string());
        let (directory, name) = FileDirectory::split("file.annals").unwrap();
        assert_eq!(directory.display(&name), "file.annals");
        for bad in ["", "/", "..", "a/.."] {
            let error = FileDirectory::split(bad).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{bad:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_is_resolved_to_the_directory_of_the_file() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().join("real");
        fs::create_dir(&real).unwrap();
        fs::write(real.join("file"), b"x").unwrap();
        let link = root.path().join("link");
        std::os::unix::fs::symlink("real/file", &link).unwrap();

        let (directory, name) = FileDirectory::split(&link).unwrap();
        assert_eq!(name, "file");
        directory.create("beside").unwrap();
        assert!(real.join("beside").exists());

        fs::remove_file(real.join("file")).unwrap();
        let error = FileDirectory::split(&link).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("symbolic link"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn only_regular_files_are_opened_and_listed() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("folder")).unwrap();
        fs::write(root.path().join("b"), b"").unwrap();
        fs::write(root.path().join("a"), b"").unwrap();
        std::os::unix::fs::symlink("nowhere", root.path().join("dangling")).unwrap();
        std::os::unix::fs::symlink("/dev/null", root.path().join("null")).unwrap();
        let directory = FileDirectory::new(root.path());
        assert_eq!(directory.list().unwrap(), ["a", "b"]);
        let kind = |name| directory.open(name, Access::Read).unwrap_err().kind();
        assert_eq!(kind("folder"), io::ErrorKind::IsADirectory);
        assert_eq!(kind("null"), io::ErrorKind::InvalidInput);
        assert_eq!(kind("dangling"), io::ErrorKind::NotFound);
        assert_eq!(kind("folder/../a"), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_missing_directory_is_not_found() {
        let root = tempfile::tempdir().unwrap();
        let directory = FileDirectory::new(root.path().join("missing"));
        assert_eq!(directory.create("x").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(directory.list().unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(directory.flush().unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
