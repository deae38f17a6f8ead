//! Recovery: makes a journal that wasn't closed properly writable again.
//!
//! The order matters, since a crash may happen between any two steps and may lose any part of the unflushed bytes:
//!
//! ```text
//! 1. save the tail beside the file, flush it and its directory   (only if a commit may lie in it)
//! 2. rewrite what was accepted beyond the slot                   (the page cache may show more than
//!                                                                 the disk holds, also as zeros)
//! 3. flush; write the older slot; flush                          (only if a tail is cut and no slot has the end:
//!                                                                 a frame of it may be all that proves K)
//! 4. zero everything after the cut, to the end of the file; flush
//! 5. write the older slot, with a new secret; flush; write the other; flush
//! ```
//!
//! Before 4 has returned, a crash leaves the same journal to recover. The outcome is the same, or a shorter tail,
//! which was never known to be durable.

use super::checkpoints::FLUSHES_AT_FIRST;
use super::features;
use super::format::{FRAME_ALIGN, Live, Point, Secret, Slot};
use super::head;
use super::outcome::{Recovered, Recovery, Settled};
use super::reader::FrameReader;
use super::refusal::shown_path;
use super::slots::HardSlots;
use super::space::zero;
use super::survey::Survey;
use super::tail;
use super::verdict::Verdict;
use crate::{Error, ErrorKind, Result};
use annals_storage::{Directory, Storage, step};

/// The number of bytes rewritten at once.
const REWRITE_STEP: usize = 1 << 20;

/// Refuses a journal that can't be made fit to be written, or that the user doesn't want to be cut.
#[inline]
pub fn refuse(shown: &str, survey: &Survey, recovery: Recovery) -> Result<()> {
    features::refuse_writing(&survey.head.header, shown)?;
    match survey.verdict() {
        Verdict::Damaged => Err(survey.damage(shown)),
        Verdict::Tail if recovery == Recovery::Refuse => Err(refusal(shown, survey)),
        Verdict::Tail | Verdict::Whole => Ok(()),
    }
}

/// Takes a journal over that others have open for writing too, and left as it should be.
#[inline]
pub fn join(survey: &Survey) -> Settled {
    let newest = survey.head.newest_slot();
    let newest = newest.unwrap_or_else(|| head::first_slot(survey.head.start(), [0; 16]));
    Settled {
        recovered: Recovered::default(),
        zeroed_to: survey.len.max(survey.end.position),
        has_secret: false,
        slots: HardSlots::found(&survey.head, newest, FLUSHES_AT_FIRST),
    }
}

/// Does what [`settle`] does, while other processes have the journal open: if this one ends within it, or a flush
/// fails, the next one that writes repeats it.
pub fn settle_shared(
    storage: &dyn Storage,
    directory: &dyn Directory,
    name: &str,
    survey: &Survey,
    recovery: Recovery,
    secret: Secret,
) -> Result<Settled> {
    let shown = directory.display(name);
    refuse(&shown, survey, recovery)?;
    let Survey { end, hard, .. } = *survey;
    let (pid, hard) = (annals_storage::process_id(), hard.min(end.position));
    head::write_live(storage, &Live { pid, soft: end, hard, suspect: true })
        .map_err(|error| Error::io(format!("{shown}: can't write the live block"), error))?;
    settle(storage, directory, name, survey, recovery, secret)
}

/// Makes the journal fit to be written, or refuses. `secret` was drawn for this opening.
pub fn settle(
    storage: &dyn Storage,
    directory: &dyn Directory,
    name: &str,
    survey: &Survey,
    recovery: Recovery,
    secret: Secret,
) -> Result<Settled> {
    let shown = directory.display(name);
    refuse(&shown, survey, recovery)?;
    let io = |error| Error::io(format!("{shown}: can't recover the journal"), error);
    if survey.is_closed() {
        let start = survey.head.start();
        if let Some(newest) = survey.head.newest_slot().filter(|slot| slot.point != start) {
            // Rewrites the same bytes, so that the next flush covers them: the flush at the end of the last session
            // may have failed, and the page cache hides that.
            let which = 1 - survey.head.older_slot();
            head::write_slot(storage, which, &newest, survey.head.hash).map_err(io)?;
        }
        return Ok(Settled { zeroed_to: survey.len, ..join(survey) });
    }
    let mut recovered = Recovered { unclean: true, ..Recovered::default() };
    let mut dirty_to = survey.end.position;
    if survey.verdict() == Verdict::Tail {
        dirty_to = tail::last_nonzero(storage, survey).map_err(io)?;
        recovered.cut = Some(tail::save(storage, directory, name, survey, dirty_to)?);
    }
    let (zeroed_to, slots) = make_durable(storage, survey, dirty_to, secret).map_err(io)?;
    describe(&mut recovered, survey);
    Ok(Settled { recovered, zeroed_to, has_secret: true, slots })
}

