//! No maintenance changes any past answer. In other systems it did: a flush or a merge of files changed old states
//! (<https://github.com/duckdb/ducklake/issues/1406>, <https://github.com/duckdb/ducklake/issues/673>), the names of then
//! were lost (<https://github.com/duckdb/ducklake/issues/527>), and a restore to a time gave a later state
//! (<https://github.com/benbjohnson/litestream/pull/773>).

use std::sync::Arc;
use std::time::Duration;

use annals::reports::{Older, Restarting};
use annals::storage::{Clock, Directory};
use annals::{BackfillMode, Database, ErrorKind, Options, Reader, Retention, RowId};
use annals_simulated::{SimulatedClock, SimulatedDisk};
use annals_tools::Erase;

use super::answers::{Answers, Asked, Question, Topics, Way};
use super::copies::copied;
use crate::history_model::NAME;
use crate::history_model::world::{End, World};
use crate::store_model::Random;

const NOW: Duration = Duration::ZERO;

/// What an operation may change.
#[derive(Clone, Debug, Default)]
pub(super) struct Allowed {
    /// Transactions followed this one: what is said of the whole history may differ.
    pub(super) wrote: Option<u64>,
    /// The schema changed: what is seen through the present one may differ.
    pub(super) schema: bool,
    /// The number of a table of which a row was erased, and the row.
    pub(super) erased: Option<(u32, u64)>,
    /// The transaction with whose state the history begins now.
    pub(super) beginning: Option<u64>,
}

impl Allowed {
    /// True if the answer to a question may be another one.
    fn is_open(&self, question: &Question) -> bool {
        use Way::{AsItWas, At, Blobs, Changes, Deletions, Differences, Fields, History, Time};
        let Question { txid, table, row, way } = *question;
        // A later transaction may have an earlier time.
        let of_writing =
            self.wrote.is_some_and(|last| txid > last || matches!(way, Time | Deletions));
        let of_schema =
            self.schema && matches!(way, At | Changes | Fields | Differences | History | Deletions);
        let of_erasure = self.erased.is_some_and(|(of, erased)| match way {
            Blobs => true,
            History => table == Some(of) && row == Some(erased),
            _ => table == Some(of),
        });
        let of_forgetting = self.beginning.is_some_and(|beginning| match way {
            Way::Schema | At | AsItWas | Blobs | Differences => txid < beginning,
            // The first deletion is told with its whole version.
            Deletions => true,
            _ => txid <= beginning,
        });
        of_writing || of_schema || of_erasure || of_forgetting
    }
}

/// Compares what was answered before with what is answered now; returns how many answers that were.
pub(super) fn compare(before: &Answers, after: &Answers, allowed: &Allowed, place: &str) -> u64 {
    let mut count = 0;
    for (question, was) in before.iter().filter(|(question, _)| !allowed.is_open(question)) {
        let is = after.get(question);
        assert!(is == Some(was), "{place}: {question:?} was\n{was:?}, and is\n{is:?}");
        count += 1;
    }
    for (question, is) in after.iter().filter(|(question, _)| !allowed.is_open(question)) {
        assert!(before.contains_key(question), "{place}: {question:?} has an answer now: {is:?}");
    }
    // What was forgotten is said to be so.
    let forgotten = |question: &&Question| {
        let of_state = matches!(question.way, Way::At | Way::AsItWas | Way::Differences);
        of_state && allowed.beginning.is_some_and(|beginning| question.txid < beginning)
    };
    for (question, was) in before.iter().filter(|(question, _)| forgotten(question)) {
        let whole = Question { table: None, row: None, ..*question };
        let (is, of_all) = (after.get(question), after.get(&whole));
        let is_said = of_all == Some(&Err(ErrorKind::NotFound)) || is == Some(was);
        assert!(is_said, "{place}: {question:?} is {is:?}, {of_all:?}");
        count += 1;
    }
    count
}

/// A database that is maintained, and how much was compared.
pub(super) struct Maintained {
    pub(super) random: Random,
    pub(super) seed: u64,
    pub(super) count: u64,
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    pub(super) rebases: super::rebase::Rebases,
}

