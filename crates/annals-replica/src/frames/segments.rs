//! The borders of segments, as the other side made them: a new replica begins with a segment's header; at a seal it
//! continues in a segment with the same header, and the same state if that begins with it.

use std::io;

use annals::internals::{SegmentBeginning, StateBlobs, continue_as, name_of};
use annals::journal::Erasure;
use annals::{Cursor, Database, Error, ErrorKind, Point, Result, Txid};
use annals_journal::format::{FRAMES_AT, HEADER_LEN, Header, Secret};
use annals_journal::segments::{Next, Seal, Sealing, next_in_seal};
use annals_journal::{FrameReader, Outline, first_slot, head_with, refuse_reading};
use annals_storage::{Directory, Spool, Storage, SystemClock};

/// Writes a new segment in an empty file: the frames of a spool, and then its head.
struct NewSegment {
    header: Header,
    frames: Spool,
}

impl NewSegment {
    fn write(&self, storage: &dyn Storage, secret: Secret) -> Result<SegmentBeginning> {
        let io = |error| Error::io("can't write the new segment", error);
        let start = Point {
            position: FRAMES_AT,
            txid: Txid(self.header.first_txid - 1),
            chain: self.header.hash(),
        };
        let mut reader =
            FrameReader::new(&self.frames, self.header.hash(), start, self.frames.end());
        let (mut blobs, mut commits) = (StateBlobs::default(), true);
        while let Some(frame) = reader.next().map_err(io)? {
            let is_mark = Erasure::of(&frame).is_some();
            if !(frame.header.has_events() || is_mark) || frame.header.unknown().is_some() {
                return Err(unlike("it holds a frame that isn't of a transaction"));
            }
            if !is_mark {
                commits = frame.header.is_commit();
                blobs.take(&frame, self.header.segment)?;
            }
            storage.write_at(frame.header.position, frame.bytes).map_err(io)?;
        }
        let point = reader.point();
        if point.position != self.frames.end() || !commits {
            return Err(unlike("it doesn't verify"));
        }
        if self.header.begins_with_state() && point.txid < Txid(self.header.first_txid) {
            return Err(unlike("it lacks the state with which its segment begins"));
        }
        let head = head_with(&self.header, &first_slot(point, secret));
        storage.write_at(0, &head).and_then(|()| storage.flush()).map_err(io)?;
        Ok(SegmentBeginning { point, blobs })
    }
}

fn unlike(what: &str) -> Error {
    Error::invalid(format!("the beginning of a segment was sent, but {what}"))
}

/// Creates the file of a new replica: `bytes` are the header of a segment that begins with the state or with nothing,
/// and the transactions after that, as [`Source::after`](super::Source::after) returns them without a cursor.
///
/// # Errors
/// `Invalid`: they are something else; `Unsupported`: of a newer version; `InUse`: there is such a file; `Io`.
pub fn begin_replica(directory: &dyn Directory, name: &str, bytes: &mut Spool) -> Result<Cursor> {
    let shown = directory.display(name);
    let io = |error: io::Error| Error::io(format!("{shown}: can't create the replica"), error);
    bytes.move_to(FRAMES_AT - HEADER_LEN as u64);
    let header = header_of(bytes).map_err(io)?;
    let header = header.ok_or_else(|| unlike("its header doesn't verify"))?;
    if !header.is_base() {
        return Err(unlike("it continues a segment that wasn't sent"));
    }
    refuse_reading(&header, &shown)?;
    let writing = NewSegment { header, frames: bytes.without(HEADER_LEN as u64).map_err(io)? };
    let fill = |storage: &dyn Storage, secret| writing.write(storage, secret);
    let (next, beginning) = Next::copy(directory, name, &header, &SystemClock, fill)?;
    match next.appear(directory, name).map_err(io)? {
        true => Ok(beginning.point.into()),
        false => {
            Err(Error::new(ErrorKind::InUse, format!("{shown}: there is such a file already")))
        }
    }
}

/// Returns the header of a segment that some bytes begin with; frames begin otherwise.
fn header_of(bytes: &Spool) -> io::Result<Option<Header>> {
    let mut header = [0; HEADER_LEN];
    let read = bytes.read_at(bytes.begin(), &mut header)?;
    Ok(Header::decode(&header).filter(|_| read == HEADER_LEN))
}

