//! Recovery: makes a journal that wasn't closed properly fit to be written again.
//!
//! The order is what matters, since a crash may come between any two steps and may lose any part of
//! what isn't flushed:
//!
//! ```text
//! 1. save the tail beside the file, flush it and its directory   (only if a commit may lie in it)
//! 2. rewrite what was accepted beyond the slot                   (the page cache may show more than
//!                                                                 the disk holds, also as zeros)
//! 3. flush, write the older slot, flush                          (only if nothing but what is cut may
//!                                                                 tell that the last commit counts)
//! 4. zero everything behind the cut, set the length; flush
//! 5. write one slot; flush; write the other; flush               (one of them is whole at any time)
//! ```
//!
//! Before 4 has returned, a crash leaves the same journal to recover, with the same outcome or with
//! less of a tail that was never known to be durable.

use super::checkpoints::FLUSHES_AT_FIRST;
use super::format::{Live, Point, Slot};
use super::head;
use super::mistakes::{Mistake, is_made};
use super::reader::FrameReader;
use super::slots::Slots;
use super::space::zero;
use super::survey::Survey;
use super::tail;
use super::verdict::{Verdict, shown_path};
use crate::storage::{Directory, Storage};
use crate::{Error, ErrorKind, Result};

/// What opening does with a journal whose end isn't in order.
///
/// None of them helps against damage, that is, if something is missing that was on permanent storage:
/// that is always refused. Each of them saves beside the file what it cuts off, if a commit may lie in
/// it, and reports what it did; without space for that it reports that it was not saved, unless
/// [`Options::copy_first`](crate::Options::copy_first) asks for more. In shared mode, once a process has
/// the file open, all but [`Refuse`](Self::Refuse) are as [`Checked`](Self::Checked).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Recovery {
    /// Keeps what its frames prove: all commits that verify, except half and two-phase ones behind the
    /// last other one, of which nothing shows that they were flushed.
    #[default]
    Checked,
    /// Refuses to open for writing if [`Checked`](Self::Checked) would have to cut anything.
    Refuse,
    /// Goes back to the last commit that is known to have been flushed, as slots and frames tell. Later
    /// ones are cut off though they verify, soft ones above all.
    ToHard,
    /// Goes back to the last commit that was acknowledged, as the live block tells other processes (at
    /// most 10 ms late; without [`Options::background`](crate::Options::background) it tells of the last
    /// checkpoint or opening), as far as it verifies; never farther back than [`ToHard`](Self::ToHard)
    /// goes.
    ToSoft,
    /// Keeps all commits that verify, also half and two-phase ones that were perhaps never
    /// acknowledged.
    ToEnd,
}

impl Recovery {
    /// Gives what holds once several processes have a journal open: what one of them shows must not be
    /// taken back.
    pub(crate) const fn among_others(self) -> Self {
        match self {
            Self::Refuse => Self::Refuse,
            _ => Self::Checked,
        }
    }
}

/// What opening found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Whether the journal had not been closed properly.
    pub unclean: bool,
    /// What was cut off, if anything was.
    pub cut: Option<Cut>,
    /// The copy of the whole file that was made before anything was cut off, if one was asked for.
    pub copied_to: Option<String>,
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
    /// How many commits were among them whose frames verify, but which don't count by this
    /// [`Recovery`].
    pub commits: u64,
    /// How many data frames of a transaction that never committed were among them.
    pub uncommitted_frames: u64,
    /// Whether a transaction may be lost that had been acknowledged at a level that promises less
    /// than permanence, or by a disk that broke its promise.
    pub may_have_been_acknowledged: bool,
    /// The file beside the journal that has the bytes, or the first 64 MiB of them; `None` if no
    /// commit can lie in them, or if there was no space for it.
    pub saved_as: Option<String>,
}

/// How much is written again at a time.
const REWRITE_STEP: usize = 1 << 20;

/// Where things are when recovery is done.
pub(crate) struct Settled {
    pub(crate) recovered: Recovered,
    /// How far zeros follow the end.
    pub(crate) zeroed_to: u64,
    /// Which slot is written next.
    pub(super) slots: Slots,
}

impl Settled {
    /// Describes a new journal, or segment, of which nothing had to be recovered.
    pub(crate) fn new_journal(start: Point) -> Self {
        let (recovered, zeroed_to) = (Recovered::default(), start.position);
        Self { recovered, zeroed_to, slots: Slots::whole(0, start) }
    }
}

/// Refuses a journal that can't be made fit to be written, or that the user doesn't want to be cut.
pub(crate) fn refuse(shown: &str, survey: &Survey, recovery: Recovery) -> Result<()> {
    head::refuse_writing(&survey.head.header, shown)?;
    match survey.verdict() {
        Verdict::Damaged => Err(survey.damage(shown)),
        Verdict::Tail if recovery == Recovery::Refuse => Err(refusal(shown, survey)),
        Verdict::Tail | Verdict::Whole => Ok(()),
    }
}

