//! Recovery: makes a journal that wasn't closed properly fit to be written again.
//!
//! The order is what matters, since a crash may come between any two steps and may lose any part of
//! what isn't flushed:
//!
//! ```text
//! 1. save the tail beside the file, flush it and its directory   (only if a commit may lie in it)
//! 2. rewrite what was accepted beyond the slot                   (the page cache may show more than
//! 3. flush; write the older slot; flush                          (only if what is cut next is all that
//!                                                                 shows that the last commit counts)
//! 4. zero everything behind the cut, set the length               the disk holds, also as zeros)
//! 5. flush
//! 6. write the older slot; flush; write the other; flush         (one of them is whole at any time)
//! ```
//!
//! Before 5 has returned, a crash leaves the same journal to recover, with the same outcome or with
//! less of a tail that was never known to be durable.

use super::checkpoints::FLUSHES_AT_FIRST;
use super::format::{Point, Slot};
use super::head;
use super::mistakes::{Mistake, is_made};
use super::reader::FrameReader;
use super::slots::Slots;
use super::space::zero;
use super::survey::{Survey, Verdict};
use crate::storage::{Directory, Storage};
use crate::{Error, ErrorKind, Result};

/// What opening does with a journal whose end isn't in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Recovery {
    /// Saves beside the file what was never known to be durable and may hold a commit, cuts it off,
    /// opens, and reports it. Refuses if something is missing that was durable.
    #[default]
    Checked,
    /// Refuses to open for writing if anything would have to be cut.
    Refuse,
}

/// What opening found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Whether the journal had not been closed properly.
    pub unclean: bool,
    /// What was cut off, if anything was.
    pub cut: Option<Cut>,
    /// A sentence for each thing worth telling a person; empty if there is none.
    pub findings: Vec<String>,
}

/// What recovery cut off a journal's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The position of the cut: the end of the last transaction that is whole.
    pub position: u64,
    /// The number of that transaction.
    pub txid: u64,
    /// How many bytes followed.
    pub bytes: u64,
    /// How many data frames of a transaction that never committed were among them.
    pub uncommitted_frames: u64,
    /// Whether a transaction may be lost that had been acknowledged at a level that promises less
    /// than permanence, or by a disk that broke its promise.
    pub may_have_been_acknowledged: bool,
    /// The file beside the journal that has the bytes; `None` if no commit can lie in them, or if
    /// there was no space for it.
    pub saved_as: Option<String>,
}

/// A tail is saved up to this length.
const SAVE_AT_MOST: u64 = 64 << 20;
const COPY_STEP: u64 = 1 << 20;

/// Where things are when recovery is done.
pub(crate) struct Settled {
    pub(crate) recovered: Recovered,
    /// How far zeros follow the end.
    pub(crate) zeroed_to: u64,
    /// Which slot is written next.
    pub(super) slots: Slots,
}

#[cfg(test)]
impl Settled {
    /// Describes a new journal, of which nothing had to be recovered.
    pub(crate) fn new_journal(start: Point) -> Self {
        let (recovered, zeroed_to) = (Recovered::default(), start.position);
        Self { recovered, zeroed_to, slots: Slots::whole(0, start) }
    }
}

/// Takes a journal over that others have open for writing too, and left as it should be.
pub(crate) fn join(survey: &Survey) -> Settled {
    let slots = Slots::found(&survey.head, FLUSHES_AT_FIRST);
    let zeroed_to = survey.len.max(survey.end.position);
    Settled { recovered: Recovered::default(), zeroed_to, slots }
}

/// Makes the journal fit to be written, or refuses.
pub(crate) fn settle(
    storage: &dyn Storage,
    directory: &dyn Directory,
    name: &str,
    survey: &Survey,
    recovery: Recovery,
) -> Result<Settled> {
    let shown = directory.display(name);
    head::refuse_writing(&survey.head.header, &shown)?;
    if survey.verdict() == Verdict::Damaged {
        return Err(survey.damage(&shown));
    }
    let io = |error| Error::io(format!("{shown}: can't recover the journal"), error);
    let next_slot = survey.head.older_slot();
    if survey.is_closed() {
        // Written again, the same bytes, so that the first flush covers it, and it is whole when the
        // other slot is written: the flush at the end of the last session may have failed.
        let zeroed_to = survey.len; // which is the end, but on a device
        write_newest_slot_again(storage, survey).map_err(io)?;
        if survey.counted_flushed && !is_made(Mistake::ShownSlotNotFlushed) {
            // The last commit counts because of that slot. What is shown has to stay.
            storage.flush().map_err(io)?;
        }
        let slots = Slots::new(next_slot, survey.end);
        return Ok(Settled { recovered: Recovered::default(), zeroed_to, slots });
    }
    if survey.verdict() == Verdict::Tail && recovery == Recovery::Refuse {
        return Err(refusal(&shown, survey));
    }
    let mut recovered = Recovered { unclean: true, ..Recovered::default() };
    if survey.verdict() == Verdict::Tail {
        recovered.cut = Some(save_tail(storage, directory, name, survey)?);
    }
    let zeroed_to = make_durable(storage, survey).map_err(io)?;
    describe(&mut recovered, survey);
    Ok(Settled { recovered, zeroed_to, slots: Slots::whole(next_slot, survey.end) })
}