/// Where a segment begins in bytes that were copied from a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentStart {
    /// Its header.
    pub header: [u8; HEADER_LEN],
    /// The hash of that, which is the chain before its first frame.
    pub hash: u64,
    /// The segment's number.
    pub number: u64,
    /// The number of its first transaction: of the state, if it begins with that.
    pub first_txid: u64,
    /// The number of its first transaction that isn't the state.
    pub first_own_txid: u64,
    /// When it was begun, in microseconds since 1970.
    pub begun: i64,
    /// True if it is the oldest, or begins with the state: what is before it may be missing.
    pub is_base: bool,
    /// How many of the bytes end the segment before it: a seal; 0 if it is the first.
    pub seal: u64,
    /// How many of the bytes are before its first frame.
    pub before: u64,
}

impl SegmentStart {
    /// Returns it from a header alone.
    #[must_use]
    pub fn of_header(header: &[u8]) -> Option<Self> {
        let decoded = header.first_chunk().and_then(Header::decode)?;
        Some(Self {
            header: decoded.encode(),
            hash: decoded.hash(),
            number: decoded.segment,
            first_txid: decoded.first_txid,
            first_own_txid: decoded.first_own_txid(),
            begun: decoded.created,
            is_base: decoded.is_base(),
            seal: 0,
            before: HEADER_LEN as u64,
        })
    }

    /// Returns it from bytes that [`Source::after`](super::Source::after) returned: without a cursor, or as a seal.
    /// Verifies the header only.
    #[must_use]
    pub fn of(bytes: &[u8], is_seal: bool) -> Option<Self> {
        if !is_seal {
            return Self::of_header(bytes);
        }
        let outline = Outline::of(bytes.first_chunk()?)?;
        let (frame, rest) = bytes.split_at_checked(usize::try_from(outline.len).ok()?)?;
        let (seal, between) = (outline.len, HEADER_LEN as u64);
        match Self::of_header(rest) {
            Some(found) => Some(Self { seal, before: seal + between, ..found }),
            None => {
                let header = next_in_seal(frame)?;
                Some(Self { seal, before: seal, ..Self::of_header(&header.encode())? })
            }
        }
    }
}

/// Continues in another segment, as the journal that this one follows did: `bytes` are its seal, the header of the next
/// segment if that isn't the one in the seal any more, and the state with which it begins, if it does.
///
/// # Errors
/// `Invalid`: they are something else, and nothing was changed; `Io`; `Poisoned`: it was interrupted, and opening the
/// file again ends it.
pub fn continue_segment(database: &Database, bytes: &mut Spool) -> Result<Cursor> {
    let name = name_of(&database.read()).to_owned();
    continue_as(database, |from, segment| {
        let (sealing, next) = read_seal(bytes, from, segment, &name)?;
        Ok((sealing, move |storage: &dyn Storage, secret| next.write(storage, secret)))
    })
}

/// Reads the seal that follows a point of the segment with a hash, and what the next segment begins with.
fn read_seal(
    bytes: &mut Spool,
    from: Point,
    segment: u64,
    name: &str,
) -> Result<(Sealing, NewSegment)> {
    bytes.move_to(from.position);
    let io = |error| Error::io("can't read the spooled frames", error);
    let mut reader = FrameReader::new(bytes, segment, from, bytes.end());
    let frame = reader.next().map_err(io)?;
    let sealing = frame.as_ref().and_then(|frame| {
        let seal = Seal::of(frame)?;
        Some(Sealing { position: from.position, bytes: frame.bytes.to_vec(), seal })
    });
    let mut sealing =
        sealing.ok_or_else(|| unlike("its seal doesn't verify after the last transaction"))?;
    let mut frames = bytes.without(sealing.bytes.len() as u64).map_err(io)?;
    if let Some(header) = header_of(&frames).map_err(io)? {
        if !sealing.seal.is_followed_by(&header) {
            return Err(unlike("its header isn't that of the next segment"));
        }
        refuse_reading(&header, name)?;
        sealing.seal.next = header;
        frames = frames.without(HEADER_LEN as u64).map_err(io)?;
    }
    frames.move_to(FRAMES_AT);
    let next = NewSegment { header: sealing.seal.next, frames };
    Ok((sealing, next))
}
