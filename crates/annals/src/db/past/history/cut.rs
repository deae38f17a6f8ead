//! Cutting the events of a frame into blocks, with an entry for the rows that each changes.

use std::collections::BTreeSet;

use annals_schema::{FieldNumber, RowId, Schema, TableNumber};

use crate::Result;
use crate::bytes::hash;
use crate::db::past::history::about::{BLOCKS, COMMENTED, COMMENTS, SMALL, table_key};
use crate::db::past::history::block::{Block, Bytes, RowRange};
use crate::event::{self, Context, Event, VectorPart, parts};
use crate::store::history::{Entry, Key};

/// At least this many consecutive rows are one entry; fewer have an entry each. So rows that are changed again and
/// again have the same key, which takes less.
const RANGE: u64 = 4;

/// The bits of a comment's hash that are kept: with fewer, more places would be searched in vain.
pub(super) const COMMENT_BITS: u32 = 32;

/// Returns the row of a comment. Few other comments have the same.
pub(super) fn comment_key(comment: &str) -> u64 {
    hash(comment.as_bytes()) >> (u64::BITS - COMMENT_BITS)
}

/// The events of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Payload<'p> {
    pub(super) bytes: &'p [u8],
    /// Where they begin, over all segments.
    pub(super) at: u64,
    /// True if it is a transaction of one small frame, which has its comments.
    pub(super) is_alone: bool,
}

/// The rows that get entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'w> {
    /// None of these tables.
    pub(super) left_out: &'w BTreeSet<TableNumber>,
    /// This one alone, if there is one.
    pub(super) only: Option<(TableNumber, RowId)>,
}

impl Wanted<'_> {
    /// True if some of consecutive rows get one.
    #[inline]
    fn has(&self, rows: &RowRange) -> bool {
        match self.only {
            Some((table, row)) => rows.place_of(table, row).is_some(),
            None => self.left_out.is_empty() || !self.left_out.contains(&rows.table),
        }
    }
}

/// Cuts the events of a frame into blocks.
#[derive(Debug)]
pub(super) struct Cutter<'p> {
    of: Payload<'p>,
    wanted: Wanted<'p>,
    /// The place of the whole, if it isn't cut.
    pub(super) whole: Option<u64>,
    /// The unit of the last block.
    block: u64,
    /// Where the block under way begins in the payload.
    begin: EventSpot,
    /// Where the last event ends.
    done: EventSpot,
    /// The rows that the block changes, and its comments.
    rows: Vec<Range>,
    /// Those of the event under way.
    now: Vec<Range>,
    special: Option<Special>,
    is_command: bool,
    out: Vec<Entry>,
}

/// A place between two events.
#[derive(Clone, Copy, Debug, Default)]
struct EventSpot {
    at: usize,
    context: Context,
    /// The commands of the schema before.
    commands: u64,
}

/// Consecutive rows, or a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    key: Key,
    count: u64,
}

impl Range {
    /// Adds rows that overlap or follow; false if they don't.
    fn join(&mut self, next: Self) -> bool {
        let after = next.key.row.wrapping_sub(self.key.row);
        let joins = self.key.table == next.key.table && after <= self.count;
        let joins = joins && (next.key.table != COMMENTS || after == 0);
        if joins {
            self.count = self.count.max(after.saturating_add(next.count));
        }
        joins
    }
}

/// A long event, which has blocks of its own.
#[derive(Debug)]
enum Special {
    Zeros(RowRange),
    Values { rows: RowRange, field: FieldNumber, parts: Vec<VectorPart> },
}

impl<'p> Cutter<'p> {
    /// Begins with a payload, after some commands of the schema, and after a block.
    pub(super) fn new(
        of: Payload<'p>,
        wanted: Wanted<'p>,
        commands: u64,
        block: u64,
        out: Vec<Entry>,
    ) -> Self {
        let start = EventSpot { commands, ..EventSpot::default() };
        Self {
            of,
            wanted,
            whole: None,
            block,
            begin: start,
            done: start,
            rows: Vec::new(),
            now: Vec::new(),
            special: None,
            is_command: false,
            out,
        }
    }

    /// Ends the last block; returns all entries, and the unit of the last block.
    pub(super) fn finish(mut self) -> (Vec<Entry>, u64) {
        self.cut();
        (self.out, self.block)
    }

    /// Adds the record of a block in or after a unit, and returns its place.
    pub(super) fn put(&mut self, unit: u64, block: &Block) -> u64 {
        self.block = unit.max(self.block + 1);
        let key = Key { table: BLOCKS, row: self.block * 2 + 1 };
        let numbers = block.encode().into_iter();
        self.out.extend(numbers.map(|place| Entry { key, count: 0, place }));
        key.row
    }

    /// Adds the record of a block with some of the bytes, and returns its place.
    fn put_bytes(&mut self, from: usize, to: usize, block: impl FnOnce(Bytes) -> Block) -> u64 {
        let at = self.of.at + from as u64;
        let unit = (at / 8).max(self.block + 1);
        let bytes = self.of.bytes.get(from..to).unwrap_or_default();
        let (shift, len) = ((at + 8).saturating_sub(unit * 8), bytes.len() as u64);
        let commands = self.begin.commands;
        self.put(unit, &block(Bytes { shift, len, hash: hash(bytes), commands }))
    }

