//! Reading the places that a history index leads to: small frames, and blocks of long ones, each verified alone.

use std::io;
use std::sync::Arc;

use annals_schema::{RowId, Schema, TableNumber, Timestamp, Txid};

use crate::bytes::hash;
use crate::db::follow::segments::Since;
use crate::db::follow::source::read_frames;
use crate::db::past::history::about::{
    About, BLOCKS, COMMANDS, COMMENTED, CoveredSegment, MARKS, TRANSACTIONS, damaged, table_key,
    unzigzag,
};
use crate::db::past::history::block::{Block, Bytes};
use crate::db::past::history::current::Current;
use crate::db::past::history::files::Files;
use crate::db::past::history::schema::schema_of;
use crate::db::present::snapshot::Published;
use crate::event::{self, Context, Event, Vector};
use crate::journal::format::FRAMES_AT;
use crate::journal::{FrameHeader, FrameReader, Point};
use crate::store::history::{HistoryIndex, Key};
use crate::{Error, Result};

/// A place that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::db) struct Whose {
    /// The transaction.
    pub(in crate::db) txid: u64,
    /// Its time.
    pub(in crate::db) time: Timestamp,
    /// True if it is the state with which the history begins.
    pub(in crate::db) is_state: bool,
    /// Where the comments of the transaction are, from one unit to another; `None` if they were at that place.
    pub(super) comments: Option<Units>,
}

impl Whose {
    /// True if all comments of the transaction are at that place.
    pub(in crate::db) const fn has_own_comments(&self) -> bool {
        self.comments.is_none()
    }
}

/// The part of the journal from one unit to before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Units {
    from: u64,
    to: u64,
}

/// The end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::db) struct TransactionEnd {
    pub(in crate::db) since: Since,
    /// The unit after it.
    pub(in crate::db) unit: u64,
}

/// A transaction, and where its last frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) txid: u64,
    pub(super) time: Timestamp,
    pub(super) unit: u64,
}

/// Whole frames from a point on.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: Point,
    end: u64,
}

/// Takes the events of a place.
pub(in crate::db) type Visit<'v> = dyn FnMut(&Schema, &Event<'_>) -> Result<()> + 'v;

/// Reads places.
#[derive(Debug)]
pub(in crate::db) struct Places {
    pub(in crate::db) files: Files,
    published: Arc<Published>,
    index: Arc<HistoryIndex>,
    about: About,
    buffer: Vec<u8>,
    /// The last schema, and the units for which it holds.
    schema: Option<(Units, Schema)>,
    /// How many bytes were read.
    pub(in crate::db) bytes: u64,
}

impl Places {
    /// Opens the files of a journal, with its index.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`, `Io`.
    pub(in crate::db) fn open(published: &Arc<Published>) -> Result<Self> {
        let files = Files::open(published)?;
        let current = Current::up_to(&files, published)?;
        Ok(Self::with(files, published, current))
    }

    /// Does what [`open`](Self::open) does, with an index made of the journal alone, which the next backfill stores.
    ///
    /// # Errors
    /// As `open`.
    pub(in crate::db) fn anew(published: &Arc<Published>) -> Result<Self> {
        let files = Files::open(published)?;
        let current = Current::anew(&files, published)?;
        Ok(Self::with(files, published, current))
    }

    fn with(files: Files, published: &Arc<Published>, current: Current) -> Self {
        let (Current { index, about }, published) = (current, Arc::clone(published));
        Self { files, published, index, about, buffer: Vec::new(), schema: None, bytes: 0 }
    }

