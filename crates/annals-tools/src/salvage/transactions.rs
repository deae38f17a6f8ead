//! Assembling transactions from their frames, and keeping those that are whole and fit.

use std::sync::Arc;

use annals::{Committed, Database, Level, Pending, Result, Schema, Snapshot, Transaction};
use annals_journal::Frame;
use annals_storage::Directory;
use annals_store::image::image_name;

use super::apply::{Apply, PIECE_MIN, is_of_old};
use super::known;
use super::parts::Parts;
use super::proof::Proof;
use super::report::{Fate, Gap, Restored, Run, Salvaged, SalvagedSegment};
use super::states::state_of_segment;
use super::walk::{Link, Skipped, Step};

/// So many transactions are acknowledged at once.
const BATCH: u64 = 1000;

/// The source of all frames.
pub(super) struct From<'p> {
    pub(super) parts: &'p Parts,
    pub(super) directory: Arc<dyn Directory>,
    /// How much of an image may be kept in memory, in bytes.
    pub(super) memory: u64,
    /// True if frames are taken that nothing proves to be of this history.
    pub(super) unproven: bool,
}

/// The state of assembling.
pub(super) struct Salvage<'db> {
    from: From<'db>,
    database: &'db Database,
    /// The current segment, the bytes in earlier segments, and the proof of the current segment's frames.
    segment: u64,
    bytes_before: u64,
    proof: Proof,
    /// The transaction that only repeats the state at the beginning of the segment.
    repeated: Option<u64>,
    /// The transaction of the image's root, as long as that isn't reached.
    image: Option<u64>,
    /// The last transaction of the new journal, as long as it wasn't waited for.
    pending: Option<Pending<'db>>,
    /// Runs of txids of frames that nothing proves.
    unproven: Vec<(u64, u64)>,
    schema: Schema,
    /// The transaction that is being assembled, if it can still be kept.
    open: Option<Open<'db>>,
    /// The last txid seen; `None` if not even a header has the first one.
    seen: Option<u64>,
    /// True if something was lost, so that later transactions may not fit.
    is_torn: bool,
    /// Numbers of blobs from which on their bytes were lost, and where that ends.
    lost_blobs: Vec<(u64, u64)>,
    report: Salvaged,
}

/// A transaction whose frames are complete so far.
struct Open<'db> {
    transaction: Transaction<'db>,
    txid: u64,
    position: u64,
    /// Why it can't be kept, if so.
    unfit: Option<String>,
    /// The schema, and how many runs of blobs were lost, before it.
    before: (Arc<Schema>, usize),
}

impl<'db> Salvage<'db> {
    pub(super) fn new(database: &'db Database, from: From<'db>) -> Self {
        let strangers = from.parts.strangers.clone();
        Self {
            database,
            segment: 0,
            bytes_before: 0,
            proof: Proof::default(),
            repeated: None,
            image: from.parts.imaged(),
            pending: None,
            unproven: Vec::new(),
            from,
            schema: Schema::default(),
            open: None,
            seen: None,
            is_torn: false,
            lost_blobs: Vec::new(),
            report: Salvaged { strangers, ..Salvaged::default() },
        }
    }

    /// Begins with the next file; `proof` says which of its frames are of the history.
    pub(super) fn begin_part(&mut self, place: usize, proof: Proof) -> Result<()> {
        self.abandon()?;
        let Some(part) = self.from.parts.all.get(place) else { return Ok(()) };
        let copies = &part.copies;
        let headers = copies.headers.iter().flatten().count();
        let slots =
            copies.slots.iter().filter(|slot| slot.iter().flatten().next().is_some()).count();
        let before = place.checked_sub(1).and_then(|before| self.from.parts.all.get(before));
        let before_bytes = before.map_or(Ok(0), |before| before.storage.len());
        self.bytes_before += before_bytes.map_err(|error| part.unreadable(error))?;
        self.note_missing(part.number, part.header().is_some_and(|header| header.is_base()));
        let (number, file) = (part.number, part.shown.clone());
        self.report.segments.push(SalvagedSegment { number, file, headers, slots });
        (self.segment, self.proof, self.repeated) = (number, proof, None);
        let Some(header) = part.header() else { return Ok(()) };
        if place == 0 && header.is_base() {
            self.seen = Some(header.first_txid.saturating_sub(1));
            return Ok(());
        }
        if !header.begins_with_state() {
            self.lose_before(header.first_txid);
            return Ok(());
        }
        let txid = header.first_txid;
        self.repeated = Some(txid);
        self.lose_before(txid.saturating_add(1));
        // The state at its beginning is newer than an image from before.
        self.image = self.image.filter(|&image| image > txid);
        match self.is_torn {
            true => {
                let state = state_of_segment(&self.from.directory, &self.from.parts.journal, part);
                let what = format!("segment {number}, which begins with it");
                self.restore(state.map(Some), &part.shown, &what)
            }
            false => Ok(()),
        }
    }

