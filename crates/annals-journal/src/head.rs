//! The head of a journal file: header, slots and live block, in the first 16 KiB.

use annals_schema::Txid;
use std::io;

use super::features;
use super::format::{
    self, FRAMES_AT, HEADER_AT, HEADER_LEN, Header, LIVE_AT, LIVE_COPY_AT, Live, Point, SLOT_AT,
    SLOT_COPY_AT, Secret, Slot,
};
use super::refusal::{not_blank, salvage_advice, shown_path};
use crate::{Error, ErrorKind, Result};
use annals_storage::slots::{self, Record, Slots};
use annals_storage::{Storage, is_compressed, step};

/// The contents of the first 16 KiB of a journal, as far as their checksums agree.
#[derive(Clone, Debug)]
pub struct Head {
    /// The header of the segment.
    pub header: Header,
    /// The hash of the header.
    pub hash: u64,
    /// Which of the three copies of the header are damaged: block 0 and the two slot blocks.
    pub damaged_headers: [bool; 3],
    /// The two hard slots, each with its two copies; `None` for each that doesn't verify. Any that does
    /// is true.
    pub slots: SlotCopies,
    /// The live block, if one of its copies verifies.
    pub live: Option<Live>,
}

/// The copies of the two slots.
pub(crate) type SlotCopies = slots::Copies<Slot, 2>;

/// Where the two slots are.
pub(super) const SLOTS: Slots<2> = Slots { at: SLOT_AT, copies_at: SLOT_COPY_AT };

/// Where the copies of the live block are.
const LIVES_AT: [u64; 2] = [LIVE_AT + LIVE_COPY_AT[0], LIVE_AT + LIVE_COPY_AT[1]];

impl Record for Slot {
    fn number(&self) -> u64 {
        self.sequence
    }
}

/// Where the three copies of the header are.
pub(super) const HEADERS_AT: [u64; 3] = [HEADER_AT, SLOT_AT[0], SLOT_AT[1]];

impl Head {
    /// Reads the head of an existing file. `name` is for messages.
    pub fn read(storage: &dyn Storage, name: &str) -> Result<Self> {
        let read = |at| read_array::<HEADER_LEN>(storage, at, name);
        let copies = [read(HEADERS_AT[0])?, read(HEADERS_AT[1])?, read(HEADERS_AT[2])?];
        let decoded = copies.each_ref().map(|bytes| bytes.as_ref().and_then(Header::decode));
        let Some(header) = decoded.iter().flatten().next().copied() else {
            return Err(no_header(storage, name, copies[0].as_ref()));
        };
        refuse_strange(&header, name)?;
        if decoded.iter().flatten().any(|copy| *copy != header) {
            return Err(Error::corrupt(format!(
                "{name}: damaged: the copies of its header differ; restore the file from a backup"
            )));
        }
        refuse_cut(storage, name)?;
        let hash = header.hash();
        let damaged_headers = decoded.map(|copy| copy != Some(header));
        let slots = read_slots(storage, hash).map_err(|error| unreadable(name, error))?;
        let live = read_live(storage).map_err(|error| unreadable(name, error))?;
        Ok(Self { header, hash, damaged_headers, slots, live })
    }

    /// Returns the point before the first frame.
    #[inline]
    pub const fn start(&self) -> Point {
        Point { position: FRAMES_AT, txid: Txid(self.header.first_txid - 1), chain: self.hash }
    }

    /// Returns all copies of slots that verify.
    #[inline]
    pub fn copies(&self) -> impl Iterator<Item = &Slot> + Clone {
        let counts = |[first, second]: &&[Option<Slot>; 2]| step!(CopiesMustAgree, first.is_some() || second.is_some(), else first == second);
        self.slots.iter().filter(counts).flatten().flatten()
    }

    /// Returns the newest slot, of which at least one copy verifies.
    #[inline]
    pub fn newest_slot(&self) -> Option<Slot> {
        self.copies().max_by_key(|slot| slot.sequence).copied()
    }

    /// Returns the point of the newest slot; the point before the first frame if no slot verifies.
    #[inline]
    pub fn hard_point(&self) -> Point {
        self.newest_slot().map_or(self.start(), |slot| slot.point)
    }

