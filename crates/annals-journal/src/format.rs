//! The bytes of a journal: positions and layouts. `docs/format.md` says the same in words, and a test compares the
//! two.
//!
//! All numbers are little-endian. Nothing read here is believed before its checksum agrees.

use annals_schema::Txid;
use xxhash_rust::xxh3::xxh3_64_with_seed;

pub use annals_storage::Point;
pub use annals_storage::bytes::hash;
use annals_storage::bytes::{Fields, Layout};
pub use annals_storage::header::{HEADER_AT, HEADER_LEN, MAGIC, SLOT_AT};
use annals_storage::header::{STATED_LEN, SUM_AT, is_header};

/// The version of the format that this library writes.
pub const VERSION: u32 = 1;
/// How each copy of a hard slot begins.
pub const SLOT_MAGIC: [u8; 4] = *b"SLOT";
/// How each copy of the live block's content begins.
pub const LIVE_MAGIC: [u8; 4] = *b"LIVE";
/// How each frame begins: with a byte that is no UTF-8.
pub const FRAME_MAGIC: [u8; 2] = *b"\xF5A";

/// Where the live block is.
pub const LIVE_AT: u64 = 12288;
/// The positions of the two copies in a slot block: each in its own sector.
pub const SLOT_COPY_AT: [u64; 2] = [512, 1024];
/// Where, in the live block, its two copies are.
pub const LIVE_COPY_AT: [u64; 2] = [0, 512];
/// Length of a copy of a slot.
pub const SLOT_LEN: usize = 96;
/// Length of a copy of the live block's content.
pub const LIVE_LEN: usize = 64;
/// Where the first frame is.
pub const FRAMES_AT: u64 = 16384;

/// Length of a frame's header.
pub const FRAME_HEADER_LEN: usize = 32;
/// Length of the end of a frame: the check of its payload, its tag, and its chain.
pub const FRAME_TRAILER_LEN: usize = 16;
/// The sector size to which frames of a rewritten journal are padded, if they were padded.
pub const SECTOR: u64 = 4096;
/// Frames begin at multiples of this.
pub const FRAME_ALIGN: u64 = 8;
/// The most bytes of a frame, with header and trailer.
pub const MAX_FRAME_LEN: u64 = 512 << 10;
/// The most bytes of a frame's payload.
pub const MAX_PAYLOAD: usize = (512 << 10) - FRAME_HEADER_LEN - FRAME_TRAILER_LEN;

/// A data frame: events of a transaction that continues.
pub const KIND_DATA: u8 = 1;
/// A commit frame: the last events of a transaction, which it commits.
pub const KIND_COMMIT: u8 = 2;
/// A seal frame: the segment ends here; the payload names the next one.
pub const KIND_SEAL: u8 = 3;
/// A frame kind, reserved: the salt of an opening, from which the key of its frames is derived.
pub const KIND_OPENING: u8 = 4;
/// So many segments a journal has at most.
pub const MAX_SEGMENTS: u64 = 1 << 20;
/// So many bytes a segment has at most.
pub const MAX_SEGMENT_LEN: u64 = 1 << 44;
/// The mark of an erasure: readers that don't know it skip it.
pub const KIND_ERASURE: u8 = 0x81;
/// An incompatible feature: values were erased, and the segment was rewritten.
pub const FEATURE_ERASED: u64 = 1;
/// An incompatible feature, reserved: what the header's cipher says is encrypted.
pub const FEATURE_ENCRYPTED: u64 = 2;
/// An incompatible feature, reserved: payloads of frames may be compressed.
pub const FEATURE_COMPRESSED: u64 = 4;
/// An incompatible feature, reserved: there may be types of fields, or essential events, that version 1 doesn't have.
pub const FEATURE_EVENTS: u64 = 8;
/// Where the key slots are in each block that begins with a copy of the header. Reserved: zeros.
pub const KEY_SLOTS_AT: u64 = 2048;
/// The length of the key slots: eight of 256 bytes.
pub const KEY_SLOTS_LEN: u64 = 2048;
/// The length of what a cipher may keep after each copy of a slot and of the live block. Reserved: zeros.
pub const SEAL_LEN: u64 = 64;
/// A kind with this bit may be skipped by a reader that doesn't know it.
pub const KIND_IGNORABLE: u8 = 0x80;
/// The bits of a frame's flags that hold the code of its commit level.
pub const LEVEL_MASK: u8 = 3;
/// Flag: the program set the commit time.
pub const FLAG_EXPLICIT_TIME: u8 = 1 << 2;
/// Flag, reserved: the payload is compressed.
pub const FLAG_COMPRESSED: u8 = 1 << 3;
/// Flag, reserved: the payload is encrypted.
pub const FLAG_ENCRYPTED: u8 = 1 << 4;
/// Flag: the payload is a part of a long event, and the next frame has the next part.
pub const FLAG_MORE: u8 = 1 << 5;
/// Flag: the header has no room for the time, so the last 8 bytes of the payload are the time.
pub const FLAG_FAR_TIME: u8 = 1 << 6;
/// Flag: the frame is the first of its transaction.
pub const FLAG_FIRST: u8 = 1 << 7;

