//! Journals on raw devices: where they end, and how one is created in place.
//!
//! A device holds whatever an earlier life left on it, also frames that verify by themselves. So a
//! journal there ends where a slot says that zeros end (`zeroed_to`), and nothing after that is ever
//! read as a frame. Before a frame is written there, space is zeroed and flushed, and then a slot
//! with the new end is written and flushed; see `Checkpoints::write_frames`.
//!
//! ```text
//! creation, on a device whose head (the first 16 KiB) is blank:
//! 1. zero the head and the first space; flush
//! 2. write the slots and the live block; flush
//! 3. write the copies of the header; flush
//! ```
//!
//! A crash before 3 leaves a head that is still blank, since it has no header: all zeros, except for slots of an
//! unfinished journal.

use super::create::new_header;
use super::format::{FRAMES_AT, HEADER_LEN, LIVE_AT, LIVE_COPY_AT, Live, SLOT_LEN, Slot};
use super::head::{self, HEADERS_AT, Head, SLOTS};
use super::space::zero;
use crate::{Error, Result};
use annals_storage::{Clock, Storage};

/// By how much a journal's space on a device grows at least, so that slots are seldom written for it.
pub(super) const SPACE_STEP: u64 = 1 << 20;

/// Returns the upper limit of a journal's end: its file's length, or on a device the zeroed end in a slot.
pub(super) fn end_of(storage: &dyn Storage, head: &Head) -> std::io::Result<u64> {
    let len = storage.len()?;
    if !storage.has_fixed_len() {
        return Ok(len);
    }
    let claims = head.copies().map(|slot| slot.zeroed_to.max(slot.point.position));
    Ok(claims.max().unwrap_or(FRAMES_AT).min(len))
}

/// Returns true if a device is ready to be given a journal.
pub fn is_blank(storage: &dyn Storage) -> std::io::Result<bool> {
    let mut head = vec![0; usize::try_from(FRAMES_AT).unwrap_or_default()];
    let read = storage.read_at(0, &mut head)?;
    head.truncate(read);
    SLOTS.places().for_each(|at| blank_slot(&mut head, at));
    blank_live(&mut head);
    Ok(head.iter().all(|&byte| byte == 0))
}

/// Takes the copy of a slot out if it is one that creation writes.
fn blank_slot(head: &mut [u8], at: u64) {
    let Some(bytes) = copy_at::<SLOT_LEN>(head, at) else { return };
    let hash = annals_storage::bytes::Fields(bytes).u64(40);
    let slot = Slot::decode(bytes, hash);
    if slot.is_some_and(|slot| slot.point.position == FRAMES_AT) {
        bytes.fill(0);
    }
}

/// Takes the copies of the live block out that creation writes.
fn blank_live(head: &mut [u8]) {
    for copy in LIVE_COPY_AT {
        let Some(bytes) = copy_at(head, LIVE_AT + copy) else { continue };
        let live = Live::decode(bytes);
        if live.is_some_and(|live| live.pid == 0 && live.soft.position == FRAMES_AT) {
            bytes.fill(0);
        }
    }
}

fn copy_at<const N: usize>(head: &mut [u8], at: u64) -> Option<&mut [u8; N]> {
    head.get_mut(usize::try_from(at).ok()?..)?.first_chunk_mut()
}

/// Creates a journal on a blank device.
pub fn create_on(storage: &dyn Storage, name: &str, clock: &dyn Clock) -> Result<()> {
    let io = |error| Error::io(format!("{name}: can't create a journal on the device"), error);
    let len = storage.len().map_err(io)?;
    if len <= FRAMES_AT {
        return Err(Error::invalid(format!(
            "{name}: the device has {len} bytes, too few for a journal: its head alone has {FRAMES_AT}"
        )));
    }
    write_new(storage, len, clock).map_err(io)
}

fn write_new(storage: &dyn Storage, len: u64, clock: &dyn Clock) -> std::io::Result<()> {
    let header = new_header(clock);
    let zeroed_to = len.min(FRAMES_AT + SPACE_STEP);
    zero(storage, 0, zeroed_to)?;
    storage.flush()?;
    let point = head::start(&header);
    let slot = Slot { zeroed_to, ..head::first_slot(point, clock.secret()) };
    for which in [0, 1] {
        head::write_slot(storage, which, &slot, point.chain)?;
    }
    let closed = Live { pid: 0, soft: point, hard: point.position, suspect: false };
    head::write_live(storage, &closed)?;
    storage.flush()?;
    let bytes: [u8; HEADER_LEN] = header.encode();
    for at in HEADERS_AT {
        storage.write_at(at, &bytes)?;
    }
    storage.flush()
}

#[cfg(test)]
mod tests {
    use super::super::format::Point;
    use super::*;
    use annals_simulated::SimulatedClock;
    use annals_storage::{Directory, MemoryDirectory};
    use std::sync::Arc;

    /// Returns what a crash before step 3 leaves, and the point that the journal would begin at.
    fn unfinished() -> (Arc<dyn Storage>, Point) {
        let storage = MemoryDirectory::new().create("device").unwrap();
        write_new(&*storage, FRAMES_AT + 3 * SPACE_STEP, &SimulatedClock::new(1)).unwrap();
        assert!(!is_blank(&*storage).unwrap(), "it has a header");
        let head = Head::read(&*storage, "device").unwrap();
        let zeroed = head.copies().map(|slot| slot.zeroed_to).max();
        assert_eq!(zeroed, Some(FRAMES_AT + SPACE_STEP), "not the whole device");
        assert_eq!(storage.len().unwrap(), FRAMES_AT + SPACE_STEP);
        let start = head.start();
        HEADERS_AT.into_iter().for_each(|at| storage.write_at(at, &[0; HEADER_LEN]).unwrap());
        (storage, start)
    }

    #[test]
    fn a_head_is_blank_after_each_part_of_a_creation() {
        let (storage, _) = unfinished();
        assert!(is_blank(&*storage).unwrap());
        let lives = LIVE_COPY_AT.map(|copy| LIVE_AT + copy);
        for at in SLOTS.places().chain(lives) {
            zero(&*storage, at, at + 512).unwrap();
            assert!(is_blank(&*storage).unwrap(), "without the copy at {at}");
        }
        storage.write_at(FRAMES_AT - 1, b"x").unwrap();
        assert!(!is_blank(&*storage).unwrap(), "the last byte is something else's");
    }

    #[test]
    fn a_head_of_a_journal_that_was_written_is_not_blank() {
        let later = |start: Point| Point { position: start.position + 64, ..start };
        let (storage, start) = unfinished();
        let slot = head::first_slot(later(start), [7; 16]);
        head::write_slot(&*storage, 0, &slot, start.chain).unwrap();
        assert!(!is_blank(&*storage).unwrap(), "a slot of a commit");
        for (pid, soft) in [(7, start), (0, later(start))] {
            let (storage, _) = unfinished();
            let live = Live { pid, soft, hard: start.position, suspect: false };
            head::write_live(&*storage, &live).unwrap();
            assert!(!is_blank(&*storage).unwrap(), "a live block of process {pid}");
        }
    }
}