    /// True for a slot with a copy that doesn't verify, or differs from the other: an interrupted write, or damage to
    /// one of the four copies.
    pub(crate) fn torn_slots(&self) -> [bool; 2] {
        slots::torn(&self.slots)
    }

    /// Returns the slot that is to be written next: the one without the newest copy.
    pub(crate) fn older_slot(&self) -> usize {
        slots::older(&self.slots)
    }

    /// Writes the header where a copy of it is damaged.
    pub(crate) fn repair_headers(&self, storage: &dyn Storage) -> io::Result<()> {
        for (at, damaged) in HEADERS_AT.into_iter().zip(self.damaged_headers) {
            if damaged {
                storage.write_at(at, &self.header.encode())?;
            }
        }
        Ok(())
    }
}

/// Returns the hash of the header of a segment, as the chain of its first frame has it.
#[inline]
pub fn segment_hash(storage: &dyn Storage, name: &str) -> Result<u64> {
    let header = slots::first_copy(storage, HEADERS_AT, Header::decode)
        .map_err(|error| unreadable(name, error))?;
    header.map(|header| header.hash()).ok_or_else(|| no_header(storage, name, None))
}

/// Refuses a file that ends before its first frame: a file gets its name only when its head is whole, and without the
/// slots the extent of the loss is unknown.
fn refuse_cut(storage: &dyn Storage, name: &str) -> Result<()> {
    let len = storage.len().map_err(|error| Error::io(format!("{name}: can't read it"), error))?;
    if len >= FRAMES_AT {
        return Ok(());
    }
    Err(Error::corrupt(format!(
        "{name}: damaged: it has {len} bytes, and the head alone has {FRAMES_AT}; the file was not \
         changed: restore it from a backup"
    )))
}

/// Returns the point before the first frame of a new journal.
pub(super) fn start(header: &Header) -> Point {
    Point { position: FRAMES_AT, txid: Txid(header.first_txid - 1), chain: header.hash() }
}

/// Returns the slot of a new file, whose first frames will be made with this secret.
#[inline]
pub const fn first_slot(point: Point, secret: Secret) -> Slot {
    Slot { point, zeroed_to: point.position, sequence: 1, secret }
}

/// Returns the whole head of a new journal.
pub(crate) fn new_head(header: &Header, secret: Secret) -> Vec<u8> {
    head_with(header, &first_slot(start(header), secret))
}

/// Returns the whole head of a journal that wasn't opened yet; both of its slots are this one.
pub fn head_with(header: &Header, slot: &Slot) -> Vec<u8> {
    let mut head = vec![0; usize::try_from(FRAMES_AT).unwrap_or_default()];
    let slot = slot.encode(header.hash());
    let mut put = |at: u64, bytes: &[u8]| {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        if let Some(to) = at.checked_add(bytes.len()).and_then(|end| head.get_mut(at..end)) {
            to.copy_from_slice(bytes);
        }
    };
    HEADERS_AT.into_iter().for_each(|at| put(at, &header.encode()));
    SLOTS.places().for_each(|at| put(at, &slot));
    head
}

/// Writes one slot, both copies: allowed only after the flush that covers its point.
pub fn write_slot(storage: &dyn Storage, which: usize, slot: &Slot, header: u64) -> io::Result<()> {
    SLOTS.write_at_once(storage, which, &slot.encode(header))
}

/// Writes the live block, both copies.
pub(crate) fn write_live(storage: &dyn Storage, live: &Live) -> io::Result<()> {
    slots::write_copies(storage, LIVES_AT, &live.encode())
}

fn read_slots(storage: &dyn Storage, hash: u64) -> io::Result<SlotCopies> {
    SLOTS.read(storage, |bytes| Slot::decode(bytes, hash)).map(|found| found.copies)
}

/// Returns the newest slot of a file whose header has this hash, if one can be read.
pub(super) fn newest_slot(storage: &dyn Storage, header: u64) -> Option<Slot> {
    slots::newest(&read_slots(storage, header).ok()?).copied()
}

