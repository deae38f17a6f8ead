//! Frames: the checksummed units of the journal.
//!
//! ```text
//! header (32 bytes) | payload | zeros up to a multiple of 8 | payload check, tag, chain (16 bytes)
//! ```
//!
//! Values that follow from the position aren't stored, but are hashed:
//!
//! 1. The header check covers the header, the position, the full txid and the segment header's hash.
//! 2. The payload check covers the header, with its check, and the payload: so a frame verifies alone.
//! 3. The chain covers that all, the tag, the position, and the chain before it.
//!
//! The nonce seeds all three. It is drawn when the payload is final, so no payload can be chosen that
//! hashes like another one. The tag proves, to those who know the secret of the file, that the frame was
//! made for it.

use siphasher::sip::SipHasher24;

use annals_storage::step;

use super::format::{
    self, FLAG_EXPLICIT_TIME, FLAG_FAR_TIME, FLAG_FIRST, FLAG_MORE, FRAME_ALIGN, FRAME_HEADER_LEN,
    FRAME_MAGIC, FRAME_TRAILER_LEN, FRAMES_AT, LEVEL_MASK, MAX_FRAME_LEN, Secret, seeded_hash,
};
use crate::{Error, ErrorKind, Result};
use annals_storage::bytes::{Fields, Layout};

/// Where the header check is, and how many bytes of the header are before it.
const CHECK_AT: usize = FRAME_HEADER_LEN - 4;
/// A durable position that isn't claimed.
const NO_CLAIM: u16 = u16::MAX;
/// How many bytes of the header the time takes.
const TIME_LEN: usize = 7;

/// The header of a frame, with the values that follow from its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// The code of its kind.
    pub kind: u8,
    /// The code of the commit level.
    pub level: u8,
    /// The flags, without the level.
    pub flags: u8,
    /// The length of the payload.
    pub length: u32,
    /// Its transaction.
    pub txid: u64,
    /// Where the frame is, in bytes from the start of the segment.
    pub position: u64,
    /// The end of a commit that the writer knew to be flushed, if it claims any.
    pub durable: Option<u64>,
    /// The seed of its hashes.
    pub nonce: u64,
    /// The time of the commit, in microseconds since 1970.
    pub time: i64,
}

/// The expected position of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub(crate) position: u64,
    /// The hash of the segment's header. Without it the header isn't checked.
    pub(crate) segment: Option<u64>,
    /// The least txid that the frame can have.
    pub(crate) txid: u64,
}

/// What the header of a frame says of its extent, wherever the frame belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The length of the whole frame in bytes.
    pub len: u64,
    /// True if it ends a transaction.
    pub is_commit: bool,
    /// The low bits of its transaction's number, as the frame has them.
    pub txid: u32,
    /// The time in it, in microseconds since 1970: that of the commit, if it is one.
    pub time: i64,
    /// True if a program gave the time, and no clock.
    pub explicit_time: bool,
}

impl Outline {
    /// Reads it; `None` if no frame begins so. Verifies nothing else.
    #[must_use]
    pub fn of(header: &[u8; FRAME_HEADER_LEN]) -> Option<Self> {
        let from = Fields(header);
        let [a, b, c] = from.array(4);
        let len = frame_len(u64::from(u32::from_le_bytes([a, b, c, 0])));
        let [kind, flags] = from.array(2);
        let is_frame = from.array(0) == FRAME_MAGIC && len <= MAX_FRAME_LEN;
        let txid = u32::from_le_bytes(from.array(24));
        let is_commit = kind == format::KIND_COMMIT;
        let (time, explicit_time) = (time_of(from.array(7)), flags & FLAG_EXPLICIT_TIME != 0);
        is_frame.then_some(Self { len, is_commit, txid, time, explicit_time })
    }
}

/// The end of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    pub(crate) check: u32,
    pub(crate) tag: u32,
    /// The chain that is stored.
    pub chain: u64,
}

