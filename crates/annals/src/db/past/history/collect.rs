//! Making the entries of a history index from frames.

use annals_schema::{RowId, Schema, TableNumber, Timestamp, Txid};

use crate::Result;
use crate::db::follow::segments::Since;
use crate::db::past::history::about::{
    About, COMMANDS, CoveredSegment, MARKS, SMALL, SegmentState, TRANSACTIONS, zigzag,
};
use crate::db::past::history::block::Block;
use crate::db::past::history::cut::{Cutter, Payload, Wanted};
use crate::db::past::history::files::Seen;
use crate::event;
use crate::journal::Point;
use crate::store::history::{Entry, Key};

/// How far marks are from each other, in units of 8 bytes.
const BETWEEN_MARKS: u64 = 512;

/// Collects the entries of consecutive frames.
#[derive(Debug)]
pub(super) struct Collector {
    pub(super) about: About,
    schema: Schema,
    /// The schema of the state that a segment repeats, as far as it was read.
    state: Schema,
    transaction: Option<CollectedTransaction>,
    mark: Option<Mark>,
    /// Where the first frame of a long event begins, and the commands before.
    long: Option<(Point, u64)>,
    /// The place of the last block.
    block: u64,
    /// The row that alone has entries, if they are for one question.
    only: Option<(TableNumber, RowId)>,
    pub(super) entries: Vec<Entry>,
}

/// The transaction that is being read.
#[derive(Debug)]
struct CollectedTransaction {
    /// Where its first frame is.
    first: u64,
    /// True if it is one small frame, as far as it was read.
    is_small: bool,
}

/// A mark, and the least time since.
#[derive(Debug)]
struct Mark {
    unit: u64,
    txid: u64,
    least: i64,
}

impl Collector {
    /// Begins at the end of an index. `schema` is the one there; `only` the row that alone has entries, if there is one.
    pub(super) fn new(about: About, schema: Schema, only: Option<(TableNumber, RowId)>) -> Self {
        Self {
            about,
            schema,
            state: Schema::default(),
            transaction: None,
            mark: None,
            long: None,
            block: 0,
            only,
            entries: Vec::new(),
        }
    }

    /// True if the index may end here: between two transactions.
    pub(super) const fn may_end(&self) -> bool {
        self.transaction.is_none()
    }

    /// Takes a frame.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`.
    pub(super) fn frame(&mut self, seen: &Seen<'_>) -> Result<()> {
        let Seen { frame, segment, is_state } = *seen;
        let header = &frame.header;
        self.begin_part(segment, is_state, frame.header.txid);
        let unit = self.about.unit_of(segment, header.position);
        if let Some(part) = self.about.parts.last_mut() {
            part.end = frame.end;
        }
        if header.has_events() {
            self.begin_transaction(unit, header.txid, is_state);
            if header.has_more() {
                let commands = self.commands(is_state);
                self.long.get_or_insert((frame.point_before(), commands));
            } else {
                self.events(seen, unit)?;
            }
        }
        let txid = if header.is_commit() { header.txid } else { header.txid.saturating_sub(1) };
        let point = Point { position: frame.end, txid: Txid(txid), chain: frame.chain };
        self.about.end = Since { segment, point };
        if header.is_commit() {
            self.commit(seen);
        }
        self.about.commands = self.schema.commands().len() as u64;
        Ok(())
    }

    fn schema(&mut self, is_state: bool) -> &mut Schema {
        if is_state { &mut self.state } else { &mut self.schema }
    }

    fn commands(&mut self, is_state: bool) -> u64 {
        self.schema(is_state).commands().len() as u64
    }

    /// Notes a segment when its first frame comes.
    fn begin_part(&mut self, segment: u64, is_state: bool, txid: u64) {
        let last = self.about.parts.last();
        if last.is_some_and(|part| part.segment == segment) {
            return;
        }
        let base = self.about.next_base();
        let state = is_state.then_some(SegmentState { end: 0, txid, time: Timestamp(0) });
        self.about.parts.push(CoveredSegment { segment, base, end: 0, state });
        if is_state {
            self.state = Schema::default();
        }
    }

    fn begin_transaction(&mut self, unit: u64, txid: u64, is_state: bool) {
        if self.transaction.is_some() {
            return;
        }
        self.transaction = Some(CollectedTransaction { first: unit, is_small: true });
        let is_due = self.mark.as_ref().is_none_or(|mark| unit >= mark.unit + BETWEEN_MARKS);
        if is_due && !is_state {
            self.end_mark();
            self.mark = Some(Mark { unit, txid, least: i64::MAX });
        }
    }

    /// Ends the last mark: no frame follows.
    pub(super) fn end_mark(&mut self) {
        if let Some(Mark { unit, txid, least }) = self.mark.take() {
            self.record(MARKS, txid, &[unit, zigzag(least)]);
        }
    }

    fn record(&mut self, table: u64, row: u64, numbers: &[u64]) {
        let key = Key { table, row };
        self.entries.extend(numbers.iter().map(|&place| Entry { key, count: 0, place }));
    }

    fn commit(&mut self, seen: &Seen<'_>) {
        let Seen { frame, segment, is_state } = *seen;
        let header = &frame.header;
        if let Some(CollectedTransaction { first, is_small: false }) = self.transaction.take() {
            let end = self.about.unit_of(segment, frame.end);
            self.record(TRANSACTIONS, first, &[end - first, header.txid, zigzag(header.time)]);
        }
        if is_state {
            if let Some(part) = self.about.parts.last_mut() {
                let (txid, time) = (header.txid, Timestamp(header.time));
                part.state = Some(SegmentState { end: frame.end, txid, time });
            }
            if self.schema.commands().is_empty() {
                self.schema = std::mem::take(&mut self.state);
            }
        } else if let Some(mark) = &mut self.mark {
            mark.least = mark.least.min(header.time);
        }
    }

    /// Takes the events of a frame, or of a long event that ends with it.
    fn events(&mut self, seen: &Seen<'_>, unit: u64) -> Result<()> {
        let Seen { frame, segment, is_state } = *seen;
        let before = self.commands(is_state);
        let long = self.long.take();
        let is_small = long.is_none() && frame.payload.len() <= SMALL;
        let is_alone = is_small && frame.header.is_commit();
        if let Some(transaction) = &mut self.transaction {
            transaction.is_small &= is_alone && transaction.first == unit;
        }
        let base = self.about.parts.last().map_or(0, |part| part.base);
        let (bytes, at) = (frame.payload, base + frame.payload_at());
        let payload = Payload { bytes, at, is_alone };
        let out = std::mem::take(&mut self.entries);
        let wanted = Wanted { left_out: &self.about.left_out, only: self.only };
        let mut cutter = Cutter::new(payload, wanted, before, self.block, out);
        cutter.whole = is_small.then_some(unit * 2);
        if let Some((from, commands)) = long {
            let first = self.about.unit_of(segment, from.position);
            cutter.whole =
                Some(cutter.put(first, &Block::Frames { commands, from, end: frame.end }));
        }
        let schema = if is_state { &mut self.state } else { &mut self.schema };
        event::decode_to(frame.payload, frame.payload_at(), schema, &mut cutter)?;
        (self.entries, self.block) = cutter.finish();
        let after = self.commands(is_state);
        if after > before {
            self.record(COMMANDS, unit, &[before, after]);
        }
        Ok(())
    }
}
