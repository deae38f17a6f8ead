//! Something between a replica and the other side that repeats, delays, drops and invents: each transaction is there once, or
//! never, and what was told of it is true.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use annals::{
    Command, Cursor, Database, Error, ErrorKind, FieldNumber, Options, Result, TableNumber,
    Transaction, Txid, Type, ValueRef,
};
use annals_replica::{
    Connection, Description, Granted, Local, Patience, Pulled, Pushed, Replica, rebase_journal,
};
use annals_simulated::Rng;
use annals_storage::{Directory as _, MemoryDirectory, Spool, SystemClock};

const ITEM: TableNumber = TableNumber(0);

fn full() -> bool {
    std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full")
}

fn create(tx: &mut Transaction<'_>) -> Result<()> {
    tx.apply_command(&Command::CreateTable { name: "item".to_owned() })?;
    let (name, nullable, default) = ("tag".to_owned(), false, None);
    let field = Command::AddField { table: ITEM, name, ty: Type::String, nullable, default };
    tx.apply_command(&field)
}

fn insert(tx: &mut Transaction<'_>, tag: &str) -> Result<()> {
    tx.insert(ITEM, &[ValueRef::String(tag)]).map(drop)
}

/// How often each tag is there.
fn counts(database: &Database) -> BTreeMap<String, u32> {
    let state = database.read();
    let mut counts = BTreeMap::new();
    for row in state.table(ITEM).expect("the table").rows() {
        *counts.entry(row.expect("a row").read::<&str>(FieldNumber(0)).to_owned()).or_default() +=
            1;
    }
    counts
}

#[derive(Debug)]
struct State {
    rng: Rng,
    /// How often it lies, in percent.
    lies: u64,
    /// What it passes on later.
    delayed: Vec<(Cursor, Vec<u8>)>,
}

/// The way to a database, with a liar on it.
#[derive(Clone, Debug)]
struct Interposed {
    local: Arc<Local>,
    state: Arc<Mutex<State>>,
}

fn spool(bytes: &[u8]) -> Spool {
    let mut spool = Spool::new(MemoryDirectory::new().again(), "frames".to_owned(), 0);
    spool.append(bytes).expect("memory");
    spool
}

impl Interposed {
    fn new(database: &Database, seed: u64, lies: u64) -> Self {
        let state = State { rng: Rng::new(seed), lies, delayed: Vec::new() };
        let local = Arc::new(Local::new(database.clone()));
        Self { local, state: Arc::new(Mutex::new(state)) }
    }

    fn lie(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let lies = state.lies;
        state.rng.percent(lies).then(|| state.rng.below(64))
    }

    /// Passes on what it kept.
    fn deliver(&self) {
        let kept = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let is_due = !state.delayed.is_empty() && state.rng.percent(30);
            let count = state.delayed.len().max(1);
            let place = state.rng.index(count);
            is_due.then(|| state.delayed.remove(place))
        };
        if let Some((from, frames)) = kept {
            let _ = self.local.push(from, &spool(&frames), None);
        }
    }
}

/// What may be said of a push, whatever became of it.
fn invented(lie: u64) -> Result<Pushed> {
    let error = |kind| Error::new(kind, "invented");
    match lie % 10 {
        0..=3 => Ok(Pushed::Conflict(None)),
        4 => Ok(Pushed::Conflict(Some(b"<html>".to_vec()))),
        5 => Ok(Pushed::Unknown(error(ErrorKind::Unreachable))),
        6 => Err(error(ErrorKind::Unreachable)),
        7 => Err(error(ErrorKind::Diverged)),
        8 => Err(error(ErrorKind::NoSpace)),
        _ => Err(error(ErrorKind::Conflict)),
    }
}

impl Connection for Interposed {
    fn name(&self) -> String {
        self.local.name()
    }

    fn describe(&self) -> Result<Description> {
        self.local.describe()
    }

    fn pull(&self, after: Option<Cursor>, wait: Duration, into: &mut Spool) -> Result<Pulled> {
        self.deliver();
        self.local.pull(after, wait, into)
    }

    fn push(&self, from: Cursor, frames: &Spool, lease: Option<u64>) -> Result<Pushed> {
        self.deliver();
        let Some(lie) = self.lie() else { return self.local.push(from, frames, lease) };
        let mut bytes = Vec::new();
        let copied = frames.pieces(|_, piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        });
        copied.expect("memory");
        // It arrives, twice or later, or not at all: the answer says nothing of that.
        if lie & 16 == 0 {
            let _ = self.local.push(from, frames, lease);
        }
        if lie & 32 == 0 {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.delayed.push((from, bytes));
        }
        invented(lie)
    }

    fn lock(&self, lasting: Duration, ticket: Option<u64>) -> Result<Granted> {
        self.local.lock(lasting, ticket)
    }

    fn unlock(&self, ticket: u64) -> Result<()> {
        self.local.unlock(ticket)
    }

    fn chains(&self, txids: &[Txid]) -> Result<Vec<Option<u64>>> {
        match self.lie() {
            Some(lie) if lie % 2 == 0 => Err(Error::new(ErrorKind::Unreachable, "invented")),
            // What an older state has.
            Some(_) => Ok(vec![None; txids.len()]),
            None => self.local.chains(txids),
        }
    }
}

