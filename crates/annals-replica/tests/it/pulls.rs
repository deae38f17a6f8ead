//! What a pull fetches: all that the other side has, each batch once, whoever asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use annals::{Command, Cursor, Database, Options, Result, Txid};
use annals_replica::frames::Source;
use annals_replica::{Connection, Description, Granted, Local, Patience, Pulled, Pushed, Replica};
use annals_storage::{MemoryDirectory, Spool};

/// A connection whose batches are single transactions; it counts them.
#[derive(Debug)]
struct Single {
    local: Local,
    source: Source,
    batches: AtomicUsize,
}

impl Connection for Single {
    fn name(&self) -> String {
        "single".to_owned()
    }

    fn describe(&self) -> Result<Description> {
        self.local.describe()
    }

    fn pull(&self, after: Option<Cursor>, wait: Duration, into: &mut Spool) -> Result<Pulled> {
        let Some(after) = after else { return self.local.pull(after, wait, into) };
        let batch = self.source.after(Some(after), 1)?;
        batch.copy_to(into)?;
        self.batches.fetch_add(usize::from(!batch.is_empty()), Ordering::SeqCst);
        Ok(Pulled { next: batch.next, is_seal: batch.is_seal })
    }

    fn push(&self, from: Cursor, frames: &Spool, lease: Option<u64>) -> Result<Pushed> {
        self.local.push(from, frames, lease)
    }

    fn lock(&self, lasting: Duration, ticket: Option<u64>) -> Result<Granted> {
        self.local.lock(lasting, ticket)
    }

    fn unlock(&self, ticket: u64) -> Result<()> {
        self.local.unlock(ticket)
    }

    fn chains(&self, txids: &[Txid]) -> Result<Vec<Option<u64>>> {
        self.local.chains(txids)
    }
}

/// Returns a replica that lacks so many transactions.
fn behind(lacks: usize) -> (Arc<Single>, Replica) {
    let origin = Database::in_memory().unwrap();
    let create =
        |name: String| origin.write(|tx| tx.apply_command(&Command::CreateTable { name })).unwrap();
    create("first".to_owned());
    let (local, source) = (Local::new(origin.clone()), Source::new(origin.clone()));
    let single = Arc::new(Single { local, source, batches: AtomicUsize::new(0) });
    let directory = Arc::new(MemoryDirectory::new());
    let (connection, options) = (Arc::<Single>::clone(&single), Options::new());
    let replica =
        Replica::connect_in(connection, directory, "replica", &options, Patience::default());
    let replica = replica.unwrap();
    (0..lacks).for_each(|number| create(format!("table{number}")));
    single.batches.store(0, Ordering::SeqCst);
    (single, replica)
}

#[test]
fn a_pull_fetches_all_and_says_how_many_whether_it_waits_or_not() {
    for wait in [Duration::ZERO, Duration::from_secs(1)] {
        let (_, replica) = behind(5);
        assert_eq!(replica.pull_for(wait).unwrap(), 5, "{wait:?}");
        assert_eq!(replica.pull_for(Duration::ZERO).unwrap(), 0);
        assert_eq!(replica.behind(), None);
    }
}

#[test]
fn threads_that_pull_at_once_fetch_each_batch_once() {
    let (single, replica) = behind(300);
    std::thread::scope(|scope| {
        (0..8).for_each(|_| drop(scope.spawn(|| replica.pull().unwrap())));
    });
    assert_eq!(single.batches.load(Ordering::SeqCst), 300);
}
