//! What happened when: changes in buckets of transactions, and marks.
//!
//! The journal is read once, by a thread of its own, from the first question on; later ones read what is new. An answer
//! has what is known by then, and says how far that is.

mod buckets;
mod marks;
mod taken;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use annals::event::Event;
use annals::journal::Erasure;
use annals::{
    Committed, Error, ErrorKind, FieldNumber, RowId, Schema, Sink, TableNumber, Timestamp, Txid,
};
use annals_replica::Local;

use self::marks::Row;
use self::taken::Taking;

pub(crate) use buckets::{Bucket, Buckets, MOST};
pub(crate) use marks::{Erased, Kind, Mark, Marks};
pub(crate) use taken::Taken;

/// What is known of a database's history.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The last transaction that was read.
    pub(crate) upto: Txid,
    /// True while a thread reads.
    is_reading: bool,
    pub(crate) buckets: Buckets,
    pub(crate) marks: Marks,
    /// What the tables have of the journal: as many entries as there were tables.
    pub(crate) taken: BTreeMap<TableNumber, Taken>,
    /// Why the rest can't be read.
    pub(crate) failure: Option<String>,
}

impl Activity {
    /// Returns what is known by now, and has what is new up to `last` read, in a thread that ends when nobody serves the
    /// database any more. `first` is the first transaction that is kept.
    ///
    /// # Errors
    /// `Io`: a thread can't be started.
    pub(crate) fn look(
        self: &Arc<Self>,
        local: &Arc<Local>,
        first: Txid,
        last: Txid,
    ) -> annals::Result<MutexGuard<'_, Known>> {
        let mut known = self.lock();
        if known.upto < last && !known.is_reading {
            let (activity, local) = (Arc::downgrade(self), Arc::downgrade(local));
            let started = std::thread::Builder::new()
                .name("annals-activity".to_owned())
                .spawn(move || read(&activity, &local, first));
            started.map_err(|error| Error::io("cannot start a thread", error))?;
            (known.is_reading, known.failure) = (true, None);
        }
        Ok(known)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(activity: &Weak<Activity>, local: &Weak<Local>, first: Txid) {
    let (Some(reading), Some(local)) = (activity.upgrade(), local.upgrade()) else { return };
    let (now, upto, erased) = {
        let known = reading.lock();
        let upto = known.upto.max(Txid(first.0.saturating_sub(1)));
        (local.read(), upto, known.marks.erased())
    };
    drop((reading, local));
    let mut collecting = Collecting::new(activity, erased);
    let read = now.read_events(upto, now.txid(), &mut collecting);
    if let Some(activity) = activity.upgrade() {
        let mut known = activity.lock();
        known.is_reading = false;
        match read {
            // Transactions that are forgotten aren't read.
            Ok(()) => known.upto = known.upto.max(now.txid()),
            Err(error) => known.failure = Some(error.to_string()),
        }
    }
}

/// A transaction that is being read.
struct Collecting<'a> {
    activity: &'a Weak<Activity>,
    taking: Taking,
    marks: Vec<Mark>,
    /// The rows whose values were erased before.
    erased: BTreeSet<Row>,
    /// The fields of such rows that it sets, `None` for all of them.
    set: Vec<(Row, Option<FieldNumber>)>,
}

impl<'a> Collecting<'a> {
    fn new(activity: &'a Weak<Activity>, erased: BTreeSet<Row>) -> Self {
        let (taking, marks, set) = (Taking::default(), Vec::new(), Vec::new());
        Self { activity, taking, marks, erased, set }
    }

    /// Notes something of the transaction that is read, which isn't known yet.
    fn mark(&mut self, kind: Kind, text: String) {
        let (txid, time) = (Txid(0), Timestamp(0));
        self.marks.push(Mark { txid, time, kind, text, erased: None });
    }

    /// Notes that a field, or all, of some rows in order is set.
    fn set(&mut self, table: TableNumber, first: RowId, count: u64, field: Option<FieldNumber>) {
        let rows = (table, first)..(table, RowId(first.0.saturating_add(count)));
        self.set.extend(self.erased.range(rows).map(|row| (*row, field)));
    }
}

impl Sink for Collecting<'_> {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> annals::Result<()> {
        self.taking.event(schema, event);
        match *event {
            Event::Schema(command) => {
                self.mark(Kind::Schema, schema.command_text(command));
            }
            Event::Comment(text) => self.mark(Kind::Comment, text.to_owned()),
            Event::ValidData => self.mark(Kind::ValidData, String::new()),
            _ if self.erased.is_empty() => {}
            Event::Insert { table, id, .. } => self.set(table, id, 1, None),
            Event::InsertVector { table, id, count } => self.set(table, id, count, None),
            Event::Update { table, id, field, .. } => self.set(table, id, 1, Some(field)),
            Event::UpdateVector { table, id, field, ref values } => {
                let ty = schema.table(table).and_then(|it| it.field(field)).map(|it| it.ty);
                let count = ty.map_or(0, |ty| values.iter(ty).count() as u64);
                self.set(table, id, count, Some(field));
            }
            _ => {}
        }
        Ok(())
    }

    fn bytes(&mut self, count: usize) {
        self.taking.bytes(count as u64);
    }

    fn erasure(&mut self, schema: &Schema, erasure: &Erasure) -> annals::Result<()> {
        let Erasure { table: number, row, field, .. } = *erasure;
        let table = schema.table(number);
        let name = table.map_or("a dropped table", |it| &it.name);
        let field_name = match field.map(|field| table.and_then(|table| table.field(field))) {
            Some(Some(field)) => format!("{} of ", field.name),
            Some(None) => "a dropped field of ".to_owned(),
            None => String::new(),
        };
        self.mark(Kind::Erasure, format!("{field_name}row {} of {name}", row.0));
        if let Some(mark) = self.marks.last_mut() {
            mark.erased = Some(Erased { table: number, row, field, set: BTreeMap::new() });
        }
        self.erased.insert((number, row));
        Ok(())
    }

    fn commit(&mut self, _: &Schema, committed: &Committed) -> annals::Result<()> {
        let Some(activity) = self.activity.upgrade() else {
            return Err(Error::new(ErrorKind::Closed, "nobody asks any more"));
        };
        let Committed { txid, time, .. } = *committed;
        let mut transaction =
            Bucket { first: txid.0, last: txid.0, time: time.0, changes: BTreeMap::new() };
        let mut known = activity.lock();
        for (table, taken) in self.taking.end() {
            if taken.changes > 0 {
                transaction.count(Some(table), taken.changes);
            }
            known.taken.entry(table).or_default().add(taken);
        }
        known.upto = txid;
        known.buckets.add(transaction);
        for (row, field) in self.set.drain(..) {
            known.marks.set(row, field, txid);
        }
        for mark in self.marks.drain(..) {
            known.marks.add(Mark { txid, time, ..mark });
        }
        Ok(())
    }
}
