//! What questions about the past read: a history, an old row, a sum, differences, each after opening and once more.
//!
//! The work is that of `annals-bench past`, smaller: rows loaded in one transaction, then transactions that change
//! one balance each. Reads and bytes are counted in a directory in memory, so they are the same on every machine.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use annals::event::testing::decoded_events;
use annals::storage::MemoryDirectory;
use annals::{
    BackfillMode, Command, Database, FieldNumber, IndexNumber, Options, Result, RowId, Snapshot,
    Transaction, Txid, Type, Value,
};
use annals_simulated::SimulatedClock;

use super::{NAME, TABLE};
use crate::store_model::Random;
use crate::watched::{Watched, Watcher};

/// At most so many reads, bytes and decoded events, by the first answer after opening and by the next one.
const BOUNDS: [Bound; 8] = [
    bound(20_000, Question::HotHistory, cost(225, 126_000, 520), cost(211, 112_000, 520)),
    bound(20_000, Question::ShortHistory, cost(20, 20_500, 110), cost(6, 6_500, 110)),
    bound(80_000, Question::ShortHistory, cost(20, 22_500, 110), cost(6, 6_500, 110)),
    bound(20_000, Question::Row, cost(20, 24_000, 110), cost(6, 10_300, 110)),
    bound(20_000, Question::RowByIndex, cost(95, 960_000, 5_300), cost(3, 5_000, 0)),
    bound(20_000, Question::FirstRow, cost(20, 24_000, 110), cost(6, 10_300, 110)),
    bound(20_000, Question::Sum, cost(99, 1_100_000, 5_300), cost(3, 5_000, 0)),
    bound(20_000, Question::Difference, cost(25, 36_000, 115), cost(10, 20_500, 115)),
];

/// The transactions that change a balance.
const CHANGES: u64 = 20_000;
/// The moment that is asked for: after so many of them.
const HALF: u64 = CHANGES / 2;
/// The transaction that loads.
const LOADED: u64 = 2;
/// Backfills are so many changes apart.
const BACKFILLED: u64 = 2500;
const BALANCE: FieldNumber = FieldNumber(1);

#[derive(Clone, Copy, Debug)]
enum Question {
    /// A row that every hundredth transaction changes.
    HotHistory,
    /// A row of five versions.
    ShortHistory,
    /// A row by its id, half way.
    Row,
    /// A row by a unique index, half way.
    RowByIndex,
    FirstRow,
    Sum,
    /// One transaction, half way.
    Difference,
}

#[derive(Clone, Copy)]
struct Cost {
    reads: u64,
    /// Bytes that were read; of these are those that were hashed.
    bytes: u64,
    /// Events of the journal that were decoded.
    events: u64,
}

impl fmt::Debug for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cost({}, {}, {})", self.reads, self.bytes, self.events)
    }
}

const fn cost(reads: u64, bytes: u64, events: u64) -> Cost {
    Cost { reads, bytes, events }
}

struct Bound {
    rows: u64,
    question: Question,
    cold: Cost,
    warm: Cost,
}

const fn bound(rows: u64, question: Question, cold: Cost, warm: Cost) -> Bound {
    Bound { rows, question, cold, warm }
}

#[derive(Debug, Default)]
struct Counts {
    reads: AtomicU64,
    bytes: AtomicU64,
}

impl Watcher for Counts {
    fn after_read(&self, bytes: usize) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// A closed database, and the row of each change.
struct World {
    rows: u64,
    changed: Vec<u64>,
    directory: MemoryDirectory,
    counts: Arc<Counts>,
}

/// Returns the balance that row or change of this number sets: a different one for each.
fn balance(number: u64) -> i64 {
    i64::try_from(number * 611_953 % 1_000_000_007).unwrap()
}

fn define(tx: &mut Transaction<'_>) -> Result<()> {
    tx.apply_command(&Command::CreateTable { name: "account".to_owned() })?;
    for (name, ty) in [("name", Type::String), ("balance", Type::Int64)] {
        let (name, table, nullable) = (name.to_owned(), TABLE, false);
        tx.apply_command(&Command::AddField { table, name, ty, nullable, default: None })?;
    }
    let (name, fields) = ("by_balance".to_owned(), vec![BALANCE]);
    tx.apply_command(&Command::CreateIndex {
        name,
        table: TABLE,
        fields,
        descending: Vec::new(),
        collated: Vec::new(),
        unique: true,
    })
}

impl World {
    fn new(rows: u64) -> Self {
        let (directory, counts) = (MemoryDirectory::new(), Arc::new(Counts::default()));
        let mut world = Self { rows, changed: Vec::new(), directory, counts };
        let db = world.open();
        db.write(define).unwrap();
        db.write(|tx| {
            (0..rows).try_for_each(|row| {
                let name = format!("account {row} of a person with a name");
                tx.insert(TABLE, &[name.as_str().into(), balance(row).into()]).map(drop)
            })
        })
        .unwrap();
        let mut random = Random::new(1);
        for number in 1..=CHANGES {
            let row = match (number % 100, number % (CHANGES / 5)) {
                (0, _) => world.hot(),
                (_, 1) if number > 1 => world.short(),
                _ => world.hot() + 1 + random.below(rows / 10),
            };
            world.changed.push(row);
            db.write(|tx| tx.update(TABLE, RowId(row), BALANCE, balance(rows + number).into()))
                .unwrap();
            if number % BACKFILLED == 0 {
                db.backfill(BackfillMode::Full).unwrap();
            }
        }
        db.close().unwrap();
        world
    }

