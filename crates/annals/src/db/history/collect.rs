//! Making zones and entries of frames.

use annals_schema::{RowId, Schema, TableNumber, ValueRef};

use crate::Result;
use crate::db::history::files::{Files, Seen};
use crate::db::history::schema::schema_of;
use crate::event::{self, Event};
use crate::history::{
    COMMENTED, COMMENTS, ENDS_INSIDE, Entry, STATE, Zone, comment_key, table_key,
};
use crate::journal::Point;

/// At least this many consecutive rows are one entry; fewer have an entry each. So rows that are changed again and
/// again have the same entries in all zones, which takes less.
const RANGE: u64 = 4;

/// A zone with this many changes of single rows is longer than others, by this factor. There a change takes few bytes
/// of the journal, so an entry for each must take fewer still, and rows repeat in the same zone.
const DENSE: usize = 2048;
const DENSE_LEN: u64 = 4;

/// Collects zones and their entries.
#[derive(Debug)]
pub(in crate::db) struct Collector {
    /// How long a zone is, in bytes, at least.
    zone_len: u64,
    next_zone: u64,
    schema: Schema,
    /// The schema of the state that a segment repeats, as far as it was read.
    state: Schema,
    /// True if it has begun within that.
    is_resumed: bool,
    zone: Option<Zone>,
    /// The entries of the zone, in the order of the journal.
    rows: Vec<Entry>,
    /// For each table, which of them was the last.
    last: Vec<Option<usize>>,
    pub(in crate::db) zones: Vec<Zone>,
    pub(in crate::db) entries: Vec<Entry>,
}

/// Takes the events of a frame.
struct Rows<'c> {
    rows: &'c mut Vec<Entry>,
    last: &'c mut Vec<Option<usize>>,
    zone: u64,
    has_comments: bool,
}

impl Rows<'_> {
    #[inline]
    fn push(&mut self, table: TableNumber, first: RowId, count: u64) {
        let place = table.0 as usize;
        if place >= self.last.len() {
            self.last.resize(place + 1, None);
        }
        let last = self.last.get_mut(place);
        if let Some(entry) = last.as_ref().and_then(|last| self.rows.get_mut((**last)?)) {
            let behind = first.0.wrapping_sub(entry.first);
            if behind <= entry.count {
                entry.count = entry.count.max(behind.saturating_add(count));
                return;
            }
        }
        last.map(|last| last.replace(self.rows.len()));
        let (table, zone) = (table_key(table), self.zone);
        self.rows.push(Entry { table, first: first.0, count, zone });
    }
}

