//! The floor of durable commits: the same bytes, written and flushed with nothing around it.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use crate::engines::Failure;

/// Zeros are written ahead in steps of this many bytes, each of them flushed.
const STEP: u64 = 64 << 10;

const LITTLE: &str = "the floor was given too little space";

/// A file whose space is zeroed and flushed before it is written.
pub(crate) struct Floor {
    file: File,
    position: u64,
    zeroed_to: u64,
    bytes: Vec<u8>,
}

impl Floor {
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        #[allow(
            clippy::disallowed_methods,
            reason = "the floor has nothing between it and the file"
        )]
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(Self { file, position: 0, zeroed_to: 0, bytes: Vec::new() })
    }

    /// Prepares more space.
    pub(crate) fn prepare(&mut self, bytes: u64) -> Result<(), Failure> {
        while self.zeroed_to < self.position + bytes {
            self.file.seek(SeekFrom::Start(self.zeroed_to))?;
            self.file.write_all(&vec![0; usize::try_from(STEP)?])?;
            self.file.sync_data()?;
            self.zeroed_to += STEP;
        }
        self.file.seek(SeekFrom::Start(self.position))?;
        Ok(())
    }

    /// Writes `length` bytes after the last ones and flushes, `count` times. Space for them must have been prepared.
    pub(crate) fn commit(&mut self, count: u64, length: u64) -> Result<(), Failure> {
        for _ in 0..count {
            self.write(1, length)?;
            self.file.sync_data()?;
        }
        Ok(())
    }

    /// Writes as [`commit`](Self::commit) does, without a flush.
    pub(crate) fn write(&mut self, count: u64, length: u64) -> Result<(), Failure> {
        if self.zeroed_to < self.position + count * length {
            return Err(LITTLE.into());
        }
        self.bytes.resize(usize::try_from(length)?, 0x55);
        for _ in 0..count {
            self.file.write_all(&self.bytes)?;
        }
        self.position += count * length;
        Ok(())
    }
}
