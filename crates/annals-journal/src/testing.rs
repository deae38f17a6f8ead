//! The codec of frames alone: for fuzzing and tests.

use super::format::{FRAME_HEADER_LEN, Secret};
use super::frame::{self, FrameHeader, Making, Spot, Trailer, Verified};

/// The contents of a frame's header, plausible or not, and the frame's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The code of its kind.
    pub kind: u8,
    /// The code of its level.
    pub level: u8,
    /// Its flags, without the level.
    pub flags: u8,
    /// The length of its payload in bytes.
    pub length: u32,
    /// Its transaction.
    pub txid: u64,
    /// Where it is.
    pub position: u64,
    /// The position up to which it claims the journal to be flushed, if any.
    pub durable: Option<u64>,
    /// The seed of its hashes.
    pub nonce: u64,
    /// The time of its commit.
    pub time: i64,
}

/// Where a frame is, besides its position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// The hash of the segment's header.
    pub segment: u64,
    /// The chain before it.
    pub previous: u64,
    /// The secret of the file.
    pub secret: Secret,
}

/// A frame that verifies alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded<'f> {
    /// The contents of its header.
    pub frame: Frame,
    /// Its payload.
    pub payload: &'f [u8],
    /// The chain that is stored.
    pub chain: u64,
    /// True if that follows the chain before it.
    pub follows: bool,
    /// The position up to which it proves the file to be flushed.
    pub proven: Option<u64>,
}

impl Frame {
    const fn header(&self) -> FrameHeader {
        FrameHeader {
            kind: self.kind,
            level: self.level,
            flags: self.flags,
            length: self.length,
            txid: self.txid,
            position: self.position,
            durable: self.durable,
            nonce: self.nonce,
            time: self.time,
        }
    }
}

/// Encodes a frame with right checksums; returns its chain too.
#[must_use]
pub fn encode(frame: &Frame, payload: &[u8], around: Around) -> (Vec<u8>, u64) {
    let mut bytes = vec![0; FRAME_HEADER_LEN];
    bytes.extend_from_slice(payload);
    let Around { segment, previous, ref secret } = around;
    let chain = frame::finish(&mut bytes, &frame.header(), Making { segment, previous, secret });
    (bytes, chain)
}

/// Decodes the frame at `position` of a journal, whose txid is at least `txid`. `None` if none begins there that is
/// whole and right.
#[must_use]
pub fn decode(bytes: &[u8], position: u64, txid: u64, around: Around) -> Option<Decoded<'_>> {
    let spot = Spot { position, segment: Some(around.segment), txid };
    let header = FrameHeader::decode(bytes.first_chunk()?, spot)?;
    let bytes = bytes.get(..usize::try_from(header.frame_len()).ok()?)?;
    let verified = Verified::alone(bytes, &header)?;
    let Trailer { chain, .. } = verified.trailer;
    let (payload, time) = frame::payload(bytes, &header);
    let frame = Frame {
        kind: header.kind,
        level: header.level,
        flags: header.flags,
        length: header.length,
        txid: header.txid,
        position,
        durable: header.durable,
        nonce: header.nonce,
        time: time.unwrap_or(header.time),
    };
    let follows = verified.chain_after(&header, around.previous) == chain;
    let proven = verified.trailer.claim(&header, &around.secret);
    Some(Decoded { frame, payload, chain, follows, proven })
}
