//! Images that are lost, or of another state or journal; and what holds of an image at each opening.

use std::sync::Arc;

use annals::reports::BackfillOutcome;
use annals::storage::{Access, Directory};
use annals::{
    BackfillMode, Database, ErrorKind, FieldNumber, Level, Options, Recovery, TableNumber,
    Transaction, Txid,
};
use annals_simulated::{Fault, SimulatedClock, SimulatedDisk};

use super::DEFAULT;
use super::explore::{Effort, Explorer};
use super::history::{Checked, History, State};
use super::imaging::Imaging;
use super::workload::Step;
use super::world::{Errors, NAME, Stop, World};

const IMAGE: &str = "journal-image";

const FULL: Step = Step::Backfill(BackfillMode::Full);

/// Judges what a world's opening showed: no crash takes an image away, and without it the journal gives
/// the same.
pub(super) fn opened(world: &World) -> Checked {
    let (Some(_), Some(database)) = (&world.imaging, &world.database) else { return Ok(()) };
    let findings = &database.recovered().findings;
    if let Some(about) = findings.iter().find(|finding| finding.contains("image")) {
        return Err(format!("a crash took the image away: {about}"));
    }
    if !world.disk.list().unwrap().iter().any(|name| name == IMAGE) {
        return Ok(());
    }
    let disk = world.disk.fork();
    disk.remove(IMAGE).unwrap();
    let replayed = World::new(disk, 1, world.history.clone(), Errors::Fatal);
    let replayed = replayed.try_open().map_err(|error| format!("without its image: {error:?}"))?;
    let (with, without) = (database.read(), replayed.read());
    without.check().map_err(|error| format!("without its image: {error:?}"))?;
    let state = |of| State::of(of).map_err(|error| format!("reading all: {error:?}"));
    if (with.point(), state(&with)?) != (without.point(), state(&without)?) {
        let (with, without) = (with.point(), without.point());
        return Err(format!("the image shows {with:?}, the journal {without:?}, or other rows"));
    }
    past(database, &world.history)?;
    match database.image_damage().first() {
        Some(about) if !world.disk.is_off() => Err(format!("a crash damaged the image: {about}")),
        _ => Ok(()),
    }
}

/// Judges what the past shows, some moments of it.
fn past(database: &Database, history: &History) -> Checked {
    let last = database.read().txid().0;
    for txid in [last / 3, last.saturating_sub(1)] {
        match database.as_it_was(Txid(txid)) {
            Ok(then) => {
                let found = State::of(&then).map_err(|error| format!("the past: {error:?}"))?;
                if Some(found) != history.was(txid) {
                    return Err(format!("transaction {txid} of {last} left another state"));
                }
            }
            // Forgotten, and that was allowed.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(format!("the past: {error:?}")),
        }
    }
    Ok(())
}

/// A world whose journal has some transactions, and an image of them.
fn world(seed: u64) -> World {
    let mut world = World::new(SimulatedDisk::new(seed), seed, History::new(), Errors::Fatal);
    world.imaging = Imaging::of("imaged-");
    assert!(world.open(0).is_ok());
    advance(&mut world, Level::Checksummed);
    world
}

#[track_caller]
fn step(world: &mut World, step: Step) {
    match world.step(step) {
        Ok(()) => {}
        Err(Stop::Broken(text)) => panic!("{step:?}: {text}"),
        Err(Stop::Died) => panic!("{step:?}: died"),
    }
}

/// Writes some transactions and brings the image forward.
fn advance(world: &mut World, level: Level) {
    (0..3).for_each(|rows| step(world, Step::Write { rows: 2 + rows, level }));
    step(world, FULL);
}

fn close(world: &mut World) {
    world.database.take().map(Database::close).unwrap().unwrap();
}

/// Returns a machine of its own with some files.
fn machine(files: &[(&str, &[u8])]) -> SimulatedDisk {
    let disk = SimulatedDisk::new(1);
    for (name, bytes) in files {
        let file = disk.create(name).unwrap();
        file.write_at(0, bytes).unwrap();
        file.flush().unwrap();
    }
    disk.flush().unwrap();
    disk
}

