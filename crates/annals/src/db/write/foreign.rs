//! Frames that were made elsewhere: verified, and applied to the store, before anything of them is written.

use annals_schema::{RowId, Schema, TableNumber, Timestamp, Txid, ValueRef};
use annals_storage::Spool;

use crate::db::write::proposal::{Proposal, hold};
use crate::db::write::statement;
use crate::db::write::transaction::Transaction;
use crate::event::{self, Event};
use crate::journal::segments::Place;
use crate::journal::{Committed, Erasure, Frame, FrameReader};
use crate::{Error, ErrorKind, Result};

/// How far a commit's time may be ahead of this machine's clock: 10 s, in microseconds.
const MOST_AHEAD: i64 = 10_000_000;

/// Where frames come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// They are history already: of the journal that this one follows.
    History,
    /// They are to become history here: all is checked that a transaction here would be checked for.
    Proposed,
    /// They are in a log that takes whatever it is sent: all is checked as of proposed ones, but for the clock of this
    /// machine, so that all that read the log come to the same judgement.
    Logged,
}

/// Applies the events of a frame.
struct Applying<'t, 'db> {
    tx: &'t mut Transaction<'db>,
    origin: Origin,
}

impl event::Sink for Applying<'_, '_> {
    /// As in replay.
    const RUN: usize = 256;

    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        let Self { tx, origin } = self;
        if !event.is_insertion() {
            tx.settle()?;
        }
        statement::change(tx, |store| match origin {
            Origin::History => store.apply(event),
            Origin::Proposed | Origin::Logged => store.apply_checked(event),
        })?;
        tx.touched.iter_mut().for_each(|touched| touched.note(schema, event));
        tx.make_room()
    }

    fn rows(
        &mut self,
        table: TableNumber,
        first: RowId,
        count: u64,
        columns: &[Vec<ValueRef<'_>>],
    ) -> Result<()> {
        let Self { tx, origin } = self;
        statement::change(tx, |store| match origin {
            Origin::History => store.apply_rows(table, first, count, columns),
            Origin::Proposed | Origin::Logged => {
                store.apply_checked_rows(table, first, count, columns)
            }
        })?;
        tx.touched.iter_mut().for_each(|touched| touched.add(table, first, count));
        tx.make_room()
    }
}

/// Takes frames that follow a journal's end into an empty transaction: verifies them, and applies all their
/// transactions. The proposal that it returns holds them; nothing is written. Changes larger than memory are written to
/// the image, as in any transaction.
///
/// # Errors
/// `Invalid`: they don't verify, they aren't whole transactions, or their times can't be; `Unsupported`: only a
/// newer version understands them; of proposed ones the errors of statements and of a commit. Nothing remains.
pub fn take<'db>(
    mut tx: Transaction<'db>,
    frames: &mut Spool,
    origin: Origin,
) -> Result<Proposal<'db>> {
    hold(&mut tx)?;
    let from = tx.writing.writer.committed();
    frames.move_to(from.position);
    let file = tx.database.file();
    let mut reader = FrameReader::new(frames, file.segment_hash()?, from, frames.end());
    let mut schema = Schema::clone(tx.writing.store.unsettled().schema());
    let io = |error| Error::io("can't read the spooled frames", error);
    let mut commits = true;
    while let Some(frame) = reader.next().map_err(io)? {
        commits = frame.header.is_commit();
        tx.take_frame(&frame, &mut schema, origin)?;
    }
    if reader.position() != frames.end() || !commits {
        let at = reader.position() - frames.begin();
        return Err(Error::invalid(format!(
            "what was pushed doesn't verify at byte {at} as the continuation of transaction {}",
            from.txid
        )));
    }
    tx.propose_taken()
}

impl Transaction<'_> {
    fn take_frame(&mut self, frame: &Frame<'_>, schema: &mut Schema, origin: Origin) -> Result<()> {
        let txid = Txid(frame.header.txid);
        if let Some(unknown) = frame.header.unknown() {
            let message = format!(
                "transaction {txid} holds {unknown}, which only a newer version understands"
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        // Only the owner of a history erases; a mark changes no row.
        if origin == Origin::History && Erasure::of(frame).is_some() {
            let held = self.writing.writer.hold_frame(frame, None);
            return held.map_err(|error| Error::io("can't spool the frames of a push", error));
        }
        if !frame.header.has_events() {
            let message = format!(
                "a frame that isn't of a transaction can't be pushed, after transaction {txid}"
            );
            return Err(Error::invalid(message));
        }
        let place = Place::new(self.writing.file.segment, frame.payload_at());
        let mut applying = Applying { tx: self, origin };
        let whole = |error: Error| error.within(format!("transaction {txid} doesn't apply"));
        event::decode_to(frame.payload, place.0, schema, &mut applying).map_err(whole)?;
        self.settle().map_err(whole)?;
        let committed = Committed::of(frame);
        let clock_time = committed.as_ref().filter(|it| !it.explicit_time).map(|it| it.time);
        if frame.header.is_commit() {
            self.statements += 1;
            self.writing.store.end_blob();
            if origin != Origin::History {
                self.writing.store.check_unique().map_err(whole)?;
                self.writing.store.check_references().map_err(whole)?;
                self.check_time(txid, clock_time, origin)?;
            }
        }
        let held = self.writing.writer.hold_frame(frame, clock_time.map(|time| time.0));
        held.map_err(|error| Error::io("can't spool the frames of a push", error))
    }

    /// Refuses a clock that is far ahead: all later commits would have its time.
    fn check_time(&self, txid: Txid, time: Option<Timestamp>, origin: Origin) -> Result<()> {
        let (now, last) = (self.database.clock().now(), self.writing.writer.last_clock_time());
        let Some(time) = time else { return Ok(()) };
        if origin == Origin::Proposed && time.0 > now.saturating_add(MOST_AHEAD) {
            return Err(Error::invalid(format!(
                "transaction {txid} is of {time}, more than 10 s ahead of the clock here, {}: set the clock of the \
                 machine that made it",
                Timestamp(now)
            )));
        }
        if time.0 < last {
            return Err(Error::invalid(format!(
                "transaction {txid} is of {time}, before the last one, of {}",
                Timestamp(last)
            )));
        }
        Ok(())
    }
}
