//! The reader: follows the chain of frames from one point on, verifying each.

use annals_schema::Txid;
use std::io;

use super::format::{self, FRAME_HEADER_LEN, Point};
use super::frame::{self, FrameHeader, Spot, Trailer, Verified};
use super::head::SlotCopies;
use annals_storage::{Storage, step};

/// How much is read at once, after some smaller reads: whoever looks at a few frames reads little.
const WINDOW: usize = 1 << 20;
/// How much is read first.
const FIRST_WINDOW: usize = 1 << 13;
/// The alignment of frames.
const STEP: usize = 8;
const _: () = assert!(STEP as u64 == format::FRAME_ALIGN);

/// Reads verified frames in order.
///
/// Invariants
/// 1. `position`, `txid` and `chain` are the end of the verified part: committed frames, and the data frames after
///    them.
/// 2. No more memory is taken than the file is long.
/// 3. `parts` has the parts of a long event, of which the frame that was read last has one.
pub struct FrameReader<'s> {
    storage: &'s dyn Storage,
    /// The hash of the segment's header, if it is known.
    segment: Option<u64>,
    /// The slots of the file, if wrong stored chains are to be seen through.
    witness: Option<SlotCopies>,
    len: u64,
    position: u64,
    chain: u64,
    /// The last transaction that committed.
    txid: u64,
    window: Vec<u8>,
    window_at: u64,
    /// How much the next window has.
    step: usize,
    parts: Vec<u8>,
    /// Where the frame with the next part begins.
    parts_end: u64,
}

/// A verified frame.
pub struct Frame<'r> {
    /// Its header.
    pub header: FrameHeader,
    /// All of it.
    pub bytes: &'r [u8],
    /// Its events. The frames of a long event have none but the last, which has all of the event.
    pub payload: &'r [u8],
    /// The chain before it.
    pub(crate) previous: u64,
    /// Its chain: the previous chain of the next frame.
    pub chain: u64,
    /// Where it ends.
    pub end: u64,
    /// True if the stored chain differs.
    pub(crate) is_repaired: bool,
}

impl Frame<'_> {
    /// Appends the whole frame to a buffer, with the right chain.
    #[inline]
    pub fn append_to(&self, buffer: &mut Vec<u8>) {
        let chain = self.chain.to_le_bytes();
        let before = self.bytes.len().saturating_sub(chain.len());
        buffer.extend_from_slice(self.bytes.get(..before).unwrap_or_default());
        buffer.extend_from_slice(&chain);
    }

    /// Returns where the payload is in the file.
    #[inline]
    pub const fn payload_at(&self) -> u64 {
        self.header.position + FRAME_HEADER_LEN as u64
    }

    /// Returns the end of the commit if this is a commit frame, else where the frame ends.
    #[inline]
    pub const fn point_before(&self) -> Point {
        Point {
            position: self.header.position,
            txid: Txid(self.header.txid.saturating_sub(1)),
            chain: self.previous,
        }
    }
}

impl<'s> FrameReader<'s> {
    /// Begins at a point between two transactions. `segment` is the hash of the segment's header, and `len` the end
    /// up to which to read.
    pub fn new(storage: &'s dyn Storage, segment: u64, from: Point, len: u64) -> Self {
        Self {
            storage,
            segment: Some(segment),
            witness: None,
            len,
            position: from.position,
            chain: from.chain,
            txid: from.txid.0,
            window: Vec::new(),
            window_at: 0,
            step: FIRST_WINDOW,
            parts: Vec::new(),
            parts_end: 0,
        }
    }

    /// Reads all up to an end into a buffer, whatever that holds, and has it as the window. A frame that ends later isn't
    /// there then.
    ///
    /// # Errors
    /// Those of reading.
    pub fn at_once(mut self, end: u64, mut buffer: Vec<u8>) -> io::Result<Self> {
        self.len = self.len.min(end);
        let wanted = usize::try_from(self.len.saturating_sub(self.position));
        // Zeros are written only where the buffer was shorter.
        buffer.resize(wanted.map_err(io::Error::other)?, 0);
        let read = self.storage.read_at(self.position, &mut buffer)?;
        buffer.truncate(read);
        (self.window, self.window_at) = (buffer, self.position);
        Ok(self)
    }

    /// Returns what was read last, and where that begins.
    #[must_use]
    pub fn into_window(self) -> (u64, Vec<u8>) {
        (self.window_at, self.window)
    }

