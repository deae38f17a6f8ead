//! A file that continues another one from a position on, without a copy of what is before it.
//!
//! ```text
//! the file that is seen      0 ── head ──────────────── from ──────────────►
//! its bytes are in           continuation │ base        │ continuation
//! ```
//!
//! The continuation's own file has a `preface` for its owner, then the head, then the bytes from `from` on.
//!
//! Invariants
//! 1. The base is only read, and only before `from`: it must never change there.
//! 2. All locks are those of the continuation's own file.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::{Access, Directory, Permissions, Storage, check_writable};

/// How the bytes of a continuation are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// So many bytes at the beginning of its own file are no part of the file that is seen.
    pub preface: u64,
    /// So many bytes at the beginning of the file that is seen are in its own file.
    pub head: u64,
    /// From this position on all bytes are.
    pub from: u64,
}

/// A directory in which a journal is continued in a file of another name. What is written for that journal beside it gets
/// the other name, too; all else can only be read. A clone is another handle of the same directory.
#[derive(Clone, Debug)]
pub struct ContinuedDirectory {
    directory: Arc<dyn Directory>,
    /// The file that is continued.
    base: Arc<dyn Storage>,
    /// The name of the journal.
    journal: String,
    /// The name of the file that continues it.
    own: String,
    division: Division,
    later: Later,
}

/// The files beside the journal that came after the continued one: they aren't seen.
#[derive(Clone, Copy, Debug)]
pub struct Later {
    /// Returns the number of a file, from its name and the journal's.
    pub number: fn(&str, &str) -> Option<u64>,
    /// The first number that isn't seen.
    pub from: u64,
}

/// An open continuation.
#[derive(Debug)]
struct Continued {
    base: Arc<dyn Storage>,
    own: Arc<dyn Storage>,
    division: Division,
    journal: String,
    own_name: String,
}

/// The part of a continuation that a position is in.
enum Side {
    /// Its own file, at this position, up to so many bytes further.
    Own(u64, u64),
    /// The base, up to so many bytes further.
    Base(u64),
}

impl ContinuedDirectory {
    /// Continues `base` as the file `own` of a directory, which is seen as `journal`.
    #[must_use]
    pub fn new(
        directory: Arc<dyn Directory>,
        base: Arc<dyn Storage>,
        journal: &str,
        own: &str,
        division: Division,
    ) -> Self {
        let later = Later { number: |_, _| None, from: 0 };
        let (journal, own) = (journal.to_owned(), own.to_owned());
        Self { directory, base, journal, own, division, later }
    }

    /// Hides files that came after the continued one.
    #[must_use]
    pub fn hiding(self, later: Later) -> Self {
        Self { later, ..self }
    }

    fn is_hidden(&self, name: &str) -> bool {
        (self.later.number)(name, &self.journal).is_some_and(|number| number >= self.later.from)
    }

    /// Returns the name under which a file for the journal is written; an error for all others.
    fn writable(&self, name: &str) -> io::Result<String> {
        match name.strip_prefix(&*self.journal) {
            Some(rest) if rest.is_empty() || is_beside(rest) => Ok(format!("{}{rest}", self.own)),
            _ => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("`{name}` belongs to the journal that `{}` continues", self.own),
            )),
        }
    }
}

/// True for the rest of a name, after the journal's, of a file that is written beside it: not a segment or an image.
fn is_beside(rest: &str) -> bool {
    rest.starts_with('.') || rest.starts_with("-spool-")
}

impl Division {
    fn part(&self, offset: u64) -> Side {
        let Self { preface, head, from } = *self;
        match offset {
            offset if offset < head => Side::Own(preface + offset, head - offset),
            offset if offset < from => Side::Base(from - offset),
            offset => Side::Own(preface + head + (offset - from), u64::MAX),
        }
    }

    /// Returns the length of the own file with which the file that is seen ends at a position.
    fn own_len(&self, len: u64) -> u64 {
        self.preface + self.head + len.saturating_sub(self.from)
    }
}

impl Storage for Continued {
    fn beneath(&self) -> Option<&dyn Storage> {
        Some(&*self.own)
    }

    /// Both are on this machine.
    fn drop_copies(&self, _: Range<u64>) {}

    fn len(&self) -> io::Result<u64> {
        let before = self.division.preface + self.division.head;
        Ok(self.division.from + self.own.len()?.saturating_sub(before))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset.saturating_add(done as u64);
            let rest = buffer.len() - done;
            let bounded = |most: u64| usize::try_from(most).unwrap_or(usize::MAX).min(rest);
            let (storage, at, wanted) = match self.division.part(at) {
                Side::Own(own, most) => (&self.own, own, bounded(most)),
                Side::Base(most) => (&self.base, at, bounded(most)),
            };
            let read = storage.read_at(at, &mut buffer[done..done + wanted])?;
            done += read;
            if read < wanted {
                break;
            }
        }
        Ok(done)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let most = match self.division.part(offset) {
            Side::Own(own, most) if data.len() as u64 <= most => {
                return self.own.write_at(own, data);
            }
            Side::Own(_, most) | Side::Base(most) => most,
        };
        let message = format!(
            "{} bytes at {offset} would change what is continued: {most} bytes on, another part begins",
            data.len()
        );
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        match len < self.division.from {
            true => check_writable(Access::Read),
            false => self.own.set_len(self.division.own_len(len)),
        }
    }

    fn renamed(&self, name: &str) {
        let rest = name.strip_prefix(&*self.journal);
        self.own.renamed(
            &rest.map_or_else(|| name.to_owned(), |rest| format!("{}{rest}", self.own_name)),
        );
    }
}

