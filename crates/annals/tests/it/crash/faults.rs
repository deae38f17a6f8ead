//! A disk that is full, that fails, or that reads wrongly; and what is promised even so.

use annals::storage::{Access, Directory};
use annals::{Database, ErrorKind, Level};
use annals_simulated::{Fault, ReadFault, SimulatedDisk};

use super::changes::change;
use super::explore::{Explorer, run};
use super::history::{History, State};
use super::world::{Errors, NAME, Stop, World};
use super::{DEFAULT, judge};

/// Returns a world with a database that is open.
fn open_world(seed: u64) -> World {
    let disk = SimulatedDisk::new(seed);
    let mut world = World::new(disk, seed, History::new(), Errors::Faults);
    assert!(world.open(0).is_ok());
    world
}

/// Writes a few rows in one transaction; notes what was promised.
fn write(world: &mut World, rows: u64, level: Level) -> annals::Result<()> {
    let (done, after) = change(world, rows, level);
    if done.is_ok() {
        world.history.commit(after.unwrap(), level);
    }
    done
}

#[test]
fn a_full_disk_fails_commits_and_nothing_else() {
    let explorer = Explorer::new(DEFAULT);
    let mut failures = 0;
    for sectors in 0..60 {
        let mut world = open_world(sectors);
        world.disk.limit_space(16384 + 512 * sectors);
        let level = if sectors % 2 == 0 { Level::Soft } else { Level::Checksummed };
        for _ in 0..8 {
            let Err(error) = write(&mut world, 30, level) else {
                // Filling space ahead fails too, which is of no consequence.
                world.database().rest().unwrap();
                continue;
            };
            failures += 1;
            let text = format!("{error:?}");
            assert_eq!(error.kind(), ErrorKind::Io, "{text}");
            let says = ["is rolled back", "journal", "no space left"];
            assert!(says.iter().all(|part| text.contains(part)), "{text}");
            world.history.shows_the_newest(&world.disk, &world.database().read()).unwrap();
            judge::only_zeros_follow(&world.disk, world.database()).unwrap();
        }
        world.disk.free_space();
        write(&mut world, 3, Level::Checksummed).unwrap();
        let states = world.disk.crash_states();
        explorer.every_state(&format!("full-{sectors}"), &states, &world.history, 1).unwrap();
        world.database.take().unwrap().close().unwrap();
        assert!(world.open(world.history.acknowledged()).is_ok());
    }
    assert!(failures > 60, "only {failures} commits failed");
}

#[test]
fn a_long_transaction_on_a_full_disk_leaves_nothing() {
    let mut world = open_world(1);
    write(&mut world, 5, Level::Soft).unwrap();
    world.disk.limit_space(1_500_000);
    let before = State::of(&world.database().read()).unwrap();
    let step = world.step(super::workload::Step::Stream(Level::Checksummed));
    assert!(step.is_ok(), "a fault, after which things go on");
    assert!(world.disk.transcript().contains("no space"), "{}", world.disk.transcript());
    assert_eq!(State::of(&world.database().read()).unwrap(), before);
    judge::only_zeros_follow(&world.disk, world.database()).unwrap();
    // What the long transaction took is room for others now.
    write(&mut world, 50, Level::Checksummed).unwrap();
    world.database.take().unwrap().close().unwrap();
    assert!(world.disk.content(NAME).unwrap().len() < 40_000, "closing gives it back");
}

#[test]
fn a_tail_is_cut_also_where_there_is_no_space_to_save_it() {
    let mut world = open_world(3);
    write(&mut world, 2, Level::Checksummed).unwrap();
    let end = world.database().read().point().position;
    world.disk.crash();
    let disk = world.disk.crash_states().newest();
    disk.open(NAME, Access::Write).unwrap().write_at(end, &[b'?'; 3000]).unwrap();
    disk.limit_space(0);
    let mut world = World::new(disk, 3, world.history, Errors::Faults);
    assert!(world.open(1).is_ok());
    let recovered = world.database().recovered();
    let cut = recovered.cut.as_ref().unwrap();
    assert_eq!((cut.position, cut.bytes, cut.saved_as.as_ref()), (end, 3000, None));
    assert!(recovered.findings[0].contains("not saved, for want of space"), "{recovered:?}");
    assert_eq!(world.disk.list().unwrap(), [NAME]);
    write(&mut world, 2, Level::Checksummed).unwrap();
}

