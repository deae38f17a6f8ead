//! Bytes on their way into a file, or out of one: in memory while they are few, else in a file without a name.
//!
//! Invariant: the bytes are all in `memory`, or, once there is a `file`, all in that, from its beginning on.

use std::io;
use std::sync::Arc;

use super::{Directory, Storage};

/// So many bytes stay in memory.
const MOST_IN_MEMORY: usize = 8 << 20;

/// A run of bytes that grows at its end, read at the positions that it will have in a file.
#[derive(Debug)]
pub struct Spool {
    directory: Arc<dyn Directory>,
    name: String,
    begin: u64,
    end: u64,
    memory: Vec<u8>,
    file: Option<Arc<dyn Storage>>,
    /// True if the file still has its name.
    is_named: bool,
}

impl Spool {
    /// Begins an empty run at a position. `name` must be one that no other file of the directory has: a file of this
    /// name is created, and loses the name again, when there are more than 8 MiB.
    #[must_use]
    pub fn new(directory: Arc<dyn Directory>, name: String, begin: u64) -> Self {
        let (memory, file) = (Vec::new(), None);
        Self { directory, name, begin, end: begin, memory, file, is_named: false }
    }

    /// Returns where it begins.
    #[must_use]
    pub const fn begin(&self) -> u64 {
        self.begin
    }

    /// Returns where it ends.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Moves it to another position: it is read there from now on.
    pub const fn move_to(&mut self, begin: u64) {
        self.end = begin + (self.end - self.begin);
        self.begin = begin;
    }

    /// True if so many more bytes can be added without writing a file.
    #[must_use]
    pub fn has_room(&self, count: usize) -> bool {
        self.file.is_none() && self.memory.len() + count <= MOST_IN_MEMORY
    }

    /// Adds bytes at the end. After an error it holds what it held before.
    ///
    /// # Errors
    /// Those of creating and writing the file.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.file.is_none() && !self.has_room(bytes.len()) {
            self.file = Some(self.spill()?);
            self.memory = Vec::new();
        }
        match &self.file {
            Some(file) => file.write_at(self.end - self.begin, bytes)?,
            None => self.memory.extend_from_slice(bytes),
        }
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Writes the bytes in memory to a new file.
    fn spill(&mut self) -> io::Result<Arc<dyn Storage>> {
        let file = self.directory.create(&self.name)?;
        // Where an open file can't lose its name, it does so when this is dropped.
        self.is_named = self.directory.remove(&self.name).is_err();
        file.write_at(0, &self.memory)?;
        Ok(file)
    }

    /// Drops all bytes, and keeps the memory for others.
    pub fn clear(&mut self) {
        self.drop_file();
        self.memory.clear();
        self.end = self.begin;
    }

    fn drop_file(&mut self) {
        let file = self.file.take();
        if std::mem::take(&mut self.is_named) {
            drop(file);
            // An orphan is harmless: its name is random.
            let _ = self.directory.remove(&self.name);
        }
    }

    /// Drops the bytes from `end` on.
    pub fn truncate(&mut self, end: u64) {
        self.end = end.clamp(self.begin, self.end);
        let kept = usize::try_from(self.end - self.begin).unwrap_or(usize::MAX);
        self.memory.truncate(kept);
    }

    /// Returns a copy without the first `count` bytes, at the position after them.
    ///
    /// # Errors
    /// Those of reading and writing the files.
    pub fn without(&self, count: u64) -> io::Result<Self> {
        let from = self.begin.saturating_add(count).min(self.end);
        let name = format!("{}-rest", self.name);
        let mut rest = Self::new(Arc::clone(&self.directory), name, from);
        self.pieces(|at, piece| {
            let skipped = usize::try_from(from.saturating_sub(at)).unwrap_or(usize::MAX);
            rest.append(piece.get(skipped..).unwrap_or_default())
        })?;
        Ok(rest)
    }

    /// Passes on all bytes, in order, in pieces of at most 1 MiB with their positions.
    ///
    /// # Errors
    /// Those of reading the file, and those of `take`.
    pub fn pieces(&self, mut take: impl FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<()> {
        let len = usize::try_from(self.end - self.begin).unwrap_or(usize::MAX);
        let mut piece = vec![0; len.min(1 << 20)];
        let mut at = self.begin;
        while at < self.end {
            let read = self.read_at(at, &mut piece)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            take(at, piece.get(..read).unwrap_or_default())?;
            at += read as u64;
        }
        Ok(())
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.drop_file();
    }
}

/// It is read like a file that nobody else has.
impl Storage for Spool {
    fn is_linked(&self) -> io::Result<bool> {
        Ok(false)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.end)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(self.end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = buffer.len().min(rest);
        let buffer = &mut buffer[..count];
        let Some(from) = offset.checked_sub(self.begin) else { return Ok(0) };
        if let Some(file) = &self.file {
            return file.read_at(from, buffer);
        }
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let found = self.memory.get(from..).and_then(|rest| rest.get(..count)).unwrap_or_default();
        buffer[..found.len()].copy_from_slice(found);
        Ok(found.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDirectory;

    #[test]
    fn many_bytes_are_read_as_few_are() {
        let directory = MemoryDirectory::new();
        for len in [0_usize, 5, MOST_IN_MEMORY, MOST_IN_MEMORY + 5] {
            let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(len).collect();
            let mut spool = Spool::new(directory.again(), "spool".to_owned(), 1000);
            bytes.chunks(1 << 20).for_each(|chunk| spool.append(chunk).unwrap());
            assert_eq!((spool.begin(), spool.end()), (1000, 1000 + len as u64));
            assert!(directory.list().unwrap().is_empty(), "its file has no name");
            let all = |spool: &Spool| {
                let mut all = Vec::new();
                spool
                    .pieces(|_, piece| {
                        all.extend_from_slice(piece);
                        Ok(())
                    })
                    .unwrap();
                all
            };
            assert_eq!(all(&spool), bytes);
            spool.move_to(77);
            assert_eq!(all(&spool), bytes);
            spool.truncate(80);
            assert_eq!(all(&spool), bytes.iter().copied().take(3).collect::<Vec<_>>());
            assert_eq!(spool.read_at(76, &mut [0; 4]).unwrap(), 0);
            spool.clear();
            assert_eq!((spool.begin(), spool.end()), (77, 77));
            spool.append(b"again").unwrap();
            assert_eq!(all(&spool), b"again");
            assert!(spool.write_at(80, b"x").is_err());
        }
    }
}