/// Opens a journal with an image: what is shown, and what is told of the image.
#[track_caller]
fn open(journal: &[u8], image: &[u8]) -> (State, Vec<String>) {
    let disk = machine(&[(NAME, journal), (IMAGE, image)]);
    let mut world = World::new(disk, 1, History::new(), Errors::Fatal);
    let database = world.try_open().unwrap();
    let (shown, findings) = (database.read(), database.recovered().findings.clone());
    shown.check().unwrap();
    let state = State::of(&shown).unwrap();
    // An image that can be used takes its place.
    database.backfill(BackfillMode::Full).unwrap();
    world.database = Some(database);
    close(&mut world);
    let database = world.try_open().unwrap();
    assert_eq!(database.recovered().findings, Vec::<String>::new());
    assert!(State::of(&database.read()).unwrap() == state, "the next image shows another state");
    (state, findings)
}

fn content(world: &World, name: &str) -> Vec<u8> {
    world.disk.content(name).unwrap()
}

#[test]
fn an_older_image_of_the_same_journal_is_used() {
    let mut world = world(1);
    let older = content(&world, IMAGE);
    (0..4).for_each(|_| advance(&mut world, Level::Soft));
    step(&mut world, Step::Write { rows: 3, level: Level::Checksummed });
    close(&mut world);
    let (state, findings) = open(&content(&world, NAME), &older);
    assert!(state == world.history.newest(), "shows another state");
    assert_eq!(findings, Vec::<String>::new());
}

#[test]
fn an_image_of_another_journal_is_set_aside() {
    let (mut world, mut another) = (world(1), self::world(2));
    close(&mut world);
    close(&mut another);
    let (state, findings) = open(&content(&world, NAME), &content(&another, IMAGE));
    assert!(state == world.history.newest(), "shows another state");
    assert!(findings[0].contains("it belongs to another journal"), "{findings:?}");
}

#[test]
fn power_cut_while_an_image_is_set_aside() {
    let (mut world, mut another) = (world(1), self::world(2));
    close(&mut world);
    close(&mut another);
    let (journal, image) = (content(&world, NAME), content(&another, IMAGE));
    let make = || machine(&[(NAME, &journal), (IMAGE, &image)]);
    let (explorer, history) = (Explorer::new(DEFAULT), &world.history);
    let at_least = history.acknowledged();
    let Some(operations) = explorer.state("foreign", &make, history, at_least).unwrap() else {
        return;
    };
    explorer.again("foreign", &make, history, (at_least, operations), 1).unwrap();
    assert!(explorer.states() > 40, "only {} states", explorer.states());
}

#[test]
fn an_image_of_a_later_state_than_the_journal_s_is_a_witness() {
    let mut world = world(1);
    step(&mut world, Step::Reopen);
    let (older, state) = (content(&world, NAME), world.history.newest());
    advance(&mut world, Level::Checksummed);
    close(&mut world);
    // The image proves that the journal continued: nobody continues as if it hadn't.
    let disk = machine(&[(NAME, &older), (IMAGE, &content(&world, IMAGE))]);
    let error = annals::Reader::open(&disk, NAME).unwrap_err();
    assert!(error.to_string().contains("the image beside it stands for"), "{error}");
    disk.remove(IMAGE).unwrap();
    let reader = annals::Reader::open(&disk, NAME).unwrap();
    assert!(State::of(&reader.read()).unwrap() == state, "shows another state");
}

#[test]
fn an_image_of_a_copy_that_went_on_by_itself_is_set_aside() {
    apart();
}

/// Lets two copies of a journal continue apart: the image of one isn't the other's, whatever its positions.
pub(super) fn apart() {
    for more in 0..8 {
        let mut world = world(3);
        close(&mut world);
        let files = [(NAME, content(&world, NAME)), (IMAGE, content(&world, IMAGE))];
        let disk = machine(&files.each_ref().map(|(name, bytes)| (*name, &bytes[..])));
        let mut copy = World::new(disk, 77, world.history.clone(), Errors::Fatal);
        copy.imaging = Imaging::of("imaged-");
        for (world, more) in [(&mut world, 2), (&mut copy, more)] {
            assert!(world.open(0).is_ok());
            (0..more).for_each(|_| step(world, Step::Write { rows: 1, level: Level::Checksummed }));
            step(world, FULL);
        }
        let newest = copy.history.newest();
        close(&mut world);
        close(&mut copy);
        let (journal, image) = (content(&copy, NAME), content(&world, IMAGE));
        let disk = machine(&[(NAME, &journal), (IMAGE, &image)]);
        if let Err(error) = annals::Reader::open(&disk, NAME) {
            // It ends before the point of the image, which is a witness then.
            assert!(more < 4 && error.to_string().contains("delete the image"), "{error}");
            continue;
        }
        let (shown, findings) = open(&journal, &image);
        assert!(shown == newest, "{more} more: shows another state");
        assert_eq!(findings.len(), 1, "{more} more: {findings:?}");
    }
}

