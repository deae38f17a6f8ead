//! Transactions against a plain model, on random histories: row by row and by vectors, with drops,
//! renames, enforced references, single rows, savepoints, rollbacks and backfills in between. Then the journal is
//! replayed, and what follows the image, and both must give the same.

mod compare;
mod model;
mod rows;
mod schema;

use std::sync::Arc;

use annals::reports::BackfillOutcome;
use annals::storage::{Directory, MemoryDirectory, SystemClock};
use annals::{BackfillMode, Database, ErrorKind, Options, TableNumber, Transaction};

use self::model::Model;
use crate::store_model::Random;

pub(crate) fn open(directory: &MemoryDirectory) -> Database {
    open_with(directory, 0)
}

/// Opens with so much memory for the image; 0: as much as there is.
fn open_with(directory: &MemoryDirectory, memory: u64) -> Database {
    let directory: Arc<dyn Directory> = Arc::new(directory.clone());
    let options = Options::new().background(false).memory(memory);
    let database = options.open_in(directory, "db", Arc::new(SystemClock)).unwrap();
    assert_eq!(database.recovered().findings, Vec::<String>::new());
    database
}

/// Brings the image forward.
fn backfill(database: &Database, mode: BackfillMode) {
    let told = database.backfill(mode).unwrap();
    let is_right = told.outcome != BackfillOutcome::Postponed || mode == BackfillMode::Passive;
    assert!(is_right, "{told:?}");
}

/// A transaction and what it should see.
struct Step<'a, 'db> {
    tx: &'a mut Transaction<'db>,
    model: &'a mut Model,
    random: &'a mut Random,
}

/// Compares how a statement ended with how it should have.
#[track_caller]
fn agree<T>(result: annals::Result<T>, expected: Result<(), ErrorKind>) {
    match (&result, expected) {
        (Ok(_), Ok(())) => {}
        (Err(error), Err(kind)) => assert_eq!(error.kind(), kind, "{error}"),
        (Ok(_), Err(kind)) => panic!("it went well, and should have been {kind:?}"),
        (Err(error), Ok(())) => panic!("{error:?}"),
    }
}

impl Step<'_, '_> {
    fn run(&mut self) {
        let tables: Vec<_> = self.model.tables.keys().copied().collect();
        if tables.len() < 2 || self.random.chance(4) {
            return self.command();
        }
        let table = *self.random.pick(&tables);
        match self.random.below(100) {
            0..15 => self.insert(table),
            15..25 => self.insert_vector(table),
            25..35 => self.insert_rows(table),
            35..55 => self.update(table),
            55..75 => self.update_vector(table),
            75..92 => self.delete(table),
            _ => self.delete_vector(table),
        }
    }

    fn number(table: u32) -> TableNumber {
        TableNumber(table)
    }
}

fn run(seed: u64, transactions: usize) {
    let directory = MemoryDirectory::new();
    let mut db = open(&directory);
    let mut random = Random::new(seed);
    let mut committed = Model::default();
    let (mut commits, mut is_tiny) = (0, false);
    for number in 0..transactions {
        let mut model = committed.clone();
        let mut tx = db.begin().unwrap();
        let mut savepoints = Vec::new();
        for _ in 0..1 + random.below(12) {
            match random.below(10) {
                0 => savepoints.push((tx.set_savepoint().unwrap(), model.clone())),
                1 if !savepoints.is_empty() => {
                    let place = usize::try_from(random.below(savepoints.len() as u64)).unwrap();
                    savepoints.truncate(place + 1);
                    tx.roll_back_to(savepoints[place].0).unwrap();
                    model = savepoints[place].1.clone();
                }
                _ => Step { tx: &mut tx, model: &mut model, random: &mut random }.run(),
            }
            if random.chance(5) {
                backfill(&db, BackfillMode::Passive);
            }
            compare::rows(tx.view(), &model);
            if model.verdict().is_ok() {
                tx.view().check().unwrap();
            }
        }
        if random.chance(10) {
            tx.rollback().unwrap();
        } else {
            let verdict = model.verdict();
            agree(tx.commit(), verdict);
            if verdict.is_ok() {
                committed = model;
                commits += 1;
            }
        }
        if random.chance(15) {
            backfill(&db, *random.pick(&[BackfillMode::Passive, BackfillMode::Full]));
        }
        let now = db.read();
        compare::rows(&now, &committed);
        now.check().unwrap();
        // Where nothing stays in memory all takes many times as long.
        if number % 40 == 39 || (is_tiny && number % 8 == 7) {
            compare::replayed(&directory, &committed);
            drop(db);
            is_tiny = random.chance(30);
            db = open_with(&directory, if is_tiny { 64 << 10 } else { 0 });
            compare::rows(&db.read(), &committed);
            db.read().check().unwrap();
        }
    }
    assert!(commits * 4 > transactions, "only {commits} of {transactions} were committed");
}

#[test]
fn random_transactions_agree_with_the_model_and_with_their_journal() {
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    for seed in 1..=if full { 300 } else { 6 } {
        println!("seed {seed}");
        run(seed, if full { 400 } else { 160 });
    }
}
