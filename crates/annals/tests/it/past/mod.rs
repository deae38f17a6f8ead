//! The past: any moment of it gives what there was, from key frames or from a replay, whatever was done since.

mod costs;
mod events;
pub(crate) mod frames;
mod leaving;
mod moments;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use annals::reports::Restarting;
use annals::storage::{Directory, MemoryDirectory};
use annals::{
    BackfillMode, BlobReader, Command, Database, FieldNumber, IndexNumber, Options, Result, RowId,
    Snapshot, TableNumber, Transaction, Txid, Type, ValueRef,
};
use annals_simulated::SimulatedClock;

use crate::store_model::Random;

const TABLE: TableNumber = TableNumber(0);
const NAME: &str = "db";
const IMAGE: &str = "db-image";

fn options() -> Options {
    // A key frame for each backfill, unless the budget is small.
    Options::new().background(false).key_frame_spacing(0).lock_timeout(Duration::ZERO)
}

fn try_open(options: &Options, directory: &MemoryDirectory) -> Result<Database> {
    options.open_in(Arc::new(directory.clone()), NAME, Arc::new(SimulatedClock::new(7)))
}

fn define(tx: &mut Transaction<'_>) -> Result<()> {
    tx.apply_command(&Command::CreateTable { name: "t".to_owned() })?;
    for (name, ty) in [("name", Type::String), ("number", Type::Int64), ("file", Type::Blob)] {
        let (name, table) = (name.to_owned(), TABLE);
        tx.apply_command(&Command::AddField { table, name, ty, nullable: true, default: None })?;
    }
    let (name, fields) = ("by_name".to_owned(), vec![FieldNumber(0)]);
    tx.apply_command(&Command::CreateIndex {
        name,
        table: TABLE,
        fields,
        descending: Vec::new(),
        collated: Vec::new(),
        unique: false,
    })
}

/// Returns all that there is, through rows, index and blobs.
fn content(now: &Snapshot) -> String {
    let mut text = now.schema().to_text();
    if now.table(TABLE).is_err() {
        return text;
    }
    now.check().unwrap();
    let line = |row: Result<annals::Row<'_>>| {
        let row = row.unwrap();
        let bytes = match row.value(FieldNumber(2)) {
            ValueRef::Blob(blob) => now.blob(blob).and_then(|mut blob: BlobReader<'_>| {
                blob.to_vec(usize::MAX).map(|bytes| format!("{:?}", &bytes[..bytes.len().min(9)]))
            }),
            _ => Ok(String::new()),
        };
        format!("{row:?} {}\n", bytes.unwrap())
    };
    text.extend(now.table(TABLE).unwrap().rows().map(line));
    text.extend(now.index(IndexNumber(0)).unwrap().rows().map(line));
    text
}

/// A database, and what it held after each of its transactions.
struct World {
    random: Random,
    directory: MemoryDirectory,
    options: Options,
    database: Option<Database>,
    states: BTreeMap<u64, String>,
    writes_blobs: bool,
}

impl World {
    fn new(seed: u64, options: Options) -> Self {
        let directory = MemoryDirectory::new();
        let database = try_open(&options, &directory).unwrap();
        let random = Random::new(seed);
        let mut world = Self {
            random,
            directory,
            options,
            database: Some(database),
            states: BTreeMap::new(),
            writes_blobs: true,
        };
        world.states.insert(0, String::new());
        world.write(define);
        world
    }

    fn database(&self) -> &Database {
        self.database.as_ref().unwrap()
    }

