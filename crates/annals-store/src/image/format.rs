//! The bytes of an image: positions and layouts. `docs/format.md` says the same in words, and a test compares the
//! two.
//!
//! All numbers are little-endian. Nothing read here is believed before its checksum agrees, and then its
//! lengths, places and heights are still checked.

use super::stored::Stored;
use annals_schema::Txid;
use annals_storage::Point;
use annals_storage::bytes::{Fields, Layout};

/// The version of the image's format that this library writes.
pub(crate) const IMAGE_VERSION: u32 = 1;
/// How an image begins.
pub(crate) const IMAGE_MAGIC: [u8; 8] = *b"\x89ANIMAG\n";
/// How each copy of a root begins.
pub(crate) const ROOT_MAGIC: [u8; 4] = *b"ROOT";
/// How each node of the directory begins.
pub(crate) const NODE_MAGIC: [u8; 4] = *b"NODE";
/// How each catalog begins.
pub(crate) const CATALOG_MAGIC: [u8; 4] = *b"CATL";
/// How each list of key frames begins.
pub(crate) const FRAMES_MAGIC: [u8; 4] = *b"KEYS";

/// The unit of allocation: objects begin at multiples of it.
pub(crate) const UNIT: u64 = 4096;
/// Length of the header, which is at the start of the file.
pub(crate) const IMAGE_HEADER_LEN: usize = 256;
/// Where the two root slots are.
pub(crate) const ROOT_AT: [u64; 2] = [4096, 8192];
/// The positions of the two copies in a root slot: each in its own sector.
pub(crate) const ROOT_COPY_AT: [u64; 2] = [512, 1024];
/// Length of a copy of a root.
pub(crate) const ROOT_LEN: usize = 192;
/// Where the first object may be.
pub(crate) const OBJECTS_AT: u64 = 12288;

/// How many entries a node has at most.
pub(crate) const FANOUT: usize = 64;
/// Length of a node's start, before its entries.
pub(crate) const NODE_HEAD_LEN: usize = 16;
/// Length of the longest node.
pub const NODE_MAX_LEN: usize = 2064;
/// The greatest height of an array: enough for any number of 64 bits.
pub const MAX_HEIGHT: u8 = 11;
/// Length of a catalog's start, before its arrays.
pub(crate) const CATALOG_HEAD_LEN: usize = 16;
/// Length of an array in a catalog.
pub(crate) const ARRAY_LEN: usize = 40;
/// Length of a list of key frames, before its roots.
pub(crate) const FRAMES_HEAD_LEN: usize = 8;
/// How many key frames there are at most.
pub(crate) const MAX_FRAMES: usize = 512;
/// The length of the longest page.
pub(crate) const LONGEST_PAGE: u32 = 16384;
/// The code of an array of pages.
pub(crate) const ARRAY_PAGES: u8 = 1;
/// The code of an array of long values.
pub(crate) const ARRAY_BYTES: u8 = 2;

const _: () = assert!(ROOT_COPY_AT[0] + ROOT_LEN as u64 <= ROOT_COPY_AT[1] && ROOT_LEN <= 512);
const _: () = assert!(ROOT_COPY_AT[0].is_multiple_of(512) && ROOT_COPY_AT[1].is_multiple_of(512));
const _: () = assert!(ROOT_AT[0] == UNIT && ROOT_AT[1] == 2 * UNIT && OBJECTS_AT == 3 * UNIT);
const _: () = assert!(NODE_MAX_LEN == NODE_HEAD_LEN + FANOUT * Stored::LEN);
const _: () = assert!(NODE_MAX_LEN as u64 <= UNIT && FANOUT == u64::BITS as usize);
const _: () = assert!(ARRAY_LEN == 8 + Stored::LEN);
const _: () =
    assert!(6 * MAX_HEIGHT as u32 >= u64::BITS && 6 * (MAX_HEIGHT as u32 - 1) < u64::BITS);
const _: () = assert!(IMAGE_HEADER_LEN as u64 <= UNIT);

/// The header of an image: which journal it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageHeader {
    /// The format's version.
    pub(crate) version: u32,
    /// Features that a reader and a writer may ignore.
    pub(crate) compatible: u64,
    /// Features that only a reader may ignore.
    pub(crate) read_only_compatible: u64,
    /// Features that no program may ignore.
    pub(crate) incompatible: u64,
    /// The journal that the image belongs to.
    pub(crate) identity: Identity,
    /// When the image was created, in microseconds since 1970.
    pub(crate) created: i64,
}

/// Which journal it is, and which of its segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The journal's random id.
    pub journal_id: [u8; 16],
    /// The number of a segment.
    pub segment: u64,
    /// The hash of that segment's header.
    pub segment_hash: u64,
}

/// Returns the id of the journal whose image begins with these bytes, whether the rest verifies or not; `None` if
/// no image begins so.
#[inline]
pub fn journal_id_of(bytes: &[u8]) -> Option<[u8; 16]> {
    let id = bytes.get(40..56).filter(|_| bytes.starts_with(&IMAGE_MAGIC))?;
    id.try_into().ok()
}

impl ImageHeader {
    const SUM_AT: usize = IMAGE_HEADER_LEN - 8;
    /// The length that the header states, which every version must keep.
    const LEN: u32 = 256;

