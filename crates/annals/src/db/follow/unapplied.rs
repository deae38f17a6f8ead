//! A commit that verifies, but whose events don't apply: the event, the reason, and the advice.
//!
//! A replay stops at the first event that doesn't apply, with an error that names its transaction. Then the
//! replay is done once more, and ends before that transaction. The events of that transaction are tried one
//! by one, on a store that is rolled back afterwards: so the ordinary replay pays nothing for it.
//!
//! A transaction that never committed is not judged: its frames are a tail as any other.

use std::fmt;

use annals_schema::{Schema, TableNumber, Txid};

use crate::event::{self, Event, compact, opcode};
use crate::journal::segments::Place;
use crate::journal::{Committed, Frame, Head, Point, shown_path};
use crate::store::Store;
use crate::{Error, ErrorKind, Result};

/// A commit that verifies, but whose events don't apply: a newer version wrote it, or a program had a bug.
/// The database is open for reading only, with the state before it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unapplied {
    /// The transaction.
    pub txid: Txid,
    /// The number of the event in the transaction, from 1 on.
    pub event: u64,
    /// A description of the event: `a deletion of row 3 of table t`.
    pub what: String,
    /// The position of the frame that has the event.
    pub position: u64,
    /// Why the event doesn't apply.
    pub reason: String,
    /// True if the commit is known to be on permanent storage: then [`Recovery::ToHard`](crate::Recovery::ToHard)
    /// keeps it, too.
    pub is_hard: bool,
}

impl Unapplied {
    /// Returns the error of a refused operation on the file at this path.
    #[must_use]
    pub fn error(&self, shown: &str) -> Error {
        Error::new(ErrorKind::Unapplied, self.explain(shown))
    }

    /// Describes in sentences the problem of the file at this path, and the advice.
    #[must_use]
    pub fn explain(&self, shown: &str) -> String {
        let (last, path) = (self.txid - 1, shown_path(shown));
        let remedy = match self.is_hard {
            true => format!(
                "It is known to be on permanent storage, so it is never cut: `annals recover {path} --salvage NEW` \
                 writes a new file without it"
            ),
            false => {
                format!("`annals recover {path} --to hard` cuts it off, and all that follows it")
            }
        };
        format!(
            "{shown}: {self}. The file can only be read, as of transaction {last}. A newer version of Annals may \
             apply it. {remedy}"
        )
    }
}

impl fmt::Display for Unapplied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { txid, event, what, position, reason, .. } = self;
        write!(
            f,
            "transaction {txid} verifies, but its event {event}, {what}, in the frame at position {position}, doesn't \
             apply: {reason}"
        )
    }
}

/// The state before a commit that doesn't apply, and that commit.
#[derive(Clone, Debug)]
pub struct Before {
    /// The commit.
    pub unapplied: Unapplied,
    /// The end of the commit before.
    pub point: Point,
}

/// Runs a replay; if a transaction doesn't apply, runs it again, to end before that one.
pub(in crate::db) fn replay_before<T>(
    mut replay: impl FnMut(Option<u64>) -> Result<T>,
) -> Result<T> {
    match replay(None) {
        Err(error) => match error.transaction() {
            Some(txid) => replay(Some(txid)),
            None => Err(error),
        },
        done => done,
    }
}

/// Where a replay ends: before a transaction.
#[derive(Debug)]
pub(in crate::db) struct Stop {
    txid: u64,
    /// The segment in which the transaction was met.
    segment: Option<u64>,
    /// The end of the last commit before it, in the same segment.
    before: Option<Point>,
    /// The end of its commit frame.
    end: u64,
    /// How many of its events apply.
    events: u64,
    found: Option<Found>,
}

/// The event that doesn't apply.
#[derive(Debug)]
struct Found {
    what: String,
    position: u64,
    reason: String,
}

impl Stop {
    pub(in crate::db) const fn new(txid: u64) -> Self {
        Self { txid, segment: None, before: None, end: 0, events: 0, found: None }
    }

    /// True if a frame is of the transaction or follows it.
    pub(in crate::db) const fn is_reached(&self, frame: &Frame<'_>) -> bool {
        frame.header.txid >= self.txid
    }

    /// True if no frame of the transaction was met yet.
    pub(in crate::db) const fn is_ahead(&self) -> bool {
        self.segment.is_none()
    }

