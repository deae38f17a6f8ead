//! Nodes of a shared log: over a simulated one always, and over servers of NATS where they are installed.

mod archived;
mod kept;
mod linear;
mod nodes;
mod poison;
mod simulated;
mod stale;
mod stream;
mod together;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use annals::{
    Command, Cursor, FieldNumber, Options, Result, RowId, Snapshot, TableNumber, Transaction, Type,
    ValueRef,
};
use annals_replica::shared_log::Log;
use annals_replica::{Connection, Patience, Replica, SharedLog};
use annals_storage::{Directory as _, MemoryDirectory};

const ITEM: TableNumber = TableNumber(0);
const VALUE: FieldNumber = FieldNumber(0);
const TAG: FieldNumber = FieldNumber(1);

/// True if tests take the time that they need to find rare mistakes.
fn full() -> bool {
    std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full")
}

/// Tries so many seeds, some at the same time: nodes wait most of the time.
fn each(seeds: u64, run: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(0);
    let work = || {
        while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|it| *it < seeds) {
            run(seed);
        }
    };
    std::thread::scope(|scope| (0..6).for_each(|_| drop(scope.spawn(work))));
}

/// A node with its file in memory.
struct Member {
    directory: MemoryDirectory,
    log: Arc<SharedLog>,
    replica: Replica,
}

fn patience() -> Patience {
    Patience { deadline: Duration::from_secs(20), pause: Duration::from_millis(1) }
}

impl Member {
    fn join(log: Arc<dyn Log>) -> Result<Self> {
        Self::open(MemoryDirectory::new(), log)
    }

    fn open(directory: MemoryDirectory, log: Arc<dyn Log>) -> Result<Self> {
        Self::open_with(directory, log, None)
    }

    /// With an archive.
    fn open_with(
        directory: MemoryDirectory,
        log: Arc<dyn Log>,
        archive: Option<Arc<dyn Connection>>,
    ) -> Result<Self> {
        let log = SharedLog::over(log).patience(patience());
        let log = Arc::new(match archive {
            Some(archive) => log.archive(archive),
            None => log,
        });
        Self::follow(directory, Arc::clone(&log) as _, log, patience())
    }

    /// With a connection that leads to a log, and patience of its own.
    fn follow(
        directory: MemoryDirectory,
        connection: Arc<dyn Connection>,
        log: Arc<SharedLog>,
        patience: Patience,
    ) -> Result<Self> {
        let options = Options::new();
        let replica =
            Replica::connect_in(connection, directory.again(), "node", &options, patience)?;
        Ok(Self { directory, log, replica })
    }

    /// Ends without closing anything, and comes back.
    fn crash(self, log: Arc<dyn Log>) -> Result<Self> {
        let Self { directory, replica, .. } = self;
        drop(replica);
        Self::open(directory, log)
    }

    fn cursor(&self) -> Cursor {
        self.replica.cursor()
    }
}

/// Creates the table, with a counter in its first row.
fn create(tx: &mut Transaction<'_>) -> Result<()> {
    if !tx.view().schema().tables().is_empty() {
        return Ok(());
    }
    tx.apply_command(&Command::CreateTable { name: "item".to_owned() })?;
    for (name, ty) in [("value", Type::Int64), ("tag", Type::String)] {
        let (name, nullable, default) = (name.to_owned(), false, None);
        tx.apply_command(&Command::AddField { table: ITEM, name, ty, nullable, default })?;
    }
    let name = "by_tag".to_owned();
    tx.apply_command(&Command::CreateIndex {
        name,
        table: ITEM,
        fields: vec![TAG],
        descending: Vec::new(),
        collated: Vec::new(),
        unique: true,
    })?;
    tx.insert(ITEM, &[ValueRef::Int64(0), ValueRef::String("counter")]).map(drop)
}

/// Adds one to the counter, and a row that names the addition; returns the counter before.
fn add(tx: &mut Transaction<'_>, tag: &str) -> Result<u64> {
    let before = tx.view().table(ITEM)?.get(RowId(0))?.read::<i64>(VALUE);
    tx.update(ITEM, RowId(0), VALUE, ValueRef::Int64(before + 1))?;
    tx.insert(ITEM, &[ValueRef::Int64(before), ValueRef::String(tag)])?;
    Ok(before.cast_unsigned())
}

/// Returns the counter, and the names of the additions in their order.
fn additions(state: &Snapshot) -> (u64, Vec<String>) {
    let table = state.table(ITEM).expect("the table");
    let rows = table.rows().map(|row| row.expect("a row"));
    let all: Vec<_> =
        rows.map(|row| (row.read::<i64>(VALUE), row.read::<&str>(TAG).to_owned())).collect();
    let mut additions: Vec<_> = all.iter().skip(1).cloned().collect();
    additions.sort_unstable();
    let is_each_once = additions.iter().enumerate().all(|(place, it)| it.0 == place as i64);
    assert!(is_each_once, "the additions follow one another: {additions:?}");
    (
        all.first().map_or(0, |it| it.0.cast_unsigned()),
        additions.into_iter().map(|it| it.1).collect(),
    )
}
