//! Stories of commits, crashes and files.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use annals::reports::Older;
use annals::storage::{Clock as _, Directory, MemoryDirectory, SystemClock};
use annals::{BackfillMode, Database, ErrorKind, Level, Options, Result, RowId, Txid, ValueRef};
use annals_simulated::{Rng, SimulatedClock, SimulatedDisk};

use crate::segments::{self, content};
use crate::shared::{TABLE, define};

const NAME: &str = "db";
const NOW: Duration = Duration::ZERO;

fn open_with(options: &Options, disk: &SimulatedDisk) -> Result<Database> {
    options.open_in(Arc::new(disk.clone()), NAME, Arc::new(SimulatedClock::new(3)))
}

fn open(disk: &SimulatedDisk) -> Database {
    open_with(&Options::new().background(false), disk).unwrap()
}

fn insert(database: &Database, number: i64) -> Result<()> {
    database.write(|tx| tx.insert(TABLE, &[ValueRef::Int64(number)]).map(drop))
}

fn numbers(database: &Database) -> Vec<i64> {
    let now = database.read();
    let rows = now.table(TABLE).unwrap();
    rows.rows().map(|row| row.unwrap().read::<i64>(annals::FieldNumber(0))).collect()
}

/// A checkpoint that was stopped between any two of its steps, while another process checkpointed, reset the log and wrote
/// on, overwrote what that one had written: fixed in SQLite 3.51.3, <https://sqlite.org/releaselog/3_51_3.html>.
#[test]
fn sqlite_a_second_checkpoint_races_a_restart() {
    let options = Options::new().shared(true).background(false).lock_timeout(NOW);
    let modes = [BackfillMode::Full, BackfillMode::Restart, BackfillMode::Truncate];
    let mut stops = 0;
    for (first, second) in modes.iter().flat_map(|a| modes.map(|b| (*a, b))) {
        for stop in 0.. {
            let disk = SimulatedDisk::new(stop);
            let one = open_with(&options, &disk).unwrap();
            one.write(define).unwrap();
            (0..5).for_each(|number| insert(&one, number).unwrap());
            let (of_other, other_options) = (disk.process(), options.clone());
            let begun = disk.operations();
            disk.interrupt_at(begun + stop, move || {
                // It may have to wait for the first one, and then does nothing.
                let Ok(other) = open_with(&other_options, &of_other) else { return };
                let busy = |error: annals::Error| assert_eq!(error.kind(), ErrorKind::Busy);
                let _ = insert(&other, 100).map_err(busy);
                let _ = other.backfill(second).map_err(busy);
                let _ = insert(&other, 101).map_err(busy);
            });
            let _ = one.backfill(first).map_err(|error| assert_eq!(error.kind(), ErrorKind::Busy));
            let was_stopped = disk.operations() > begun + stop;
            disk.clear_plan();
            insert(&one, 200).unwrap();
            let seen = numbers(&one);
            assert!(seen.starts_with(&[0, 1, 2, 3, 4]) && seen.ends_with(&[200]), "{seen:?}");
            drop(one);
            // What the processes saw is what is there, from the journal and from the image.
            for disk in [disk.clone(), disk.crash_states().newest()] {
                assert_eq!(numbers(&open(&disk)), seen, "{first:?} and {second:?}, stop {stop}");
                let directory: Arc<dyn Directory> = Arc::new(disk);
                let check = annals_tools::check_image_in(&Options::new(), &directory, NAME);
                assert!(check.unwrap().is_none_or(|check| check.problem.is_none()));
            }
            if !was_stopped {
                break;
            }
            stops += 1;
        }
    }
    assert!(stops > 50, "only {stops} stops");
}

/// One who waited for a group commit gave up: the running program rolled back, and a recovery replayed the transaction.
/// <https://github.com/tursodatabase/turso/issues/9238>
#[test]
fn turso_one_who_waits_for_a_group_commit_gives_up() {
    for (after, level) in (0..3).flat_map(|after| Level::ALL.map(|level| (after, level))) {
        let disk = SimulatedDisk::new(1);
        let database = open(&disk);
        database.write(define).unwrap();
        let mut tx = database.begin().unwrap();
        tx.set_level(level);
        tx.insert(TABLE, &[ValueRef::Int64(7)]).unwrap();
        drop(tx.submit().unwrap());
        (0..after).for_each(|number| insert(&database, number).unwrap());
        database.hard_checkpoint().unwrap();
        let live = numbers(&database);
        // It was submitted, so what follows builds on it.
        assert_eq!(live.first(), Some(&7), "{level:?}");
        for disk in [disk.crash_states().newest(), disk.crash_states().oldest()] {
            assert_eq!(numbers(&open(&disk)), live, "{level:?}, {after} after it");
        }
    }
}