    fn write(&mut self, change: impl FnOnce(&mut Transaction<'_>) -> Result<()>) {
        self.database().write(change).unwrap();
        let now = self.database().read();
        self.states.insert(now.txid().0, content(&now));
    }

    /// Changes some rows: new ones at the end, others anywhere.
    fn change(&mut self) {
        let (mut random, writes_blobs) = (Random::new(self.random.next()), self.writes_blobs);
        self.write(|tx| {
            for _ in 0..random.below(20) + 1 {
                let number = i64::try_from(random.below(1000)).unwrap();
                let name = "long ".repeat(usize::try_from(random.below(9)).unwrap());
                let blob = match random.chance(5) && writes_blobs {
                    true => Some(tx.write_blob(name.as_bytes())?),
                    false => None,
                };
                let row = [ValueRef::String(&name), number.into(), blob.into()];
                let id = tx.insert(TABLE, &row)?;
                let other = RowId(random.below(id.0 + 1));
                let there = tx.view().table(TABLE)?.contains(other)?;
                match random.below(3) {
                    0 if there => tx.update(TABLE, other, FieldNumber(1), (-number).into())?,
                    1 if there => tx.delete(TABLE, other)?,
                    _ => {}
                }
            }
            Ok(())
        });
    }

    fn reopen(&mut self) {
        drop(self.database.take());
        self.database = Some(try_open(&self.options, &self.directory).unwrap());
        assert_eq!(self.database().recovered().findings, [""; 0]);
    }

    /// Lets the journal continue in a new segment, and forgets what was before if that is said.
    fn restart(&mut self, forget: bool) {
        let mode = if forget { BackfillMode::Truncate } else { BackfillMode::Restart };
        let how = Restarting { timeout: Duration::ZERO, forget_history: forget };
        self.database().backfill_with(mode, how, &mut |_| ControlFlow::Continue(())).unwrap();
        let now = self.database().read();
        if forget {
            self.states.clear();
        }
        self.states.insert(now.txid().0, content(&now));
    }

    /// Compares the state after some transactions; all of them if that is said.
    fn look(&mut self, all: bool) {
        let last = self.states.len() as u64;
        for (at, (&txid, expected)) in self.states.iter().enumerate() {
            if all || self.random.below(last) < 3 || at == 0 {
                let then = self.database().at(Txid(txid)).unwrap();
                assert_eq!(then.txid(), annals::Txid(txid));
                let found = self.database().as_it_was(Txid(txid)).unwrap();
                assert!(content(&found) == *expected, "transaction {txid}");
                assert_eq!(then.table(TABLE).is_ok(), txid > 0 || last > 1);
            }
        }
    }

    /// Looks at all of the image, if there is one.
    fn check(&self) -> Option<annals_tools::ImageCheck> {
        let directory: Arc<dyn Directory> = Arc::new(self.directory.clone());
        annals_tools::check_image_in(&self.options, &directory, NAME).unwrap()
    }

    /// Returns what is wrong with the image.
    fn problem(&self) -> Option<String> {
        self.check()?.problem
    }

    /// Returns the transactions for which the image has key frames.
    fn key_frames(&self) -> Vec<annals::Txid> {
        let image = annals_tools::inspect_in(&Options::new(), &self.directory, NAME).unwrap().image;
        image.map(|image| image.key_frames).unwrap_or_default()
    }
}

/// Does anything, and looks at moments of the past in between.
fn run(seed: u64, steps: u64) {
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let options = match random.below(4) {
        0 => options().key_frames(0),
        1 => options().key_frames(64 << 10),
        2 => options().memory(64 << 10),
        _ => options(),
    };
    let mut world = World::new(seed, options);
    for _ in 0..steps {
        match random.below(100) {
            0..60 => world.change(),
            60..80 => _ = world.database().backfill(BackfillMode::Passive).unwrap(),
            80..86 => world.reopen(),
            86..90 => world.restart(false),
            90..91 => world.restart(true),
            91..96 => world.look(false),
            _ => assert_eq!(world.problem(), None),
        }
    }
    world.look(true);
    assert_eq!(world.problem(), None);
}

#[test]
fn random_histories_are_read_at_any_moment() {
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    (1..=if full { 400 } else { 30 }).for_each(|seed| run(seed, 120));
}
