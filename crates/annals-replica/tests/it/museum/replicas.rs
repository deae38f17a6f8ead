//! Stories of replicas, and of requests over a network.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use annals::{
    Cursor, Database, Error, ErrorKind, FieldNumber, Options, Result, RowId, Snapshot, Transaction,
    Txid, ValueRef,
};
use annals_replica::{
    Connection, Description, Granted, Local, Patience, Pulled, Pushed, Replica, push,
    rebase_journal,
};
use annals_storage::{Clock as _, Spool, SystemClock};

use crate::archive::{NOTE, create, write};
use crate::offline::{self, ITEM, PART, insert_item, insert_part};

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

/// How many visits the clinic has written before its server is lost.
const VISITS: u64 = 4;

/// Writes a visit: two items, a part of the first, and a change of the visit before.
fn visit(tx: &mut Transaction<'_>, number: u64) -> Result<()> {
    let first = insert_item(tx, &format!("{number} a"), 0)?;
    insert_item(tx, &format!("{number} b"), 0)?;
    insert_part(tx, first)?;
    match first.0.checked_sub(2) {
        None => Ok(()),
        Some(before) => tx.update(ITEM, RowId(before), FieldNumber(1), ValueRef::Int64(1)),
    }
}

/// Returns what a state says, without its ids: the items with their values, and the names of the items that have parts.
fn contents(snapshot: &Snapshot) -> (Vec<(String, i64)>, Vec<String>) {
    let items = snapshot.table(ITEM).expect("the table");
    let item = |row: annals::Row<'_>| {
        (row.read::<&str>(FieldNumber(0)).to_owned(), row.read(FieldNumber(1)))
    };
    let mut all: Vec<_> = items.rows().map(|row| item(row.expect("a row"))).collect();
    let parts = snapshot.table(PART).expect("the table");
    let mut with_parts: Vec<_> = parts
        .rows()
        .map(|row| match row.expect("a row").value(FieldNumber(0)) {
            ValueRef::Reference(of) => item(items.get(of).expect("its item")).0,
            other => panic!("{other:?}"),
        })
        .collect();
    all.sort();
    with_parts.sort();
    (all, with_parts)
}

/// A server, a backup of it after each transaction, and clones that know more than a backup.
struct Clinic {
    folder: tempfile::TempDir,
    lost: Database,
}

impl Clinic {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let lost = Options::new().open(folder.path().join("server")).expect("a database");
        let clinic = Self { folder, lost };
        clinic.lost.write(offline::create).expect("a schema");
        clinic.back_up(0);
        for number in 0..VISITS {
            clinic.lost.write(|tx| visit(tx, number)).expect("a visit");
            clinic.back_up(number + 1);
        }
        clinic
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn back_up(&self, visits: u64) {
        let to = self.path(&format!("after-{visits}"));
        // A backup has what is known to be on permanent storage.
        self.lost.hard_checkpoint().expect("a checkpoint");
        let copied = annals_tools::backup(&Options::new(), self.path("server"), to);
        copied.expect("a backup");
    }

    /// Copies the backup that has so many visits.
    fn take(&self, visits: u64, name: &str) -> std::path::PathBuf {
        let to = self.path(name);
        for found in std::fs::read_dir(self.folder.path()).expect("a folder") {
            let found = found.expect("a name").file_name().to_string_lossy().into_owned();
            if found.starts_with(name) {
                std::fs::remove_file(self.path(&found)).expect("removing an old copy");
            }
        }
        std::fs::copy(self.path(&format!("after-{visits}")), &to).expect("a copy");
        to
    }

    /// Opens the backup that has so many visits, as the server that continues.
    fn restore(&self, visits: u64) -> (Database, Arc<dyn Connection>) {
        let server = Options::new().open(self.take(visits, "restored")).expect("a backup");
        let connection = Arc::new(Local::new(server.clone()));
        (server, connection)
    }

    fn had(&self, visits: u64) -> (Vec<(String, i64)>, Vec<String>) {
        contents(&self.lost.at(Txid(visits + 1)).expect("that moment"))
    }
}

