//! The seal: the last frame of a segment, which says that the journal goes on in the next.

use crate::event::compact;
use crate::journal::format::{FRAME_HEADER_LEN, Header, KIND_SEAL, Point};
use crate::journal::frame::{self, FrameHeader};
use crate::journal::reader::Frame;
use crate::{Error, Result};

/// What a seal says, and where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seal {
    /// The number of the next segment.
    pub(crate) next: u64,
    /// The txid of the first transaction that is committed there.
    pub(crate) first_txid: u64,
    /// The chain of the seal: the previous chain in the header of the next segment.
    pub(crate) chain: u64,
    /// Where it ends, and the segment with it.
    pub(crate) end: u64,
}

impl Seal {
    /// Reads a seal frame; `None` if it says nothing that can be.
    pub(crate) fn of(frame: &Frame<'_>) -> Option<Self> {
        let mut payload = frame.payload;
        let next = compact::take(&mut payload).ok()?;
        let name = compact::take(&mut payload).ok()?;
        (name == payload.len() as u64).then_some(Self {
            next,
            first_txid: frame.header.txid,
            chain: frame.chain,
            end: frame.end,
        })
    }

    /// Gives the point behind the seal.
    pub(crate) const fn point(&self) -> Point {
        Point { position: self.end, txid: self.first_txid - 1, chain: self.chain }
    }

    /// Tells whether a header is that of the segment that follows.
    pub(crate) fn is_followed_by(&self, header: &Header) -> bool {
        header.segment == self.next
            && header.previous_chain == self.chain
            && header.first_own_txid() == self.first_txid
    }
}

/// A seal that is to be written.
#[derive(Clone, Debug)]
pub(crate) struct Sealing {
    pub(crate) position: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) seal: Seal,
}

impl Sealing {
    /// Makes the seal of a segment that ends at `end`. `kept_as` is what the next segment will be called
    /// when it is sealed itself.
    pub(crate) fn new(end: Point, next: u64, kept_as: &str, nonce: u64) -> Result<Self> {
        let mut bytes = vec![0; FRAME_HEADER_LEN];
        compact::put(&mut bytes, next);
        compact::put(&mut bytes, kept_as.len() as u64);
        bytes.extend_from_slice(kept_as.as_bytes());
        let length = u32::try_from(bytes.len() - FRAME_HEADER_LEN)
            .map_err(|_| Error::invalid("a file's name is shorter than 4 GiB"))?;
        let header = FrameHeader {
            kind: KIND_SEAL,
            level: 0,
            flags: 0,
            length,
            padding: 0,
            txid: end.txid + 1,
            position: end.position,
            previous: end.chain,
            durable: end.position,
            nonce,
            time: 0,
        };
        let chain = frame::finish(&mut bytes, &header);
        let end = end.position + bytes.len() as u64;
        let seal = Seal { next, first_txid: header.txid, chain, end };
        Ok(Self { position: header.position, bytes, seal })
    }
}
