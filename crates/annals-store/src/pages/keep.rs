//! The target of a backfill's objects.

use std::sync::Arc;

use crate::Result;
use crate::image::{Packed, Stored};
use crate::pages::packing::Packing;
use crate::pages::page::Frozen;

/// Stores the objects of a backfill, and releases those that become unreachable.
pub trait Keep {
    /// Receives the number of items to come, before any of them is stored.
    fn expect(&mut self, _items: u64) {}

    /// Stores bytes: an item, or a node of a directory.
    fn store(&mut self, piece: Piece) -> Result<Stored>;

    /// Releases an object that the new root doesn't reach any more.
    fn leave(&mut self, stored: Stored);
}

/// Bytes to be stored, which don't change any more.
#[derive(Debug)]
pub enum Piece {
    /// A page of the view itself.
    Page(Frozen),
    /// A long value of the view itself.
    Long(Arc<[u8]>),
    /// A copy of the filled part of a page. The page itself may still be modified, so it can't be shared.
    Part(Vec<u8>, Packing),
    /// A page, or the filled part of one, that is packed.
    Packed(Vec<u8>, Packed),
    /// Something made for the image: a node of its directory, or its catalog.
    Node(Vec<u8>),
}

impl Piece {
    /// Packs a page if that saves enough. Returns other pages, and other bytes, unchanged.
    #[must_use]
    #[inline]
    pub fn packed(self) -> Self {
        let packed = match &self {
            Self::Page(page) => page.pack(),
            Self::Part(bytes, packing) => packing.pack(bytes),
            Self::Long(_) | Self::Packed(..) | Self::Node(_) => None,
        };
        packed.map_or(self, |(bytes, packed)| Self::Packed(bytes, packed))
    }

    /// Returns how its bytes are to be read.
    #[inline]
    pub const fn stored_as(&self) -> Packed {
        match self {
            Self::Packed(_, packed) => *packed,
            _ => Packed::Not,
        }
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Page(page) => page.as_ref(),
            Self::Long(value) => value,
            Self::Part(bytes, _) | Self::Packed(bytes, _) | Self::Node(bytes) => bytes,
        }
    }
}
