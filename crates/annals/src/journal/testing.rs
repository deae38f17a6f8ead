//! The codec of frames by itself, for fuzzing.

use super::format::FRAME_HEADER_LEN;
use super::frame::{self, FrameHeader};

/// What a frame's header says, believable or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The code of its kind.
    pub kind: u8,
    /// The code of its level.
    pub level: u8,
    /// Its flags.
    pub flags: u16,
    /// The length of its payload in bytes.
    pub length: u32,
    /// How many zeros follow the payload, a multiple of 8.
    pub padding: u32,
    /// Its transaction.
    pub txid: u64,
    /// Where it says that it is.
    pub position: u64,
    /// The chain before it.
    pub previous: u64,
    /// How far the journal was known to be flushed.
    pub durable: u64,
    /// A number for this attempt.
    pub nonce: u64,
    /// The time of its commit.
    pub time: i64,
}

/// Encodes a frame with right checksums; gives its chain too.
#[must_use]
pub fn encode(frame: &Frame, payload: &[u8]) -> (Vec<u8>, u64) {
    let header = FrameHeader {
        kind: frame.kind,
        level: frame.level,
        flags: frame.flags,
        length: frame.length,
        padding: frame.padding,
        txid: frame.txid,
        position: frame.position,
        previous: frame.previous,
        durable: frame.durable,
        nonce: frame.nonce,
        time: frame.time,
    };
    let mut bytes = vec![0; FRAME_HEADER_LEN];
    bytes.extend_from_slice(payload);
    let chain = frame::finish(&mut bytes, &header);
    (bytes, chain)
}

/// Decodes the frame that stands at `position` of a journal; gives its payload and its chain too.
/// `None` if none begins there that is whole and right.
#[must_use]
pub fn decode(bytes: &[u8], position: u64) -> Option<(Frame, &[u8], u64)> {
    let header = FrameHeader::decode(bytes.first_chunk()?, position)?;
    let bytes = bytes.get(..usize::try_from(header.frame_len()).ok()?)?;
    let chain = frame::verify(bytes)?;
    let frame = Frame {
        kind: header.kind,
        level: header.level,
        flags: header.flags,
        length: header.length,
        padding: header.padding,
        txid: header.txid,
        position,
        previous: header.previous,
        durable: header.durable,
        nonce: header.nonce,
        time: header.time,
    };
    Some((frame, frame::payload(bytes, &header), chain))
}