    /// Returns the places where a row was changed, in order, up to the published state; `None` if the index leaves its
    /// table out.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(in crate::db) fn of_row(&self, table: TableNumber, row: RowId) -> Result<Option<Vec<u64>>> {
        if self.about.left_out.contains(&table) {
            return Ok(None);
        }
        self.of_key(Key { table: table_key(table), row: row.0 }).map(Some)
    }

    /// Returns the places where a row was changed, in order, and what reads them: this, or, if the index leaves the
    /// table out, one with an index of this row alone, made of the journal.
    ///
    /// Cost: for a table that is left out, reading the whole journal.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`, `Io`.
    pub(in crate::db) fn reading(self, table: TableNumber, row: RowId) -> Result<(Vec<u64>, Self)> {
        if let Some(found) = self.of_row(table, row)? {
            return Ok((found, self));
        }
        let Self { files, published, .. } = self;
        let current = Current::of_row(&files, &published, (table, row))?;
        let made = Self::with(files, &published, current);
        Ok((made.of_row(table, row)?.unwrap_or_default(), made))
    }

    /// Returns the first row of a table with a place, from one on.
    pub(in crate::db) fn row_from(&self, table: TableNumber, row: u64) -> Result<Option<u64>> {
        self.index.row_from(Key { table: table_key(table), row })
    }

    pub(super) fn of_key(&self, key: Key) -> Result<Vec<u64>> {
        let (first, end) = (self.files.first().segment, self.end());
        let places = self.index.places_of(key)?;
        let mut kept = Vec::with_capacity(places.len());
        for place in places {
            if place / 2 < end && !self.about.is_repeated(place / 2, first)? {
                kept.push(place);
            }
        }
        Ok(kept)
    }

    /// Returns the unit at the end of the published state.
    pub(super) fn end(&self) -> u64 {
        self.about.unit_of(self.files.segment(), self.files.end.position)
    }

    /// Returns the unit of the first frame of the kept history.
    pub(super) fn start(&self) -> u64 {
        self.about.unit_of(self.files.first().segment, FRAMES_AT)
    }

    /// Returns the end of a transaction; `None` if the index doesn't lead there: before the first one, and for the
    /// state with which the history begins.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(in crate::db) fn end_of(&mut self, txid: u64) -> Result<Option<TransactionEnd>> {
        let mark = self.index.record_at(Key { table: MARKS, row: txid })?;
        let Some(from) = mark.and_then(|mark| mark.numbers.first().copied()) else {
            return Ok(None);
        };
        let from = from.max(self.start());
        let (mut found, to) = (None, self.end());
        self.commits(from, to, &mut |commit| {
            found = (commit.txid == txid).then_some(commit.unit);
            commit.txid < txid
        })?;
        let Some(unit) = found else { return Ok(None) };
        let (CoveredSegment { segment, base, .. }, position) = self.about.locate(unit)?;
        let mut buffer = std::mem::take(&mut self.buffer);
        let read = self.files.singles(segment)?.read(position, &mut buffer);
        let frame = read.map_err(|error| self.cannot_read(segment, error))?;
        let end = frame.map(|frame| {
            let point = Point { position: frame.end, txid: Txid(txid), chain: frame.chain };
            TransactionEnd { since: Since { segment, point }, unit: (base + frame.end) / 8 }
        });
        self.buffer = buffer;
        Ok(end)
    }

    /// Returns the schema after a transaction that ends at a unit.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(in crate::db) fn schema_after(&mut self, end: &TransactionEnd) -> Result<Schema> {
        Ok(self.schema_at(end.unit)?.1)
    }

    /// Visits the marks of the kept history backwards from the published state, with their unit and least time, while
    /// `visit` returns true.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(super) fn marks_back(&self, visit: &mut dyn FnMut(u64, i64) -> bool) -> Result<()> {
        let start = self.start();
        let last = Key { table: MARKS, row: self.published.point.txid.0 };
        self.index.records_back(last, &mut |mark| match *mark.numbers.as_slice() {
            [unit, _] if unit < start => false,
            [unit, least] => visit(unit, unzigzag(least)),
            _ => true,
        })
    }

    /// Returns the state with which the history begins, if it does with one.
    pub(super) fn beginning(&self) -> Option<Whose> {
        let first = self.files.first().segment;
        let part = self.about.parts.iter().find(|part| part.segment == first)?;
        let state = part.state?;
        Some(Whose { txid: state.txid, time: state.time, is_state: true, comments: None })
    }

    /// Reads a place, and passes its events on: of values of one field in many rows perhaps only that `of` a row.
    ///
    /// # Errors
    /// `Corrupt` if it doesn't verify; `Io`; those of `visit`.
    pub(in crate::db) fn read(
        &mut self,
        place: u64,
        of: Option<(TableNumber, RowId)>,
        visit: &mut Visit<'_>,
    ) -> Result<Whose> {
        crate::db::progress::check_wanted()?;
        match place & 1 {
            0 => self.read_frame(place / 2, visit),
            _ => self.read_block(place, of, visit),
        }
    }

    /// Reads the frame at a unit.
    pub(super) fn read_frame(&mut self, unit: u64, visit: &mut Visit<'_>) -> Result<Whose> {
        let (part, position) = self.about.locate(unit)?;
        let (units, mut schema) = self.schema_at(unit)?;
        let mut buffer = std::mem::take(&mut self.buffer);
        let read = self.files.singles(part.segment)?.read(position, &mut buffer);
        let found = read.map_err(|error| self.cannot_read(part.segment, error))?;
        let Some(frame) = found else { return Err(self.differs(part.segment, position)) };
        let header = frame.header;
        let is_state = part.state.is_some_and(|state| position < state.end);
        decode(&mut schema, Context::default(), frame.payload, visit)?;
        self.bytes += frame.end - position;
        self.buffer = buffer;
        self.schema = units.map(|units| (units, schema));
        let time = Timestamp(header.time);
        let whose = Whose { txid: header.txid, time, is_state, comments: None };
        if header.is_first() && header.is_commit() {
            return Ok(whose);
        }
        self.transaction_of(unit, is_state)
    }

    /// Returns the transaction of a unit that isn't one small frame.
    fn transaction_of(&self, unit: u64, is_state: bool) -> Result<Whose> {
        let found = self.index.record_at(Key { table: TRANSACTIONS, row: unit })?;
        let found = found.ok_or_else(damaged)?;
        match found.numbers.as_slice() {
            &[len, txid, time] if unit - found.row < len => {
                let comments = Some(Units { from: found.row, to: found.row + len });
                Ok(Whose { txid, time: Timestamp(unzigzag(time)), is_state, comments })
            }
            _ => Err(damaged()),
        }
    }

    fn read_block(
        &mut self,
        place: u64,
        of: Option<(TableNumber, RowId)>,
        visit: &mut Visit<'_>,
    ) -> Result<Whose> {
        let unit = place / 2;
        let found = self.index.record_at(Key { table: BLOCKS, row: place })?;
        let found = found.filter(|found| found.row == place).ok_or_else(damaged)?;
        let (part, position) = self.about.locate(unit)?;
        match Block::decode(&found.numbers)? {
            Block::Events { bytes, context } => {
                let mut schema = self.schema_of(bytes.commands)?;
                let payload = self.bytes_at(part.segment, position, bytes)?;
                decode(&mut schema, context, &payload, visit)?;
                self.buffer = payload;
            }
            Block::Zeros { commands, rows } => {
                let event =
                    Event::InsertVector { table: rows.table, id: rows.first, count: rows.count };
                visit(&self.schema_of(commands)?, &event)?;
            }
            Block::Values { bytes, rows, field: number, part: values } => {
                let schema = self.schema_of(bytes.commands)?;
                let payload = self.bytes_at(part.segment, position, bytes)?;
                let field = schema.table(rows.table).and_then(|table| table.field(number));
                let field = field.ok_or_else(damaged)?;
                let one = of.and_then(|(table, row)| rows.place_of(table, row));
                let wanted = one.map_or(0..rows.count, |place| place..place + 1);
                let id = RowId(rows.first.0 + wanted.start);
                let value = |place| event::part_value(field, &values, &payload, place);
                let all = wanted.map(value).collect::<Result<Vec<_>>>()?;
                let values = Vector::Values(&all);
                visit(
                    &schema,
                    &Event::UpdateVector { table: rows.table, id, field: number, values },
                )?;
                drop(all);
                self.buffer = payload;
            }
            Block::Frames { commands, from, end } => {
                let mut schema = self.schema_of(commands)?;
                self.read_stretch(part.segment, Stretch { from, end }, &mut schema, visit)?;
            }
        }
        let is_state = part.state.is_some_and(|state| position < state.end);
        self.transaction_of(unit, is_state)
    }

    fn read_stretch(
        &mut self,
        segment: u64,
        Stretch { from, end }: Stretch,
        schema: &mut Schema,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let (storage, hash) = self.files.source(segment)?;
        let reader = FrameReader::new(storage, hash, from, end);
        let read = read_frames(reader, None, self.files.shown_of(segment)?, &mut |frame| {
            decode(schema, Context::default(), frame.payload, visit)
        })?;
        if read.position != end {
            return Err(self.differs(segment, read.position));
        }
        self.bytes += end - from.position;
        Ok(())
    }

    /// Reads and verifies the bytes of a block.
    fn bytes_at(&mut self, segment: u64, position: u64, bytes: Bytes) -> Result<Vec<u8>> {
        let Bytes { shift, len, hash: expected, .. } = bytes;
        let at = (position + shift).saturating_sub(8);
        let mut buffer = std::mem::take(&mut self.buffer);
        let is_right = |bytes: &[u8]| bytes.len() as u64 == len && hash(bytes) == expected;
        let read = self.files.singles(segment)?.bytes(at, len, &mut buffer, &is_right);
        if !read.map_err(|error| self.cannot_read(segment, error))? {
            return Err(self.differs(segment, at));
        }
        self.bytes += len;
        Ok(buffer)
    }

    /// Visits the transactions that end between two units, in order and without states, while `visit` returns true.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(super) fn commits(
        &mut self,
        from: u64,
        to: u64,
        visit: &mut dyn FnMut(Commit) -> bool,
    ) -> Result<()> {
        let (first, position) = self.about.locate(from)?;
        let parts = self.about.parts.iter();
        let parts = parts.filter(|part| part.segment >= first.segment && part.base < to * 8);
        let mut buffer = std::mem::take(&mut self.buffer);
        let (mut goes_on, mut far) = (true, Vec::new());
        for &CoveredSegment { segment, base, state, .. } in parts {
            let start = if segment == first.segment { position } else { FRAMES_AT };
            // A state that a later segment begins with is no transaction, and has the time of its restart.
            let start = state.map_or(start, |state| start.max(state.end));
            let io = |error| self.cannot_read(segment, error);
            let mut see = |header: &FrameHeader| {
                let (unit, is_commit) = ((base + header.position) / 8, header.is_commit());
                goes_on &= unit < to;
                if goes_on && is_commit && (header.has_far_time() || !far.is_empty()) {
                    far.push(unit);
                } else if goes_on && is_commit {
                    goes_on =
                        visit(Commit { txid: header.txid, time: Timestamp(header.time), unit });
                }
                goes_on
            };
            self.files.singles(segment)?.walk(start, &mut buffer, &mut see).map_err(io)?;
        }
        self.buffer = buffer;
        // Times far from ours are in the payload.
        for unit in far {
            let Whose { txid, time, .. } = self.read_frame(unit, &mut |_, _| Ok(()))?;
            if !visit(Commit { txid, time, unit }) {
                break;
            }
        }
        Ok(())
    }

    fn cannot_read(&self, segment: u64, error: io::Error) -> Error {
        let shown = self.files.shown_of(segment).unwrap_or_default();
        Error::io(format!("{shown}: can't read the journal"), error)
    }

    /// Returns the comments of a transaction whose place didn't have them.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(in crate::db) fn comments_of(&mut self, whose: &Whose) -> Result<Vec<String>> {
        let Some(Units { from, to }) = whose.comments else { return Ok(Vec::new()) };
        let mut places = Vec::new();
        let last = Key { table: COMMENTED, row: to.saturating_mul(2).saturating_sub(1) };
        self.index.records_back(last, &mut |record| {
            let is_inside = record.row / 2 >= from;
            places.extend(is_inside.then_some(record.row));
            is_inside
        })?;
        let mut comments = Vec::new();
        for place in places.into_iter().rev() {
            self.read(place, None, &mut |_, event| {
                if let Event::Comment(text) = *event {
                    comments.push(text.to_owned());
                }
                Ok(())
            })?;
        }
        Ok(comments)
    }

    fn schema_of(&self, commands: u64) -> Result<Schema> {
        schema_of(self.published.view.schema(), commands)
    }

    /// Returns the schema before the frame at a unit, and for which other units it holds, if that is known.
    fn schema_at(&mut self, unit: u64) -> Result<(Option<Units>, Schema)> {
        if let Some((units, schema)) = self.schema.take()
            && (units.from < unit && unit < units.to)
        {
            return Ok((Some(units), schema));
        }
        let found = self.index.record_at(Key { table: COMMANDS, row: unit })?;
        let (commands, from) = match found.as_ref().map(|it| (it.row, it.numbers.as_slice())) {
            Some((row, &[before, _])) if row == unit => (before, None),
            Some((row, &[_, after])) => (after, Some(row)),
            _ => (0, None),
        };
        let is_last = commands == self.published.view.schema().commands().len() as u64;
        let units = from.filter(|_| is_last).map(|from| Units { from, to: u64::MAX });
        Ok((units, self.schema_of(commands)?))
    }

    #[cold]
    fn differs(&self, segment: u64, at: u64) -> Error {
        let shown = self.files.shown_of(segment).unwrap_or_default();
        Error::corrupt(format!(
            "{shown}: at position {at} it isn't what the history index says: one of them is damaged; \
             `annals check` says which"
        ))
    }
}

/// Decodes events, for a visitor that takes one after the other.
fn decode(
    schema: &mut Schema,
    context: Context,
    bytes: &[u8],
    visit: &mut Visit<'_>,
) -> Result<()> {
    struct Each<'v, 's>(&'v mut Visit<'s>);
    impl event::Sink for Each<'_, '_> {
        fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
            (self.0)(schema, event)
        }
    }
    event::decode_from(context, bytes, 0, schema, &mut Each(visit))
}
