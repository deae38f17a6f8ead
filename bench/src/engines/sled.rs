//! sled: one tree for the rows, one for the index, a cache of 1 GiB, in the mode for throughput.
//!
//! A transaction of many rows is a batch for each tree, as its documentation recommends for bulk: the two are
//! no unit together, and large ones are slow: with ten million rows a load takes many minutes. A commit is durable by `flush`, for which threads wait together; nothing is flushed in
//! the background besides. There is no soft level: what isn't flushed is in the program's own buffers.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use sled::{Batch, Config, Db, Mode, Tree};

use super::encoding::{bounds, change, encode, entries, entry, key, key_in, value_in};
use super::{Engine, Failure, Level, Names, Shape, Table, Writer, in_order, value};

const CACHE: u64 = 1 << 30;
const ATTEMPTS: usize = 100;
const PAUSE: Duration = Duration::from_millis(20);

pub(super) struct Sled;

struct Items {
    database: Db,
    rows: Tree,
    names: Option<Tree>,
}

/// A thread's part in it.
struct Part<'a>(&'a Items);

impl Engine for Sled {
    fn name(&self) -> &'static str {
        "sled"
    }

    fn create(&self, folder: &Path, shape: Shape) -> Result<Box<dyn Table>, Failure> {
        self.open(folder, shape)
    }

    fn open(&self, folder: &Path, shape: Shape) -> Result<Box<dyn Table>, Failure> {
        let config = Config::new().path(folder.join("items.sled")).cache_capacity(CACHE);
        let database = connect(&config.mode(Mode::HighThroughput).flush_every_ms(None))?;
        let rows = database.open_tree("rows")?;
        let names = match shape {
            Shape::Small => None,
            Shape::Named => Some(database.open_tree("names")?),
        };
        Ok(Box::new(Items { database, rows, names }))
    }
}

/// Opens a database. The last handle releases its lock only when background threads have ended.
fn connect(config: &Config) -> Result<Db, Failure> {
    for _ in 0..ATTEMPTS {
        if let Ok(database) = config.open() {
            return Ok(database);
        }
        #[allow(clippy::disallowed_methods, reason = "nobody tells when the lock is free")]
        std::thread::sleep(PAUSE);
    }
    Ok(config.open()?)
}

impl Items {
    fn index(&self) -> Result<&Tree, Failure> {
        self.names.as_ref().ok_or_else(|| "the table has no index".into())
    }

    fn value(&self, key: &[u8]) -> Result<i64, Failure> {
        value_in(&self.rows.get(key)?.ok_or("no such row")?)
    }

    fn changed(&self, buffer: &mut Vec<u8>, (id, version): (u64, u32)) -> Result<(), Failure> {
        let row = self.rows.get(key(id))?.ok_or("no such row")?;
        change(buffer, &row, value(id, version))
    }
}

impl Table for Items {
    fn insert(&mut self, ids: Range<u64>, names: &Names) -> Result<(), Failure> {
        let (mut batch, mut row) = (Batch::default(), Vec::new());
        for (id, name) in names.of(ids.clone()) {
            encode(&mut row, value(id, 0), name);
            batch.insert(&key(id), &*row);
        }
        self.rows.apply_batch(batch)?;
        if let Some(index) = &self.names {
            let mut batch = Batch::default();
            for entry in entries(ids, names) {
                batch.insert(entry, &[]);
            }
            index.apply_batch(batch)?;
        }
        Ok(self.database.flush().map(drop)?)
    }

    fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure> {
        let (mut batch, mut buffer) = (Batch::default(), Vec::new());
        for &id in ids {
            self.changed(&mut buffer, (id, version))?;
            batch.insert(&key(id), &*buffer);
        }
        self.rows.apply_batch(batch)?;
        Ok(self.database.flush().map(drop)?)
    }

    fn read(&mut self, ids: &[u64]) -> Result<i64, Failure> {
        let mut sum = 0i64;
        for &id in ids {
            sum = sum.wrapping_add(self.value(&key(id))?);
        }
        Ok(sum)
    }

    fn find(&mut self, names: &[String]) -> Result<i64, Failure> {
        let index = self.index()?;
        let mut sum = 0i64;
        for name in names {
            let (entry, _) = index.range(bounds(name)).next().ok_or("no row has the name")??;
            sum = sum.wrapping_add(self.value(key_in(&entry)?)?);
        }
        Ok(sum)
    }

    fn scan(&mut self) -> Result<i64, Failure> {
        let mut sum = 0i64;
        for row in self.rows.iter().values() {
            sum = sum.wrapping_add(value_in(&row?)?);
        }
        Ok(sum)
    }

    fn scan_by_name(&mut self) -> Result<i64, Failure> {
        let mut sum = 0;
        for entry in self.index()?.iter().keys() {
            sum = in_order(sum, self.value(key_in(&entry?)?)?);
        }
        Ok(sum)
    }

    fn writer(&self, level: Level) -> Result<Option<Box<dyn Writer + Send + '_>>, Failure> {
        match level {
            Level::Soft => Ok(None),
            Level::Durable => Ok(Some(Box::new(Part(self)))),
        }
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.database.flush().map(drop)?) // dropping it closes it
    }
}

impl Writer for Part<'_> {
    fn insert(&mut self, ids: Range<u64>, names: &Names) -> Result<(), Failure> {
        let mut row = Vec::new();
        for (id, name) in names.of(ids) {
            encode(&mut row, value(id, 0), name);
            self.0.rows.insert(key(id), &*row)?;
            if let Some(index) = &self.0.names {
                index.insert(entry(name, id), &[])?;
            }
            self.0.database.flush()?;
        }
        Ok(())
    }

    fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure> {
        let mut buffer = Vec::new();
        for &id in ids {
            self.0.changed(&mut buffer, (id, version))?;
            self.0.rows.insert(key(id), &*buffer)?;
            self.0.database.flush()?;
        }
        Ok(())
    }
}
