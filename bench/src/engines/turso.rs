//! Turso, the rewrite of SQLite in Rust: a write-ahead log, prepared statements, the cache as SQLite's.
//!
//! Durable commits are made at `synchronous=FULL`, soft ones at `NORMAL`. Its calls are asynchronous, but for a local
//! file they block: each is polled until it is done. Threads share one connection after a mutex, as there is one
//! writer at a time.

use std::ops::Range;
use std::path::Path;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use turso::{Builder, Connection, Database};

use super::{Engine, Failure, Level, Names, Shape, Table, Writer, in_order, value};

const FILE: &str = "items.turso";

/// In KiB, negative as `cache_size` wants it.
const CACHE: i64 = -(1 << 20);

const INSERT: &str = "INSERT INTO item(name, value) VALUES (?1, ?2)";
const UPDATE: &str = "UPDATE item SET value = ?2 WHERE id = ?1";

pub(super) struct Turso;

struct Items {
    connection: Mutex<Connection>,
    /// The parent of the connection.
    _database: Database,
}

/// A thread's part in it.
struct Part<'a>(&'a Mutex<Connection>);

/// Runs a future to its end.
fn wait<T>(future: impl Future<Output = turso::Result<T>>) -> Result<T, Failure> {
    let (mut future, mut context) = (pin!(future), Context::from_waker(Waker::noop()));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(result) => return Ok(result?),
            Poll::Pending => std::hint::spin_loop(),
        }
    }
}

impl Turso {
    fn connect(folder: &Path) -> Result<Items, Failure> {
        let path = folder.join(FILE);
        let database = wait(Builder::new_local(&path.to_string_lossy()).build())?;
        let connection = database.connect()?;
        wait(connection.pragma_update("synchronous", "FULL"))?;
        wait(connection.pragma_update("cache_size", CACHE))?;
        Ok(Items { connection: Mutex::new(connection), _database: database })
    }
}

impl Engine for Turso {
    fn name(&self) -> &'static str {
        "Turso"
    }

    fn create(&self, folder: &Path, shape: Shape) -> Result<Box<dyn Table>, Failure> {
        let items = Self::connect(folder)?;
        let table =
            "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT NOT NULL, value INTEGER NOT NULL)";
        let statements: &[_] = match shape {
            Shape::Small => &[table],
            Shape::Named => &[table, "CREATE INDEX item_by_name ON item(name)"],
        };
        for statement in statements {
            wait(lock(&items.connection)?.execute(statement, ()))?;
        }
        Ok(Box::new(items))
    }

    fn open(&self, folder: &Path, _: Shape) -> Result<Box<dyn Table>, Failure> {
        Ok(Box::new(Self::connect(folder)?))
    }
}

/// Returns Turso's number of the row with an id.
fn number(id: u64) -> Result<i64, Failure> {
    Ok(i64::try_from(id)? + 1)
}

fn lock(connection: &Mutex<Connection>) -> Result<MutexGuard<'_, Connection>, Failure> {
    connection.lock().map_err(|_| "a thread panicked".into())
}

/// Runs changes in one transaction with a durable commit.
fn transact(
    connection: &Connection,
    change: impl FnOnce(&Connection) -> Result<(), Failure>,
) -> Result<(), Failure> {
    wait(connection.pragma_update("synchronous", "FULL"))?;
    wait(connection.execute("BEGIN", ()))?;
    change(connection)?;
    wait(connection.execute("COMMIT", ())).map(drop)
}

/// Inserts rows: each alone, or all in the open transaction.
fn insert(connection: &Connection, ids: Range<u64>, names: &Names) -> Result<(), Failure> {
    let mut statement = wait(connection.prepare_cached(INSERT))?;
    for (id, name) in names.of(ids) {
        wait(statement.execute((name, value(id, 0))))?;
    }
    Ok(())
}

/// Updates rows, in the same way.
fn update(connection: &Connection, ids: &[u64], version: u32) -> Result<(), Failure> {
    let mut statement = wait(connection.prepare_cached(UPDATE))?;
    for &id in ids {
        wait(statement.execute((number(id)?, value(id, version))))?;
    }
    Ok(())
}

impl Items {
    /// Returns the result of `fold` over the numbers of a query.
    fn query(&self, sql: &str, fold: impl Fn(i64, i64) -> i64) -> Result<i64, Failure> {
        let connection = lock(&self.connection)?;
        let (mut rows, mut sum) = (wait(connection.query(sql, ()))?, 0);
        while let Some(row) = wait(rows.next())? {
            sum = fold(sum, row.get::<Option<i64>>(0)?.unwrap_or(0));
        }
        Ok(sum)
    }
}

impl Table for Items {
    fn insert(&mut self, ids: Range<u64>, names: &Names) -> Result<(), Failure> {
        transact(&*lock(&self.connection)?, |connection| insert(connection, ids, names))
    }

    fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure> {
        transact(&*lock(&self.connection)?, |connection| update(connection, ids, version))
    }

    fn read(&mut self, ids: &[u64]) -> Result<i64, Failure> {
        let connection = lock(&self.connection)?;
        let sql = "SELECT value FROM item WHERE id = ?1";
        let (mut statement, mut sum) = (wait(connection.prepare_cached(sql))?, 0i64);
        for &id in ids {
            let row = wait(statement.query_row([number(id)?]))?;
            sum = sum.wrapping_add(row.get::<i64>(0)?);
        }
        Ok(sum)
    }

    fn find(&mut self, names: &[String]) -> Result<i64, Failure> {
        let connection = lock(&self.connection)?;
        let sql = "SELECT value FROM item WHERE name = ?1";
        let (mut statement, mut sum) = (wait(connection.prepare_cached(sql))?, 0i64);
        for name in names {
            let row = wait(statement.query_row([name.as_str()]))?;
            sum = sum.wrapping_add(row.get::<i64>(0)?);
        }
        Ok(sum)
    }

    fn scan(&mut self) -> Result<i64, Failure> {
        self.query("SELECT sum(value) FROM item", i64::wrapping_add)
    }

    fn scan_by_name(&mut self) -> Result<i64, Failure> {
        self.query("SELECT value FROM item ORDER BY name", in_order)
    }

    fn writer(&self, level: Level) -> Result<Option<Box<dyn Writer + Send + '_>>, Failure> {
        let synchronous = match level {
            Level::Durable => "FULL",
            Level::Soft => "NORMAL",
        };
        wait(lock(&self.connection)?.pragma_update("synchronous", synchronous))?;
        Ok(Some(Box::new(Part(&self.connection))))
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        // Dropping it closes it; the log is first written to the table, as in SQLite.
        let connection = lock(&self.connection)?;
        let mut rows = wait(connection.query("PRAGMA wal_checkpoint(TRUNCATE)", ()))?;
        while wait(rows.next())?.is_some() {}
        Ok(())
    }
}

impl Writer for Part<'_> {
    fn insert(&mut self, ids: Range<u64>, names: &Names) -> Result<(), Failure> {
        insert(&*lock(self.0)?, ids, names)
    }

    fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure> {
        update(&*lock(self.0)?, ids, version)
    }
}
