//! Putting transactions together from their frames, and keeping those that are whole and fit.

use std::sync::Arc;

use annals_schema::Schema;

use super::apply::{Apply, PIECE_MIN};
use super::report::{Fate, Run, Salvaged};
use crate::Result;
use crate::db::{Database, Transaction};
use crate::journal::{Committed, Copies, Frame, Level, Link, Skipped, Step};

/// So many transactions are acknowledged at once.
const BATCH: u64 = 1000;

/// What is being put together.
pub(super) struct Salvage<'db> {
    database: &'db Database,
    schema: Schema,
    /// The transaction that is being put together, if it can still be kept.
    open: Option<Open<'db>>,
    /// The last txid of which anything was seen; none if not even a header tells where to begin.
    seen: Option<u64>,
    /// Whether anything was lost, so that what follows may not fit.
    is_torn: bool,
    /// Numbers of blobs from which on their bytes were lost, and where that ends.
    lost_blobs: Vec<(u64, u64)>,
    report: Salvaged,
}

/// A transaction of which all frames were there so far.
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
    pub(super) fn new(database: &'db Database, copies: &Copies) -> Self {
        let headers = copies.headers.iter().flatten().count();
        let header = copies.headers.iter().flatten().next();
        let slots =
            copies.slots.iter().filter(|slot| slot.iter().flatten().next().is_some()).count();
        Self {
            database,
            schema: Schema::default(),
            open: None,
            seen: header.map(|header| header.first_txid.saturating_sub(1)),
            is_torn: false,
            lost_blobs: Vec::new(),
            report: Salvaged { headers, slots, ..Salvaged::default() },
        }
    }

    /// Takes the next frame that verifies.
    pub(super) fn step(&mut self, step: &Step<'_>) -> Result<()> {
        let frame = &step.frame;
        let txid = frame.header.txid;
        self.skip(step.skipped);
        if step.link != Link::Follows {
            self.abandon()?;
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

    /// Notes bytes that are no frame that verifies.
    pub(super) fn skip(&mut self, skipped: Option<Skipped>) {
        self.report.skipped.extend(skipped);
    }

    /// Notes that the transactions before this one, of which nothing was seen, are lost.
    fn lose_before(&mut self, txid: u64) {
        let first = self.seen.unwrap_or(0).saturating_add(1);
        if first < txid {
            self.lose(Run { first, last: txid - 1, position: None, fate: Fate::Lost });
            self.seen = Some(txid - 1);
        }
    }

    /// Notes a frame of a transaction that isn't whole.
    fn drop_frame(&mut self, frame: &Frame<'_>) {
        let (txid, position) = (frame.header.txid, Some(frame.header.position));
        if self.seen.is_none_or(|seen| seen < txid) {
            self.seen = Some(txid);
            self.lose(Run { first: txid, last: txid, position, fate: Fate::Incomplete });
        }
    }

    fn begin(&mut self, frame: &Frame<'_>) -> Result<()> {
        if self.open.is_some() {
            return Ok(());
        }
        let mut transaction = self.database.begin()?;
        // Until it is known what it was.
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
            writing: &mut open.transaction.writing,
            is_torn: *is_torn,
            lost_blobs,
            most_blobs: frame.header.position / PIECE_MIN,
        };
        open.unfit = apply.frame(schema, frame)?.map(|error| error.to_string());
        Ok(())
    }

    fn commit(&mut self, committed: &Committed) -> Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        self.seen = Some(committed.txid);
        let position = Some(open.position);
        let fits = match open.unfit.take() {
            Some(why) => Err(why),
            None => check(&open.transaction).map_err(|error| error.to_string()),
        };
        if let Err(why) = fits {
            self.take_back(open)?;
            let (first, last) = (committed.txid, committed.txid);
            self.lose(Run { first, last, position, fate: Fate::Unfit(why) });
            return Ok(());
        }
        open.transaction.set_level(committed.level);
        open.transaction.set_time(committed.time);
        let is_empty = open.transaction.is_empty();
        let pending = open.transaction.submit()?;
        self.report.transactions += u64::from(!is_empty);
        if self.report.transactions.is_multiple_of(BATCH) {
            pending.wait()?;
        }
        self.report.last_time = Some(committed.time);
        self.report.note(committed.txid, position, Fate::Kept);
        Ok(())
    }

    /// Gives the open transaction up: the rest of it isn't there.
    fn abandon(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let (txid, position) = (open.txid, Some(open.position));
        self.take_back(open)?;
        self.seen = Some(txid);
        self.lose(Run { first: txid, last: txid, position, fate: Fate::Incomplete });
        Ok(())
    }

    /// Lets nothing of a transaction remain.
    fn take_back(&mut self, open: Open<'db>) -> Result<()> {
        let (schema, lost_blobs) = open.before;
        self.schema = Schema::clone(&schema);
        self.lost_blobs.truncate(lost_blobs);
        open.transaction.rollback()
    }

    fn lose(&mut self, run: Run) {
        self.is_torn = true;
        self.report.note_run(run);
    }

    /// Ends: what slots and live block know of, and no frame tells, is lost.
    pub(super) fn finish(mut self, copies: &Copies) -> Result<Salvaged> {
        self.abandon()?;
        let slots = copies.slots.iter().flatten().flatten().map(|slot| slot.point.txid);
        let live = copies.live.iter().flatten().map(|live| live.soft.txid);
        let known = slots.chain(live).max().unwrap_or_default();
        self.lose_before(known.saturating_add(1));
        Ok(self.report)
    }
}

/// Checks what a commit checks.
fn check(transaction: &Transaction<'_>) -> Result<()> {
    transaction.writing.store.check_unique()?;
    transaction.writing.store.check_references()
}