#[test]
fn a_failed_flush_is_final_until_the_database_is_opened_again() {
    for fault in [Fault::FlushLoses, Fault::Io, Fault::NoSpace] {
        let mut world = open_world(7);
        write(&mut world, 2, Level::Checksummed).unwrap();
        write(&mut world, 2, Level::Soft).unwrap();
        // The write succeeds, the flush after it doesn't.
        world.disk.fail_at(world.disk.operations() + 1, fault);
        let (done, after) = change(&mut world, 2, Level::Checksummed);
        let error = done.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnknownOutcome, "{error:?}");
        for part in ["transaction 3", "chain", "reopen the database"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        world.history.submit(after.unwrap(), Level::Checksummed);
        let explorer = Explorer::new(DEFAULT);
        let states = world.disk.crash_states();
        explorer.every_state("failed-flush", &states, &world.history, 1).unwrap();

        let database = world.database();
        world.history.shows_the_newest(&world.disk, &database.read()).unwrap();
        for _ in 0..2 {
            let error = database.begin().map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Poisoned, "{error:?}");
        }
        let operations = world.disk.operations();
        let closed = world.database.take().map(Database::close).unwrap();
        assert_eq!(closed.unwrap_err().kind(), ErrorKind::Poisoned);
        let transcript = world.disk.transcript();
        let later = transcript.lines().skip(usize::try_from(operations).unwrap());
        assert_eq!(
            later.collect::<Vec<_>>(),
            ["write journal 12288..12864"],
            "the live block only"
        );

        // In the page cache everything is there; opening makes it so on the disk.
        assert!(world.open(3).is_ok());
        let states = world.disk.crash_states();
        explorer.every_state("reopened", &states, &world.history, 1).unwrap();
        write(&mut world, 1, Level::Checksummed).unwrap();
    }
}

/// Returns the disk that is left when the process dies at an operation, and what was promised.
fn killed(operation: u64) -> (SimulatedDisk, History) {
    let kill = |disk: &SimulatedDisk| disk.fail_from(operation, Fault::Io);
    let (mut world, _) = run("mixed-5", Errors::Fatal, kill).unwrap();
    world.database = None;
    world.disk.clear_plan();
    (world.disk, world.history)
}

/// A read that goes wrong once harms nothing: opening fails, or shows what it should. What is on the
/// disk stays right.
#[test]
fn reads_that_go_wrong_make_nothing_permanent() {
    let mut refused = 0;
    for operation in 8..30 {
        let (disk, history) = killed(operation);
        let started = disk.reads();
        World::new(disk.clone(), 1, history, Errors::Faults).try_open().map(drop).unwrap();
        for read in started..disk.reads() {
            for fault in [ReadFault::Io, ReadFault::BitFlip] {
                let (disk, history) = killed(operation);
                disk.fail_read_at(read, fault);
                let mut world = World::new(disk.clone(), 1, history.clone(), Errors::Faults);
                let opened = world.try_open();
                let place = format!("killed at {operation}, read {read}, {fault:?}");
                match &opened {
                    Err(error) => {
                        refused += 1;
                        let kinds = [ErrorKind::Io, ErrorKind::Corrupt, ErrorKind::NotAJournal];
                        assert!(kinds.contains(&error.kind()), "{place}: {error:?}");
                    }
                    Ok(database) => {
                        // The process died, but not the machine: nothing acknowledged is gone.
                        let at_least = history.acknowledged();
                        let shown = history.clone().opened(&disk, database, at_least);
                        assert_eq!(shown, Ok(()), "{place}");
                    }
                }
                if opened.is_err() {
                    disk.clear_plan();
                    let again = world.open(history.acknowledged());
                    assert!(!matches!(again, Err(Stop::Broken(_))), "{place}: lost for good");
                }
            }
        }
    }
    assert!(refused > 20, "only {refused} times");
    assert!(killed(20).0.list().unwrap().contains(&NAME.to_owned()));
}