/// The log was cut before all of it was safe in the other file. <https://github.com/tursodatabase/turso/issues/5009>,
/// <https://github.com/tursodatabase/turso/issues/7480>
#[test]
fn turso_some_of_the_files_are_missing() {
    let (directory, database, _) = segments::split(3);
    segments::write(&database, 80..83);
    database.backfill(BackfillMode::Full).unwrap();
    segments::write(&database, 83..85);
    let answers = |database: &Database| {
        let last = database.read().txid().0;
        let at = |txid| database.as_it_was(Txid(txid)).map(|state| content(&state)).ok();
        (last, (0..=last).map(at).collect::<Vec<_>>())
    };
    let all = answers(&database);
    database.close().unwrap();
    let names = directory.list().unwrap();
    let (mut right, mut refused) = (0, 0);
    for kept in 0..1_u32 << names.len() {
        let some = MemoryDirectory::new();
        let is_kept = |at: usize| kept >> at & 1 == 1;
        for (_, name) in names.iter().enumerate().filter(|(at, _)| is_kept(*at)) {
            segments::opening::put(&some, name, &segments::opening::bytes(&directory, name));
        }
        if !some.list().unwrap().iter().any(|name| name == NAME) {
            // Without the journal there is another, empty database, unless parts of one are there.
            continue;
        }
        let opened = segments::options().open_in(
            Arc::new(some.clone()),
            NAME,
            Arc::new(SimulatedClock::new(7)),
        );
        let Ok(opened) = opened else {
            refused += 1;
            continue;
        };
        let (last, states) = answers(&opened);
        assert_eq!(last, all.0, "{:?}", some.list());
        for (state, expected) in states.iter().zip(&all.1) {
            assert!(state.is_none() || state == expected, "{:?}", some.list());
        }
        right += 1;
    }
    assert!(right > 1 && refused > 1, "{right} right, {refused} refused");
}

/// A crash in the repair after a crash, and in the repair after that one. redb 4.2,
/// <https://github.com/cberner/redb/blob/master/CHANGELOG.md>
#[test]
fn redb_a_crash_in_the_repair_after_a_crash() {
    fn depth(disk: &SimulatedDisk, left: u32, least: &[i64], rng: &mut Rng, count: &mut u64) {
        *count += 1;
        let opened = numbers(&open(&disk.fork()));
        assert!(opened.starts_with(least), "{opened:?} has not all of {least:?}");
        if left == 0 {
            return;
        }
        let whole = disk.fork();
        drop(open(&whole));
        for operation in disk.operations()..whole.operations() {
            let cut = disk.fork();
            cut.crash_at(operation);
            let _ = open_with(&Options::new().background(false), &cut);
            depth(&cut.crash_states().random(rng), left - 1, least, rng, count);
        }
    }
    let (mut rng, mut count) = (Rng::new(9), 0);
    for seed in 0..6 {
        let disk = SimulatedDisk::new(seed);
        let database = open(&disk);
        database.write(define).unwrap();
        (0..3).for_each(|number| insert(&database, number).unwrap());
        database.hard_checkpoint().unwrap();
        for number in 3..5 {
            let mut tx = database.begin().unwrap();
            tx.set_level(Level::Soft);
            tx.insert(TABLE, &[ValueRef::Int64(number)]).unwrap();
            tx.commit().unwrap();
        }
        let states = disk.crash_states();
        depth(&states.random(&mut rng), 3, &[0, 1, 2], &mut rng, &mut count);
    }
    assert!(count > 50, "only {count} crashes");
}

/// A check, and then a crash, took a commit back. redb 4.3, <https://github.com/cberner/redb/blob/master/CHANGELOG.md>
#[test]
fn redb_a_check_and_then_a_crash() {
    let disk = SimulatedDisk::new(4);
    let database = open(&disk);
    database.write(define).unwrap();
    database.backfill(BackfillMode::Full).unwrap();
    insert(&database, 1).unwrap();
    let directory: Arc<dyn Directory> = Arc::new(disk.clone());
    let options = Options::new();
    annals_tools::check_image_in(&options, &directory, NAME).unwrap();
    let examined = annals_tools::examine_in(&options, &*directory, NAME).unwrap();
    annals_tools::compare_image_in(&options, &directory, NAME, &examined.snapshot).unwrap();
    database.read().check().unwrap();
    annals_tools::check_history_index(&database.read(), true).unwrap();
    for disk in [disk.crash_states().oldest(), disk.crash_states().newest()] {
        assert_eq!(numbers(&open(&disk)), [1]);
    }
}