fn read_live(storage: &dyn Storage) -> io::Result<Option<Live>> {
    slots::first_copy(storage, LIVES_AT, Live::decode)
}

/// Returns the contents of the live block, if one of its copies verifies.
#[inline]
pub fn live(storage: &dyn Storage) -> Option<Live> {
    read_live(storage).ok().flatten()
}

/// Returns the pid that the live block names, if it names one.
#[inline]
pub fn holder(storage: &dyn Storage) -> Option<u32> {
    live(storage).map(|live| live.pid).filter(|&pid| pid != 0)
}

/// Reads a fixed number of bytes; `None` if the file ends before.
fn read_array<const N: usize>(
    storage: &dyn Storage,
    at: u64,
    name: &str,
) -> Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    let read = storage.read_at(at, &mut bytes).map_err(|error| unreadable(name, error))?;
    Ok((read == N).then_some(bytes))
}

fn unreadable(name: &str, error: io::Error) -> Error {
    Error::io(format!("{name}: can't read the head of the journal"), error)
}

fn no_header(storage: &dyn Storage, name: &str, first: Option<&[u8; HEADER_LEN]>) -> Error {
    let len = storage.len().unwrap_or_default();
    if len == 0 {
        return Error::new(
            ErrorKind::NotAJournal,
            format!(
                "{name}: the file is empty (0 bytes), so it is no journal; if nothing else \
                 belongs here, remove it, and a new database can be created"
            ),
        );
    }
    if first.is_some_and(|bytes| is_compressed(bytes)) {
        return Error::new(
            ErrorKind::Unsupported,
            format!(
                "{name}: it is compressed, and can only be read: open it read-only, or unpack it with `annals \
                 convert {} NEW`",
                shown_path(name)
            ),
        );
    }
    let is_damaged =
        first.is_some_and(|bytes| bytes.starts_with(&format::MAGIC)) || has_frame(storage, name);
    if storage.has_fixed_len() && !is_damaged {
        return not_blank(name);
    }
    if is_damaged {
        return Error::corrupt(format!(
            "{name}: damaged: no copy of the journal's header verifies ({len} bytes in all); {}",
            salvage_advice(name)
        ));
    }
    if len < FRAMES_AT && first.is_none() {
        return Error::new(
            ErrorKind::NotAJournal,
            format!("{name}: not an Annals journal: only {len} bytes long; check the path"),
        );
    }
    Error::new(ErrorKind::NotAJournal, format!("{name}: not an Annals journal; check the path"))
}

/// True if something looks like a frame where a journal's first one is. Without the header it can't be
/// verified.
fn has_frame(storage: &dyn Storage, name: &str) -> bool {
    let bytes = read_array::<2>(storage, FRAMES_AT, name).ok().flatten();
    bytes == Some(format::FRAME_MAGIC)
}

/// True if bytes may be the beginning of a journal or of frames, as far as there are some.
#[must_use]
pub fn may_begin_journal(bytes: &[u8]) -> bool {
    let begins = |magic: &[u8]| bytes.iter().zip(magic).all(|(byte, magic)| byte == magic);
    begins(&format::MAGIC) || begins(&format::FRAME_MAGIC)
}

/// Refuses files that this version can't read, and invalid ones.
fn refuse_strange(header: &Header, name: &str) -> Result<()> {
    features::refuse_reading(header, name)?;
    // No file can hold so many transactions that their numbers reach the limit.
    if header.version == 0 || !(1..1 << 62).contains(&header.first_txid) {
        return Err(Error::corrupt(format!(
            "{name}: damaged: the header makes no sense; restore the file from a \
             backup"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_or_a_frame_begins_with_its_magic_as_far_as_there_are_bytes() {
        for magic in [&format::MAGIC[..], &format::FRAME_MAGIC[..]] {
            let longer = [magic, b"and more"].concat();
            (0..longer.len()).for_each(|len| assert!(may_begin_journal(longer.split_at(len).0)));
            let mut wrong = longer;
            wrong.iter_mut().take(magic.len()).last().into_iter().for_each(|byte| *byte ^= 1);
            assert!(!may_begin_journal(&wrong));
        }
        assert!(!may_begin_journal(b"<!doctype html>"));
    }
}
