//! The history of a row: one version for each transaction that changed it.

use std::collections::VecDeque;
use std::sync::Arc;

use annals_schema::{RowId, Schema, TableNumber, Value};

use crate::Result;
use crate::db::changes::changed::RowChange;
use crate::db::changes::changed::Version;
use crate::db::history::files::{Files, Seen};
use crate::db::history::find::{Parts, parts_of};
use crate::db::history::row::Running;
use crate::db::history::schema::schema_of;
use crate::db::present::snapshot::Published;
use crate::db::replay::segments::Since;
use crate::debug::brief;
use crate::event::{self, Event};
use crate::history::Zone;
use crate::journal::Committed;

/// The bytes of the journal read at once, without an index.
const STEP: u64 = 1 << 20;

/// The history of a row, the oldest version first: an iterator.
///
/// The first one of all has no `before`: the row was inserted. So has each that is after a deletion, which is a
/// version without `after`. A change that the same transaction reverts is no version. Values are those of the present
/// schema's fields: one that wasn't there yet has its default, and one that was dropped is null.
///
/// Where older history was forgotten, the history begins with the state at that point: that version
/// [`is_beginning`](Version::is_beginning), and has no `before` either.
///
/// While the iterator exists, older segments aren't removed. It reads one version at a time; [`History::newest`]
/// returns the newest ones. After an error the iterator ends.
pub struct History {
    files: Files,
    present: Arc<Schema>,
    /// The parts to read, then everything from a position on.
    zones: VecDeque<Zone>,
    tail: Option<Tail>,
    /// The schema at its position.
    schema: Schema,
    row: Running,
    transaction: Transaction,
    ready: VecDeque<Version>,
    problem: Option<String>,
    bytes: u64,
}

brief!(History, "History", "bytes": |it| it.bytes);

/// Where all is read from on.
#[derive(Clone, Copy, Debug)]
struct Tail {
    since: Since,
    /// The number of commands of the schema before it; unknown if the part before was just read.
    commands: Option<u64>,
}

/// A transaction as far as it was read.
#[derive(Debug, Default)]
struct Transaction {
    txid: u64,
    comments: Vec<String>,
    /// The row before the transaction, if the transaction touches the row.
    before: Option<Option<Vec<Value>>>,
}

impl History {
    /// Begins to read the history of a row up to the published state.
    pub(in crate::db) fn open(
        published: &Published,
        table: TableNumber,
        id: RowId,
    ) -> Result<Self> {
        let present = Arc::clone(published.view.schema());
        let row = Running::new(&present, table, id)?;
        let files = Files::open(published)?;
        let Parts { zones, tail, commands, problem, bytes } = parts_of(&files, table, id)?;
        Ok(Self {
            files,
            present,
            zones: zones.into(),
            tail: Some(Tail { since: tail, commands: Some(commands) }),
            schema: Schema::default(),
            row,
            transaction: Transaction::default(),
            ready: VecDeque::new(),
            problem,
            bytes,
        })
    }

    /// Returns the `most` newest versions, the newest first.
    ///
    /// Cost: that of the whole history of the row, and memory for the returned versions.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn newest(mut self, most: usize) -> Result<Vec<Version>> {
        let mut newest = VecDeque::new();
        for version in &mut self {
            newest.push_front(version?);
            newest.truncate(most);
        }
        Ok(newest.into())
    }

    /// Returns why an existing history index can't be used; then the whole journal is read.
    #[must_use]
    pub fn index_problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Returns how many bytes of the journal and its index were read so far.
    #[must_use]
    pub const fn bytes_read(&self) -> u64 {
        self.bytes
    }

    /// Reads one part more; `false` if there is none.
    fn step(&mut self) -> Result<bool> {
        if let Some(zone) = self.zones.pop_front() {
            self.stand_at(u64::from(zone.commands))?;
            let Self { files, schema, row, transaction, ready, bytes, .. } = self;
            let first = files.first().segment;
            *bytes += files.read_zone(&zone, &mut |seen| {
                see(seen, first, schema, row, transaction, &mut *ready)
            })?;
            return Ok(true);
        }
        let Some(Tail { since, commands }) = self.tail.take() else { return Ok(false) };
        commands.map_or(Ok(()), |commands| self.stand_at(commands))?;
        let Self { files, schema, row, transaction, ready, .. } = self;
        let first = files.first().segment;
        let next = files.read(since, STEP, &mut |seen| {
            see(seen, first, schema, row, transaction, &mut *ready)
        })?;
        let left = |since: Option<Since>| since.map_or(0, |since| self.files.behind(since));
        self.bytes += left(Some(since)).saturating_sub(left(next));
        self.tail = next.map(|since| Tail { since, commands: None });
        Ok(true)
    }

    /// Sets the schema for the following events, by the number of its commands.
    fn stand_at(&mut self, commands: u64) -> Result<()> {
        if self.schema.commands().len() as u64 != commands {
            self.schema = schema_of(&self.present, commands)?;
        }
        Ok(())
    }
}

/// Takes a frame.
fn see(
    seen: &Seen<'_>,
    first: u64,
    schema: &mut Schema,
    row: &mut Running,
    transaction: &mut Transaction,
    ready: &mut VecDeque<Version>,
) -> Result<()> {
    let Seen { frame, segment, is_state } = *seen;
    if (is_state && segment != first) || !frame.header.has_events() {
        return Ok(());
    }
    if transaction.txid != frame.header.txid {
        *transaction = Transaction { txid: frame.header.txid, ..Transaction::default() };
    }
    event::decode(frame.payload, frame.payload_at(), schema, &mut |schema, event| {
        if let Event::Comment(text) = *event {
            transaction.comments.push(text.to_owned());
            return Ok(());
        }
        if !row.is_changed_by(schema, event) {
            return Ok(());
        }
        transaction.before.get_or_insert_with(|| row.values.clone());
        row.apply(schema, event)
    })?;
    let Some(committed) = Committed::of(frame) else { return Ok(()) };
    let Transaction { comments, before, .. } = std::mem::take(transaction);
    if let Some(before) = before.filter(|before| *before != row.values) {
        let change = RowChange { table: row.table, id: row.id, before, after: row.values.clone() };
        let (txid, time) = (committed.txid, committed.time);
        ready.push_back(Version { txid, time, comments, change, is_beginning: is_state });
    }
    Ok(())
}

impl Iterator for History {
    type Item = Result<Version>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(version) = self.ready.pop_front() {
                return Some(Ok(version));
            }
            match self.step() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.zones.clear();
                    self.tail = None;
                    return Some(Err(error));
                }
            }
        }
    }
}