    /// Ends the block after the last event. One that nothing leads to isn't kept.
    fn cut(&mut self) {
        let (begin, done) = (self.begin, self.done);
        if let Some(place) = self.whole {
            self.put_rows(place);
        } else if begin.at < done.at && !self.rows.is_empty() {
            let context = begin.context;
            let place = self.put_bytes(begin.at, done.at, |bytes| Block::Events { bytes, context });
            self.put_rows(place);
        }
        self.begin = done;
    }

    /// Adds the entries of a place: sorted, and consecutive rows joined.
    fn put_rows(&mut self, place: u64) {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_unstable();
        let mut all = rows.iter().copied();
        if let Some(mut joined) = all.next() {
            for next in all {
                if !joined.join(next) {
                    self.put_range(joined, place);
                    joined = next;
                }
            }
            self.put_range(joined, place);
        }
        rows.clear();
        self.rows = rows;
    }

    fn put_range(&mut self, Range { key, count }: Range, place: u64) {
        if count >= RANGE {
            self.out.push(Entry { key, count, place });
            return;
        }
        let each = (0..count).map(|at| Key { row: key.row + at, ..key });
        self.out.extend(each.map(|key| Entry { key, count: 1, place }));
        if key.table == COMMENTS && !self.of.is_alone {
            let key = Key { table: COMMENTED, row: place };
            let before = self.out.iter().rev().find(|entry| entry.key.table == COMMENTED);
            if before.is_none_or(|before| before.key != key) {
                self.out.push(Entry { key, count: 0, place: 0 });
            }
        }
    }

    /// Puts an event into blocks of its own, which ends at a spot.
    fn put_special(&mut self, special: Special, end: usize) {
        match special {
            Special::Zeros(rows) => {
                if !self.wanted.has(&rows) {
                    return;
                }
                let unit = (self.of.at + self.begin.at as u64) / 8;
                let place = self.put(unit, &Block::Zeros { commands: self.begin.commands, rows });
                self.push(rows);
                self.put_rows(place);
            }
            Special::Values { rows, field, parts } => {
                let len = parts.last().map_or(0, |part| part.at + part.len);
                let start = end.saturating_sub(len);
                for part in parts {
                    let (from, to) = (start + part.at, start + part.at + part.len);
                    let first = RowId(rows.first.0 + part.first);
                    let rows = RowRange { first, count: part.count, ..rows };
                    if !self.wanted.has(&rows) {
                        continue;
                    }
                    let block = |bytes| Block::Values { bytes, rows, field, part };
                    let place = self.put_bytes(from, to, block);
                    self.push(rows);
                    self.put_rows(place);
                }
            }
        }
    }

    fn push(&mut self, RowRange { table, first, count }: RowRange) {
        let range = Range { key: Key { table: table_key(table), row: first.0 }, count };
        if !self.rows.last_mut().is_some_and(|last| last.join(range)) {
            self.rows.push(range);
        }
    }

    /// Returns how a long event is put into blocks of its own, if it is one.
    fn special(&self, schema: &Schema, event: &Event<'_>) -> Option<Special> {
        if self.whole.is_some() {
            return None;
        }
        match *event {
            Event::InsertVector { table, id: first, count } => (count > event::BARE_ROWS)
                .then_some(Special::Zeros(RowRange { table, first, count })),
            Event::UpdateVector { table, id: first, field: number, values } => {
                let field = schema.table(table)?.field(number)?;
                let parts = parts(field, values, SMALL)?;
                let last = parts.last().filter(|part| part.at + part.len > SMALL / 4)?;
                let rows = RowRange { table, first, count: last.first + last.count };
                Some(Special::Values { rows, field: number, parts })
            }
            _ => None,
        }
    }
}

impl event::Sink for Cutter<'_> {
    #[inline]
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        let (table, first, count) = match *event {
            Event::Comment(text) => {
                let key = Key { table: COMMENTS, row: comment_key(text) };
                self.now.push(Range { key, count: 1 });
                return Ok(());
            }
            Event::Insert { table, id, .. }
            | Event::Update { table, id, .. }
            | Event::Delete { table, id } => (table, id, 1),
            Event::InsertVector { table, id, count } | Event::DeleteVector { table, id, count } => {
                self.special = self.special(schema, event);
                (table, id, count)
            }
            Event::UpdateVector { table, id, field, values } => {
                self.special = self.special(schema, event);
                let field = schema.table(table).and_then(|table| table.field(field));
                let count = field.and_then(|field| values.len(field.ty)).unwrap_or(0);
                (table, id, count as u64)
            }
            Event::Schema(_) => {
                self.is_command = true;
                return Ok(());
            }
            _ => return Ok(()),
        };
        if self.wanted.has(&RowRange { table, first, count }) {
            let key = Key { table: table_key(table), row: first.0 };
            self.now.push(Range { key, count });
        }
        Ok(())
    }

    #[inline]
    fn end(&mut self, left: usize, context: Context) {
        let at = self.of.bytes.len().saturating_sub(left);
        let commands = self.done.commands + u64::from(std::mem::take(&mut self.is_command));
        let end = EventSpot { at, context, commands };
        if let Some(special) = self.special.take() {
            self.now.clear();
            self.cut();
            self.put_special(special, at);
            (self.begin, self.done) = (end, end);
            return;
        }
        let is_full = at - self.begin.at > SMALL && self.done.at > self.begin.at;
        if is_full && self.whole.is_none() {
            self.cut();
        }
        for range in self.now.drain(..) {
            if !self.rows.last_mut().is_some_and(|last| last.join(range)) {
                self.rows.push(range);
            }
        }
        self.done = end;
    }
}