/// Takes a journal over that others have open for writing too, and left as it should be.
pub(crate) fn join(survey: &Survey) -> Settled {
    let slots = Slots::found(&survey.head, FLUSHES_AT_FIRST);
    let zeroed_to = survey.len.max(survey.end.position);
    Settled { recovered: Recovered::default(), zeroed_to, slots }
}

/// Does what [`settle`] does, where other processes have the journal open: should this one end in the
/// midst of it, or a flush fail, the next one that writes does it all again.
pub(crate) fn settle_among_others(
    storage: &dyn Storage,
    directory: &dyn Directory,
    name: &str,
    survey: &Survey,
    recovery: Recovery,
) -> Result<Settled> {
    let shown = directory.display(name);
    refuse(&shown, survey, recovery)?;
    let Survey { end, hard, .. } = *survey;
    let (pid, hard) = (std::process::id(), hard.min(end.position));
    head::write_live(storage, &Live { pid, soft: end, hard, suspect: true })
        .map_err(|error| Error::io(format!("{shown}: can't write the live block"), error))?;
    settle(storage, directory, name, survey, recovery)
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
    refuse(&shown, survey, recovery)?;
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
    let mut recovered = Recovered { unclean: true, ..Recovered::default() };
    let mut dirty_to = survey.end.position;
    if survey.verdict() == Verdict::Tail {
        dirty_to = tail::last_nonzero(storage, survey).map_err(io)?;
        recovered.cut = Some(tail::save(storage, directory, name, survey, dirty_to)?);
    }
    let zeroed_to = make_durable(storage, survey, dirty_to).map_err(io)?;
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

/// Steps 2 to 5. `dirty_to` is the end of the last byte that isn't zero. Gives how far zeros follow the
/// end.
fn make_durable(storage: &dyn Storage, survey: &Survey, dirty_to: u64) -> std::io::Result<u64> {
    let end = survey.end;
    if !is_made(Mistake::AcceptedNotRewritten) {
        let from = survey.head.newest_slot().map_or(survey.head.start(), |slot| slot.point);
        rewrite(storage, from, end)?;
    }
    let claimed = survey.head.slots.iter().flatten().map(|slot| slot.zeroed_to).max();
    let zeroed_to = claimed.unwrap_or(0).min(survey.len).max(dirty_to).max(end.position);
    let slot = Slot { point: end, zeroed_to, copied: false };
    let mut first = survey.head.older_slot();
    if !is_made(Mistake::ShownSlotNotRewritten) {
        write_newest_slot_again(storage, survey)?;
    }
    if survey.rests_on_what_is_cut() && !is_made(Mistake::ProofCutFirst) {
        storage.flush()?;
        head::write_slot(storage, first, &slot, survey.head.hash)?;
        storage.flush()?;
        first = 1 - first;
    }
    if !is_made(Mistake::TailNotZeroed) {
        zero(storage, end.position, zeroed_to)?;
        // Also where it is that long already: a flush that failed may have lost the length.
        if !survey.has_fixed_len {
            storage.set_len(zeroed_to)?;
        }
    }
    survey.head.repair_headers(storage)?;
    if !is_made(Mistake::RecoveryNotFlushed) {
        storage.flush()?;
    }
    for which in [first, 1 - first] {
        head::write_slot(storage, which, &slot, survey.head.hash)?;
        if which != first || !is_made(Mistake::SlotsAtOnce) {
            storage.flush()?;
        }
    }
    Ok(zeroed_to)
}

/// Writes the same frames again, so that the next flush covers them. What is written was verified
/// after it was read: a disk that reads wrongly once must not make that permanent.
pub(super) fn rewrite(storage: &dyn Storage, from: Point, to: Point) -> std::io::Result<()> {
    let mut reader = FrameReader::new(storage, from, to.position);
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

/// Says in sentences what was done.
fn describe(recovered: &mut Recovered, survey: &Survey) {
    let Some(cut) = &recovered.cut else { return };
    let mut text = format!(
        "cut {} bytes behind transaction {} at position {}: they were never known to be durable",
        cut.bytes, cut.txid, cut.position
    );
    if let Some(last) = survey.doubtful.back() {
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
            "; bytes from position {} on do not verify, {} frames behind them do by themselves; a \
             transaction there may have been acknowledged",
            survey.verified_to.max(tail.first),
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
        "{name}: was not closed properly: the last transaction that counts, {}, ends at position {}, \
         but more follows up to {} ({} commits that may not have been flushed, {} data frames without \
         a commit, {} frames that verify by themselves), which was never known to be durable. Nothing \
         was changed; see what would be cut with `annals recover {} --dry-run`, and do it without \
         `--dry-run`, or open it with Recovery::Checked",
        survey.end.txid,
        survey.end.position,
        survey.len,
        survey.doubtful.len(),
        survey.uncommitted_frames,
        survey.tail.map_or(0, |tail| tail.frames),
        shown_path(name)
    );
    Error::new(ErrorKind::NeedsRecovery, message)
}