/// What was cleared was there again after a kill, and after one writes waited for ever.
/// <https://github.com/fjall-rs/fjall/issues/241>, <https://github.com/fjall-rs/fjall/issues/257>
#[test]
fn fjall_what_was_cleared_and_a_kill() {
    let mut rng = Rng::new(11);
    let (begun, mut slowest) = (SimulatedDisk::new(2), Duration::ZERO);
    let database = open(&begun);
    database.write(define).unwrap();
    (0..20).for_each(|number| insert(&database, number).unwrap());
    database.backfill(BackfillMode::Full).unwrap();
    let from = begun.operations();
    database.write(|tx| tx.delete_vector(TABLE, RowId(0), 20)).unwrap();
    let cleared = begun.operations();
    database.backfill(BackfillMode::Full).unwrap();
    database.restart(Older::Kept, NOW).unwrap();
    let end = begun.operations();
    for operation in from..end {
        let disk = SimulatedDisk::new(2);
        let database = open(&disk);
        database.write(define).unwrap();
        (0..20).for_each(|number| insert(&database, number).unwrap());
        database.backfill(BackfillMode::Full).unwrap();
        disk.crash_at(operation);
        let _ = database.write(|tx| tx.delete_vector(TABLE, RowId(0), 20));
        let _ = database.backfill(BackfillMode::Full);
        let _ = database.restart(Older::Kept, NOW);
        drop(database);
        for disk in [disk.crash_states().newest(), disk.crash_states().random(&mut rng)] {
            let asked = SystemClock.elapsed();
            let database = open(&disk);
            let found = numbers(&database).len();
            assert!(found == 0 || (found == 20 && operation < cleared), "{found} at {operation}");
            insert(&database, 1).unwrap();
            slowest = slowest.max(SystemClock.elapsed().saturating_sub(asked));
            assert_eq!(numbers(&database).len(), found + 1);
        }
    }
    println!("opening and a commit took {slowest:?} at the most");
}

/// Opening for reading only cut the file. <https://github.com/dolthub/dolt/pull/10341>
#[test]
fn dolt_a_look_at_a_torn_file_changes_nothing() {
    let disk = SimulatedDisk::new(5);
    let database = open(&disk);
    database.write(define).unwrap();
    insert(&database, 1).unwrap();
    database.backfill(BackfillMode::Full).unwrap();
    insert(&database, 2).unwrap();
    drop(database);
    let whole = disk.content(NAME).unwrap();
    for cut in 0..60 {
        let torn = SimulatedDisk::new(6);
        torn.install(NAME, &whole[..whole.len() - cut]).unwrap();
        torn.install("db-image", &disk.content("db-image").unwrap()).unwrap();
        let all = |disk: &SimulatedDisk| -> BTreeSet<_> {
            let names = disk.list().unwrap().into_iter();
            names.map(|name| (disk.content(&name), name)).collect()
        };
        let before = all(&torn);
        let opened = Options::new().open_read_only_in(&torn, NAME);
        let expected = opened.map(|reader| reader.read().table(TABLE).unwrap().len());
        let _ = annals_tools::inspect_in(&Options::new(), &torn, NAME);
        assert!(before == all(&torn), "{cut} bytes less");
        assert!(expected.is_err() || matches!(expected, Ok(1..=2)), "{expected:?}");
    }
}

/// A kill right after a database was created left something that nothing could open.
/// <https://github.com/dolthub/dolt/pull/11074>
#[test]
fn dolt_a_kill_right_after_it_was_created() {
    let whole = SimulatedDisk::new(8);
    open(&whole).write(define).unwrap();
    for operation in 0..whole.operations() {
        let disk = SimulatedDisk::new(8);
        disk.crash_at(operation);
        let options = Options::new().background(false);
        if let Ok(database) = open_with(&options, &disk) {
            let _ = database.write(define);
        }
        let states = disk.crash_states();
        for disk in states.every().take(200) {
            let database = open(&disk);
            if database.read().txid() == Txid(0) {
                database.write(define).unwrap();
            }
            insert(&database, 1).unwrap();
            assert_eq!(numbers(&database), [1], "at {operation}");
        }
    }
}