const _: () = assert!(HEADER_LEN as u64 <= SLOT_COPY_AT[0]);
const _: () = assert!(SLOT_COPY_AT[1] - SLOT_COPY_AT[0] >= 512 && SLOT_LEN <= 512);
const _: () = assert!(LIVE_LEN <= 512);
const _: () = assert!(SLOT_COPY_AT[1] + SLOT_LEN as u64 + SEAL_LEN <= KEY_SLOTS_AT);
const _: () = assert!(KEY_SLOTS_AT + KEY_SLOTS_LEN == 4096);
const _: () = assert!(LIVE_COPY_AT[1] - LIVE_COPY_AT[0] >= 512);
const _: () = assert!(SLOT_AT[1] - SLOT_AT[0] == 4096 && LIVE_AT - SLOT_AT[1] == 4096);
const _: () = assert!(FRAMES_AT - LIVE_AT == 4096 && FRAMES_AT.is_multiple_of(FRAME_ALIGN));
const _: () = assert!((FRAME_HEADER_LEN as u64).is_multiple_of(FRAME_ALIGN));
const _: () = assert!((MAX_PAYLOAD as u64).is_multiple_of(FRAME_ALIGN));
const _: () = assert!(MAX_FRAME_LEN < 1 << 24);

/// Returns the XXH3 hash of bytes, 64 bits, with a seed: the checks and the chain of a frame. With an unpredictable
/// seed, bytes can't be chosen that hash like others.
#[must_use]
pub fn seeded_hash(bytes: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(bytes, seed)
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The format's version.
    pub version: u32,
    /// Features that a reader and a writer may ignore.
    pub compatible: u64,
    /// Features that only a reader may ignore.
    pub read_only_compatible: u64,
    /// Features that no program may ignore.
    pub incompatible: u64,
    /// The journal's random id, the same in all its segments.
    pub journal_id: [u8; 16],
    /// The segment's number, from 0.
    pub segment: u64,
    /// The txid of the segment's first transaction; if that is the state itself, of the transaction whose
    /// state it is.
    pub first_txid: u64,
    /// The chain at the end of the previous segment; 0 in the first.
    pub previous_chain: u64,
    /// When the segment was created, in microseconds since 1970.
    pub created: i64,
    /// How payloads are encrypted: 0, they are not. Others are reserved.
    pub cipher: u64,
    /// Which key they are encrypted with. Reserved: zeros.
    pub key_id: [u8; 16],
    /// The cipher's parameters besides the key. Reserved: zeros.
    pub salt: [u8; 32],
    /// 1 if the segment's first transaction is the state itself; otherwise 0.
    pub state: u64,
    /// The random number of the last erasure that wrote the segment again, or the one before it; 0 if none did.
    pub erasure: u64,
    /// Zeros in this version. Kept as read: the chain begins with the hash of every byte.
    pub reserved: [u8; 88],
}

impl Header {
    /// Returns the bytes of the header.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut to = Layout([0; HEADER_LEN]);
        to.put(0, MAGIC);
        to.put(8, self.version.to_le_bytes());
        to.put(12, STATED_LEN.to_le_bytes());
        to.put(16, self.compatible.to_le_bytes());
        to.put(24, self.read_only_compatible.to_le_bytes());
        to.put(32, self.incompatible.to_le_bytes());
        to.put(40, self.journal_id);
        to.put(56, self.segment.to_le_bytes());
        to.put(64, self.first_txid.to_le_bytes());
        to.put(72, self.previous_chain.to_le_bytes());
        to.put(80, self.created.to_le_bytes());
        to.put(88, self.cipher.to_le_bytes());
        to.put(96, self.key_id);
        to.put(112, self.salt);
        to.put(144, self.state.to_le_bytes());
        to.put(152, self.erasure.to_le_bytes());
        to.put(160, self.reserved);
        to.seal(SUM_AT);
        to.0
    }

    /// Reads a header; `None` if the bytes are none, or damaged.
    #[must_use]
    pub fn decode(bytes: &[u8; HEADER_LEN]) -> Option<Self> {
        let from = Fields(bytes);
        is_header(bytes).then(|| Self {
            version: from.u32(8),
            compatible: from.u64(16),
            read_only_compatible: from.u64(24),
            incompatible: from.u64(32),
            journal_id: from.array(40),
            segment: from.u64(56),
            first_txid: from.u64(64),
            previous_chain: from.u64(72),
            created: i64::from_le_bytes(from.array(80)),
            cipher: from.u64(88),
            key_id: from.array(96),
            salt: from.array(112),
            state: from.u64(144),
            erasure: from.u64(152),
            reserved: from.array(160),
        })
    }

    /// Returns the bytes of the header of a segment whose previous chain isn't known yet: zeros there, and
    /// for the checksum.
    pub(crate) fn encode_unsealed(&self) -> [u8; HEADER_LEN] {
        let mut to = Layout(Self { previous_chain: 0, ..*self }.encode());
        to.put(SUM_AT, [0; 8]);
        to.0
    }

    /// Reads the output of [`encode_unsealed`](Self::encode_unsealed).
    pub(crate) fn decode_unsealed(bytes: &[u8; HEADER_LEN]) -> Option<Self> {
        let mut whole = Layout(*bytes);
        whole.seal(SUM_AT);
        Self::decode(&whole.0).filter(|header| header.encode_unsealed() == *bytes)
    }

    /// Returns the number of the last erasure, if there was one.
    #[must_use]
    pub const fn last_erasure(&self) -> Option<u64> {
        match self.incompatible & FEATURE_ERASED {
            0 => None,
            _ => Some(self.erasure),
        }
    }

    /// True if nothing that was before the segment is needed to know the state.
    #[must_use]
    pub const fn begins_with_state(&self) -> bool {
        self.state == 1
    }

    /// Returns the txid of the first transaction that is committed in the segment.
    #[must_use]
    pub fn first_own_txid(&self) -> u64 {
        self.first_txid + u64::from(self.begins_with_state())
    }

    /// True if replay may begin with this segment.
    #[must_use]
    pub const fn is_base(&self) -> bool {
        self.segment == 0 || self.begins_with_state()
    }

    /// Returns the hash of the header: the previous chain of the segment's first frame.
    #[must_use]
    pub fn hash(&self) -> u64 {
        hash(&self.encode())
    }
}