impl Directory for ContinuedDirectory {
    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn Storage>> {
        if self.is_hidden(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let beside = name.strip_prefix(&*self.journal);
        match (beside, access) {
            (Some(""), _) => Ok(Arc::new(Continued {
                base: Arc::clone(&self.base),
                own: self.directory.open(&self.own, access)?,
                division: self.division,
                journal: self.journal.clone(),
                own_name: self.own.clone(),
            })),
            (Some(rest), _) if is_beside(rest) => {
                self.directory.open(&self.writable(name)?, access)
            }
            (_, Access::Read) => self.directory.open(name, access),
            (_, Access::Write) => {
                self.writable(name).and_then(|name| self.directory.open(&name, access))
            }
        }
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Storage>> {
        self.directory.create(&self.writable(name)?)
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        self.directory.link(&self.writable(from)?, &self.writable(to)?)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.directory.rename(&self.writable(from)?, &self.writable(to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.directory.remove(&self.writable(name)?)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for name in self.directory.list()? {
            let own =
                name.strip_prefix(&*self.own).filter(|rest| rest.is_empty() || is_beside(rest));
            let theirs = name.strip_prefix(&*self.journal);
            match (own, theirs) {
                (Some(rest), _) => names.push(format!("{}{rest}", self.journal)),
                (None, Some(rest)) if rest.is_empty() || is_beside(rest) => {}
                _ if self.is_hidden(&name) => {}
                _ => names.push(name),
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn flush(&self) -> io::Result<()> {
        self.directory.flush()
    }

    fn for_copies(&self, storage: &dyn Storage) -> Option<Arc<dyn Directory>> {
        self.directory.for_copies(storage)
    }

    fn permissions(&self, name: &str) -> io::Result<Option<Permissions>> {
        self.directory.permissions(name)
    }

    fn again(&self) -> Arc<dyn Directory> {
        Arc::new(self.clone())
    }

    fn display(&self, name: &str) -> String {
        match self.writable(name) {
            Ok(own) => self.directory.display(&own),
            Err(_) => self.directory.display(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDirectory;
    use annals_simulated::Rng;

    const DIVISION: Division = Division { preface: 100, head: 300, from: 1000 };

    /// The same random steps on a continuation and on a plain file; the file that is continued stays as it was.
    #[test]
    fn a_continuation_is_a_file_and_its_base_is_unchanged() {
        let mut rng = Rng::new(5);
        let (directory, plain) =
            (MemoryDirectory::new(), MemoryDirectory::new().create("x").unwrap());
        let base = directory.create("x").unwrap();
        let bytes: Vec<u8> = (0..2000_u32).map(|number| number.to_le_bytes()[0] | 1).collect();
        base.write_at(0, &bytes).unwrap();
        plain.write_at(0, &bytes[..1000]).unwrap();
        directory.create("x-local").unwrap().write_at(100, &bytes[..300]).unwrap();
        let seen = ContinuedDirectory::new(directory.again(), base, "x", "x-local", DIVISION);
        let over = seen.open("x", Access::Write).unwrap();
        for _ in 0..400 {
            let (offset, len) = (rng.below(2500), usize::try_from(rng.below(700)).unwrap());
            let data = vec![rng.number().to_le_bytes()[0]; len];
            let (end, is_head) = (offset + len as u64, offset < 300);
            let is_own = if is_head { end <= 300 } else { offset >= 1000 };
            match over.write_at(offset, &data) {
                Ok(()) => {
                    assert!(is_own, "{len} at {offset}");
                    plain.write_at(offset, &data).unwrap();
                }
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                    assert!(!is_own, "{len} at {offset}");
                }
            }
            let len = 900 + rng.below(2000);
            if rng.below(9) == 0 {
                let is_done = over.set_len(len).is_ok();
                assert_eq!(is_done, len >= 1000);
                if is_done {
                    plain.set_len(len).unwrap();
                }
            }
            let (mut one, mut other) = (vec![7; 1500], vec![7; 1500]);
            let read = over.read_at(offset, &mut one).unwrap();
            assert_eq!(read, plain.read_at(offset, &mut other).unwrap());
            assert!(one == other, "at {offset}");
            assert_eq!(over.len().unwrap(), plain.len().unwrap());
        }
        let mut now = vec![0; 2000];
        assert_eq!(directory.open("x", Access::Read).unwrap().read_at(0, &mut now).unwrap(), 2000);
        assert!(now == bytes);
    }

    #[test]
    fn only_files_of_its_own_are_written() {
        let directory = MemoryDirectory::new();
        for name in ["x", "x-local", "x-image", "x.tail-1"] {
            directory.create(name).unwrap();
        }
        let base = directory.open("x", Access::Read).unwrap();
        let seen = ContinuedDirectory::new(directory.again(), base, "x", "x-local", DIVISION);
        assert!(seen.open("x-image", Access::Read).is_ok());
        assert!(seen.open("x-image", Access::Write).is_err());
        assert!(seen.create("x-segment-000000").is_err());
        assert!(seen.remove("other").is_err());
        seen.create("x.tail-2").unwrap();
        assert_eq!(seen.list().unwrap(), ["x", "x-image", "x.tail-2"]);
        seen.link("x.tail-2", "x.tail-3").unwrap();
        seen.rename("x.tail-2", "x.tail-4").unwrap();
        assert_eq!(seen.list().unwrap(), ["x", "x-image", "x.tail-3", "x.tail-4"]);
        assert!(
            seen.link("x.tail-3", "other").is_err() && seen.rename("other", "x.tail-5").is_err()
        );
        seen.remove("x.tail-3").unwrap();
        seen.rename("x.tail-4", "x.tail-2").unwrap();
        seen.remove("x").unwrap();
        assert_eq!(directory.list().unwrap(), ["x", "x-image", "x-local.tail-2", "x.tail-1"]);
    }
}
