//! Kept segments that are opened only while they are read: a journal may have more of them than a process may have
//! files open.
//!
//! 1. A chain of segments, read from the newest back, keeps open the first ones, up to [`OPEN`], and the oldest,
//!    which holds its lock. Of the others at most [`OPEN`] are open at a time.
//! 2. A process that removes segments locks the newest of them first, so that no other chain begins to extend into
//!    them. Then it checks for each older one, from the newest on, whether a chain ends there (`next::remove`).

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::kept::Kept;
use crate::Copies;
use annals_storage::sync::lock;
use annals_storage::{Access, Directory, Hold, Lock, Storage};

/// The number of kept segments open from the beginning, and of others open at a time.
pub(super) const OPEN: usize = 16;

/// The segments that are open at the moment, the last used last, by their numbers.
type Recent = Mutex<VecDeque<(u64, Arc<dyn Storage>)>>;

/// Kept segments, the newest first, of which only some are open.
#[derive(Debug, Default)]
pub struct Chain {
    recent: Arc<Recent>,
    /// How many were added, and the last of them in its resting form.
    count: usize,
    last: Option<Arc<Resting>>,
}

impl Chain {
    /// Adds a segment that is older than the last. If there are many, it returns a substitute for the last one's
    /// file, which is closed then. Closing releases the file's lock.
    #[inline]
    pub fn add(&mut self, kept: &Kept, directory: &dyn Directory) -> Option<Arc<dyn Storage>> {
        self.add_file(Resting {
            recent: Arc::clone(&self.recent),
            directory: directory.again(),
            names: kept.names.clone(),
            number: kept.head.header.segment,
            header: Some(kept.head.hash),
            len: kept.len,
        })
    }

    /// Does what [`Self::add`] does, for a file of which no more may be known than its name and its length.
    #[inline]
    pub fn add_unknown(
        &mut self,
        directory: &dyn Directory,
        name: &str,
        number: u64,
        len: u64,
    ) -> Option<Arc<dyn Storage>> {
        let recent = Arc::clone(&self.recent);
        let (directory, names) = (directory.again(), vec![name.to_owned()]);
        self.add_file(Resting { recent, directory, names, number, header: None, len })
    }

    fn add_file(&mut self, file: Resting) -> Option<Arc<dyn Storage>> {
        self.count += 1;
        let last = self.last.replace(Arc::new(file));
        last.filter(|_| self.count > OPEN).map(|last| last as Arc<dyn Storage>)
    }
}

/// A segment that is opened when it is read.
#[derive(Debug)]
struct Resting {
    recent: Arc<Recent>,
    directory: Arc<dyn Directory>,
    /// The names that it may have, in the order in which they are tried.
    names: Vec<String>,
    number: u64,
    /// The hash of its header.
    header: Option<u64>,
    len: u64,
}

impl Resting {
    fn open(&self) -> io::Result<Arc<dyn Storage>> {
        let mut recent = lock(&self.recent);
        if let Some(place) = recent.iter().position(|(number, _)| *number == self.number)
            && let Some(found) = recent.remove(place)
        {
            let storage = Arc::clone(&found.1);
            recent.push_back(found);
            return Ok(storage);
        }
        let storage = self.open_again()?;
        recent.push_back((self.number, Arc::clone(&storage)));
        if recent.len() > OPEN {
            recent.pop_front();
        }
        Ok(storage)
    }

    fn open_again(&self) -> io::Result<Arc<dyn Storage>> {
        let mut error = io::Error::from(io::ErrorKind::NotFound);
        for name in &self.names {
            match self.directory.open(name, Access::Read) {
                Ok(storage) => {
                    let copies = Copies::read(&*storage)?;
                    let mut headers = copies.headers.iter().flatten();
                    let is_same =
                        self.header.is_none_or(|hash| headers.any(|header| header.hash() == hash));
                    if is_same {
                        return Ok(storage);
                    }
                    let message = "another file has taken its place since it was found: try again";
                    error = io::Error::other(message);
                }
                Err(other) if other.kind() == io::ErrorKind::NotFound => {}
                Err(other) => error = other,
            }
        }
        Err(error)
    }
}

fn only_read<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "a kept segment is only read"))
}

impl Storage for Resting {
    fn len(&self) -> io::Result<u64> {
        Ok(self.len)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.open()?.read_at(offset, buffer)
    }

    fn try_lock(&self, _lock: Lock, _hold: Hold) -> io::Result<bool> {
        only_read()
    }

    fn oldest_pin(&self, roots: Range<u64>) -> io::Result<Option<u64>> {
        self.open()?.oldest_pin(roots)
    }

    fn holder(&self, lock: Lock) -> Option<u32> {
        self.open().ok()?.holder(lock)
    }

    fn is_linked(&self) -> io::Result<bool> {
        self.open()?.is_linked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::new_head;
    use crate::new_header;
    use annals_simulated::SimulatedClock;
    use annals_storage::MemoryDirectory;

    fn resting(directory: &MemoryDirectory, recent: &Arc<Recent>, number: u64) -> Resting {
        let header = new_header(&SimulatedClock::new(number));
        let name = format!("file {number}");
        let file = directory.create(&name).unwrap();
        file.write_at(0, &new_head(&header, [0; 16])).unwrap();
        Resting {
            recent: Arc::clone(recent),
            directory: directory.again(),
            names: vec!["before".to_owned(), name],
            number,
            header: Some(header.hash()),
            len: file.len().unwrap(),
        }
    }

    #[test]
    fn few_are_open_at_a_time_and_those_that_were_read_last() {
        let (directory, recent) = (MemoryDirectory::new(), Arc::default());
        let files: Vec<_> = (0..100).map(|number| resting(&directory, &recent, number)).collect();
        let mut byte = [0];
        for file in files.iter().chain(&files) {
            assert_eq!(file.read_at(0, &mut byte).unwrap(), 1);
            assert_eq!(file.len().unwrap(), 16_384);
        }
        let open: Vec<_> = lock(&recent).iter().map(|(number, _)| *number).collect();
        assert_eq!(open, (84..100).collect::<Vec<_>>());
    }

    #[test]
    fn another_file_of_its_name_is_not_read() {
        let (directory, recent) = (MemoryDirectory::new(), Arc::default());
        let (one, two) = (resting(&directory, &recent, 1), resting(&directory, &recent, 2));
        directory.rename("file 2", "file 1").unwrap();
        let error = one.read_at(0, &mut [0]).unwrap_err();
        assert!(error.to_string().contains("another file has taken its place"), "{error}");
        assert_eq!(two.read_at(0, &mut [0]).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