/// A server was restored from a backup, and what clients had sent since was never sent again: they remembered that they had.
/// <https://github.com/medic/cht-core/issues/8093>
#[test]
fn cht_core_a_server_of_an_older_backup_gets_all_again_from_its_clones() {
    let clinic = Clinic::new();
    for (backup, ann, bob) in cases() {
        let (server, connection) = clinic.restore(backup);
        let mut there = backup;
        for (name, visits) in [("ann", ann), ("bob", bob), ("ann", ann)] {
            let case = format!("{backup} {ann} {bob}: {name}");
            let path = clinic.take(visits, name);
            let connected = Replica::connect(Arc::clone(&connection), &path);
            if visits > there {
                let error = connected.expect_err("the server has less");
                let (kind, text) = (error.kind(), error.to_string());
                let lacking = format!("lacks the last {} transaction", visits - there);
                assert_eq!(kind, ErrorKind::Diverged, "{case}: {text}");
                for part in ["`annals push FILE URL`", &lacking] {
                    assert!(text.contains(part), "{case}: {part} isn't in {text}");
                }
            } else {
                connected.expect("a clone of the restored server").close().expect("closing");
                let older = clinic.take(visits, "older");
                assert_eq!(push(&*connection, &older).expect("nothing new").transactions, 0);
            }
            let sent = push(&*connection, &path).expect("a push");
            assert_eq!(sent.transactions, visits.saturating_sub(there), "{case}");
            assert_eq!(push(&*connection, &path).expect("again").transactions, 0, "{case}");
            there = there.max(visits);
            assert_eq!(contents(&server.read()), clinic.had(there), "{case}");
            let replica = Replica::connect(Arc::clone(&connection), &path).expect("a clone");
            assert_eq!(replica.cursor(), server.read().point().into(), "{case}");
            replica.close().expect("closing");
        }
        let (same, now) = (clinic.lost.at(Txid(there + 1)), server.read());
        assert_eq!(same.expect("a moment").point().chain, now.point().chain, "the same history");
        server.close().expect("closing");
    }
}

/// The same, where others have written to the restored server before the clones came.
#[test]
fn cht_core_a_server_of_an_older_backup_keeps_what_others_wrote_since() {
    let clinic = Clinic::new();
    for (backup, ann, bob) in cases() {
        let (server, connection) = clinic.restore(backup);
        server.write(|tx| insert_item(tx, "new", 7).map(drop)).expect("others");
        let mut there = backup;
        for (name, visits) in [("ann", ann), ("bob", bob), ("ann", ann)] {
            let case = format!("{backup} {ann} {bob}: {name}");
            let path = clinic.take(visits, name);
            if visits > backup {
                let refused = push(&*connection, &path).expect_err("both sides have others");
                let (kind, text) = (refused.kind(), refused.to_string());
                assert_eq!(kind, ErrorKind::Diverged, "{case}: {text}");
                let common = format!("differ after transaction {}", backup + 1);
                assert!(text.contains(&common), "{case}: {text}");
                let error = Replica::connect(Arc::clone(&connection), &path).map(drop);
                let text = error.expect_err("both sides have others").to_string();
                assert!(text.contains("`annals push FILE URL --rebase`"), "{case}: {text}");
            }
            // What another clone has sent is recognized, with the ids that its rows have there.
            let rebased = rebase_journal(Arc::clone(&connection), &path).expect("a rebase");
            assert_eq!(rebased.transactions, visits.saturating_sub(there), "{case}");
            there = there.max(visits);
            let (mut items, parts) = clinic.had(there);
            items.push(("new".to_owned(), 7));
            items.sort();
            assert_eq!(contents(&server.read()), (items, parts), "{case}");
        }
        server.close().expect("closing");
    }
}

/// Returns how many visits the backup and two clones have.
fn cases() -> impl Iterator<Item = (u64, u64, u64)> {
    let of =
        |backup| (0..=VISITS).flat_map(move |ann| (0..=VISITS).map(move |bob| (backup, ann, bob)));
    (0..VISITS).flat_map(of)
}