/// What a writer was told of its transactions.
#[derive(Debug, Default)]
struct Told {
    there: Vec<String>,
    unknown: Vec<String>,
}

impl Told {
    fn note(&mut self, tag: String, done: Result<()>) {
        match done {
            Ok(()) => self.there.push(tag),
            // "Nothing was changed" is a promise, too, but for what is still on its way after a refusal.
            Err(_) => self.unknown.push(tag),
        }
    }

    fn check(&self, origin: &Database, seed: u64) {
        let counts = counts(origin);
        for tag in &self.there {
            assert_eq!(counts.get(tag), Some(&1), "seed {seed}: {tag} was acknowledged");
        }
        for tag in &self.unknown {
            assert!(
                counts.get(tag).is_none_or(|count| *count == 1),
                "seed {seed}: {tag} is there twice"
            );
        }
        assert!(!self.there.is_empty() || self.unknown.is_empty(), "seed {seed}: {self:?}");
    }
}

fn patience() -> Patience {
    Patience { deadline: Duration::from_secs(10), pause: Duration::from_micros(100) }
}

fn origin() -> Database {
    let clock = Arc::new(SystemClock);
    let origin = Options::new().open_in(MemoryDirectory::new().again(), "origin", clock);
    let origin = origin.expect("a database");
    origin.write(create).expect("the schema");
    origin
}

fn connect(way: &Interposed) -> Replica {
    let directory = MemoryDirectory::new().again();
    let way: Arc<dyn Connection> = Arc::new(way.clone());
    Replica::connect_in(way, directory, "copy", &Options::new(), patience()).expect("a replica")
}

#[test]
fn transactions_are_there_once_or_never() {
    for seed in 0..if full() { 3000 } else { 60 } {
        let origin = origin();
        let way = Interposed::new(&origin, seed, 10 + seed % 6 * 12);
        let replicas = [connect(&way), connect(&way)];
        let told = Mutex::new(Told::default());
        std::thread::scope(|scope| {
            for (name, replica) in ["a", "b"].into_iter().zip(&replicas) {
                let told = &told;
                scope.spawn(move || {
                    for number in 0..15 {
                        let tag = format!("{name} {number}");
                        let done = replica.transaction(|tx| insert(tx, &tag)).map(drop);
                        told.lock().unwrap_or_else(PoisonError::into_inner).note(tag, done);
                    }
                });
            }
        });
        while !way.state.lock().unwrap_or_else(PoisonError::into_inner).delayed.is_empty() {
            way.deliver();
        }
        told.into_inner().unwrap_or_else(PoisonError::into_inner).check(&origin, seed);
    }
}

#[test]
fn offline_work_is_there_once_or_never() {
    for seed in 0..if full() { 1000 } else { 30 } {
        let origin = origin();
        let way = Interposed::new(&origin, seed, 10 + seed % 5 * 12);
        let replica = connect(&way);
        let offline = replica.offline().expect("an offline journal");
        let tags: Vec<_> = (0..4).map(|number| format!("offline {number}")).collect();
        for tag in &tags {
            offline.write(|tx| insert(tx, tag)).expect("a commit");
        }
        offline.close().expect("closing");
        if seed % 2 == 0 {
            origin.write(|tx| insert(tx, "first")).expect("a commit");
        }
        let mut tries = 0;
        // Whatever is said: it is sent again until it is there.
        while replica.push().is_err() && replica.rebase().is_err() && tries < 200 {
            tries += 1;
        }
        assert!(tries < 200, "seed {seed}");
        let counts = counts(&origin);
        assert!(tags.iter().all(|tag| counts.get(tag) == Some(&1)), "seed {seed}: {counts:?}");
    }
}

#[test]
fn a_journal_that_is_rebased_is_there_once() {
    for seed in 0..if full() { 300 } else { 10 } {
        let folder = tempfile::tempdir().expect("a folder");
        let origin = origin();
        let path = folder.path().join("copy");
        let honest: Arc<dyn Connection> = Arc::new(Local::new(origin.clone()));
        Replica::connect(honest, &path).and_then(Replica::close).expect("a copy");
        let copy = Options::new().open(&path).expect("a database");
        copy.write(|tx| insert(tx, "own")).expect("a commit");
        copy.close().expect("closing");
        origin.write(|tx| insert(tx, "first")).expect("a commit");
        let way: Arc<dyn Connection> = Arc::new(Interposed::new(&origin, seed, 50));
        let mut tries = 0;
        while rebase_journal(Arc::clone(&way), &path).is_err() && tries < 200 {
            tries += 1;
        }
        let counts = counts(&origin);
        assert_eq!((counts.get("own"), counts.len()), (Some(&1), 2), "seed {seed}: {counts:?}");
    }
}