    /// Returns the bytes of the header.
    pub(crate) fn encode(&self) -> [u8; IMAGE_HEADER_LEN] {
        let mut to = Layout([0; IMAGE_HEADER_LEN]);
        to.put(0, IMAGE_MAGIC);
        to.put(8, self.version.to_le_bytes());
        to.put(12, Self::LEN.to_le_bytes());
        to.put(16, self.compatible.to_le_bytes());
        to.put(24, self.read_only_compatible.to_le_bytes());
        to.put(32, self.incompatible.to_le_bytes());
        to.put(40, self.identity.journal_id);
        to.put(56, self.identity.segment.to_le_bytes());
        to.put(64, self.identity.segment_hash.to_le_bytes());
        to.put(72, self.created.to_le_bytes());
        to.seal(Self::SUM_AT);
        to.0
    }

    /// Reads a header; `None` if the bytes are none, or damaged.
    pub(crate) fn decode(bytes: &[u8; IMAGE_HEADER_LEN]) -> Option<Self> {
        let from = Fields(bytes);
        let valid =
            from.array(0) == IMAGE_MAGIC && from.checked(Self::SUM_AT) && from.u32(12) == Self::LEN;
        valid.then(|| Self {
            version: from.u32(8),
            compatible: from.u64(16),
            read_only_compatible: from.u64(24),
            incompatible: from.u64(32),
            identity: Identity {
                journal_id: from.array(40),
                segment: from.u64(56),
                segment_hash: from.u64(64),
            },
            created: i64::from_le_bytes(from.array(72)),
        })
    }

    /// Returns the checksum of the header, which its roots repeat.
    pub(crate) fn hash(&self) -> u64 {
        Fields(&self.encode()).u64(Self::SUM_AT)
    }
}

/// A state in an image: one for each backfill, in one of two slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// The number of the backfill that made it, from 1.
    pub number: u64,
    /// The segment of the journal that `point` is in.
    pub segment: u64,
    /// The point of the image in the journal.
    pub point: Point,
    /// When the backfill began, in microseconds since 1970.
    pub time: i64,
    /// Where the catalog is.
    pub catalog: Stored,
    /// Where the last of the objects ends that this root reaches, in bytes, up to a whole unit.
    pub end: u64,
    /// How many bytes of objects the backfill wrote.
    pub bytes: u64,
    /// How many objects the backfill wrote.
    pub(crate) objects: u64,
    /// Where the list of older roots is that are kept as key frames, if there are any.
    pub(crate) frames: Option<Stored>,
    /// How many more bytes the pages that it reaches would take if none was compressed.
    pub spared: u64,
}

impl Root {
    const SUM_AT: usize = ROOT_LEN - 8;

    /// Returns the bytes of one copy. `header` is the hash of the image's header.
    pub(crate) fn encode(&self, header: u64) -> [u8; ROOT_LEN] {
        let mut to = Layout([0; ROOT_LEN]);
        to.put(0, ROOT_MAGIC);
        to.put(8, self.number.to_le_bytes());
        to.put(16, self.segment.to_le_bytes());
        to.put(24, self.point.position.to_le_bytes());
        to.put(32, self.point.txid.0.to_le_bytes());
        to.put(40, self.point.chain.to_le_bytes());
        to.put(48, self.time.to_le_bytes());
        to.put(56, self.catalog.encode());
        to.put(88, self.end.to_le_bytes());
        to.put(96, self.bytes.to_le_bytes());
        to.put(104, self.objects.to_le_bytes());
        to.put(112, header.to_le_bytes());
        to.put(120, self.frames.map_or([0; Stored::LEN], |frames| frames.encode()));
        to.put(152, self.spared.to_le_bytes());
        to.seal(Self::SUM_AT);
        to.0
    }

    /// Reads one copy; `None` if it is of another image, damaged, or invalid.
    pub(crate) fn decode(bytes: &[u8; ROOT_LEN], header: u64) -> Option<Self> {
        let from = Fields(bytes);
        let valid = from.array(0) == ROOT_MAGIC
            && from.checked(Self::SUM_AT)
            && from.u64(112) == header
            && from.u64(8) > 0;
        let root = Self {
            number: from.u64(8),
            segment: from.u64(16),
            point: Point { position: from.u64(24), txid: Txid(from.u64(32)), chain: from.u64(40) },
            time: i64::from_le_bytes(from.array(48)),
            catalog: Stored::decode(&from.array(56))?,
            end: from.u64(88),
            bytes: from.u64(96),
            objects: from.u64(104),
            frames: match from.array(120) {
                frames if frames == [0; Stored::LEN] => None,
                frames => Some(Stored::decode(&frames)?),
            },
            spared: from.u64(152),
        };
        let fits = root.end.is_multiple_of(UNIT)
            && [Some(root.catalog), root.frames]
                .iter()
                .flatten()
                .all(|stored| check_place(stored, root.end).is_ok());
        (valid && fits).then_some(root)
    }

    /// Returns an upper bound of the memory that all objects of the root take, uncompressed, in bytes.
    #[inline]
    pub const fn memory(&self) -> u64 {
        self.end.saturating_add(self.spared)
    }

    /// True if the backfill of this root wrote an object: the object has the lower 32 bits of the root's number.
    pub(crate) fn wrote(&self, stored: &Stored) -> bool {
        u64::from(stored.backfill) == self.number & u64::from(u32::MAX)
    }
}

/// Checks that something can be stored where it claims to be, in a file of which `end` bytes are used.
pub(crate) fn check_place(stored: &Stored, end: u64) -> Result<(), &'static str> {
    if !stored.place.is_multiple_of(UNIT) {
        return Err("its place isn't a multiple of the unit");
    }
    if stored.place < OBJECTS_AT {
        return Err("it would be in the head of the file");
    }
    let last = stored.place.checked_add(u64::from(stored.len));
    if stored.len == 0 || last.is_none_or(|last| last > end) {
        return Err("it would reach beyond the used space");
    }
    Ok(())
}