impl event::Sink for Rows<'_> {
    const RUN: usize = 1024;

    #[inline]
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        match *event {
            Event::Insert { table, id, .. }
            | Event::Update { table, id, .. }
            | Event::Delete { table, id } => self.push(table, id, 1),
            Event::InsertVector { table, id, count } | Event::DeleteVector { table, id, count } => {
                self.push(table, id, count)
            }
            Event::UpdateVector { table, id, field, values } => {
                let field = schema.table(table).and_then(|table| table.field(field));
                let count = field.and_then(|field| values.len(field.ty)).unwrap_or(0);
                self.push(table, id, count as u64);
            }
            Event::Comment(text) => {
                let (first, zone) = (comment_key(text), self.zone);
                self.rows.push(Entry { table: COMMENTS, first, count: 1, zone });
                self.has_comments = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn rows(
        &mut self,
        table: TableNumber,
        id: RowId,
        count: u64,
        _: &[Vec<ValueRef<'_>>],
    ) -> Result<()> {
        self.push(table, id, count);
        Ok(())
    }
}

impl Collector {
    /// Begins after the history that the commands of this schema cover, with the zone of a number.
    pub(in crate::db) fn new(schema: Schema, next_zone: u64, zone_len: u64) -> Self {
        Self {
            zone_len,
            next_zone,
            schema,
            state: Schema::default(),
            is_resumed: false,
            zone: None,
            rows: Vec::new(),
            last: Vec::new(),
            zones: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Begins within the state at the beginning of a segment, after the history that the commands of this schema
    /// cover.
    fn resume_state(&mut self, state: Schema) {
        (self.state, self.is_resumed) = (state, true);
    }

    /// Returns the number of commands of the schema before the next event.
    pub(in crate::db) fn commands(&self) -> u64 {
        self.schema.commands().len() as u64
    }

    /// True if the collected part may end here: not within a state that is repeated.
    pub(in crate::db) fn may_end(&self) -> bool {
        self.zone.is_none_or(|zone| !zone.is(STATE))
            && self.zones.last().is_none_or(|last| !last.is(STATE) || !last.is(ENDS_INSIDE))
    }

    /// Takes a frame.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`.
    pub(in crate::db) fn frame(&mut self, seen: &Seen<'_>) -> Result<()> {
        let Seen { frame, segment, is_state } = *seen;
        let header = &frame.header;
        if self.zone.is_some_and(|zone| zone.segment != segment || zone.is(STATE) != is_state) {
            self.end_zone();
        }
        let before = frame.point_before();
        let begins_state = is_state
            && !self.is_resumed
            && self.zone.is_none()
            && self.zones.last().is_none_or(|last| last.segment != segment);
        if begins_state {
            self.state = Schema::default();
        }
        let schema = if is_state { &mut self.state } else { &mut self.schema };
        let zone = self.zone.get_or_insert_with(|| Zone {
            segment,
            start: before,
            end: before,
            least_time: i64::MAX,
            commands: u32::try_from(schema.commands().len()).unwrap_or(u32::MAX),
            flags: if is_state { STATE } else { 0 },
        });
        let (rows, last) = (&mut self.rows, &mut self.last);
        let mut sink = Rows { rows, last, zone: self.next_zone, has_comments: false };
        if header.has_events() {
            event::decode_to(frame.payload, frame.payload_at(), schema, &mut sink)?;
        }
        zone.flags |= if sink.has_comments { COMMENTED } else { 0 };
        let txid = if header.is_commit() { header.txid } else { header.txid - 1 };
        zone.end = Point { position: frame.end, txid, chain: frame.chain };
        if !header.is_commit() {
            zone.flags |= ENDS_INSIDE;
        } else {
            zone.flags &= !ENDS_INSIDE;
            if is_state && self.schema.commands().is_empty() {
                self.schema = std::mem::take(&mut self.state);
            } else if !is_state {
                zone.least_time = zone.least_time.min(header.time);
            }
        }
        let len = frame.end - zone.start.position;
        // A zone doesn't begin in the middle of a long event.
        let is_long = len >= self.zone_len
            && !header.has_more()
            && (self.rows.len() < DENSE || len >= self.zone_len.saturating_mul(DENSE_LEN));
        if is_long || (is_state && header.is_commit()) {
            self.end_zone();
        }
        Ok(())
    }

    /// Ends the zone, if one was begun: its entries are sorted, and consecutive rows joined.
    pub(in crate::db) fn end_zone(&mut self) {
        let Some(zone) = self.zone.take() else { return };
        self.zones.push(zone);
        self.next_zone += 1;
        self.last.clear();
        self.rows.sort_unstable();
        let mut rows = self.rows.drain(..);
        let Some(mut joined) = rows.next() else { return };
        for next in rows {
            if next.table == joined.table && next.first - joined.first <= joined.count {
                let end = (next.first - joined.first).saturating_add(next.count);
                joined.count = joined.count.max(end);
            } else {
                put(&mut self.entries, joined);
                joined = next;
            }
        }
        put(&mut self.entries, joined);
    }
}

fn put(entries: &mut Vec<Entry>, joined: Entry) {
    match joined.count {
        RANGE.. => entries.push(joined),
        count => entries.extend((0..count).map(|place| Entry {
            first: joined.first + place,
            count: 1,
            ..joined
        })),
    }
}

/// Returns the entries of a zone that is read again, in their order.
///
/// # Errors
/// `Corrupt`, `Io`.
pub(in crate::db) fn entries_of(
    files: &Files,
    present: &Schema,
    number: u64,
    zone: &Zone,
) -> Result<Vec<Entry>> {
    let schema = schema_of(present, u64::from(zone.commands))?;
    let mut collector = Collector::new(Schema::default(), number, u64::MAX);
    match zone.is(STATE) {
        true => collector.resume_state(schema),
        false => collector.schema = schema,
    }
    files.read_zone(zone, &mut |seen| collector.frame(seen))?;
    collector.end_zone();
    collector.entries.sort_unstable();
    Ok(collector.entries)
}
