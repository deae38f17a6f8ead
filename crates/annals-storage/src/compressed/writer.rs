//! Compressing a file.

use std::io;

use super::layout::{BLOCK, BlockEntry, CompressedHead, ENTRY_LEN, HEAD_LEN, TABLE_MAGIC, VERSION};
use crate::Storage;
use crate::bytes::hash;

/// Writes a file compressed into another, which is empty. `tell` is called with each block's bytes. Flushes nothing.
///
/// Takes memory for the table, 24 bytes for each 128 KiB.
pub fn compress<E: From<io::Error>>(
    from: &dyn Storage,
    to: &dyn Storage,
    mut tell: impl FnMut(u64) -> Result<(), E>,
) -> Result<(), E> {
    let len = from.len()?;
    let mut packer = zstd::bulk::Compressor::new(zstd::DEFAULT_COMPRESSION_LEVEL)?;
    let mut table = vec![0; 8];
    let (mut at, mut position, mut number) = (0, HEAD_LEN as u64, 0);
    let mut bytes = vec![0; BLOCK as usize];
    while at < len {
        let count = usize::try_from((len - at).min(u64::from(BLOCK))).map_err(io::Error::other)?;
        let block = bytes.get_mut(..count).unwrap_or_default();
        if from.read_at(at, block)? != count {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let packed = packer.compress(block)?;
        to.write_at(position, &packed)?;
        let length = u32::try_from(packed.len()).map_err(io::Error::other)?;
        table.extend_from_slice(
            &BlockEntry { position, hash: hash(&packed), length }.encode(number),
        );
        (at, position, number) = (at + count as u64, position + packed.len() as u64, number + 1);
        tell(count as u64)?;
    }
    let entries = u32::try_from(table.len() - 8).map_err(io::Error::other)?;
    debug_assert_eq!(entries as usize % ENTRY_LEN, 0);
    for (to, from) in table.iter_mut().zip(TABLE_MAGIC.into_iter().chain(entries.to_le_bytes())) {
        *to = from;
    }
    to.write_at(position, &table)?;
    let head = CompressedHead { version: VERSION, block: BLOCK, len, table_at: position + 8 };
    to.write_at(0, &head.encode())?;
    Ok(())
}