/// Writes the same bytes again: a flush that failed may have lost them, though they show.
fn write_newest_slot_again(storage: &dyn Storage, survey: &Survey) -> std::io::Result<()> {
    let newest = survey.head.newest_slot().filter(|slot| slot.point != survey.head.start());
    newest.map_or(Ok(()), |slot| {
        head::write_slot(storage, 1 - survey.head.older_slot(), &slot, survey.head.hash)
    })
}

/// Steps 2 to 6. Gives how far zeros follow the end.
fn make_durable(storage: &dyn Storage, survey: &Survey) -> std::io::Result<u64> {
    let end = survey.end;
    if !is_made(Mistake::AcceptedNotRewritten) {
        let from = survey.head.newest_slot().map_or(survey.head.start(), |slot| slot.point);
        rewrite(storage, from, end)?;
    }
    let is_told = keep_its_proof(storage, survey)?;
    let claimed = survey.head.slots.iter().flatten().map(|slot| slot.zeroed_to).max();
    let last = last_nonzero(storage, survey)?;
    let zeroed_to = claimed.unwrap_or(0).min(survey.len).max(last).max(end.position);
    if !is_made(Mistake::TailNotZeroed) {
        zero(storage, end.position, zeroed_to)?;
        // Also where it is that long already: a flush that failed may have lost the length.
        if !survey.has_fixed_len {
            storage.set_len(zeroed_to)?;
        }
    }
    survey.head.repair_headers(storage)?;
    if !is_made(Mistake::ShownSlotNotRewritten) {
        write_newest_slot_again(storage, survey)?;
    }
    if !is_made(Mistake::RecoveryNotFlushed) {
        storage.flush()?;
    }
    let older = survey.head.older_slot();
    let first = if is_told { 1 - older } else { older };
    for which in [first, 1 - first] {
        let slot = Slot { point: end, zeroed_to };
        head::write_slot(storage, which, &slot, survey.head.hash)?;
        if which != first || !is_made(Mistake::SlotsAtOnce) {
            storage.flush()?;
        }
    }
    Ok(zeroed_to)
}

/// Step 3. The last commit may count only because a frame behind it, which is about to be cut, says
/// that it was flushed: then a slot says so first. Tells whether the older slot was written.
fn keep_its_proof(storage: &dyn Storage, survey: &Survey) -> std::io::Result<bool> {
    let (end, slot) = (survey.end, survey.head.newest_slot());
    let is_proven = slot.is_some_and(|slot| slot.point.position >= end.position);
    if !survey.counted_flushed || is_proven {
        return Ok(false);
    }
    storage.flush()?;
    // Zeros don't follow yet.
    let slot = Slot { point: end, zeroed_to: end.position };
    head::write_slot(storage, survey.head.older_slot(), &slot, survey.head.hash)?;
    storage.flush()?;
    Ok(true)
}

/// Writes the same frames again, so that the next flush covers them. What is written was verified
/// after it was read: a disk that reads wrongly once must not make that permanent.
fn rewrite(storage: &dyn Storage, from: Point, to: Point) -> std::io::Result<()> {
    let mut reader = FrameReader::new(storage, from, to.position);
    let (mut at, mut bytes) = (from.position, Vec::new());
    while let Some(frame) = reader.next()? {
        bytes.extend_from_slice(frame.bytes);
        if bytes.len() as u64 >= COPY_STEP || frame.end == to.position {
            storage.write_at(at, &bytes)?;
            at = frame.end;
            bytes.clear();
        }
    }
    if at == to.position {
        return Ok(());
    }
    let message = format!("what verified at position {at} a moment ago doesn't any more");
    Err(std::io::Error::new(std::io::ErrorKind::InvalidData, message))
}

/// Finds the end of the last byte that is not zero behind the journal's end.
fn last_nonzero(storage: &dyn Storage, survey: &Survey) -> std::io::Result<u64> {
    let (mut at, mut last) = (survey.end.position, survey.end.position);
    let mut bytes = Vec::new();
    while at < survey.len {
        read_step(storage, at, survey.len, &mut bytes)?;
        if let Some(place) = bytes.iter().rposition(|&byte| byte != 0) {
            last = at + place as u64 + 1;
        }
        at += bytes.len() as u64;
    }
    Ok(last)
}