    /// Begins the next segment.
    pub(in crate::db) const fn begin(&mut self) {
        if self.is_ahead() {
            self.before = None;
        }
    }

    /// Records a frame before the transaction.
    pub(in crate::db) fn pass(&mut self, frame: &Frame<'_>) {
        self.before = Committed::of(frame).map(|commit| commit.point()).or(self.before);
    }

    /// Tries the events of a frame of the transaction; later frames are ignored. The store is to be rolled back
    /// afterwards.
    pub(in crate::db) fn take(
        &mut self,
        frame: &Frame<'_>,
        place: Place,
        store: &mut Store,
        schema: &mut Schema,
        room: Option<&dyn MakeRoom>,
    ) -> Result<()> {
        let header = &frame.header;
        if header.txid != self.txid {
            return Ok(());
        }
        self.segment = Some(place.segment());
        if header.is_commit() {
            self.end = frame.end;
        }
        if self.found.is_some() || !header.has_events() {
            return Ok(());
        }
        let payload = frame.payload;
        let mut trying =
            Trying { store, stop: self, room, payload, item: 0, table: None, what: None };
        let Err(error) = event::decode_to(frame.payload, place.0, schema, &mut trying) else {
            return Ok(());
        };
        if !is_about_events(&error) {
            return Err(error);
        }
        let what = trying.what.take().unwrap_or_else(|| trying.describe_code(schema));
        self.found = Some(Found { what, position: header.position, reason: error.to_string() });
        Ok(())
    }

    pub(in crate::db) fn before(&self, counted: &Counted<'_>) -> Result<Option<Before>> {
        let Some(unapplied) = self.unapplied(counted)? else { return Ok(None) };
        let Counted { head, from, shown, .. } = *counted;
        if self.segment == Some(head.header.segment) && self.txid >= head.header.first_own_txid() {
            let point = self.before.or(from).unwrap_or_else(|| head.start());
            return Ok(Some(Before { unapplied, point }));
        }
        let (segment, path) = (self.segment.unwrap_or_default(), shown_path(shown));
        let message = format!(
            "{shown}: segment {segment}: {unapplied}. All that follows rests on it. A newer version of Annals may apply \
             it; `annals recover {path} --salvage NEW` writes a new file without it"
        );
        Err(Error::new(ErrorKind::Unapplied, message))
    }

    /// Returns the facts of the transaction, if it is accepted.
    pub(in crate::db) fn unapplied(&self, counted: &Counted<'_>) -> Result<Option<Unapplied>> {
        let Counted { head, shown, end, hard, .. } = *counted;
        if self.txid > end.txid.0 {
            return Ok(None); // it never committed
        }
        let Some(Found { what, position, reason }) = &self.found else {
            let message = format!(
                "{shown}: transaction {} didn't apply a moment ago, and does now: try again, and check the memory of \
                 this machine",
                self.txid
            );
            return Err(Error::corrupt(message));
        };
        Ok(Some(Unapplied {
            txid: Txid(self.txid),
            event: self.events + 1,
            what: what.clone(),
            position: *position,
            reason: reason.clone(),
            is_hard: self.segment != Some(head.header.segment) || self.end <= hard,
        }))
    }
}

/// The accepted part of a journal's newest segment.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'c> {
    /// The head of the segment.
    pub head: &'c Head,
    /// The commit with which the replay of the segment began, if not at its start.
    pub from: Option<Point>,
    /// The name of the journal in messages.
    pub shown: &'c str,
    /// The end of the last accepted commit.
    pub end: Point,
    /// The position up to which the segment is known to be flushed.
    pub hard: u64,
}

/// True if an error means that an event doesn't apply, rather than that it couldn't be tried.
pub(in crate::db) fn is_about_events(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported)
}

/// Makes room in memory during a replay.
pub(in crate::db) trait MakeRoom: fmt::Debug + Send + Sync {
    /// Writes the contents of a store to the image, if they are too large; `is_open`: not all of it may count.
    ///
    /// # Errors
    /// Those of writing to the image.
    fn make_room(&self, store: &mut Store, txid: u64, is_open: bool) -> Result<()>;

    /// Drops the earlier spills.
    fn begin(&self);

    /// Marks all spilled pages as committed.
    fn commit(&self);

    /// Frees the spilled pages of the transaction, which is rolled back.
    fn roll_back(&self);
}