impl FrameHeader {
    /// Returns the bytes, with their check. `segment` is the hash of the segment's header.
    pub(crate) fn encode(&self, segment: u64) -> [u8; FRAME_HEADER_LEN] {
        let mut to = Layout([0; FRAME_HEADER_LEN]);
        to.put(0, FRAME_MAGIC);
        to.put(2, [self.kind, self.level & LEVEL_MASK | self.flags]);
        let [a, b, c, _] = self.length.to_le_bytes();
        to.put(4, [a, b, c]);
        let [time @ .., _] = self.time.to_le_bytes();
        to.put(7, time);
        to.put(14, self.distance().to_le_bytes());
        to.put(16, self.nonce.to_le_bytes());
        let [txid @ .., _, _, _, _] = self.txid.to_le_bytes();
        to.put(24, txid);
        let check = check_of_header(&to.0, self, segment);
        to.put(CHECK_AT, check.to_le_bytes());
        to.0
    }

    /// Reads the header of a frame; `None` if it is none, belongs elsewhere, or is damaged.
    pub(crate) fn decode(bytes: &[u8; FRAME_HEADER_LEN], spot: Spot) -> Option<Self> {
        let from = Fields(bytes);
        if from.array(0) != FRAME_MAGIC {
            return None;
        }
        let [kind, flags] = from.array(2);
        let [a, b, c] = from.array(4);
        let distance = from.u16(14);
        let back = u64::from(distance) * FRAME_ALIGN;
        let durable = spot.position.checked_sub(back).filter(|&at| at >= FRAMES_AT);
        let header = Self {
            kind,
            level: flags & LEVEL_MASK,
            flags: flags & !LEVEL_MASK,
            length: u32::from_le_bytes([a, b, c, 0]),
            txid: full_txid(spot.txid, from.u32(24)),
            position: spot.position,
            durable: durable.filter(|_| distance != NO_CLAIM),
            nonce: from.u64(16),
            time: time_of(from.array(7)),
        };
        let stored = from.u32(CHECK_AT);
        let verifies =
            spot.segment.is_none_or(|segment| check_of_header(bytes, &header, segment) == stored);
        (verifies && header.frame_len() <= MAX_FRAME_LEN).then_some(header)
    }

    /// Returns the distance to the durable position, in units of 8 bytes.
    fn distance(&self) -> u16 {
        let distance = self.durable.and_then(|durable| self.position.checked_sub(durable));
        let units = distance.and_then(|distance| u16::try_from(distance / FRAME_ALIGN).ok());
        units.unwrap_or(NO_CLAIM)
    }

    /// Returns the length of the whole frame in bytes.
    pub fn frame_len(&self) -> u64 {
        frame_len(u64::from(self.length))
    }

    /// True if it ends a transaction.
    #[inline]
    pub const fn is_commit(&self) -> bool {
        self.kind == format::KIND_COMMIT
    }

    /// True if the segment ends with it.
    #[inline]
    pub const fn is_seal(&self) -> bool {
        self.kind == format::KIND_SEAL
    }

    /// True if it is the mark of an erasure.
    #[inline]
    pub const fn is_erasure(&self) -> bool {
        self.kind == format::KIND_ERASURE
    }

    /// True if the payload is events.
    #[inline]
    pub const fn has_events(&self) -> bool {
        matches!(self.kind, format::KIND_DATA | format::KIND_COMMIT)
    }

    /// True if the next frame has the next part of the same event.
    #[inline]
    pub const fn has_more(&self) -> bool {
        self.flags & FLAG_MORE != 0
    }

    /// True if it is the first frame of its transaction.
    #[inline]
    pub const fn is_first(&self) -> bool {
        self.flags & FLAG_FIRST != 0
    }

    /// True if the payload ends with the time.
    #[inline]
    pub const fn has_far_time(&self) -> bool {
        self.flags & FLAG_FAR_TIME != 0
    }