/// Reads the next step of a range, twice: what is read here is cut, so that a wrong bit would be all
/// that is left of it. An error if the reads differ, or if the file ended before.
fn read_step(
    storage: &dyn Storage,
    from: u64,
    to: u64,
    bytes: &mut Vec<u8>,
) -> std::io::Result<()> {
    let step = usize::try_from((to - from).min(COPY_STEP)).map_err(std::io::Error::other)?;
    let mut again = vec![0; step];
    bytes.resize(step, 0);
    for buffer in [&mut *bytes, &mut again] {
        if storage.read_at(from, buffer)? != step {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    if *bytes == again || is_made(Mistake::CutReadOnce) {
        return Ok(());
    }
    let message = format!("two reads of {step} bytes at position {from} gave different ones");
    Err(std::io::Error::new(std::io::ErrorKind::InvalidData, message))
}

/// Step 1. Having no space for the copy is no reason not to open: it is reported.
fn save_tail(
    storage: &dyn Storage,
    directory: &dyn Directory,
    name: &str,
    survey: &Survey,
) -> Result<Cut> {
    let shown = directory.display(name);
    let io = |error| Error::io(format!("{shown}: can't save the tail before cutting it"), error);
    let last = last_nonzero(storage, survey).map_err(io)?;
    let mut cut = Cut {
        position: survey.end.position,
        txid: survey.end.txid,
        bytes: last - survey.end.position,
        uncommitted_frames: survey.uncommitted_frames,
        may_have_been_acknowledged: survey.may_hold_a_commit(),
        saved_as: None,
    };
    if !survey.may_hold_a_commit() {
        return Ok(cut);
    }
    let elsewhere = directory.for_copies(storage);
    let directory = elsewhere.as_deref().unwrap_or(directory);
    let copied = copy_tail(storage, directory, name, survey, last);
    match copied {
        Ok(saved_as) => cut.saved_as = Some(directory.display(&saved_as)),
        Err(error) if is_want_of_space(&error) => {}
        Err(error) => return Err(io(error)),
    }
    Ok(cut)
}

/// Tells whether an error is no more than want of space: on the disk, of what this user may have of it,
/// or of what a file may have.
fn is_want_of_space(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Copies what follows the end into a new file, and makes it durable.
fn copy_tail(
    storage: &dyn Storage,
    directory: &dyn Directory,
    name: &str,
    survey: &Survey,
    to: u64,
) -> std::io::Result<String> {
    let base = format!("{name}.tail-{}-{:016x}", survey.end.txid, survey.end.chain);
    let (saved_as, copy) = create_unused(directory, &base)?;
    let copied = (|| {
        let (mut at, start) = (survey.end.position, survey.end.position);
        let to = to.min(start + SAVE_AT_MOST);
        let mut bytes = Vec::new();
        while at < to {
            read_step(storage, at, to, &mut bytes)?;
            copy.write_at(at - start, &bytes)?;
            at += bytes.len() as u64;
        }
        copy.flush()?;
        directory.flush()
    })();
    if copied.is_err() {
        // Half a copy would only mislead; the error of writing it is what matters.
        let _ = directory.remove(&saved_as);
    }
    copied.map(|()| saved_as)
}

/// Creates a file under a name that no earlier recovery used: an earlier copy may hold more.
fn create_unused(
    directory: &dyn Directory,
    base: &str,
) -> std::io::Result<(String, std::sync::Arc<dyn Storage>)> {
    for attempt in 1.. {
        let name = if attempt == 1 { base.to_owned() } else { format!("{base}-{attempt}") };
        match directory.create(&name) {
            Ok(file) => return Ok((name, file)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
}

/// Says in sentences what was done.
fn describe(recovered: &mut Recovered, survey: &Survey) {
    let Some(cut) = &recovered.cut else { return };
    let mut text = format!(
        "cut {} bytes behind transaction {} at position {}: they were never known to be durable",
        cut.bytes, cut.txid, cut.position
    );
    if cut.uncommitted_frames > 0 {
        let frames = cut.uncommitted_frames;
        text += &format!("; {frames} data frames of a transaction that never committed");
    }
    if let Some(last) = survey.doubtful.back() {
        text += &format!(
            "; the frames of transactions {} to {} verify, but nothing shows that they were flushed, \
             as their commit level asks for",
            cut.txid + 1,
            last.txid
        );
    }
    if let Some(tail) = survey.tail {
        text += &format!(
            "; bytes from position {} on do not verify, {} frames behind them do by themselves; a \
             transaction there may have been acknowledged",
            survey.verified_to.max(tail.first),
            tail.frames
        );
    }
    if survey.may_hold_a_commit() {
        text += &match &cut.saved_as {
            Some(file) => format!("; saved as {file}"),
            None => "; not saved, for want of space".to_owned(),
        };
    }
    recovered.findings.push(text);
}

fn refusal(name: &str, survey: &Survey) -> Error {
    let message = format!(
        "{name}: was not closed properly: the last whole transaction, {}, ends at position {}, but \
         more follows up to {} ({} data frames without a commit, {} commits that may not have been \
         flushed, {} frames that verify by themselves), which was never known to be durable. Nothing was changed; open it with \
         Recovery::Checked to save and cut that (`annals shell` does)",
        survey.end.txid,
        survey.end.position,
        survey.len,
        survey.uncommitted_frames,
        survey.doubtful.len(),
        survey.tail.map_or(0, |tail| tail.frames)
    );
    Error::new(ErrorKind::NeedsRecovery, message)
}