#[test]
fn no_recovery_takes_back_what_an_image_proves() {
    let mut world = world(4);
    advance(&mut world, Level::Soft);
    let proven = world.history.newest();
    let len = content(&world, IMAGE).len();
    // Its roots prove the same if all that they reach is damaged.
    for (recovery, is_damaged) in
        [(Recovery::ToHard, false), (Recovery::ToHard, true), (Recovery::ToSoft, true)]
    {
        let disk = world.disk.fork();
        if is_damaged {
            let image = disk.open(IMAGE, Access::Write).unwrap();
            image.write_at(12288, &vec![0; len - 12288]).unwrap();
        }
        // Neither a slot nor the live block tells of what was flushed for the last root.
        disk.open(NAME, Access::Write).unwrap().write_at(12288, &[0; 4096]).unwrap();
        let options = Options::new().background(false).recovery(recovery);
        let clock = Arc::new(SimulatedClock::new(9));
        let opened = options.open_in(Arc::new(disk.clone()), NAME, clock).unwrap();
        let findings = opened.recovered().findings.join("; ");
        assert_eq!(findings.contains("image"), is_damaged, "{recovery:?}: {findings}");
        let state = State::of(&opened.read()).unwrap();
        assert!(state == proven, "{recovery:?}: shows another state");
    }
}

#[test]
fn a_flush_of_the_image_that_failed_is_never_relied_on() {
    assert_eq!(failed_flush(), Ok(()));
}

/// Lets each operation of a backfill fail so that what it should have flushed is lost, opens the database
/// again in the same machine, advances the image, and then the power goes off.
pub(super) fn failed_flush() -> Checked {
    (0..12).try_for_each(|operation| {
        failed_flush_at(operation, false)?;
        failed_flush_at(operation, true)
    })
}

/// Lets one operation fail; `grows`: the backfill makes the file longer, and those after it don't.
fn failed_flush_at(operation: u64, grows: bool) -> Checked {
    let broken = |stop| match stop {
        Stop::Broken(text) => text,
        Stop::Died => "died, though the power is on".to_owned(),
    };
    let mut world = world(6);
    world.errors = Errors::Faults;
    let write = Step::Write { rows: 1, level: Level::Checksummed };
    if grows {
        // There is free space for small changes, and a long value goes after it.
        (0..6).for_each(|_| [write, FULL].into_iter().for_each(|next| step(&mut world, next)));
        step(&mut world, Step::Sized { bytes: 200_000, level: Level::Checksummed });
    } else {
        step(&mut world, Step::Write { rows: 3, level: Level::Checksummed });
    }
    world.disk.fail_at(world.disk.operations() + operation, Fault::FlushLoses);
    for next in [FULL, Step::Reopen, write, FULL, write, FULL] {
        world.step(next).map_err(|stop| format!("{next:?}: {}", broken(stop)))?;
        let place = format!("imaged-failed/fault@{operation}");
        let explorer = Explorer::new(DEFAULT);
        explorer
            .every_state(&place, &world.disk.crash_states(), &world.history, 1)
            .map_err(|text| format!("{next:?}: {text}\nafter\n{}", world.disk.transcript()))?;
    }
    Ok(())
}

#[test]
fn the_root_before_a_long_backfill_is_kept_while_the_next_one_runs() {
    assert_eq!(older_root(), Ok(()));
}

/// Cuts the power in a backfill that follows a long one. Whether all of that one is there isn't looked at
/// as long as there is another root, so the one before counts.
pub(super) fn older_root() -> Checked {
    let mut world = world(8);
    let long = Step::Sized { bytes: 1_200_000, level: Level::Soft };
    (0..15).for_each(|_| step(&mut world, long));
    step(&mut world, FULL);
    step(&mut world, Step::Write { rows: 1, level: Level::Checksummed });
    for operation in [1, 3, 5] {
        let mut world = World::new(world.disk.fork(), 1, world.history.clone(), Errors::Fatal);
        world.imaging = Imaging::of("imaged-");
        assert!(world.open(0).is_ok());
        world.disk.crash_at(world.disk.operations() + operation);
        if let Err(Stop::Broken(text)) = world.step(FULL) {
            return Err(text);
        }
        let place = format!("imaged-long/power@{operation}");
        let few = Effort { samples: [4, 0, 0], again: [0, 0], ..DEFAULT };
        let explorer = Explorer::new(Effort { few: [4, 0, 0], reads: 0, ..few });
        explorer.every_state(&place, &world.disk.crash_states(), &world.history, 0)?;
    }
    Ok(())
}

