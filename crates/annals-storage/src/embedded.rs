//! Files whose bytes the program holds, as `include_bytes!` gives them. They can only be read.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Access, Directory, Storage, check_name};

/// A directory of files whose bytes the program holds. A clone is another handle of the same directory.
#[derive(Clone, Debug, Default)]
pub struct EmbeddedDirectory {
    files: Arc<BTreeMap<String, Content>>,
}

/// The bytes of a file.
struct Content(Cow<'static, [u8]>);

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// One handle of a file.
#[derive(Debug)]
struct EmbeddedFile {
    directory: EmbeddedDirectory,
    name: String,
    /// True if its name, as far as it knows that, is the file's.
    is_linked: AtomicBool,
}

impl EmbeddedDirectory {
    /// Makes a directory of these files.
    #[must_use]
    pub fn new(files: impl IntoIterator<Item = (String, Cow<'static, [u8]>)>) -> Self {
        let files = files.into_iter().map(|(name, bytes)| (name, Content(bytes)));
        Self { files: Arc::new(files.collect()) }
    }
}

/// Returns the error of every change.
fn unchangeable() -> io::Error {
    let message = "the files are bytes in the program, which can't be changed";
    io::Error::new(io::ErrorKind::PermissionDenied, message)
}

impl Directory for EmbeddedDirectory {
    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn Storage>> {
        check_name(name)?;
        if !self.files.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        match access {
            Access::Read => {
                let (directory, is_linked) = (self.clone(), AtomicBool::new(true));
                Ok(Arc::new(EmbeddedFile { directory, name: name.to_owned(), is_linked }))
            }
            Access::Write => Err(unchangeable()),
        }
    }

    fn create(&self, _name: &str) -> io::Result<Arc<dyn Storage>> {
        Err(unchangeable())
    }

    fn link(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(unchangeable())
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(unchangeable())
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        Err(unchangeable())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files.keys().cloned().collect())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn again(&self) -> Arc<dyn Directory> {
        Arc::new(self.clone())
    }

    fn display(&self, name: &str) -> String {
        format!("{name} in the program")
    }
}

impl EmbeddedFile {
    fn bytes(&self) -> &[u8] {
        self.directory.files.get(self.name.as_str()).map_or(&[], |content| &content.0)
    }
}

impl Storage for EmbeddedFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|from| self.bytes().get(from..));
        let rest = rest.unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn is_linked(&self) -> io::Result<bool> {
        Ok(self.is_linked.load(Ordering::Relaxed))
    }

    fn may_have_other_names(&self) -> io::Result<bool> {
        Ok(false)
    }

    fn renamed(&self, name: &str) {
        self.is_linked.store(name == self.name, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hold, Lock};

    #[test]
    fn bytes_are_read_and_never_changed() {
        let bytes: &'static [u8] = b"unchanged";
        let directory = EmbeddedDirectory::new([("x".to_owned(), bytes.into())]);
        let file = directory.open("x", Access::Read).unwrap();
        let mut buffer = [0; 5];
        assert_eq!(file.read_at(6, &mut buffer).unwrap(), 3);
        assert_eq!(&buffer[..3], b"ged");
        assert_eq!(file.read_at(u64::MAX, &mut buffer).unwrap(), 0);
        assert_eq!(directory.list().unwrap(), ["x"]);
        assert_eq!(directory.open("y", Access::Read).unwrap_err().kind(), io::ErrorKind::NotFound);

        assert!(file.try_lock(Lock::History, Hold::Shared).unwrap());
        let refused = [
            file.write_at(0, b"y"),
            file.set_len(0),
            file.flush(),
            file.try_lock(Lock::Head, Hold::Exclusive).map(drop),
            directory.open("x", Access::Write).map(drop),
            directory.create("y").map(drop),
            directory.link("x", "y"),
            directory.rename("x", "y"),
            directory.remove("x"),
        ];
        for refused in refused {
            assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
        assert!(!format!("{directory:?}").contains("unchanged"), "data isn't shown");
    }
}
