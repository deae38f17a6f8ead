//! Pages in fewer bytes in an image.
//!
//! Only the file has packed pages. In memory a page is always whole. [`bits`] are numbers without the bits that they
//! don't need; [`cells`] stores a page of them, and [`rows`] the entries of a node of a tree. [`lz4`] is for the rest.
#![deny(clippy::indexing_slicing)]

mod bits;
mod cells;
mod lz4;
pub(crate) mod rows;

use crate::arena::PAGE;
use crate::image::{Packed, Stored, UNIT};
use crate::{Error, Result};

/// What the pages of an array have, which decides how they are packed.
#[derive(Clone, Copy, Debug)]
pub enum Packing {
    /// Bytes.
    Bytes,
    /// Numbers of so many bytes.
    Cells(usize),
    /// Nodes of trees.
    Nodes(&'static NodePacking),
}

/// How nodes of trees are packed.
#[derive(Debug)]
pub struct NodePacking {
    /// Packs a node; `None` if its entries are no rows of the same width.
    pub(crate) pack: fn(&[u8; PAGE]) -> Option<Vec<u8>>,
    /// Restores a node in a page of zeros; `None` if the bytes are no packed node.
    pub(crate) unpack: fn(&[u8], &mut [u8; PAGE]) -> Option<()>,
}

/// How many bytes a unit of the image has.
const EACH: usize = 4096;

const _: () = assert!(EACH as u64 == UNIT);

const fn units(len: usize) -> usize {
    len.div_ceil(EACH)
}

impl Packing {
    /// Returns a number that only arrays have whose pages are checked and packed in the same way.
    pub(crate) const fn code(self) -> usize {
        match self {
            Self::Bytes => 0,
            Self::Nodes(_) => usize::MAX,
            Self::Cells(width) => width,
        }
    }

    /// Packs the bytes of a page, after which it has zeros; `None` if that doesn't save enough.
    ///
    /// A page of a tree is packed if that saves a unit. Others must save half of them, so that reading one value of
    /// a page costs no more than before where little is saved.
    pub(crate) fn pack(self, bytes: &[u8]) -> Option<(Vec<u8>, Packed)> {
        let all = units(bytes.len());
        let most = match self {
            Self::Nodes(_) => all.checked_sub(1)?,
            Self::Bytes | Self::Cells(_) => all / 2,
        };
        if most == 0 {
            return None;
        }
        let packed = match self {
            Self::Bytes => None,
            Self::Cells(width) => cells::pack(bytes, width, most * EACH),
            Self::Nodes(nodes) => {
                let mut page = [0; PAGE];
                page.get_mut(..bytes.len())?.copy_from_slice(bytes);
                (nodes.pack)(&page).filter(|packed| units(packed.len()) <= most)
            }
        };
        // Rows take fewer units than an LZ4 block of them. Numbers may take more, if they repeat.
        let better = match (&packed, self) {
            (Some(_), Self::Nodes(_)) => 0,
            (Some(packed), _) => units(packed.len()) - 1,
            (None, _) => most,
        };
        let block = if better > 0 { lz4::pack(bytes, better * EACH) } else { None };
        let block = block.map(|block| (block, Packed::Lz4));
        block.or_else(|| packed.map(|packed| (packed, Packed::Bits)))
    }

    /// Restores a packed page in a page of zeros.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are no packed page.
    pub(crate) fn unpack(
        self,
        stored: &Stored,
        packed: &[u8],
        page: &mut [u8; PAGE],
    ) -> Result<()> {
        let unpacked = match (stored.packed, self) {
            (Packed::Lz4, _) => return lz4::unpack(stored, packed, page),
            (Packed::Bits, Self::Cells(width)) => cells::unpack(packed, width, page),
            (Packed::Bits, Self::Nodes(nodes)) => (nodes.unpack)(packed, page),
            (Packed::Bits, Self::Bytes) | (Packed::Not, _) => None,
        };
        unpacked.ok_or_else(|| {
            Error::ill_written(format!(
                "{} bytes at {} are no packed page",
                stored.len, stored.place
            ))
        })
    }
}

#[cfg(test)]
mod tests;
