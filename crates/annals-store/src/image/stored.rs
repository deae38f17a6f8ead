//! The position of an object in an image, with the proof of its identity.

use std::fmt::Debug;

use crate::{Error, ErrorKind, Result};

/// How the bytes of a page are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packed {
    /// As they are.
    #[default]
    Not,
    /// As an LZ4 block.
    Lz4,
    /// As the bits that its numbers, or its rows, don't share.
    Bits,
}

/// An entry of the image's directory: the position and the proof of a page, a long value, a node of
/// the directory or the catalog. All zeros means no object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// The offset in the image, in bytes: a multiple of the unit.
    pub place: u64,
    /// XXH3-64 of the bytes, with the place as its seed.
    pub(crate) sum: u64,
    /// The last transaction of the backfill that wrote it.
    pub(crate) txid: u64,
    /// How many bytes are stored, at least 1 and less than 2^31. The rest of a page is zeros.
    pub(crate) len: u32,
    /// How they are to be read, if they are a page.
    pub(crate) packed: Packed,
    /// The number of the backfill that wrote it, modulo 2^32.
    pub(crate) backfill: u32,
}

impl Stored {
    /// The length of an encoded entry, in bytes.
    pub(crate) const LEN: usize = 32;

    /// The bit of the encoded length of a compressed page.
    pub(crate) const PACKED: u32 = 1 << 31;

    /// The bit that is set beside it if the page is stored as bits. Alone it is a part of the length of a long value.
    pub(crate) const BITS: u32 = 1 << 30;

    /// True if it is a page that is compressed.
    pub(crate) fn is_packed(&self) -> bool {
        self.packed != Packed::Not
    }

    /// Encodes the entry.
    pub(crate) fn encode(&self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[..8].copy_from_slice(&self.place.to_le_bytes());
        out[8..16].copy_from_slice(&self.sum.to_le_bytes());
        out[16..24].copy_from_slice(&self.txid.to_le_bytes());
        let packed = match self.packed {
            Packed::Not => 0,
            Packed::Lz4 => Self::PACKED,
            Packed::Bits => Self::PACKED | Self::BITS,
        };
        out[24..28].copy_from_slice(&(self.len | packed).to_le_bytes());
        out[28..].copy_from_slice(&self.backfill.to_le_bytes());
        out
    }

    /// Decodes an entry; `None` for an empty one.
    pub(crate) fn decode(bytes: &[u8; Self::LEN]) -> Option<Self> {
        let eight = |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).copied();
        let four = |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).copied();
        let len = u32::from_le_bytes(four(24)?);
        let (packed, len) = match (len & Self::PACKED != 0, len & Self::BITS != 0) {
            (false, _) => (Packed::Not, len),
            (true, false) => (Packed::Lz4, len & !Self::PACKED),
            (true, true) => (Packed::Bits, len & !Self::PACKED & !Self::BITS),
        };
        let stored = Self {
            place: u64::from_le_bytes(eight(0)?),
            sum: u64::from_le_bytes(eight(8)?),
            txid: u64::from_le_bytes(eight(16)?),
            len,
            packed,
            backfill: u32::from_le_bytes(four(28)?),
        };
        (stored.len > 0).then_some(stored)
    }

    /// Returns the checksum of bytes at a place.
    pub(crate) fn sum_of(place: u64, bytes: &[u8]) -> u64 {
        xxhash_rust::xxh3::xxh3_64_with_seed(bytes, place)
    }
}

/// The source of stored bytes.
pub trait Source: Send + Sync + Debug {
    /// Reads stored bytes into `out`, which has exactly their length, and verifies them.
    ///
    /// # Errors
    /// `Io`; `Corrupt` if the bytes differ from those written.
    fn read(&self, stored: &Stored, out: &mut [u8]) -> Result<()>;

    /// Does what [`read`](Self::read) does, for bytes on which nothing but speed depends: if they are damaged, the rest
    /// of the root can be used as before.
    ///
    /// # Errors
    /// As `read`.
    fn read_spare(&self, stored: &Stored, out: &mut [u8]) -> Result<()> {
        self.read(stored, out)
    }

    /// Checks that there are that many bytes at that position, with any contents.
    ///
    /// # Errors
    /// `Io`; `Corrupt` if there are fewer.
    fn holds(&self, stored: &Stored) -> Result<()>;
}

/// True if an error says that a part of an image can't be read.
pub(super) fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io | ErrorKind::PageLost)
}