    fn open(&self) -> Database {
        let options = Options::new().background(false).key_frame_spacing(256 << 10);
        let watched = Watched::new(Arc::new(self.directory.clone()), Arc::clone(&self.counts));
        options.open_in(Arc::new(watched), NAME, Arc::new(SimulatedClock::new(7))).unwrap()
    }

    const fn hot(&self) -> u64 {
        self.rows / 3
    }

    const fn short(&self) -> u64 {
        self.rows / 2
    }

    /// Returns the numbers of the changes of a row, and the balances after them; 0 is the load.
    fn history(&self, row: u64) -> Vec<(u64, i64)> {
        let changes = (1..).zip(&self.changed).filter(|(_, changed)| **changed == row);
        let changes = changes.map(|(number, _)| (number, balance(self.rows + number)));
        std::iter::once((0, balance(row))).chain(changes).collect()
    }

    fn balance_at(&self, row: u64, moment: u64) -> i64 {
        self.history(row).into_iter().rfind(|(number, _)| *number <= moment).unwrap().1
    }

    /// Asks, and compares the answer with the model; returns what was read.
    fn ask(&self, db: &Database, question: Question) -> Cost {
        let expected = self.expected(question);
        self.counts.reads.store(0, Ordering::Relaxed);
        self.counts.bytes.store(0, Ordering::Relaxed);
        let before = decoded_events();
        let answer = answer(db, question, self.row(question), self.balance_at(self.short(), HALF));
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let events = decoded_events() - before;
        let cost = cost(count(&self.counts.reads), count(&self.counts.bytes), events);
        assert_eq!(answer, expected, "{question:?}");
        cost
    }

    /// Returns the row that is asked for.
    fn row(&self, question: Question) -> u64 {
        match question {
            Question::HotHistory => self.hot(),
            Question::ShortHistory | Question::Row | Question::RowByIndex => self.short(),
            Question::FirstRow | Question::Sum => 0,
            Question::Difference => self.changed[usize::try_from(HALF).unwrap()],
        }
    }

    /// Returns the right answer: numbers of transactions, rows or nothing, each with a balance.
    fn expected(&self, question: Question) -> Vec<(u64, i64)> {
        let row = self.row(question);
        match question {
            Question::HotHistory | Question::ShortHistory => self.history(row),
            Question::Row | Question::RowByIndex | Question::FirstRow => {
                vec![(row, self.balance_at(row, HALF))]
            }
            Question::Sum => {
                let mut balances: Vec<_> = (0..self.rows).map(balance).collect();
                for (number, row) in (1..=HALF).zip(&self.changed) {
                    balances[usize::try_from(*row).unwrap()] = balance(self.rows + number);
                }
                vec![(0, balances.iter().sum())]
            }
            Question::Difference => {
                [HALF, HALF + 1].map(|moment| (row, self.balance_at(row, moment))).to_vec()
            }
        }
    }
}

fn answer(db: &Database, question: Question, row: u64, sought: i64) -> Vec<(u64, i64)> {
    let at = |_| -> Snapshot { db.at(Txid(LOADED + HALF)).unwrap() };
    let value = |values: &Option<Vec<Value>>| match values.as_deref() {
        Some([_, Value::Int64(balance)]) => *balance,
        other => panic!("{other:?}"),
    };
    let of = |row: annals::Row<'_>| vec![(row.id().0, row.read(BALANCE))];
    match question {
        Question::HotHistory | Question::ShortHistory => {
            let versions = db.history_of(TABLE, RowId(row)).unwrap().map(Result::unwrap);
            versions.map(|found| (found.txid.0 - LOADED, value(&found.change.after))).collect()
        }
        Question::Row => of(at(()).table(TABLE).unwrap().find(RowId(row)).unwrap().unwrap()),
        Question::RowByIndex => {
            of(at(()).index(IndexNumber(0)).unwrap().first(&[sought.into()]).unwrap().unwrap())
        }
        Question::FirstRow => of(at(()).table(TABLE).unwrap().rows().next().unwrap().unwrap()),
        Question::Sum => {
            let then = at(());
            let table = then.table(TABLE).unwrap();
            let balances = table.vector(BALANCE, RowId(0), table.len()).unwrap();
            vec![(0, balances.to_vec::<i64>().unwrap().into_iter().sum())]
        }
        Question::Difference => {
            let from = LOADED + HALF;
            let changes =
                db.read().differences(annals::Txid(from), annals::Txid(from + 1)).unwrap();
            let both = changes.iter().flat_map(|change| {
                [&change.before, &change.after].map(|values| (change.id.0, value(values)))
            });
            both.collect()
        }
    }
}

#[test]
fn a_question_about_the_past_reads_little() {
    let mut problems = Vec::new();
    let mut world = World::new(BOUNDS[0].rows);
    let mut sizes: Vec<_> = BOUNDS.iter().map(|bound| bound.rows).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for rows in sizes {
        if rows != world.rows {
            world = World::new(rows);
        }
        for bound in BOUNDS.iter().filter(|bound| bound.rows == rows) {
            let db = world.open();
            let (cold, warm) = (world.ask(&db, bound.question), world.ask(&db, bound.question));
            let is_more = |cost: Cost, most: Cost| {
                cost.reads > most.reads || cost.bytes > most.bytes || cost.events > most.events
            };
            if is_more(cold, bound.cold) || is_more(warm, bound.warm) {
                let Bound { question, cold: most, warm: most_warm, .. } = bound;
                let line = format!("{rows}, {question:?}: {cold:?}, {warm:?}");
                problems.push(format!("{line}; at most {most:?}, {most_warm:?}"));
            }
        }
    }
    assert!(problems.is_empty(), "more was read:\n{}", problems.join("\n"));
}