/// The secret of a file: 128 random bits that are in its slots and are never sent anywhere.
pub type Secret = [u8; 16];

/// The statement of a hard slot: everything up to its point is on permanent storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The position up to which the journal is known to be flushed.
    pub point: Point,
    /// The end of the zeroed space after it.
    pub zeroed_to: u64,
    /// Grows by one with each slot that is written: the largest is the newest.
    pub sequence: u64,
    /// The secret with which later frames prove their claims.
    pub secret: Secret,
}

impl Slot {
    const SUM_AT: usize = SLOT_LEN - 8;

    /// Returns the bytes of one copy. `header` is the hash of the segment's header.
    #[must_use]
    pub fn encode(&self, header: u64) -> [u8; SLOT_LEN] {
        let mut to = Layout([0; SLOT_LEN]);
        to.put(0, SLOT_MAGIC);
        to.put(8, self.point.position.to_le_bytes());
        to.put(16, self.point.txid.0.to_le_bytes());
        to.put(24, self.point.chain.to_le_bytes());
        to.put(32, self.zeroed_to.to_le_bytes());
        to.put(40, header.to_le_bytes());
        to.put(48, self.sequence.to_le_bytes());
        to.put(56, self.secret);
        to.seal(Self::SUM_AT);
        to.0
    }

    /// Reads one copy; `None` if it is none of this segment, or damaged.
    #[must_use]
    pub fn decode(bytes: &[u8; SLOT_LEN], header: u64) -> Option<Self> {
        let from = Fields(bytes);
        let valid = from.array(0) == SLOT_MAGIC
            && from.checked(Self::SUM_AT)
            && from.u64(40) == header
            && from.u64(8) >= FRAMES_AT;
        valid.then(|| Self {
            point: Point { position: from.u64(8), txid: Txid(from.u64(16)), chain: from.u64(24) },
            zeroed_to: from.u64(32),
            sequence: from.u64(48),
            secret: from.array(56),
        })
    }
}

/// The data of the live block, for other processes. Recovery never believes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// The process that writes; 0 when it closed.
    pub pid: u32,
    /// The last acknowledged transaction: the soft checkpoint.
    pub soft: Point,
    /// The position up to which the journal is known to be flushed: the hard checkpoint.
    pub hard: u64,
    /// True if a flush failed: the next writer must recover first.
    pub suspect: bool,
}

impl Live {
    const SUM_AT: usize = LIVE_LEN - 8;

    /// Returns the bytes of one copy.
    #[must_use]
    pub fn encode(&self) -> [u8; LIVE_LEN] {
        let mut to = Layout([0; LIVE_LEN]);
        to.put(0, LIVE_MAGIC);
        to.put(4, self.pid.to_le_bytes());
        to.put(8, self.soft.position.to_le_bytes());
        to.put(16, self.hard.to_le_bytes());
        to.put(24, self.soft.txid.0.to_le_bytes());
        to.put(32, self.soft.chain.to_le_bytes());
        to.put(40, u32::from(self.suspect).to_le_bytes());
        to.seal(Self::SUM_AT);
        to.0
    }

    /// Reads one copy; `None` if it is damaged or was never written.
    #[must_use]
    pub fn decode(bytes: &[u8; LIVE_LEN]) -> Option<Self> {
        let from = Fields(bytes);
        (from.array(0) == LIVE_MAGIC && from.checked(Self::SUM_AT)).then(|| Self {
            pid: from.u32(4),
            soft: Point { position: from.u64(8), txid: Txid(from.u64(24)), chain: from.u64(32) },
            hard: from.u64(16),
            suspect: from.u32(40) & 1 == 1,
        })
    }
}