/// Does steps 2 to 5. `dirty_to` is the end of the last byte that isn't zero. Returns the end of the zeros, and the
/// slots.
fn make_durable(
    storage: &dyn Storage,
    survey: &Survey,
    dirty_to: u64,
    secret: Secret,
) -> std::io::Result<(u64, HardSlots)> {
    let (head, end) = (&survey.head, survey.end);
    for wrong in &survey.wrong_chains {
        storage.write_at(wrong.position.saturating_sub(8), &wrong.chain.to_le_bytes())?;
    }
    step!(AcceptedNotRewritten, rewrite(storage, head.hash, head.hard_point(), end)?);
    let claimed = head.copies().map(|slot| slot.zeroed_to).max().unwrap_or(0).min(survey.len);
    let zeroed_to = match survey.has_fixed_len {
        true => claimed.max(dirty_to).max(end.position),
        false => survey.len.max(end.position),
    };
    let sequence = head.newest_slot().map_or(0, |slot| slot.sequence);
    let mut slot = Slot { point: end, zeroed_to, sequence, secret };
    let mut first = head.older_slot();
    let is_told = end.position <= head.hard_point().position;
    if step!(ProofCutFirst, survey.may_hold_a_commit() && !is_told, else false) {
        // The cut bytes may be the only proof of how far the rest was flushed.
        storage.flush()?;
        slot.sequence += 1;
        head::write_slot(storage, first, &slot, head.hash)?;
        storage.flush()?;
        first = 1 - first;
    }
    step!(TailNotZeroed, {
        zero(storage, end.position, zeroed_to)?;
        // Also where it is that long already: a flush that failed may have lost the length.
        if !survey.has_fixed_len {
            storage.set_len(zeroed_to)?;
        }
    });
    head.repair_headers(storage)?;
    step!(RecoveryNotFlushed, storage.flush()?);
    for which in [first, 1 - first] {
        slot.sequence += 1;
        head::write_slot(storage, which, &slot, head.hash)?;
        step!(SlotsAtOnce, storage.flush()?, else if which != first {
            storage.flush()?;
        });
    }
    Ok((zeroed_to, HardSlots::flushed(first, slot)))
}

/// Writes the same frames again, so that the next flush covers them. The bytes are verified after they were read: a
/// single wrong read must not become permanent. `segment` is the hash of the segment's header.
pub(super) fn rewrite(
    storage: &dyn Storage,
    segment: u64,
    from: Point,
    to: Point,
) -> std::io::Result<()> {
    if from.position >= to.position {
        return Ok(());
    }
    let mut reader = FrameReader::new(storage, segment, from, to.position);
    let (mut at, mut bytes) = (from.position, Vec::new());
    while let Some(frame) = reader.next()? {
        bytes.extend_from_slice(frame.bytes);
        if bytes.len() >= REWRITE_STEP || frame.end == to.position {
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

/// Describes the actions in sentences.
fn describe(recovered: &mut Recovered, survey: &Survey) {
    let Some(cut) = &recovered.cut else { return };
    let mut text = format!(
        "cut {} bytes after transaction {} at position {}: they were never known to be durable",
        cut.bytes, cut.txid, cut.position
    );
    if let Some(last) = survey.left_out {
        text += &format!(
            "; the frames of {} verify, but nothing shows that {}",
            match cut.txid + 1 {
                first if first == last.txid => format!("transaction {first}"),
                first => format!("transactions {first} to {}", last.txid),
            },
            survey.missing_proof()
        );
    }
    if cut.uncommitted_frames > 0 {
        let frames = cut.uncommitted_frames;
        text += &format!("; {frames} data frames of a transaction that never committed");
    }
    if let Some(tail) = survey.tail {
        text += &format!(
            "; bytes from position {} on do not verify, {} frames after them do by themselves; a \
             transaction there may have been acknowledged",
            survey.verified_to.max(tail.first - tail.first % FRAME_ALIGN),
            tail.frames
        );
    }
    if survey.may_hold_a_commit() {
        text += &match &cut.saved_as {
            Some(file) if cut.bytes > tail::SAVE_AT_MOST => {
                format!("; the first {} bytes of it saved as {file}", tail::SAVE_AT_MOST)
            }
            Some(file) => format!("; saved as {file}"),
            None => "; not saved, for want of space".to_owned(),
        };
    }
    recovered.findings.push(text);
}

fn refusal(name: &str, survey: &Survey) -> Error {
    let message = format!(
        "{name}: was not closed properly: the last valid transaction, {}, ends at position {}, \
         but more follows up to {} ({} data frames without a commit, {} frames that verify by \
         themselves), which was never known to be durable. Nothing \
         was changed; see what would be cut with `annals recover {} --dry-run`, and do it without \
         `--dry-run`, or open it with Recovery::Checked",
        survey.end.txid,
        survey.end.position,
        survey.len,
        survey.uncommitted_frames,
        survey.tail.map_or(0, |tail| tail.frames),
        shown_path(name)
    );
    Error::new(ErrorKind::NeedsRecovery, message)
}
