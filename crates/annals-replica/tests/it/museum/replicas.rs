//! Stories of replicas, and of requests over a network.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use annals::{Cursor, Error, ErrorKind, Options, Result, Txid};
use annals_replica::{Connection, Description, Granted, Local, Patience, Pulled, Pushed, Replica};
use annals_storage::{Clock as _, Spool, SystemClock};

use crate::archive::{NOTE, create, write};

/// How a connection fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    None,
    /// A pull breaks after so many of the bytes.
    Cut(usize),
    /// One byte of a pull is another one.
    Flipped(usize),
    /// Nobody is there.
    Away,
    /// Each push has no answer.
    Silent,
}

#[derive(Debug)]
struct Failing {
    local: Local,
    failure: Failure,
    pushes: AtomicU64,
}

impl Failing {
    fn new(database: &annals::Database, failure: Failure) -> Arc<Self> {
        let (local, pushes) = (Local::new(database.clone()), AtomicU64::new(0));
        Arc::new(Self { local, failure, pushes })
    }

    fn away(&self) -> Result<()> {
        match self.failure {
            Failure::Away => Err(Error::new(ErrorKind::Unreachable, "nobody is there")),
            _ => Ok(()),
        }
    }
}

impl Connection for Failing {
    fn name(&self) -> String {
        self.local.name()
    }

    fn describe(&self) -> Result<Description> {
        self.away()?;
        self.local.describe()
    }

    fn pull(&self, after: Option<Cursor>, wait: Duration, into: &mut Spool) -> Result<Pulled> {
        self.away()?;
        let mut whole = into.without(0).expect("a copy");
        whole.clear();
        let pulled = self.local.pull(after, wait, &mut whole)?;
        let mut bytes = Vec::new();
        let all = whole.pieces(|_, piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        });
        all.expect("its bytes");
        match self.failure {
            Failure::Cut(at) if at < bytes.len() => {
                into.append(&bytes[..at]).expect("room");
                return Err(Error::new(ErrorKind::Unreachable, "cut off"));
            }
            Failure::Flipped(at) if !bytes.is_empty() => {
                let at = at % bytes.len();
                bytes[at] ^= 1;
            }
            _ => {}
        }
        into.append(&bytes).expect("room");
        Ok(pulled)
    }

    fn push(&self, from: Cursor, frames: &Spool, lease: Option<u64>) -> Result<Pushed> {
        self.away()?;
        self.pushes.fetch_add(1, Ordering::Relaxed);
        match self.failure {
            Failure::Silent => Ok(Pushed::Unknown(Error::new(ErrorKind::Unreachable, "no answer"))),
            _ => self.local.push(from, frames, lease),
        }
    }

    fn lock(&self, lasting: Duration, ticket: Option<u64>) -> Result<Granted> {
        self.local.lock(lasting, ticket)
    }

    fn unlock(&self, ticket: u64) -> Result<()> {
        self.local.unlock(ticket)
    }

    fn chains(&self, txids: &[Txid]) -> Result<Vec<Option<u64>>> {
        self.away()?;
        match self.failure {
            Failure::Silent => Err(Error::new(ErrorKind::Unreachable, "no answer")),
            _ => self.local.chains(txids),
        }
    }
}

fn patience() -> Patience {
    Patience { deadline: Duration::from_millis(300), pause: Duration::from_millis(1) }
}

fn connect(connection: Arc<Failing>, path: &Path) -> Result<Replica> {
    Replica::connect_with(connection, path, &Options::new(), patience())
}