    /// Refuses a frame that this version doesn't understand and may not ignore, in a file of this name.
    ///
    /// # Errors
    /// `Unsupported`.
    #[inline]
    pub fn check_known(&self, shown: &str) -> Result<()> {
        let Some(unknown) = self.unknown() else { return Ok(()) };
        let message = format!(
            "{shown}: holds {unknown} at position {}, which only a newer version of Annals understands: use a newer \
             program",
            self.position
        );
        Err(Error::new(ErrorKind::Unsupported, message))
    }

    /// Returns the first thing about the frame that this version doesn't understand and may not
    /// ignore.
    pub fn unknown(&self) -> Option<String> {
        if self.kind & format::KIND_IGNORABLE != 0 {
            return None;
        }
        if self.is_seal() {
            return None;
        }
        if !self.has_events() {
            return Some(match self.kind {
                format::KIND_OPENING => "the salt of an encrypted opening".to_owned(),
                kind => format!("a frame of kind {kind:#04x}"),
            });
        }
        let known = FLAG_EXPLICIT_TIME | FLAG_MORE | FLAG_FIRST | FLAG_FAR_TIME;
        let flags = self.flags & !known;
        match flags {
            0 => None,
            format::FLAG_COMPRESSED => Some("a compressed frame".to_owned()),
            format::FLAG_ENCRYPTED => Some("an encrypted frame".to_owned()),
            flags => Some(format!("a frame with flags {flags:#04x}")),
        }
    }

    pub(crate) const fn has_explicit_time(&self) -> bool {
        self.flags & FLAG_EXPLICIT_TIME != 0
    }

    /// Returns the time and the flags that give its position; with `true` also in the payload.
    #[inline]
    pub fn with_time(self, time: i64, explicit: bool) -> (Self, bool) {
        let [bytes @ .., _] = time.to_le_bytes();
        let is_far = time_of(bytes) != time;
        let flags = self.flags & !(FLAG_EXPLICIT_TIME | FLAG_FAR_TIME)
            | if explicit { FLAG_EXPLICIT_TIME } else { 0 }
            | if is_far { FLAG_FAR_TIME } else { 0 };
        (Self { time, flags, ..self }, is_far)
    }
}

impl Trailer {
    /// Reads the end of a frame.
    #[inline]
    pub fn of(frame: &[u8]) -> Option<Self> {
        let from = Fields::<FRAME_TRAILER_LEN>(frame.last_chunk()?);
        Some(Self { check: from.u32(0), tag: from.u32(4), chain: from.u64(8) })
    }

    /// Returns the durable position that a frame claims, if its tag proves that it was made for the file with this
    /// secret.
    pub(crate) fn claim(&self, header: &FrameHeader, secret: &Secret) -> Option<u64> {
        let durable = step!(ClaimsIgnored, header.durable, else None);
        durable.filter(|_| self.is_proven(header, secret))
    }

    /// True if the frame was made for the file of this secret.
    #[inline]
    pub fn is_proven(&self, header: &FrameHeader, secret: &Secret) -> bool {
        step!(TagNotChecked, self.tag == tag(header, self.check, secret), else true)
    }
}

/// Returns a number from its sign and its lower 7 bytes.
fn time_of(bytes: [u8; TIME_LEN]) -> i64 {
    let [a, b, c, d, e, f, g] = bytes;
    i64::from_le_bytes([0, a, b, c, d, e, f, g]) >> 8
}

/// Returns the smallest txid, not below `least`, whose lower half this is.
fn full_txid(least: u64, low: u32) -> u64 {
    let ahead = u64::from(low).wrapping_sub(least) & u64::from(u32::MAX);
    least.saturating_add(ahead)
}

fn check_of_header(bytes: &[u8; FRAME_HEADER_LEN], header: &FrameHeader, segment: u64) -> u32 {
    let mut hashed = Layout([0; FRAME_HEADER_LEN + 24]);
    let before: [u8; CHECK_AT] = Fields(bytes).array(0);
    hashed.put(0, before);
    hashed.put(FRAME_HEADER_LEN, header.position.to_le_bytes());
    hashed.put(FRAME_HEADER_LEN + 8, header.txid.to_le_bytes());
    hashed.put(FRAME_HEADER_LEN + 16, segment.to_le_bytes());
    low(seeded_hash(&hashed.0, header.nonce))
}