    /// Reports the segments that are missing before this one.
    fn note_missing(&mut self, number: u64, is_base: bool) {
        let first = match self.report.segments.last() {
            Some(last) => last.number + 1,
            // How many there were before that isn't known.
            None if is_base => number,
            None => number.saturating_sub(1),
        };
        self.report.missing.extend(first..number);
    }

    /// Changes the new journal to a known state, as long as something before it is lost.
    fn restore(&mut self, state: Result<Option<Snapshot>>, from: &str, what: &str) -> Result<()> {
        let time = self.report.last_time;
        // The compared transactions are acknowledged.
        self.pending.take().map_or(Ok(()), |pending| pending.wait().map(drop))?;
        let restored = state.and_then(|state| {
            let Some(state) = state else { return Ok(None) };
            let lost = &mut self.lost_blobs;
            let restored = known::bring(self.database, &state, what, lost, time)?;
            Ok(Some((state, Restored { from: from.to_owned(), ..restored })))
        });
        match restored {
            Ok(None) => Ok(()),
            Ok(Some((state, restored))) => {
                self.schema = Schema::clone(state.schema());
                self.seen = self.seen.max(Some(state.txid().0));
                self.is_torn = false;
                self.report.transactions += u64::from(!restored.is_nothing());
                self.report.restored.extend((!restored.is_nothing()).then_some(restored));
                Ok(())
            }
            Err(error) if is_of_old(&error) => {
                self.report.unusable.push(format!("{from}: {error}"));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Takes the state of the image, if all transactions up to its own have been seen, and some of them are lost.
    fn reach(&mut self, txid: u64) -> Result<()> {
        let Some(image) = self.image.filter(|&image| image < txid) else { return Ok(()) };
        self.image = None;
        self.abandon()?;
        self.lose_before(image.saturating_add(1));
        if !self.is_torn {
            return Ok(());
        }
        let From { parts, directory, memory, .. } = &self.from;
        let name = directory.display(&image_name(&parts.journal));
        let state = parts.state_of_image(directory, *memory);
        self.restore(state, &name, "the image")
    }

    /// Takes the next frame that verifies.
    pub(super) fn step(&mut self, step: &Step<'_>) -> Result<()> {
        let frame = &step.frame;
        let txid = frame.header.txid;
        self.skip(step.skipped);
        if step.link != Link::Follows {
            self.abandon()?;
        }
        if frame.header.is_seal() || self.repeated == Some(txid) {
            return self.abandon();
        }
        if !self.from.unproven && !self.proof.has(frame.header.position) {
            self.abandon()?;
            self.leave_out(frame);
            return Ok(());
        }
        self.reach(txid)?;
        if step.link != Link::Follows {
            if self.seen.is_none() && step.link == Link::Begins {
                self.seen = Some(txid.saturating_sub(1));
            }
            self.lose_before(txid);
        }
        let is_whole_so_far = match &self.open {
            Some(open) => open.txid == txid,
            None => {
                step.link != Link::Unknown
                    && self.seen.is_some_and(|seen| seen.checked_add(1) == Some(txid))
            }
        };
        if !is_whole_so_far {
            self.abandon()?;
            self.drop_frame(frame);
            return Ok(());
        }
        self.begin(frame)?;
        self.apply(frame)?;
        match Committed::of(frame) {
            Some(committed) => self.commit(&committed),
            None => Ok(()),
        }
    }

    /// Reports bytes that were skipped, because no frame in them verifies.
    pub(super) fn skip(&mut self, skipped: Option<Skipped>) {
        let segment = self.segment;
        let gap = |Skipped { position, bytes }| Gap { segment, position, bytes };
        self.report.skipped.extend(skipped.map(gap));
    }

    /// Skips a frame that isn't proven to be of the history: its claims are only noted.
    fn leave_out(&mut self, frame: &Frame<'_>) {
        let (txid, position) = (frame.header.txid, frame.header.position);
        self.is_torn = true;
        match self.unproven.last_mut() {
            Some((_, last)) if *last == txid => return,
            Some((_, last)) if last.checked_add(1) == Some(txid) => *last = txid,
            _ => self.unproven.push((txid, txid)),
        }
        self.note(txid, Some(position), Fate::Unproven);
    }

    fn note(&mut self, txid: u64, position: Option<u64>, fate: Fate) {
        let segment = self.segment;
        self.report.note_run(Run { first: txid, last: txid, segment, position, fate });
    }

    /// Reports the unseen transactions before this one as lost.
    fn lose_before(&mut self, txid: u64) {
        let first = self.seen.unwrap_or(0).saturating_add(1);
        if first < txid {
            self.is_torn = true;
            let segment = self.segment;
            for (first, last) in subtract(first, txid - 1, &self.unproven) {
                let (position, fate) = (None, Fate::Lost);
                self.report.note_run(Run { first, last, segment, position, fate });
            }
            self.seen = Some(txid - 1);
        }
    }

    /// Records a frame of a transaction that isn't whole.
    fn drop_frame(&mut self, frame: &Frame<'_>) {
        let (txid, position) = (frame.header.txid, Some(frame.header.position));
        if self.seen.is_none_or(|seen| seen < txid) {
            self.seen = Some(txid);
            self.lose(txid, position, Fate::Incomplete);
        }
    }

    fn begin(&mut self, frame: &Frame<'_>) -> Result<()> {
        if self.open.is_some() {
            return Ok(());
        }
        let mut transaction = self.database.begin()?;
        // Until its kind is known.
        transaction.set_level(Level::Soft);
        let txid = frame.header.txid;
        let position = frame.header.position;
        let schema = Arc::clone(transaction.view().schema());
        let lost_blobs = self.lost_blobs.len();
        let before = (schema, lost_blobs);
        self.open = Some(Open { transaction, txid, position, unfit: None, before });
        Ok(())
    }

    /// Applies a frame's events, unless one before it didn't fit.
    fn apply(&mut self, frame: &Frame<'_>) -> Result<()> {
        let Self { open: Some(open), schema, is_torn, lost_blobs, .. } = self else {
            return Ok(());
        };
        if open.unfit.is_some() {
            return Ok(());
        }
        let mut apply = Apply {
            transaction: &mut open.transaction,
            is_torn: *is_torn,
            lost_blobs,
            most_blobs: (self.bytes_before + frame.header.position) / PIECE_MIN,
        };
        open.unfit = apply.frame(schema, frame)?.map(|error| error.to_string());
        Ok(())
    }

    fn commit(&mut self, committed: &Committed) -> Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        self.seen = Some(committed.txid.0);
        let position = Some(open.position);
        let fits = match open.unfit.take() {
            Some(why) => Err(why),
            None => open.transaction.check_constraints().map_err(|error| error.to_string()),
        };
        if let Err(why) = fits {
            self.take_back(open)?;
            self.lose(committed.txid.0, position, Fate::Unfit(why));
            return Ok(());
        }
        open.transaction.set_level(committed.level);
        open.transaction.set_time(committed.time);
        let is_empty = open.transaction.is_empty();
        let pending = open.transaction.submit()?;
        self.report.transactions += u64::from(!is_empty);
        match self.report.transactions.is_multiple_of(BATCH) {
            true => drop(pending.wait()?),
            false => self.pending = Some(pending),
        }
        self.report.last_time = Some(committed.time);
        self.note(committed.txid.0, position, Fate::Kept);
        Ok(())
    }

    /// Ends the open transaction as incomplete: the rest of it is missing.
    fn abandon(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let (txid, position) = (open.txid, Some(open.position));
        self.take_back(open)?;
        self.seen = Some(txid);
        self.lose(txid, position, Fate::Incomplete);
        Ok(())
    }

    /// Undoes all of a transaction.
    fn take_back(&mut self, open: Open<'db>) -> Result<()> {
        let (schema, lost_blobs) = open.before;
        self.schema = Schema::clone(&schema);
        self.lost_blobs.truncate(lost_blobs);
        open.transaction.rollback()
    }

    fn lose(&mut self, txid: u64, position: Option<u64>, fate: Fate) {
        self.is_torn = true;
        self.note(txid, position, fate);
    }

    /// Ends: transactions that slots, live block and image know, but no frame has, are lost.
    pub(super) fn finish(mut self) -> Result<Salvaged> {
        self.abandon()?;
        self.reach(u64::MAX)?;
        let copies = self.from.parts.all.iter().map(|part| &part.copies);
        let known = copies.flat_map(|copies| {
            let slots = copies.slots.iter().flatten().flatten().map(|slot| slot.point.txid.0);
            slots.chain(copies.live.iter().flatten().map(|live| live.soft.txid.0))
        });
        let known = known.max().unwrap_or_default();
        self.lose_before(known.saturating_add(1));
        Ok(self.report)
    }
}

/// Returns the rest of a run of txids without others, first and last of each.
fn subtract(first: u64, last: u64, others: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut others = others.to_vec();
    others.sort_unstable();
    let (mut next, mut left) = (first, Vec::new());
    for (from, to) in others.into_iter().filter(|&(_, to)| to >= first) {
        if from > last {
            break;
        }
        if from > next {
            left.push((next, from - 1));
        }
        next = next.max(to.saturating_add(1));
    }
    if next <= last {
        left.push((next, last));
    }
    left
}
