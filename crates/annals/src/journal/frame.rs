//! Frames: the checksummed units of the journal.

use super::format::{
    self, CHAIN_LEN, FLAG_EXPLICIT_TIME, FRAME_ALIGN, FRAME_HEADER_LEN, FRAME_MAGIC, Fields,
    Layout, hash,
};
use super::level::Level;
use super::mistakes::{Mistake, is_made};

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: u8,
    /// The code of the commit level.
    pub(crate) level: u8,
    pub(crate) flags: u16,
    /// The length of the payload.
    pub(crate) length: u32,
    /// Zeros between the payload and the chain, a multiple of 8: so that the next frame begins in a
    /// sector of its own.
    pub(crate) padding: u32,
    pub(crate) txid: u64,
    pub(crate) position: u64,
    pub(crate) previous: u64,
    pub(crate) durable: u64,
    pub(crate) nonce: u64,
    pub(crate) time: i64,
}

impl FrameHeader {
    const CHECK_AT: usize = FRAME_HEADER_LEN - 8;

    pub(crate) fn encode(&self) -> [u8; FRAME_HEADER_LEN] {
        let mut to = Layout([0; FRAME_HEADER_LEN]);
        to.put(0, FRAME_MAGIC);
        to.put(4, [self.kind, self.level]);
        to.put(6, self.flags.to_le_bytes());
        to.put(8, self.length.to_le_bytes());
        to.put(12, self.padding.to_le_bytes());
        to.put(16, self.txid.to_le_bytes());
        to.put(24, self.position.to_le_bytes());
        to.put(32, self.previous.to_le_bytes());
        to.put(40, self.durable.to_le_bytes());
        to.put(48, self.nonce.to_le_bytes());
        to.put(56, self.time.to_le_bytes());
        to.seal(Self::CHECK_AT);
        to.0
    }

    /// Reads a header that stands at `position`; `None` if it is none, belongs elsewhere, or is
    /// damaged.
    pub(crate) fn decode(bytes: &[u8; FRAME_HEADER_LEN], position: u64) -> Option<Self> {
        let from = Fields(bytes);
        let valid = from.array(0) == FRAME_MAGIC
            && from.u64(24) == position
            && u64::from(from.u32(12)).is_multiple_of(FRAME_ALIGN)
            && from.checked(Self::CHECK_AT);
        let [kind, level] = from.array(4);
        valid.then(|| Self {
            kind,
            level,
            flags: from.u16(6),
            length: from.u32(8),
            padding: from.u32(12),
            txid: from.u64(16),
            position,
            previous: from.u64(32),
            durable: from.u64(40),
            nonce: from.u64(48),
            time: i64::from_le_bytes(from.array(56)),
        })
    }

    /// Gives the length of the whole frame in bytes, padding and chain included.
    pub(crate) fn frame_len(&self) -> u64 {
        frame_len(u64::from(self.length)) + u64::from(self.padding)
    }

    pub(crate) const fn is_commit(&self) -> bool {
        self.kind == format::KIND_COMMIT
    }

    /// Tells whether the segment ends with it.
    pub(crate) const fn is_seal(&self) -> bool {
        self.kind == format::KIND_SEAL
    }

    /// Tells whether it is the mark of an erasure.
    pub(crate) const fn is_erasure(&self) -> bool {
        self.kind == format::KIND_ERASURE
    }

    /// Tells whether the payload is events.
    pub(crate) const fn has_events(&self) -> bool {
        matches!(self.kind, format::KIND_DATA | format::KIND_COMMIT)
    }

    /// Gives the first thing about the frame that this version doesn't understand and may not
    /// ignore.
    pub(crate) fn unknown(&self) -> Option<String> {
        if self.kind & format::KIND_IGNORABLE != 0 {
            return None;
        }
        if self.is_seal() {
            return None;
        }
        if !self.has_events() {
            return Some(format!("a frame of kind {:#04x}", self.kind));
        }
        if Level::of_code(self.level).is_none() {
            return Some(format!("commit level {}", self.level));
        }
        let flags = self.flags & !FLAG_EXPLICIT_TIME;
        (flags != 0).then(|| format!("a frame with flags {flags:#06x}"))
    }

    pub(crate) const fn has_explicit_time(&self) -> bool {
        self.flags & FLAG_EXPLICIT_TIME != 0
    }
}

/// Gives the length of a frame with a payload of so many bytes, without more padding than it needs.
pub(crate) const fn frame_len(payload: u64) -> u64 {
    (FRAME_HEADER_LEN as u64 + payload).next_multiple_of(FRAME_ALIGN) + CHAIN_LEN as u64
}

/// Finishes a frame in place: `frame` is room for the header, then the payload. Gives the chain.
pub(crate) fn finish(frame: &mut Vec<u8>, header: &FrameHeader) -> u64 {
    if let Some(room) = frame.first_chunk_mut() {
        *room = header.encode();
    }
    frame.resize(frame.len().next_multiple_of(8) + header.padding as usize, 0);
    let chain = hash(frame);
    frame.extend_from_slice(&chain.to_le_bytes());
    chain
}

/// Verifies a whole frame whose header was decoded; gives its chain.
pub(crate) fn verify(frame: &[u8]) -> Option<u64> {
    let (body, stored) = frame.split_last_chunk::<CHAIN_LEN>()?;
    let (chain, stored) = (hash(body), u64::from_le_bytes(*stored));
    (chain == stored || is_made(Mistake::TornFrameAccepted)).then_some(stored)
}

/// Gives the payload of a whole frame.
pub(crate) fn payload<'f>(frame: &'f [u8], header: &FrameHeader) -> &'f [u8] {
    let end = FRAME_HEADER_LEN + header.length as usize;
    frame.get(FRAME_HEADER_LEN..end).unwrap_or_default()
}