/// The place up to which changes were replicated was stored before the changes were: when the page was closed meanwhile,
/// the rest was skipped for ever. <https://github.com/apache/pouchdb/issues/1240>
#[test]
fn pouchdb_the_place_that_was_reached_is_never_ahead_of_what_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = create(&folder.path().join("a"));
    write(&database, 3);
    let path = folder.path().join("replica");
    let begun = connect(Failing::new(&database, Failure::None), &path).expect("a replica");
    let at = begun.cursor();
    begun.close().expect("closing");
    let ends = write(&database, 30);
    let kept = std::fs::read(&path).expect("its file");
    for cut in (0..4000).step_by(61) {
        for failure in [Failure::Cut(cut), Failure::Flipped(cut)] {
            std::fs::write(&path, &kept).expect("its file");
            // It is left as it is, like a page that was closed.
            let cut = connect(Failing::new(&database, failure), &path);
            let reached = cut.as_ref().map_or(at, Replica::cursor);
            drop(cut);
            let copy = Options::new().open_read_only(&path).expect("it opens");
            let there = Cursor::from(copy.read().point());
            assert!(reached.txid <= there.txid, "{failure:?}: {reached:?} {there:?}");
            let rows = copy.read().table(NOTE).expect("the table").len();
            assert_eq!(rows, there.txid.0 - 1, "{failure:?}");
            let whole = connect(Failing::new(&database, Failure::None), &path).expect("a replica");
            assert_eq!(whole.cursor(), ends[ends.len() - 1], "{failure:?}");
            let rows = whole.read().table(NOTE).expect("the table").len();
            assert_eq!(rows, whole.cursor().txid.0 - 1, "{failure:?}: nothing was skipped");
            whole.close().expect("closing");
        }
    }
}

/// A start that failed left an empty file where the database had been. <https://github.com/rqlite/rqlite/issues/1010>
#[test]
fn rqlite_a_start_that_fails_leaves_the_file_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = create(&folder.path().join("a"));
    write(&database, 20);
    let other = create(&folder.path().join("other"));
    write(&other, 40);
    let path = folder.path().join("replica");
    let replica = connect(Failing::new(&database, Failure::None), &path).expect("a replica");
    let before = replica.cursor();
    replica.close().expect("closing");
    write(&database, 5);
    let is_whole = || {
        let copy = Options::new().open_read_only(&path).expect("it opens");
        let now = copy.read();
        let rows = now.table(NOTE).expect("the table").len();
        now.txid() >= before.txid && rows == now.txid().0 - 1
    };
    // Of another journal, unreachable, cut, or with nonsense.
    let refused = connect(Failing::new(&other, Failure::None), &path).expect_err("another one");
    assert_eq!(refused.kind(), ErrorKind::Diverged, "{refused}");
    assert!(is_whole());
    for failure in [Failure::Away, Failure::Cut(0), Failure::Cut(100), Failure::Flipped(10)] {
        drop(connect(Failing::new(&database, failure), &path));
        assert!(is_whole(), "{failure:?}");
    }
    // One that is begun, and can't be, leaves nothing that would be taken for a replica.
    for failure in [Failure::Away, Failure::Cut(10), Failure::Flipped(3)] {
        let new = folder.path().join("new");
        let begun = connect(Failing::new(&database, failure), &new);
        assert!(begun.is_err(), "{failure:?}");
        let replica = connect(Failing::new(&database, Failure::None), &new).expect("a replica");
        assert_eq!(replica.cursor(), Cursor::from(database.read().point()), "{failure:?}");
        replica.close().expect("closing");
        std::fs::remove_file(&new).expect("it is there");
    }
}

/// Requests had no end: a client whose request couldn't be answered waited for ever.
/// <https://jepsen.io/analyses/tigerbeetle-0.16.11>
#[test]
fn tigerbeetle_a_request_without_an_answer_ends_and_is_not_called_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = create(&folder.path().join("a"));
    let path = folder.path().join("replica");
    let insert = |tx: &mut annals::Transaction<'_>| {
        tx.insert(NOTE, &[annals::ValueRef::String("paid")]).map(drop)
    };
    let kind_of = |failure| {
        let connection = Failing::new(&database, failure);
        let replica = connect(Arc::clone(&connection), &path).expect("a replica");
        let begun = SystemClock.elapsed();
        let error = replica.transaction(insert).expect_err("no answer");
        let took = SystemClock.elapsed() - begun;
        assert!(took < Duration::from_secs(30), "{failure:?}: {took:?}");
        replica.close().expect("closing");
        (error.kind(), connection.pushes.load(Ordering::Relaxed))
    };
    connect(Failing::new(&database, Failure::None), &path)
        .expect("a replica")
        .close()
        .expect("closing");
    // Sent once, and never again before it is known what came of it.
    assert_eq!(kind_of(Failure::Silent), (ErrorKind::UnknownOutcome, 1));
    assert_eq!(kind_of(Failure::Away), (ErrorKind::Unreachable, 0));
    assert_eq!(database.read().table(NOTE).expect("the table").len(), 0);
}
