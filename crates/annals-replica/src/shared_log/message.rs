//! The bytes of a message in a log.
//!
//! ```text
//! 0   magic "ANLG"           16  from: txid, chain     56  nonce
//! 4   version, kind, zeros   32  end: txid, chain      64  payload
//! 8   sequence               48  part, parts           ..  check (8 bytes)
//! ```
//!
//! All numbers are little-endian. The check is XXH3-64 over everything before it, seeded with the nonce.
//! `docs/shared-log.md` describes each field; a test compares it with the constants here.

use annals::{Cursor, Txid};
use annals_storage::bytes::{Fields, Layout};
use bytes::{BufMut as _, Bytes, BytesMut};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The first bytes of a message.
pub(super) const MAGIC: [u8; 4] = *b"ANLG";
/// The version of the format.
pub(super) const VERSION: u8 = 1;
/// The bytes before the payload.
pub(super) const HEADER_LEN: usize = 64;
/// The bytes after the payload.
pub(super) const CHECK_LEN: usize = 8;
/// The bytes of a message beside its payload.
pub(super) const OVERHEAD: usize = HEADER_LEN + CHECK_LEN;

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The header of the journal: the first message of a log.
    Beginning,
    /// Frames of transactions, or a part of them.
    Frames,
    /// Nothing: it takes a sequence, so that no message which expected it can come later.
    Fence,
}

impl Kind {
    const fn code(self) -> u8 {
        match self {
            Self::Beginning => 1,
            Self::Frames => 2,
            Self::Fence => 3,
        }
    }

    fn of(code: u8) -> Option<Self> {
        [Self::Beginning, Self::Frames, Self::Fence].into_iter().find(|kind| kind.code() == code)
    }
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    /// The sequence that it must have in the log: a copy at another place doesn't count.
    pub(super) sequence: u64,
    /// The cursor that it follows.
    pub(super) from: Cursor,
    /// The cursor after it; of a part, after the whole.
    pub(super) end: Cursor,
    /// Which part of some transactions it is, from 0 on.
    pub(super) part: u32,
    /// How many parts they have: they are consecutive messages.
    pub(super) parts: u32,
    /// A random number, which makes any two messages differ.
    pub(super) nonce: u64,
}

impl Head {
    /// True if the message ends some transactions.
    pub(super) const fn is_last(&self) -> bool {
        self.part + 1 == self.parts
    }

    /// Returns the sequence of the first of its parts.
    pub(super) fn first(&self) -> u64 {
        self.sequence.saturating_sub(u64::from(self.part))
    }
}

/// Returns the bytes of a message.
pub(super) fn encode(head: &Head, payload: &[u8]) -> Bytes {
    let mut header = Layout([0; HEADER_LEN]);
    header.put(0, MAGIC);
    header.put(4, [VERSION, head.kind.code()]);
    header.put(8, head.sequence.to_le_bytes());
    header.put(16, head.from.txid.0.to_le_bytes());
    header.put(24, head.from.chain.to_le_bytes());
    header.put(32, head.end.txid.0.to_le_bytes());
    header.put(40, head.end.chain.to_le_bytes());
    header.put(48, head.part.to_le_bytes());
    header.put(52, head.parts.to_le_bytes());
    header.put(56, head.nonce.to_le_bytes());
    let mut bytes = BytesMut::with_capacity(OVERHEAD + payload.len());
    bytes.put_slice(&header.0);
    bytes.put_slice(payload);
    let check = xxh3_64_with_seed(&bytes, head.nonce);
    bytes.put_slice(&check.to_le_bytes());
    bytes.freeze()
}

/// Reads a message; `None` if it doesn't verify. Returns its payload.
pub(super) fn decode(bytes: &[u8]) -> Option<(Head, &[u8])> {
    let (rest, check) = bytes.split_last_chunk::<CHECK_LEN>()?;
    let (header, payload) = rest.split_first_chunk::<HEADER_LEN>()?;
    let from = Fields(header);
    let nonce = from.u64(56);
    let [version, kind, zeros @ ..] = from.array::<4>(4);
    let is_ours = from.array(0) == MAGIC && version == VERSION && zeros == [0, 0];
    if !is_ours || xxh3_64_with_seed(rest, nonce) != u64::from_le_bytes(*check) {
        return None;
    }
    let cursor = |at| Cursor { txid: Txid(from.u64(at)), chain: from.u64(at + 8) };
    let (part, parts) = (from.u32(48), from.u32(52));
    let head = Head {
        kind: Kind::of(kind)?,
        sequence: from.u64(8),
        from: cursor(16),
        end: cursor(32),
        part,
        parts,
        nonce,
    };
    (part < parts).then_some((head, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        let cursor = |txid| Cursor { txid: Txid(txid), chain: txid << 40 | 5 };
        let (from, end) = (cursor(7), cursor(9));
        Head { kind: Kind::Frames, sequence: 12, from, end, part: 1, parts: 3, nonce: 0xfeed }
    }

    #[test]
    fn each_flipped_bit_and_each_cut_is_found() {
        let bytes = encode(&head(), b"some frames");
        assert_eq!(decode(&bytes), Some((head(), &b"some frames"[..])));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&flipped), None, "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert_eq!(decode(&bytes[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn the_document_has_the_fields_where_they_are() {
        let document = include_str!("../../../../docs/shared-log.md");
        let rows = [
            "| 0 | 4 | magic: `ANLG` |",
            "| 4 | 1 | version: 1 |",
            "| 8 | 8 | sequence |",
            "| 16 | 16 | from: txid, chain |",
            "| 32 | 16 | end: txid, chain |",
            "| 48 | 4 | part |",
            "| 52 | 4 | parts |",
            "| 56 | 8 | nonce |",
            "| 64 | .. | payload |",
        ];
        assert_eq!((MAGIC, VERSION, HEADER_LEN), (*b"ANLG", 1, 64));
        for row in rows {
            assert!(document.contains(row), "docs/shared-log.md lacks {row}");
        }
        for (kind, code) in [(Kind::Beginning, 1), (Kind::Frames, 2), (Kind::Fence, 3)] {
            assert!(kind.code() == code && Kind::of(code) == Some(kind));
        }
    }
}