    /// Accepts frames by their payload check alone, for a file without any header.
    pub fn without_header(self) -> Self {
        Self { segment: None, ..self }
    }

    /// Accepts a frame with a wrong stored chain, if a slot or later frames confirm the right one.
    #[inline]
    pub fn confirming(self, slots: &SlotCopies) -> Self {
        Self { witness: Some(*slots), ..self }
    }

    /// Returns where the next frame would begin.
    #[inline]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Sets the end up to which to read.
    pub(crate) const fn set_len(&mut self, len: u64) {
        self.len = len;
    }

    /// Returns the end of the verified part; between two transactions that is the point after a commit frame.
    #[inline]
    pub const fn point(&self) -> Point {
        Point { position: self.position, txid: Txid(self.txid), chain: self.chain }
    }

    /// Returns the next frame, or `None` where nothing verifies any more: not a frame, one of
    /// another history, or a damaged one.
    #[allow(clippy::should_implement_trait, reason = "an iterator can't lend what it has read")]
    #[inline]
    pub fn next(&mut self) -> io::Result<Option<Frame<'_>>> {
        let Some((header, verified)) = self.next_alone()? else { return Ok(None) };
        let chain = verified.chain_after(&header, self.chain);
        if chain != verified.trailer.chain && !self.confirms(&header, chain)? {
            return Ok(None);
        }
        Ok(Some(self.step(header, chain)))
    }

    /// True if the computed chain of a frame is right: a slot confirms it, or the chain of later frames reaches a
    /// slot or a frame made for this file.
    pub fn confirms(&mut self, header: &FrameHeader, chain: u64) -> io::Result<bool> {
        let Some(slots) = step!(WrongChainRefused, self.witness, else None) else {
            return Ok(false);
        };
        let position = header.position + header.frame_len();
        let txid = header.txid.saturating_sub(u64::from(!header.is_commit()));
        let point = Point { position, txid: Txid(txid), chain };
        let slots = || slots.iter().flatten().flatten();
        if slots().any(|slot| slot.point == point) {
            return Ok(true);
        }
        let secret = slots().max_by_key(|slot| slot.sequence).map(|slot| slot.secret);
        let len = self.storage.len()?;
        // It takes over the window of bytes: else each wrong chain would read them again.
        let mut ahead = Self {
            segment: self.segment,
            window: std::mem::take(&mut self.window),
            window_at: self.window_at,
            ..Self::new(self.storage, 0, point, len)
        };
        let mut is_confirmed = false;
        while let Some(frame) = ahead.next()?.filter(|_| !is_confirmed) {
            let trailer = Trailer::of(frame.bytes).zip(secret);
            is_confirmed =
                trailer.is_some_and(|(trailer, secret)| trailer.is_proven(&frame.header, &secret));
            let end = ahead.point();
            is_confirmed |= slots().any(|slot| slot.point == end);
        }
        (self.window, self.window_at) = (ahead.window, ahead.window_at);
        self.fill(header.position, header.frame_len())?;
        Ok(is_confirmed)
    }

    /// Returns the frame that is next if it verifies alone.
    fn next_alone(&mut self) -> io::Result<Option<(FrameHeader, Verified)>> {
        let Some(txid) = self.txid.checked_add(1) else { return Ok(None) };
        let Some(header) = self.header_at(self.position, txid)? else { return Ok(None) };
        if header.txid != txid {
            return Ok(None);
        }
        Ok(self.verify_at(&header)?.map(|verified| (header, verified)))
    }

    fn step(&mut self, header: FrameHeader, chain: u64) -> Frame<'_> {
        let previous = std::mem::replace(&mut self.chain, chain);
        self.position = header.position + header.frame_len();
        if header.is_commit() {
            self.txid = header.txid;
        }
        self.frame(header, previous, chain)
    }

    /// Reads the header of a frame at any position, if it verifies by itself: its number is at least `txid`.
    pub fn header_at(&mut self, at: u64, txid: u64) -> io::Result<Option<FrameHeader>> {
        self.fill(at, FRAME_HEADER_LEN as u64)?;
        let spot = Spot { position: at, segment: self.segment, txid };
        let header = self
            .bytes(at, FRAME_HEADER_LEN as u64)
            .first_chunk()
            .and_then(|bytes| FrameHeader::decode(bytes, spot));
        Ok(header.filter(|header| header.frame_len() <= self.len.saturating_sub(at)))
    }

    /// Returns the end of the frame with this header.
    pub(crate) fn trailer_of(&mut self, header: &FrameHeader) -> io::Result<Option<Trailer>> {
        self.fill(header.position, header.frame_len())?;
        Ok(Trailer::of(self.bytes(header.position, header.frame_len())))
    }

    /// Verifies the frame with this header alone.
    pub fn verify_at(&mut self, header: &FrameHeader) -> io::Result<Option<Verified>> {
        self.fill(header.position, header.frame_len())?;
        Ok(Verified::alone(self.bytes(header.position, header.frame_len()), header))
    }

    /// True if a commit frame that verifies by itself ends at a point, and stores its chain.
    ///
    /// Cost: reads a few times the frame's length; the whole file if there is no such frame.
    pub fn ends_at(&mut self, end: Point) -> io::Result<bool> {
        self.len = self.len.min(end.position);
        let mut distance = 1 << 12;
        loop {
            let first = end.position.saturating_sub(distance).max(format::FRAMES_AT);
            let mut at = first;
            while let Some(place) = self.next_magic(at)? {
                at = place + format::FRAME_ALIGN;
                let Some(header) = self.header_at(place, end.txid.0)? else { continue };
                let is_last = header.position + header.frame_len() == end.position;
                if is_last && header.txid == end.txid.0 && header.is_commit() {
                    let verified = self.verify_at(&header)?;
                    return Ok(verified.is_some_and(|verified| verified.trailer.chain == end.chain));
                }
            }
            if first == format::FRAMES_AT || self.len < end.position {
                return Ok(false);
            }
            distance = distance.saturating_mul(2);
        }
    }

    /// Returns the frame with this header, which was verified last.
    pub fn frame(&mut self, mut header: FrameHeader, previous: u64, chain: u64) -> Frame<'_> {
        let end = header.position + header.frame_len();
        let is_continued = header.position == self.parts_end && !header.is_first();
        if !is_continued {
            self.parts.clear();
        }
        if header.has_more() || is_continued {
            let whole = self.bytes(header.position, header.frame_len()).to_vec();
            self.parts.extend_from_slice(frame::payload(&whole, &header).0);
        }
        self.parts_end = if header.has_more() { end } else { 0 };
        let bytes = self.bytes(header.position, header.frame_len());
        let (payload, time) = frame::payload(bytes, &header);
        header.time = time.unwrap_or(header.time);
        let payload = match (header.has_more(), is_continued) {
            (true, _) => &[],
            (false, true) => self.parts.as_slice(),
            (false, false) => payload,
        };
        let is_repaired = Trailer::of(bytes).is_some_and(|trailer| trailer.chain != chain);
        Frame { header, bytes, payload, previous, chain, end, is_repaired }
    }

    /// Returns true if nothing begins at the position: the file ends there, or zeros follow. (A frame whose
    /// writing was interrupted has its beginning.)
    pub(crate) fn starts_with_zeros(&mut self) -> io::Result<bool> {
        self.fill(self.position, FRAME_HEADER_LEN as u64)?;
        Ok(self.rest(self.position).iter().take(FRAME_HEADER_LEN).all(|&byte| byte == 0))
    }

    /// Finds the first byte that is not zero from `at` on.
    pub fn first_nonzero(&mut self, mut at: u64) -> io::Result<Option<u64>> {
        while at < self.len {
            let len = (self.len - at).min(WINDOW as u64);
            self.fill(at, len)?;
            let bytes = self.bytes(at, len);
            if bytes.is_empty() {
                break;
            }
            if let Some(place) = bytes.iter().position(|&byte| byte != 0) {
                return Ok(Some(at + place as u64));
            }
            at += len;
        }
        Ok(None)
    }

    /// Finds the next place, a multiple of the frames' alignment, where a frame may begin.
    pub fn next_magic(&mut self, from: u64) -> io::Result<Option<u64>> {
        let mut at = from.next_multiple_of(format::FRAME_ALIGN);
        while at < self.len {
            // The window is searched first: reading again from each position would make the cost of a long tail of
            // small frames quadratic.
            self.fill(at, format::FRAME_ALIGN)?;
            let bytes = self.rest(at);
            if bytes.is_empty() {
                break;
            }
            let found = bytes.chunks(STEP).position(|word| word.starts_with(&format::FRAME_MAGIC));
            if let Some(place) = found {
                return Ok(Some(at + (place * STEP) as u64));
            }
            at += bytes.len() as u64;
        }
        Ok(None)
    }

    /// Returns bytes that are in the window; empty if they aren't (the file ends before).
    fn bytes(&self, at: u64, len: u64) -> &[u8] {
        let start = at.checked_sub(self.window_at).and_then(|start| usize::try_from(start).ok());
        let len = usize::try_from(len).ok();
        let range = start.zip(len).and_then(|(start, len)| Some(start..start.checked_add(len)?));
        range.and_then(|range| self.window.get(range)).unwrap_or_default()
    }

    /// Returns all bytes from `at` on that are in the window.
    fn rest(&self, at: u64) -> &[u8] {
        let start = at.checked_sub(self.window_at).and_then(|start| usize::try_from(start).ok());
        start.and_then(|start| self.window.get(start..)).unwrap_or_default()
    }

    /// Loads bytes into the window, up to the end of the file. Bytes in the window aren't read again.
    fn fill(&mut self, at: u64, len: u64) -> io::Result<()> {
        let end = at.saturating_add(len).min(self.len);
        let window_end = self.window_at + self.window.len() as u64;
        if at >= end || (at >= self.window_at && end <= window_end) {
            return Ok(());
        }
        let wanted = (end - at).max(self.step as u64).min(self.len - at);
        self.step = (self.step * 4).min(WINDOW);
        let wanted = usize::try_from(wanted).map_err(io::Error::other)?;
        let (kept, len) = (self.rest(at).len(), self.window.len());
        self.window.copy_within(len - kept.., 0);
        self.window.resize(wanted, 0);
        self.window_at = at;
        let read = match self.window.get_mut(kept..) {
            Some(room) => self.storage.read_at(at + kept as u64, room),
            None => Ok(0),
        };
        self.window.truncate(kept + *read.as_ref().unwrap_or(&0));
        read.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::frame::{Making, finish};
    use super::*;
    use annals_storage::{Directory, MemoryDirectory};
    use std::sync::Arc;

    const SEGMENT: u64 = 9;
    const START: Point = Point { position: format::FRAMES_AT, txid: Txid(0), chain: 3 };

    /// Returns three commits of one frame each, and their ends.
    fn commits() -> (Arc<dyn Storage>, Vec<Point>) {
        let storage = MemoryDirectory::new().create("journal").unwrap();
        let (mut end, mut ends) = (START, Vec::new());
        for txid in 1..=3 {
            let kind = format::KIND_COMMIT;
            let position = end.position;
            let (level, flags, length, durable, nonce, time) = (0, 0, 5, None, txid, 0);
            let header =
                FrameHeader { kind, level, flags, length, txid, position, durable, nonce, time };
            let mut bytes = vec![0; FRAME_HEADER_LEN];
            bytes.extend_from_slice(b"event");
            let making = Making { segment: SEGMENT, previous: end.chain, secret: &[7; 16] };
            let chain = finish(&mut bytes, &header, making);
            storage.write_at(position, &bytes).unwrap();
            end = Point { position: position + bytes.len() as u64, txid: Txid(txid), chain };
            ends.push(end);
        }
        (storage, ends)
    }

    #[test]
    fn no_frame_reaches_beyond_the_limit() {
        let (storage, ends) = commits();
        let frames = |limit| {
            let mut reader = FrameReader::new(&*storage, SEGMENT, START, limit);
            let mut count = 0;
            while reader.next().unwrap().is_some() {
                count += 1;
            }
            count
        };
        for (before, end) in ends.iter().enumerate() {
            assert_eq!(frames(end.position - 1), before);
            assert_eq!(frames(end.position), before + 1);
        }
        assert_eq!(frames(u64::MAX), 3);
    }

    #[test]
    fn a_commit_ends_only_at_its_own_point() {
        let (storage, ends) = commits();
        let is_end = |end: Point| {
            FrameReader::new(&*storage, SEGMENT, START, u64::MAX).ends_at(end).unwrap()
        };
        for end in ends {
            assert!(is_end(end));
            assert!(!is_end(Point { chain: end.chain ^ 1, ..end }));
            assert!(!is_end(Point { txid: Txid(end.txid.0 - 1), ..end }));
            assert!(!is_end(Point { position: end.position - 8, ..end }));
            assert!(!is_end(Point { position: end.position + 8, ..end }));
        }
    }
}
