//! Reading a compressed file as if it were unpacked.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::layout::{BlockEntry, CompressedHead, ENTRY_LEN, HEAD_LEN, VERSION};
use crate::Storage;
use crate::bytes::hash;

/// How many unpacked blocks are kept.
const KEPT: usize = 16;
/// The largest block that is unpacked.
const LARGEST: u32 = 16 << 20;

/// A block that was unpacked, and its number.
type Block = (u64, Arc<Vec<u8>>);

/// A compressed file, read as if it were uncompressed.
#[derive(Debug)]
pub(super) struct Unpacked {
    file: Arc<dyn Storage>,
    head: CompressedHead,
    /// The one that was used last is the last.
    blocks: Mutex<Vec<Block>>,
}

impl Unpacked {
    pub(super) fn open(file: Arc<dyn Storage>) -> io::Result<Self> {
        let mut bytes = [0; HEAD_LEN];
        let read = file.read_at(0, &mut bytes)?;
        let head = CompressedHead::decode(&bytes).filter(|_| read == HEAD_LEN);
        let head = head.ok_or_else(|| damaged("its head doesn't verify"))?;
        if head.version > VERSION {
            let message =
                format!("it was compressed by a newer version of Annals ({})", head.version);
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        if head.block == 0 || head.block > LARGEST {
            return Err(damaged("its head makes no sense"));
        }
        // A length that the table contradicts must not cause an allocation.
        let table = head.len.div_ceil(u64::from(head.block)).saturating_mul(ENTRY_LEN as u64);
        if head.table_at.saturating_add(table) > file.len()? {
            return Err(damaged("its end is missing"));
        }
        Ok(Self { file, head, blocks: Mutex::default() })
    }

    /// Returns a block, unpacked.
    fn block(&self, number: u64) -> io::Result<Arc<Vec<u8>>> {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = blocks.iter().position(|(held, _)| *held == number) {
            let found = blocks.remove(place);
            let bytes = Arc::clone(&found.1);
            blocks.push(found);
            return Ok(bytes);
        }
        drop(blocks);
        let bytes = Arc::new(self.unpack(number)?);
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if blocks.len() >= KEPT {
            blocks.remove(0);
        }
        blocks.push((number, Arc::clone(&bytes)));
        Ok(bytes)
    }

    fn unpack(&self, number: u64) -> io::Result<Vec<u8>> {
        let wrong = || damaged(&format!("block {number} doesn't verify"));
        let at = number.checked_mul(ENTRY_LEN as u64);
        let at = at.and_then(|at| at.checked_add(self.head.table_at)).ok_or_else(wrong)?;
        let mut bytes = [0; ENTRY_LEN];
        let read = self.file.read_at(at, &mut bytes)?;
        let entry =
            BlockEntry::decode(&bytes, number).filter(|_| read == ENTRY_LEN).ok_or_else(wrong)?;
        // No memory is allocated for missing bytes.
        if entry.position.saturating_add(u64::from(entry.length)) > self.file.len()? {
            return Err(wrong());
        }
        let mut packed = vec![0; entry.length as usize];
        let read = self.file.read_at(entry.position, &mut packed)?;
        if read != packed.len() || hash(&packed) != entry.hash {
            return Err(wrong());
        }
        let start = number.saturating_mul(u64::from(self.head.block));
        let len = self.head.len.saturating_sub(start).min(u64::from(self.head.block));
        let len = usize::try_from(len).map_err(io::Error::other)?;
        let unpacked = zstd::bulk::decompress(&packed, len)?;
        if unpacked.len() == len { Ok(unpacked) } else { Err(wrong()) }
    }
}

fn damaged(what: &str) -> io::Error {
    let message = format!("the compressed file is damaged: {what}; restore it from a backup");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

fn read_only() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "a compressed file can only be read")
}

impl Storage for Unpacked {
    fn beneath(&self) -> Option<&dyn Storage> {
        Some(&*self.file)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.head.len)
    }

    /// Of all of it: a range has other places in the packed file.
    fn drop_copies(&self, _: Range<u64>) {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.file.drop_copies(0..u64::MAX);
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset.saturating_add(done as u64);
            if at >= self.head.len {
                break;
            }
            let block = u64::from(self.head.block);
            let bytes = self.block(at / block)?;
            let from = usize::try_from(at % block).map_err(io::Error::other)?;
            let from = bytes.get(from..).unwrap_or_default();
            let to = buffer.get_mut(done..).unwrap_or_default();
            let count = from.len().min(to.len());
            for (to, from) in to.iter_mut().zip(from) {
                *to = *from;
            }
            done += count;
        }
        Ok(done)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(read_only())
    }

    fn flush(&self) -> io::Result<()> {
        Err(read_only())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(read_only())
    }
}
