//! How far a history index goes, and what its places mean.
//!
//! ```text
//! place:   (where in all kept segments, counted in units of 8 bytes) * 2, plus 1 if it is a block
//! about:   end of the index: chain (8 bytes), segment, position, txid, commands of the schema
//!          for each segment: its number, where it begins, its end, and of a state: its end, txid, time
//!          the numbers of the tables that it leaves out
//! ```
//!
//! A place that isn't a block is a frame of at most [`SMALL`] bytes of events, which is read whole.

use std::collections::BTreeSet;

use annals_schema::{Schema, TableNumber, Timestamp, Txid};

use crate::db::follow::segments::Since;
use crate::event::compact;
use crate::journal::Point;
use crate::store::history::FIRST_TABLE;
use crate::{Error, Result};

/// The comments: a row is the hash of one.
pub(super) const COMMENTS: u64 = 0;
/// Marks every few KiB: a row is a txid. Numbers: where its first frame is, and the least time of a transaction up to
/// the next mark.
pub(super) const MARKS: u64 = 1;
/// Transactions that aren't one small frame: a row is where the first frame is. Numbers: how long all are, the
/// txid, and the time.
pub(super) const TRANSACTIONS: u64 = 2;
/// Blocks of longer frames: a row is a place. Numbers: see [`Block`](crate::db::past::history::block::Block).
pub(super) const BLOCKS: u64 = 3;
/// Places with comments in such transactions.
pub(super) const COMMENTED: u64 = 4;
/// Places with commands of the schema. Numbers: how many commands there are before, and after.
pub(super) const COMMANDS: u64 = 5;

/// The most bytes of events that a frame without blocks has, and the least that a block has, unless it is the last.
pub(super) const SMALL: usize = 4096;

/// The unit of places.
pub(super) const UNIT: u64 = 8;

/// Returns the key of a table.
pub(super) fn table_key(table: TableNumber) -> u64 {
    u64::from(table.0) + FIRST_TABLE
}

/// A signed number as an unsigned one, small where its absolute value is small.
pub(super) const fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

/// The signed number.
pub(super) const fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

/// The state with which a segment begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentState {
    /// Where it ends in the segment.
    pub(super) end: u64,
    /// The transaction whose state it is.
    pub(super) txid: u64,
    /// Its time.
    pub(super) time: Timestamp,
}

/// A segment that the index covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CoveredSegment {
    /// Its number.
    pub(super) segment: u64,
    /// Where it begins, counted over all segments.
    pub(super) base: u64,
    /// Up to where the index covers it.
    pub(super) end: u64,
    /// The state with which it begins.
    pub(super) state: Option<SegmentState>,
}

/// How far an index goes, and where its segments begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::db) struct About {
    /// The end of the index: the end of a commit.
    pub(super) end: Since,
    /// The number of commands of the schema before it.
    pub(super) commands: u64,
    /// The segments, in order.
    pub(super) parts: Vec<CoveredSegment>,
    /// The tables of which it hasn't all rows, and gets no more.
    pub(super) left_out: BTreeSet<TableNumber>,
}

impl About {
    /// Begins with the kept history.
    pub(super) const fn beginning(first: Since) -> Self {
        Self { end: first, commands: 0, parts: Vec::new(), left_out: BTreeSet::new() }
    }

    /// True if a schema wants an index of other tables.
    pub(super) fn is_unwanted(&self, schema: &Schema) -> bool {
        let is_out = |number| self.left_out.contains(&number);
        schema.tables().iter().any(|table| is_out(table.number) == table.history_index)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let Since { segment, point: Point { position, txid, chain } } = self.end;
        out.extend_from_slice(&chain.to_le_bytes());
        let head = [segment, position, txid.0, self.commands, self.parts.len() as u64];
        head.iter().for_each(|&number| compact::put(&mut out, number));
        for CoveredSegment { segment, base, end, state } in &self.parts {
            let state = state.map_or([0; 3], |state| [state.end, state.txid, zigzag(state.time.0)]);
            let numbers = [*segment, *base, *end].into_iter().chain(state);
            numbers.for_each(|number| compact::put(&mut out, number));
        }
        self.left_out.iter().for_each(|table| compact::put(&mut out, u64::from(table.0)));
        out
    }

    pub(super) fn decode(mut bytes: &[u8]) -> Result<Self> {
        let chain = bytes.split_off(..8).and_then(|chain| chain.try_into().ok());
        let chain = chain.map(u64::from_le_bytes).ok_or_else(damaged)?;
        let mut take = || compact::take(&mut bytes).map_err(|_| damaged());
        let segment = take()?;
        let point = Point { position: take()?, txid: Txid(take()?), chain };
        let (commands, count) = (take()?, take()?);
        let mut parts = Vec::new();
        for _ in 0..count {
            let (segment, base, end) = (take()?, take()?, take()?);
            let (state, txid, time) = (take()?, take()?, Timestamp(unzigzag(take()?)));
            let state = (state > 0).then_some(SegmentState { end: state, txid, time });
            parts.push(CoveredSegment { segment, base, end, state });
        }
        let mut left_out = BTreeSet::new();
        while !bytes.is_empty() {
            let table = compact::take(&mut bytes).map_err(|_| damaged())?;
            left_out.insert(TableNumber(u32::try_from(table).map_err(|_| damaged())?));
        }
        Ok(Self { end: Since { segment, point }, commands, parts, left_out })
    }

    /// Returns how many bytes of the journal it covers.
    pub(super) fn len(&self) -> u64 {
        self.parts.iter().map(|part| part.end).sum()
    }

    /// Returns where a segment begins after those there are.
    pub(super) fn next_base(&self) -> u64 {
        self.parts.last().map_or(0, |part| (part.base + part.end).next_multiple_of(UNIT))
    }

    /// Returns where a position is, in units over all segments.
    pub(super) fn unit_of(&self, segment: u64, position: u64) -> u64 {
        let part = self.parts.iter().rev().find(|part| part.segment == segment);
        (part.map_or(self.next_base(), |part| part.base) + position) / UNIT
    }

    /// Returns the segment, and the position in it, of a unit.
    pub(super) fn locate(&self, unit: u64) -> Result<(CoveredSegment, u64)> {
        let at = unit.saturating_mul(UNIT);
        let after = self.parts.partition_point(|part| part.base <= at);
        let part = after.checked_sub(1).and_then(|place| self.parts.get(place));
        let part = part.ok_or_else(damaged)?;
        Ok((*part, at - part.base))
    }

    /// True if a unit is in a state that only repeats what is in an earlier segment.
    pub(super) fn is_repeated(&self, unit: u64, first: u64) -> Result<bool> {
        let (part, position) = self.locate(unit)?;
        let is_in_state = part.state.is_some_and(|state| position < state.end);
        Ok(part.segment < first || (part.segment > first && is_in_state))
    }
}

#[cold]
pub(super) fn damaged() -> Error {
    Error::corrupt(
        "the history index makes no sense: `annals backfill` makes it anew; no answer depends on it",
    )
}
