//! The content of one file on the simulated disk.

use std::io;
use std::sync::{Arc, LazyLock};

use crate::fact::Fact;
use annals_storage::implementing::Holders;

/// The size in bytes of an atomic write of the disk.
pub const SECTOR_SIZE: usize = 512;

/// The maximum length of a simulated file in bytes, so that an absurd size in a test is an error
/// and doesn't exhaust the machine.
pub const LARGEST_FILE: u64 = 1 << 30;

/// The content of a sector.
pub(crate) type Sector = Arc<[u8; SECTOR_SIZE]>;

/// Returns the sector of zeros; there is only one in memory.
pub(crate) fn zeros() -> Sector {
    static ZEROS: LazyLock<Sector> = LazyLock::new(|| Arc::new([0; SECTOR_SIZE]));
    Arc::clone(&ZEROS)
}

/// Returns how many sectors a file of this length has.
pub(crate) fn sectors_of(len: u64) -> usize {
    usize::try_from(len.div_ceil(SECTOR_SIZE as u64)).unwrap_or(usize::MAX)
}

/// One file: a length and sectors.
#[derive(Debug)]
pub(crate) struct Inode {
    pub(crate) length: Fact<u64>,
    /// At least as many as any possible length needs.
    pub(crate) sectors: Vec<Fact<Sector>>,
    pub(crate) holders: Holders,
    pub(crate) handles: usize,
    /// True if its length is fixed.
    pub(crate) is_device: bool,
}

impl Inode {
    /// Makes an empty file whose length is on the disk.
    pub(crate) fn new() -> Self {
        Self::with_content(0, Vec::new())
    }

    /// Makes a file that is wholly on the disk.
    pub(crate) fn with_content(len: u64, sectors: Vec<Fact<Sector>>) -> Self {
        Self {
            length: Fact::flushed(len),
            sectors,
            holders: Holders::default(),
            handles: 0,
            is_device: false,
        }
    }

    /// Returns the same file, with all that may be found of it, but open nowhere.
    pub(crate) fn closed(&self) -> Self {
        let (length, sectors) = (self.length.clone(), self.sectors.clone());
        let is_device = self.is_device;
        Self { length, sectors, holders: Holders::default(), handles: 0, is_device }
    }

    pub(crate) fn len(&self) -> u64 {
        *self.length.newest()
    }

    /// Returns the bytes that the file takes on the disk.
    pub(crate) fn space(&self) -> u64 {
        (sectors_of(self.len()) * SECTOR_SIZE) as u64
    }

    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let rest = usize::try_from(self.len().saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = rest.min(buffer.len());
        let mut done = 0;
        while done < count {
            let (index, within) = place(offset + done as u64);
            let Some(sector) = self.sectors.get(index) else { break };
            let part = (SECTOR_SIZE - within).min(count - done);
            let from = &sector.newest()[within..within + part];
            buffer[done..done + part].copy_from_slice(from);
            done += part;
        }
        done
    }

    pub(crate) fn write(&mut self, at: u64, offset: u64, data: &[u8]) -> io::Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let end = offset.checked_add(data.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        if end > self.len() {
            self.set_len(at, end)?;
        }
        self.overwrite(at, offset, data);
        Ok(())
    }

    pub(crate) fn set_len(&mut self, at: u64, len: u64) -> io::Result<()> {
        if len > LARGEST_FILE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let before = self.len();
        if sectors_of(len) > self.sectors.len() {
            self.sectors.resize(sectors_of(len), Fact::flushed(zeros()));
        }
        self.length.set(at, len);
        // Bytes beyond read as zeros if the file grows again (invariant 3).
        let mut from = len;
        while from < before {
            let (_, within) = place(from);
            let part =
                (SECTOR_SIZE - within).min(usize::try_from(before - from).unwrap_or(usize::MAX));
            self.overwrite(at, from, &[0; SECTOR_SIZE][..part]);
            from += part as u64;
        }
        Ok(())
    }

    /// Writes inside the existing sectors.
    fn overwrite(&mut self, at: u64, offset: u64, data: &[u8]) {
        let mut done = 0;
        while done < data.len() {
            let (index, within) = place(offset + done as u64);
            let Some(sector) = self.sectors.get_mut(index) else { break };
            let part = (SECTOR_SIZE - within).min(data.len() - done);
            let mut content = **sector.newest();
            content[within..within + part].copy_from_slice(&data[done..done + part]);
            let is_zero = content == [0; SECTOR_SIZE];
            sector.set(at, if is_zero { zeros() } else { Arc::new(content) });
            done += part;
        }
    }

    pub(crate) fn flush(&mut self) {
        self.length.flush();
        self.sectors.iter_mut().for_each(Fact::flush);
        if self.length.is_certain() {
            self.sectors.truncate(sectors_of(self.len()));
        }
    }

    pub(crate) fn fail_flush(&mut self) {
        self.length.fail_flush();
        self.sectors.iter_mut().for_each(Fact::fail_flush);
    }
}

/// Returns the sector that a byte is in, and where in it.
fn place(offset: u64) -> (usize, usize) {
    let size = SECTOR_SIZE as u64;
    let index = usize::try_from(offset / size).unwrap_or(usize::MAX);
    (index, usize::try_from(offset % size).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(inode: &Inode) -> Vec<u8> {
        let mut buffer = vec![0xEE; usize::try_from(inode.len()).unwrap() + 10];
        let count = inode.read(0, &mut buffer);
        buffer.truncate(count);
        buffer
    }

    #[test]
    fn reads_agree_with_a_vector_of_bytes() {
        let (mut inode, mut model) = (Inode::new(), Vec::new());
        let mut rng = crate::Rng::new(5);
        for at in 1..500 {
            let offset = rng.index(3000);
            if rng.percent(20) {
                inode.set_len(at, offset as u64).unwrap();
                model.resize(offset, 0);
            } else if rng.percent(10) {
                inode.flush();
            } else {
                let mut data = vec![0; rng.index(1500)];
                rng.fill(&mut data);
                inode.write(at, offset as u64, &data).unwrap();
                if !data.is_empty() && offset + data.len() > model.len() {
                    model.resize(offset + data.len(), 0);
                }
                let end = offset + data.len();
                if let Some(part) = model.get_mut(offset..end) {
                    part.copy_from_slice(&data);
                }
            }
            assert_eq!(content(&inode), model, "after step {at}");
        }
    }

    #[test]
    fn absurd_lengths_are_refused() {
        let mut inode = Inode::new();
        assert!(inode.set_len(1, LARGEST_FILE + 1).is_err());
        assert!(inode.write(1, u64::MAX, b"x").is_err());
        assert_eq!(inode.len(), 0);
    }
}
