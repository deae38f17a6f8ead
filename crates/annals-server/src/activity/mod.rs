//! What happened when: changes in buckets of transactions, and marks.
//!
//! The journal is read once, by a thread of its own, from the first question on; later ones read what is new. An answer
//! has what is known by then, and says how far that is.

mod buckets;
mod marks;
mod taken;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use annals::event::Event;
use annals::{Committed, Erasure, Error, ErrorKind, Schema, Sink, TableNumber, Txid};
use annals_replica::Local;

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
    let (now, upto) = {
        let known = reading.lock();
        (local.read(), known.upto.max(Txid(first.0.saturating_sub(1))))
    };
    drop((reading, local));
    let mut collecting = Collecting::new(activity);
    let read = now.read_events(upto, &mut collecting);
    if let Some(activity) = activity.upgrade() {
        let mut known = activity.lock();
        known.is_reading = false;
        known.failure = read.err().map(|error| error.to_string());
    }
}

/// A transaction that is being read.
struct Collecting<'a> {
    activity: &'a Weak<Activity>,
    taking: Taking,
    marks: Vec<Mark>,
}

impl<'a> Collecting<'a> {
    fn new(activity: &'a Weak<Activity>) -> Self {
        Self { activity, taking: Taking::default(), marks: Vec::new() }
    }

    /// Notes something of the transaction that is read, which isn't known yet.
    fn mark(&mut self, kind: Kind, text: String) {
        self.marks.push(Mark { txid: Txid(0), kind, text, erased: None });
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
            _ => {}
        }
        Ok(())
    }

    fn bytes(&mut self, count: usize) {
        self.taking.bytes(count as u64);
    }

    fn erasure(&mut self, schema: &Schema, erasure: &Erasure) -> annals::Result<()> {
        let table = schema.table(erasure.table).map_or("a dropped table", |it| &it.name);
        let Erasure { table: of, row, field, .. } = *erasure;
        self.mark(Kind::Erasure, format!("row {} of {table}", row.0));
        if let Some(mark) = self.marks.last_mut() {
            mark.erased = Some(Erased { table: of, row, field });
        }
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
        for mark in self.marks.drain(..) {
            known.marks.add(Mark { txid, ..mark });
        }
        Ok(())
    }
}