impl Maintained {
    /// Asks a database, or one who reads beside it.
    fn ask(&mut self, database: &Database, disk: &SimulatedDisk, topics: &Topics) -> Answers {
        // Those who read beside it see what is known to be committed.
        if self.random.chance(30) {
            let reader = Reader::open(disk, NAME).unwrap();
            if reader.read().point() == database.read().point() {
                return Asked::Reader(&reader).ask(topics);
            }
        }
        Asked::Database(database).ask(topics)
    }

    /// Does something that forgets nothing, and compares.
    fn operate(&mut self, world: &mut World) {
        let last = world.database().read().txid().0;
        let topics = Topics::draw(&mut self.random, last);
        let before = self.ask(world.database(), &world.disk.clone(), &topics);
        let lines = world.database().read().schema().lines();
        let operation = self.random.below(OPERATIONS);
        let place = format!("seed {}, operation {operation}", self.seed);
        let mut allowed = Allowed::default();
        match operation {
            0..10 => Self::of_image(world, operation),
            10..15 => self.of_program(world, operation),
            15..21 => {
                let (database, folder) = (world.database(), tempfile::tempdir().unwrap());
                let copy = copied(database, &world.disk, operation - 15, folder.path());
                self.count += compare(&before, &copy.ask(&topics), &allowed, &place);
                return;
            }
            21 => {
                (0..3).for_each(|_| world.transaction());
                allowed.wrote = Some(last);
            }
            _ => {
                world.upgrade();
                allowed.wrote = Some(last);
            }
        }
        allowed.schema =
            allowed.wrote.is_some() && world.database().read().schema().lines() != lines;
        let after = self.ask(world.database(), &world.disk.clone(), &topics);
        self.count += compare(&before, &after, &allowed, &place);
    }

    /// Maintains the image and the segments.
    fn of_image(world: &World, operation: u64) {
        let database = world.database();
        let how = Restarting { timeout: NOW, forget_history: false };
        let mut go_on = |_| std::ops::ControlFlow::Continue(());
        match operation {
            0 => drop(database.backfill(BackfillMode::Passive).unwrap()),
            1..4 => drop(database.backfill(BackfillMode::Full).unwrap()),
            4 => {
                database.backfill_with(BackfillMode::Restart, how, &mut go_on).unwrap();
            }
            5 => {
                database.backfill_with(BackfillMode::Truncate, how, &mut go_on).unwrap();
            }
            6 => drop(database.restart(Older::Kept, NOW).unwrap()),
            7 => drop(database.soft_checkpoint().unwrap()),
            8 => database.rest().unwrap(),
            _ => {
                let directory: Arc<dyn Directory> = Arc::new(world.disk.clone());
                let check = annals_tools::check_image_in(&Options::new(), &directory, NAME);
                assert!(check.unwrap().is_none_or(|check| check.problem.is_none()));
            }
        }
    }

    /// Ends the program, and starts it again: with the image or without one.
    fn of_program(&mut self, world: &mut World, operation: u64) {
        let end = *self.random.pick(&[End::Close, End::Drop, End::Kill]);
        if operation == 10 {
            // A power cut takes nothing that is durable.
            world.database().hard_checkpoint().unwrap();
            world.end(End::PowerCut);
        } else {
            world.end(end);
        }
        let image = format!("{NAME}-image");
        if operation == 11 && world.disk.list().unwrap().contains(&image) {
            world.disk.remove(&image).unwrap();
        }
        world.open();
    }

    /// Erases a row, and compares what is said of all others.
    fn erase(&mut self, disk: &SimulatedDisk) {
        let database = open(disk);
        let last = database.read().txid().0;
        let topics = Topics::draw(&mut self.random, last);
        let before = self.ask(&database, disk, &topics);
        let (row, tables) = (self.random.below(6), Arc::clone(database.read().schema()));
        let Some(table) = tables.tables().first() else { return };
        database.close().unwrap();
        let directory: Arc<dyn Directory> = Arc::new(disk.clone());
        let what = Erase::new(table.name.clone(), RowId(row));
        let options = options().lock_timeout(NOW);
        match annals_tools::erase_in(&options, &directory, NAME, &clock(), &what) {
            Ok(_) => {}
            // There is nothing to erase.
            Err(error) => return assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
        }
        let after = self.ask(&open(disk), disk, &topics);
        // The erasure is told by a transaction of its own.
        let erased = Some((table.number.0, row));
        let allowed = Allowed { erased, wrote: Some(last), ..Allowed::default() };
        let place = format!("seed {}, row {row} of `{}` erased", self.seed, table.name);
        self.count += compare(&before, &after, &allowed, &place);
    }