/// The same rows change again and again: the image keeps its length, but for what a snapshot pins.
#[test]
fn an_image_grows_no_longer_than_what_it_has_and_what_is_pinned() {
    assert_eq!(growth(), Ok(()));
}

/// Lets an image advance many times.
pub(super) fn growth() -> Checked {
    let mut world = world(5);
    // Nothing stays in memory.
    world.imaging.iter_mut().for_each(|imaging| imaging.memory = 1);
    step(&mut world, Step::Reopen);
    let database = world.database();
    let first = database.write(|tx| tx.insert_vector(TableNumber(0), 5000));
    let first = first.map_err(|error| format!("{error:?}"))?;
    let mut round = 0;
    let mut advance = |times: u64| -> annals::Result<u64> {
        let mut len = 0;
        for _ in 0..times {
            round += 1;
            let numbers: Vec<_> = (0..5000).map(|row: i64| row % 97 * round).collect();
            let (table, field) = (TableNumber(0), FieldNumber(1));
            database.write(|tx| tx.update_vector(table, first, field, &numbers[..]))?;
            len = database.backfill(BackfillMode::Full)?.image_bytes;
        }
        Ok(len)
    };
    let mut advance = |times| advance(times).map_err(|error| format!("{error:?}"));
    let few = advance(4)?;
    let many = advance(30)?;
    // Where there is room for an object depends on what was there before.
    if many > 2 * few {
        return Err(format!("{few} bytes after 4 backfills, {many} after 30 more"));
    }
    let pinned = database.read();
    let look = || State::of(&pinned).and_then(|state| pinned.check().map(|()| state));
    let look = || look().map_err(|error| format!("what is pinned is gone: {error:?}"));
    let state = look()?;
    let with = advance(8)?;
    if look()? != state {
        return Err("what is pinned has changed".to_owned());
    }
    database.write(|tx| tx.comment("one more")).map_err(|error| format!("{error:?}"))?;
    let report = database.backfill(BackfillMode::Full).unwrap();
    if report.oldest_reader.is_none() {
        return Err(format!("nobody is told who reads an older root: {report:?}"));
    }
    drop(pinned);
    let later = advance(30)?;
    // What is damaged is rebuilt, and so nobody would see it.
    if let Some(about) = database.image_damage().first() {
        return Err(about.clone());
    }
    if later > 2 * with {
        return Err(format!("{with} bytes with a snapshot, {later} without it"));
    }
    Ok(())
}

#[test]
fn a_backfill_waits_for_the_transaction_that_began_before_the_last_one() {
    postponed();
}

/// Brings the image forward within a transaction, again when another commit is published meanwhile.
pub(super) fn postponed() {
    let mut world = world(9);
    step(&mut world, Step::Write { rows: 3, level: Level::Soft });
    let database = world.database();
    let insert = |tx: &mut Transaction<'_>| {
        let id = tx.insert_vector(TableNumber(0), 3)?;
        tx.update_vector(TableNumber(0), id, FieldNumber(1), &[7i64, 8, 9][..])
    };
    let mut first = database.begin().unwrap();
    first.set_level(Level::Checksummed);
    insert(&mut first).unwrap();
    let first = first.submit().unwrap();
    let mut second = database.begin().unwrap();
    let outcome = || database.backfill(BackfillMode::Passive).unwrap().outcome;
    assert_eq!(outcome(), BackfillOutcome::Advanced);
    insert(&mut second).unwrap();
    first.wait().unwrap();
    // What is published now lies over the root before, and so does what the transaction began with.
    assert_eq!(outcome(), BackfillOutcome::Postponed);
    second.commit().unwrap();
    assert_eq!(outcome(), BackfillOutcome::Advanced);
    let state = State::of(&database.read()).unwrap();
    close(&mut world);
    let (shown, findings) = open(&content(&world, NAME), &content(&world, IMAGE));
    assert!(shown == state, "shows another state");
    assert_eq!(findings, Vec::<String>::new());
}