/// Applies one event after another, to see which one doesn't apply.
struct Trying<'t, 'p> {
    store: &'t mut Store,
    stop: &'t mut Stop,
    /// The target for changes larger than memory; `None` if they must be in memory.
    room: Option<&'t dyn MakeRoom>,
    payload: &'p [u8],
    /// Where the event begins in the payload.
    item: usize,
    table: Option<TableNumber>,
    /// The description of the event that doesn't apply, if it can be decoded.
    what: Option<String>,
}

impl event::Sink for Trying<'_, '_> {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        if let Err(error) = self.store.apply(event) {
            self.what = Some(describe(schema, event));
            return Err(error);
        }
        self.stop.events += 1;
        if self.store.owes_much() {
            self.store.settle()?;
        }
        let place = (self.stop.txid, true);
        self.room.map_or(Ok(()), |room| room.make_room(self.store, place.0, place.1))
    }

    fn end(&mut self, left: usize, _: event::Context) {
        if let Some((&opcode::TABLE, mut rest)) = self.rest().split_first() {
            let number =
                compact::take(&mut rest).ok().and_then(|number| u32::try_from(number).ok());
            self.table = number.map(TableNumber);
        }
        self.item = self.payload.len().saturating_sub(left);
    }
}

impl Trying<'_, '_> {
    fn rest(&self) -> &[u8] {
        self.payload.get(self.item..).unwrap_or_default()
    }

    /// Describes an event that can't be decoded.
    fn describe_code(&self, schema: &Schema) -> String {
        let Some(&code) = self.rest().first() else { return "an event".to_owned() };
        let kind = match code {
            opcode::CREATE_TABLE..=opcode::SET_HISTORY_INDEX | opcode::CUSTOM => {
                "a command of the schema"
            }
            opcode::TABLE => "the choice of a table",
            opcode::INSERT | opcode::APPEND | opcode::ERASED_INSERT => "an insertion",
            opcode::UPDATE..=opcode::UPDATE_SAME_NULL | opcode::ERASED_UPDATE => "an update",
            opcode::DELETE => "a deletion",
            opcode::INSERT_VECTOR => "an insertion of rows",
            opcode::UPDATE_VECTOR | opcode::ERASED_VECTOR => "an update of rows",
            opcode::DELETE_VECTOR => "a deletion of rows",
            opcode::COMMENT => "a comment",
            opcode::TIMESTAMP => "a timestamp",
            opcode::BLOB => "a piece of a blob",
            _ => return format!("of the unknown kind {code:#04x}"),
        };
        let is_of_table = (opcode::INSERT..=opcode::DELETE_VECTOR).contains(&code)
            || code >= opcode::ERASED_INSERT;
        match self.table.filter(|_| is_of_table) {
            Some(table) => format!("{kind} in {} (kind {code:#04x})", name(schema, table)),
            None => format!("{kind} (kind {code:#04x})"),
        }
    }
}

/// Describes an event for a person.
fn describe(schema: &Schema, event: &Event<'_>) -> String {
    let table = |number| name(schema, number);
    match *event {
        Event::Schema(command) => format!("the command `{}`", schema.command_text(command)),
        Event::Insert { table: number, id, .. } => {
            format!("an insertion of row {} of {}", id.0, table(number))
        }
        Event::Update { table: number, id, .. } => {
            format!("an update of row {} of {}", id.0, table(number))
        }
        Event::Delete { table: number, id } => {
            format!("a deletion of row {} of {}", id.0, table(number))
        }
        Event::InsertVector { table: number, id, count } => {
            format!("an insertion of {count} rows from {} on of {}", id.0, table(number))
        }
        Event::UpdateVector { table: number, id, .. } => {
            format!("an update of rows from {} on of {}", id.0, table(number))
        }
        Event::DeleteVector { table: number, id, count } => {
            format!("a deletion of {count} rows from {} on of {}", id.0, table(number))
        }
        Event::Blob { blob, offset, .. } => {
            format!("the piece of blob {} at byte {offset}", blob.0)
        }
        Event::ValidData => "a mark of valid data".to_owned(),
        Event::Comment(_) => "a comment".to_owned(),
        Event::Timestamp(_) => "a timestamp".to_owned(),
    }
}

fn name(schema: &Schema, number: TableNumber) -> String {
    match schema.table(number) {
        Some(table) => format!("table {}", table.name),
        None => format!("table number {}", number.0),
    }
}
