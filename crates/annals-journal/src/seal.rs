//! The seal: the last frame of a segment, which says that the journal continues in the next.

use crate::format::{
    FEATURE_ERASED, FLAG_FIRST, FRAME_HEADER_LEN, HEADER_LEN, Header, KIND_SEAL, Point, Secret,
};
use crate::frame::{self, FrameHeader, Making};
use crate::reader::Frame;
use crate::{Error, Result};
use annals_event::compact;
use annals_schema::Txid;
use annals_storage::bytes::Fields;

/// The contents of a seal, and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// The header of the next segment.
    pub next: Header,
    /// Where it ends, and the segment with it.
    pub end: u64,
}

impl Seal {
    /// Reads a seal frame; `None` if it says nothing that can be.
    #[inline]
    pub fn of(frame: &Frame<'_>) -> Option<Self> {
        let next = next_in(frame.payload)?;
        let next = Header { previous_chain: frame.chain, ..next };
        (next.first_own_txid() == frame.header.txid).then_some(Self { next, end: frame.end })
    }

    /// Returns its chain: the previous chain in the header of the next segment.
    pub(crate) const fn chain(&self) -> u64 {
        self.next.previous_chain
    }

    /// Returns the point after the seal.
    pub(crate) fn point(&self) -> Point {
        let txid = self.next.first_own_txid().saturating_sub(1);
        Point { position: self.end, txid: Txid(txid), chain: self.chain() }
    }

    /// True if a header is that of the next segment, which an erasure may have rewritten since.
    #[inline]
    pub fn is_followed_by(&self, header: &Header) -> bool {
        let unerased = |header: &Header| Header {
            incompatible: header.incompatible & !FEATURE_ERASED,
            erasure: 0,
            ..*header
        };
        let header = unerased(header);
        header == unerased(&self.next) || header == unerased(&self.without_state().next)
    }

    /// Returns the seal as if the next segment didn't begin with the state: that can be made from the seal
    /// alone.
    pub(crate) fn without_state(&self) -> Self {
        let first_txid = self.next.first_own_txid();
        Self { next: Header { state: 0, first_txid, ..self.next }, end: self.end }
    }
}

/// Returns the header of the next segment from the payload of a seal. Values that follow from the seal's chain aren't
/// in it: the previous chain, and the checksum.
fn next_in(payload: &[u8]) -> Option<Header> {
    let mut rest = payload;
    let name = usize::try_from(compact::take(&mut rest).ok()?).ok()?;
    Header::decode_unsealed(rest.get(name..)?.try_into().ok()?)
}

/// Returns the header of the next segment from the bytes of a seal's frame, of which nothing is verified.
#[must_use]
pub fn next_in_seal(frame: &[u8]) -> Option<Header> {
    let length: [u8; FRAME_HEADER_LEN] = *frame.first_chunk()?;
    let [a, b, c] = Fields(&length).array(4);
    let length = usize::try_from(u32::from_le_bytes([a, b, c, 0])).ok()?;
    let payload = frame.get(FRAME_HEADER_LEN..FRAME_HEADER_LEN.checked_add(length)?)?;
    let previous_chain = u64::from_le_bytes(*frame.last_chunk()?);
    Some(Header { previous_chain, ..next_in(payload)? })
}

/// Returns the payload of a seal: the name that the next segment is kept by when it is sealed itself,
/// and its header.
fn payload_of(next: &Header, kept_as: &str, out: &mut Vec<u8>) {
    compact::put(out, kept_as.len() as u64);
    out.extend_from_slice(kept_as.as_bytes());
    out.extend_from_slice(&next.encode_unsealed());
}

/// Returns the payload of a seal with another header of the next segment; `None` if it isn't one.
#[inline]
pub fn with_next(payload: &[u8], change: impl FnOnce(Header) -> Header) -> Option<Vec<u8>> {
    let next = change(next_in(payload)?);
    let mut changed = payload.get(..payload.len().checked_sub(HEADER_LEN)?)?.to_vec();
    changed.extend_from_slice(&next.encode_unsealed());
    Some(changed)
}

/// A seal that is to be written.
#[derive(Clone, Debug)]
pub struct Sealing {
    /// The position of the seal's frame.
    pub position: u64,
    /// The bytes of the frame.
    pub bytes: Vec<u8>,
    /// Its contents.
    pub seal: Seal,
}

impl Sealing {
    /// Makes the seal of a segment that ends at `end`. `next` is the header of the next segment, without the previous
    /// chain; `kept_as` is that segment's name after it is sealed itself.
    pub fn new(end: Point, next: Header, kept_as: &str, by: Sealer) -> Result<Self> {
        let mut bytes = vec![0; FRAME_HEADER_LEN];
        payload_of(&next, kept_as, &mut bytes);
        let length = u32::try_from(bytes.len() - FRAME_HEADER_LEN)
            .map_err(|_| Error::invalid("a file's name is shorter than 4 GiB"))?;
        let header = FrameHeader {
            kind: KIND_SEAL,
            level: 0,
            flags: FLAG_FIRST,
            length,
            txid: end.txid.0 + 1,
            position: end.position,
            durable: Some(end.position),
            nonce: by.nonce,
            time: 0,
        };
        let making = Making { segment: by.segment, previous: end.chain, secret: &by.secret };
        let chain = frame::finish(&mut bytes, &header, making);
        let end = end.position + bytes.len() as u64;
        let seal = Seal { next: Header { previous_chain: chain, ..next }, end };
        Ok(Self { position: header.position, bytes, seal })
    }
}

/// The inputs of a seal.
#[derive(Clone, Copy, Debug)]
pub struct Sealer {
    /// The hash of the segment's header.
    pub segment: u64,
    /// The secret of the file.
    pub secret: Secret,
    /// The seed of the hashes of its frame.
    pub nonce: u64,
}