/// Returns the tag of a frame: SipHash-2-4 (Aumasson and Bernstein, 2012), of which 32 bits are stored.
fn tag(header: &FrameHeader, check: u32, secret: &Secret) -> u32 {
    let mut bytes = Layout([0; 32]);
    bytes.put(0, header.position.to_le_bytes());
    bytes.put(8, header.txid.to_le_bytes());
    bytes.put(16, header.nonce.to_le_bytes());
    bytes.put(24, header.distance().to_le_bytes());
    bytes.put(28, check.to_le_bytes());
    low(SipHasher24::new_with_key(secret).hash(&bytes.0))
}

fn chain(hash: u64, trailer: Trailer, header: &FrameHeader, previous: u64) -> u64 {
    let mut bytes = Layout([0; 32]);
    bytes.put(0, hash.to_le_bytes());
    bytes.put(8, trailer.check.to_le_bytes());
    bytes.put(12, trailer.tag.to_le_bytes());
    bytes.put(16, header.position.to_le_bytes());
    bytes.put(24, previous.to_le_bytes());
    seeded_hash(&bytes.0, header.nonce)
}

/// Returns the lower half.
const fn low(hash: u64) -> u32 {
    let [a, b, c, d, ..] = hash.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// Returns the length of a frame with a payload of this length.
pub const fn frame_len(payload: u64) -> u64 {
    (FRAME_HEADER_LEN as u64 + payload).next_multiple_of(FRAME_ALIGN) + FRAME_TRAILER_LEN as u64
}

/// The inputs of a frame besides its header and its payload.
#[derive(Clone, Copy, Debug)]
pub struct Making<'m> {
    /// The hash of the segment's header.
    pub segment: u64,
    /// The chain before it.
    pub previous: u64,
    /// The secret of the file.
    pub secret: &'m Secret,
}

/// Finishes a frame in place: `frame` is room for the header, then the payload. Returns the chain.
pub fn finish(frame: &mut Vec<u8>, header: &FrameHeader, making: Making<'_>) -> u64 {
    let header = &FrameHeader { nonce: seed(header.nonce), ..*header };
    if let Some(room) = frame.first_chunk_mut() {
        *room = header.encode(making.segment);
    }
    frame.resize(frame.len().next_multiple_of(8), 0);
    let hash = seeded_hash(frame, header.nonce);
    let check = low(hash);
    let mut trailer = Trailer { check, tag: tag(header, check, making.secret), chain: 0 };
    trailer.chain = chain(hash, trailer, header, making.previous);
    frame.extend_from_slice(&trailer.check.to_le_bytes());
    frame.extend_from_slice(&trailer.tag.to_le_bytes());
    frame.extend_from_slice(&trailer.chain.to_le_bytes());
    trailer.chain
}

/// Returns the nonce of a frame: the drawn one.
fn seed(nonce: u64) -> u64 {
    step!(NonceNotRandom, nonce, else 0)
}

/// The result of verifying a frame whose header was decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The end of the frame.
    pub trailer: Trailer,
    hash: u64,
}

impl Verified {
    /// Verifies a whole frame alone: `None` if its payload differs from the written one.
    pub(crate) fn alone(frame: &[u8], header: &FrameHeader) -> Option<Self> {
        let trailer = Trailer::of(frame)?;
        let body = frame.get(..frame.len() - FRAME_TRAILER_LEN)?;
        let hash = seeded_hash(body, header.nonce);
        let verifies = step!(TornFrameAccepted, low(hash) == trailer.check, else true);
        verifies.then_some(Self { trailer, hash })
    }