    /// Forgets a beginning of the history, and compares what is said of the rest.
    fn forget(&mut self, disk: &SimulatedDisk) {
        let database = open(disk);
        let last = database.read().txid().0;
        let topics = Topics::draw(&mut self.random, last);
        let before = self.ask(&database, disk, &topics);
        let operation = self.random.below(5);
        let mut allowed = Allowed::default();
        let forgotten = match operation {
            0 => database.pack(NOW).unwrap().forgotten,
            1 => database.restart(Older::NotNeeded, NOW).unwrap().forgotten,
            2 => {
                let how = Restarting { timeout: NOW, forget_history: true };
                let mut go_on = |_| std::ops::ControlFlow::Continue(());
                let done = database.backfill_with(BackfillMode::Truncate, how, &mut go_on);
                done.unwrap().restarted.and_then(|restarted| restarted.forgotten)
            }
            _ => {
                // Names that a later transaction gives are those of the present.
                if operation == 4
                    && let Some(table) = database.read().schema().tables().first()
                {
                    let (table, name) = (table.number, "renamed_since".to_owned());
                    let rename = annals::Command::RenameTable { table, name };
                    database.write(|tx| tx.apply_command(&rename)).unwrap();
                    (allowed.wrote, allowed.schema) = (Some(last), true);
                }
                let kept = Some(self.random.below(last + 1));
                let rules = Retention { transactions: kept, bytes: None, time: None };
                database.retain(&rules, NOW).unwrap()
            }
        };
        allowed.beginning = forgotten.map(|forgotten| forgotten.transactions.1.0);
        let after = self.ask(&database, disk, &topics);
        let place = format!("seed {}, forgotten by {operation}, {allowed:?}", self.seed);
        self.count += compare(&before, &after, &allowed, &place);
        // The same once more after a start.
        database.close().unwrap();
        let after = self.ask(&open(disk), disk, &topics);
        self.count += compare(&before, &after, &allowed, &place);
    }
}

/// The number of operations that are drawn from.
const OPERATIONS: u64 = 23;

pub(super) fn clock() -> Arc<dyn Clock> {
    Arc::new(SimulatedClock::new(5))
}

pub(super) fn options() -> Options {
    Options::new().background(false)
}

pub(super) fn open(disk: &SimulatedDisk) -> Database {
    options().open_in(Arc::new(disk.clone()), NAME, clock()).unwrap()
}

#[test]
fn ducklake_maintenance_changes_no_past_answer() {
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    let least = if full { 1_000_000 } else { 20_000 };
    let one = std::env::var("ANNALS_TEST_HISTORY");
    let seeds = match &one {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (1..10_000).collect(),
    };
    let mut maintained = Maintained {
        random: Random::new(0),
        seed: 0,
        count: 0,
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        rebases: super::rebase::Rebases::default(),
    };
    for seed in seeds {
        println!("repeat the last history with ANNALS_TEST_HISTORY={seed}");
        let mut world = World::new(seed);
        (0..12).for_each(|_| world.transaction());
        (maintained.random, maintained.seed) = (Random::new(seed ^ 0x55), seed);
        for _ in 0..12 {
            maintained.operate(&mut world);
        }
        world.end(End::Close);
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        maintained.rebase(&mut world);
        (0..2).for_each(|_| maintained.erase(&world.disk));
        maintained.forget(&world.disk);
        if maintained.count >= least {
            break;
        }
    }
    println!("{} answers were compared", maintained.count);
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    {
        println!("{:?}", maintained.rebases);
        assert!(one.is_ok() || maintained.rebases.are_some(full));
    }
}
