//! What happened when: changes in buckets of transactions, and marks.
//!
//! The journal is read once, by a thread of its own, from the first question on; later ones read what is new. An answer
//! has what is known by then, and says how far that is.

mod buckets;
mod marks;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use annals::event::Event;
use annals::{Committed, Erasure, Error, ErrorKind, Schema, Sink, Txid};
use annals_replica::Local;

pub(crate) use buckets::{Bucket, Buckets, MOST};
pub(crate) use marks::{Kind, Mark, Marks};

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
    transaction: Bucket,
    marks: Vec<(Kind, String)>,
}

impl<'a> Collecting<'a> {
    const fn new(activity: &'a Weak<Activity>) -> Self {
        let transaction = Bucket { first: 0, last: 0, time: 0, changes: BTreeMap::new() };
        Self { activity, transaction, marks: Vec::new() }
    }
}

impl Sink for Collecting<'_> {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> annals::Result<()> {
        let (table, count) = match *event {
            Event::Insert { table, .. }
            | Event::Update { table, .. }
            | Event::Delete { table, .. } => (table, 1),
            Event::InsertVector { table, count, .. } | Event::DeleteVector { table, count, .. } => {
                (table, count)
            }
            Event::UpdateVector { table, field, ref values, .. } => {
                let ty = schema.table(table).and_then(|table| table.field(field)).map(|it| it.ty);
                (table, ty.map_or(0, |ty| values.iter(ty).count() as u64))
            }
            Event::Schema(command) => {
                self.marks.push((Kind::Schema, schema.command_text(command)));
                return Ok(());
            }
            Event::Comment(text) => {
                self.marks.push((Kind::Comment, text.to_owned()));
                return Ok(());
            }
            Event::ValidData => {
                self.marks.push((Kind::ValidData, String::new()));
                return Ok(());
            }
            Event::Blob { .. } | Event::Timestamp(_) => return Ok(()),
        };
        self.transaction.count(Some(table), count);
        Ok(())
    }

    fn erasure(&mut self, schema: &Schema, erasure: &Erasure) -> annals::Result<()> {
        let table = schema.table(erasure.table).map_or("a dropped table", |it| &it.name);
        self.marks.push((Kind::Erasure, format!("row {} of {table}", erasure.row.0)));
        Ok(())
    }

    fn commit(&mut self, _: &Schema, committed: &Committed) -> annals::Result<()> {
        let Some(activity) = self.activity.upgrade() else {
            return Err(Error::new(ErrorKind::Closed, "nobody asks any more"));
        };
        let Committed { txid, time, .. } = *committed;
        let transaction = Bucket {
            first: txid.0,
            last: txid.0,
            time: time.0,
            changes: std::mem::take(&mut self.transaction.changes),
        };
        let mut known = activity.lock();
        known.upto = txid;
        known.buckets.add(transaction);
        for (kind, text) in self.marks.drain(..) {
            known.marks.add(Mark { txid, kind, text });
        }
        Ok(())
    }
}