    /// Returns the chain that the frame must have after another one.
    pub fn chain_after(&self, header: &FrameHeader, previous: u64) -> u64 {
        let follows = || chain(self.hash, self.trailer, header, previous);
        step!(TornFrameAccepted, follows(), else self.trailer.chain)
    }
}

/// Returns the payload of a whole frame, and its time if that is in the payload.
pub(crate) fn payload<'f>(frame: &'f [u8], header: &FrameHeader) -> (&'f [u8], Option<i64>) {
    let end = FRAME_HEADER_LEN + header.length as usize;
    let payload = frame.get(FRAME_HEADER_LEN..end).unwrap_or_default();
    match payload.split_last_chunk().filter(|_| header.has_far_time()) {
        Some((events, time)) => (events, Some(i64::from_le_bytes(*time))),
        None => (payload, None),
    }
}

#[cfg(test)]
mod tests {
    use super::super::level::Level;
    use super::*;

    const SECRET: Secret = [7; 16];

    fn header() -> FrameHeader {
        FrameHeader {
            kind: format::KIND_COMMIT,
            level: Level::Checksummed.code(),
            flags: 0,
            length: 0,
            txid: (1 << 40) + 5,
            position: 1 << 20,
            durable: Some((1 << 20) - 64),
            nonce: 0x1234_5678_9ABC_DEF0,
            time: -5,
        }
    }

    fn spot(txid: u64) -> Spot {
        Spot { position: 1 << 20, segment: Some(99), txid }
    }

    #[test]
    fn a_header_is_read_as_it_was_written_only_in_its_place() {
        let bytes = header().encode(99);
        assert_eq!(FrameHeader::decode(&bytes, spot((1 << 40) - 7)), Some(header()));
        assert_eq!(FrameHeader::decode(&bytes, spot(6)), None, "another txid");
        let elsewhere = Spot { position: (1 << 20) + 8, ..spot(1 << 40) };
        assert_eq!(FrameHeader::decode(&bytes, elsewhere), None);
        assert_eq!(FrameHeader::decode(&bytes, Spot { segment: Some(98), ..spot(1 << 40) }), None);
    }

    #[test]
    fn a_claim_too_far_back_is_none() {
        let near = FrameHeader { durable: Some((1 << 20) - 8 * 65_534), ..header() };
        assert_eq!(
            FrameHeader::decode(&near.encode(9), Spot { segment: Some(9), ..spot(1 << 40) }),
            Some(near)
        );
        let far = FrameHeader { durable: Some((1 << 20) - 8 * 65_535), ..header() };
        let read = FrameHeader::decode(&far.encode(99), spot(1 << 40)).unwrap();
        assert_eq!(read.durable, None);
    }

    #[test]
    fn times_of_any_size_are_kept() {
        for time in [0, -1, (1 << 55) - 1, -(1 << 55), 1 << 55, i64::MIN, i64::MAX] {
            let (_, is_far) = header().with_time(time, true);
            assert_eq!(is_far, !(-(1 << 55)..1 << 55).contains(&time), "{time}");
        }
    }

    #[test]
    fn a_tag_proves_only_with_the_secret() {
        let mut frame = vec![0; FRAME_HEADER_LEN];
        frame.extend_from_slice(b"payload");
        let header = FrameHeader { length: 7, ..header() };
        finish(&mut frame, &header, Making { segment: 99, previous: 3, secret: &SECRET });
        assert_eq!(frame.len() as u64, header.frame_len());
        let verified = Verified::alone(&frame, &header).unwrap();
        assert_eq!(verified.chain_after(&header, 3), verified.trailer.chain);
        assert_ne!(verified.chain_after(&header, 4), verified.trailer.chain);
        assert_eq!(verified.trailer.claim(&header, &SECRET), header.durable);
        assert_eq!(verified.trailer.claim(&header, &[8; 16]), None);
        let other = FrameHeader { durable: Some((1 << 20) - 8), ..header };
        assert_eq!(verified.trailer.claim(&other, &SECRET), None);
    }
}
