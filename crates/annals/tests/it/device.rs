//! A journal on a device: a fixed length, filled with what an earlier life left there.

use std::sync::Arc;

use annals::journal::format::{FRAME_MAGIC, FRAMES_AT};
use annals::storage::{Access, Directory};
use annals::{Database, Error, ErrorKind, Level, Options, Recovery, TableNumber, ValueRef};
use annals_simulated::{Fault, Rng, SimulatedClock, SimulatedDisk};
use annals_tools::inspect_in;

const NAME: &str = "device";
const TABLE: TableNumber = TableNumber(0);
const MIB: usize = 1 << 20;
const LEVELS: [Level; 4] = [Level::Soft, Level::Half, Level::TwoPhase, Level::Checksummed];

/// Returns what an earlier life leaves: frames of another journal at all places where frames are, and
/// whatever else; the head is blank.
fn earlier_life(len: usize) -> Vec<u8> {
    let disk = SimulatedDisk::new(7);
    disk.install_device(NAME, &vec![0; len]).unwrap();
    let database = open(&disk, Options::new()).unwrap();
    let mut number = 0;
    while insert(&database, number, 3000, Level::Checksummed).is_ok() {
        number += 1;
    }
    drop(database);
    let mut content = disk.content(NAME).unwrap();
    let head = usize::try_from(FRAMES_AT).unwrap();
    assert!(content[head..].windows(2).filter(|bytes| *bytes == FRAME_MAGIC).count() > 100);
    content[..head].fill(0);
    content
}

fn disk_with(content: &[u8]) -> SimulatedDisk {
    let disk = SimulatedDisk::new(1);
    disk.install_device(NAME, content).unwrap();
    disk
}

fn open(disk: &SimulatedDisk, options: Options) -> Result<Database, Error> {
    let clock = Arc::new(SimulatedClock::new(disk.operations()));
    let database = options.background(false).open_in(Arc::new(disk.clone()), NAME, clock)?;
    if database.read().schema().tables().is_empty() {
        let schema = annals_schema::parse("create_table t\nadd_field t f string").unwrap().schema;
        database.write(|transaction| {
            schema.commands().iter().try_for_each(|command| transaction.apply_command(command))
        })?;
    }
    Ok(database)
}

/// Inserts a row that tells its number.
fn insert(database: &Database, number: usize, len: usize, level: Level) -> Result<(), Error> {
    let text = format!("{number} {}", "x".repeat(len));
    database.write(|transaction| {
        transaction.set_level(level);
        transaction.insert(TABLE, &[ValueRef::String(&text)]).map(drop)
    })
}

/// Returns how many rows there are, having seen that they are those that were inserted, in order.
fn rows(database: &Database) -> usize {
    let view = database.read();
    let Ok(table) = view.table(TABLE) else { return 0 };
    for (number, row) in table.rows().enumerate() {
        let row = row.unwrap();
        let ValueRef::String(text) = row.value(annals::FieldNumber(0)) else { panic!() };
        assert_eq!(text.split(' ').next().unwrap(), number.to_string());
    }
    usize::try_from(table.len()).unwrap()
}

#[test]
fn a_device_is_created_written_closed_and_opened_again() {
    let disk = disk_with(&earlier_life(4 * MIB));
    let database = open(&disk, Options::new()).unwrap();
    for number in 0..40 {
        insert(&database, number, 50_000, LEVELS[number % 4]).unwrap();
    }
    database.close().unwrap();
    assert_eq!(disk.content(NAME).unwrap().len(), 4 * MIB);
    assert_eq!(disk.list().unwrap(), [NAME]);
    let inspection = inspect_in(&Options::new(), &disk, NAME).unwrap();
    assert!(inspection.is_closed() && inspection.damage.is_none() && inspection.tail.is_none());
    for _ in 0..2 {
        let database = open(&disk, Options::new().recovery(Recovery::Refuse)).unwrap();
        assert!(!database.recovered().unclean);
        assert_eq!(rows(&database), 40);
    }
}

#[test]
fn a_full_device_takes_back_what_does_not_fit_and_keeps_the_rest() {
    let disk = disk_with(&earlier_life(2 * MIB));
    let database = open(&disk, Options::new()).unwrap();
    let mut fitted = 0;
    let error = loop {
        match insert(&database, fitted, 30_000, LEVELS[fitted % 4]) {
            Ok(()) => fitted += 1,
            Err(error) => break error,
        }
    };
    assert!(fitted > 60, "{fitted}");
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    let text = error.to_string();
    assert!(text.contains("the device is full") || format!("{error:?}").contains("full"), "{text}");
    assert_eq!(rows(&database), fitted);
    assert!(insert(&database, fitted, 3_000_000, Level::Soft).is_err(), "one of several frames");
    // A smaller one still fits.
    insert(&database, fitted, 10, Level::Checksummed).unwrap();
    database.close().unwrap();
    let database = open(&disk, Options::new().recovery(Recovery::Refuse)).unwrap();
    assert_eq!(rows(&database), fitted + 1);
}

#[test]
fn only_a_blank_head_is_written_over() {
    let mut content = vec![0; MIB];
    content[5000] = 1;
    let disk = disk_with(&content);
    let error = open(&disk, Options::new()).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotAJournal);
    assert!(error.to_string().contains("dd if=/dev/zero of=simulated:device bs=4096 count=4"));
    assert_eq!((disk.operations(), disk.content(NAME).unwrap()), (0, content));

    let disk = disk_with(&vec![0; MIB]);
    let error = open(&disk, Options::new().create(false)).map(drop).unwrap_err();
    assert_eq!((error.kind(), disk.operations()), (ErrorKind::NotFound, 0));
    let disk = disk_with(&[0; 16384]);
    let error = open(&disk, Options::new()).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}

#[test]
fn a_journal_copied_onto_a_device_goes_on_there() {
    let disk = SimulatedDisk::new(1);
    let database = open(&disk, Options::new()).unwrap();
    (0..10).for_each(|number| insert(&database, number, 100, Level::Soft).unwrap());
    database.close().unwrap();
    let journal = disk.content(NAME).unwrap();
    // The frames that follow belong to another life, also of this journal.
    let database = open(&disk, Options::new()).unwrap();
    (10..1000).for_each(|number| insert(&database, number, 1000, Level::Soft).unwrap());
    database.close().unwrap();
    let mut content = disk.content(NAME).unwrap();
    content[..journal.len()].copy_from_slice(&journal);
    content.resize(4 * MIB, 0xAB);

    let disk = disk_with(&content);
    let database = open(&disk, Options::new()).unwrap();
    assert_eq!(rows(&database), 10);
    (10..20).for_each(|number| insert(&database, number, 5000, Level::Checksummed).unwrap());
    drop(database);
    assert_eq!(rows(&open(&disk, Options::new()).unwrap()), 20);
}

#[test]
fn a_slot_that_told_the_end_and_is_lost_is_damage() {
    let disk = disk_with(&earlier_life(8 * MIB));
    let database = open(&disk, Options::new()).unwrap();
    (0..60).for_each(|number| insert(&database, number, 50_000, Level::Checksummed).unwrap());
    database.close().unwrap();
    let content = disk.content(NAME).unwrap();
    let slots =
        inspect_in(&Options::new(), &disk, NAME).unwrap().head.slots.map(|[copy, _]| copy.unwrap());
    let mut refused = 0;
    for (which, slot) in slots.iter().enumerate() {
        let mut content = content.clone();
        for copy in [512, 1024] {
            content[4096 * (which + 1) + copy + 8] ^= 1;
        }
        let other = slots[1 - which];
        let lost = other.zeroed_to < slots[0].point.position.max(slots[1].point.position);
        match open(&disk_with(&content), Options::new()) {
            Ok(database) => assert!(!lost && rows(&database) == 60, "slot {which}: {slot:?}"),
            Err(error) => {
                refused += 1;
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            }
        }
    }
    assert!(refused < 2, "the older slot is of no consequence");
}

/// Space beyond the first step is told by both slots before a frame is written there.
pub(crate) fn lost_block() {
    let disk = disk_with(&earlier_life(8 * MIB));
    let database = open(&disk, Options::new()).unwrap();
    for number in 0..60 {
        insert(&database, number, 50_000, Level::Checksummed).unwrap();
        let content = disk.content(NAME).unwrap();
        for block in [4096, 8192] {
            let mut content = content.clone();
            content[block..block + 4096].fill(0xFF);
            let opened = open(&disk_with(&content), Options::new()).unwrap();
            assert_eq!(rows(&opened), number + 1, "block {block}");
        }
    }
    std::mem::forget(database);
}

#[test]
fn either_slot_block_of_a_device_may_be_lost() {
    lost_block();
}

/// What a workload had acknowledged when the power went off.
#[derive(Clone, Copy, Debug, Default)]
struct Acknowledged {
    rows: usize,
    durable: usize,
}

/// Creates, commits at all levels across the steps in which space grows, takes back, closes, reopens.
fn workload(disk: &SimulatedDisk) -> Acknowledged {
    let mut done = Acknowledged::default();
    for session in 0..2 {
        let Ok(database) = open(disk, Options::new()) else { return done };
        for number in done.rows..done.rows + 6 {
            // The long ones pass the first MiB in the second session, without a slot of their own.
            let (len, level) = match number % 3 {
                0 => (400_000, Level::Checksummed),
                _ => (200, LEVELS[number % 4]),
            };
            if insert(&database, number, len, level).is_err() {
                return done;
            }
            done.rows = number + 1;
            if matches!(level, Level::TwoPhase | Level::Checksummed) {
                done.durable = done.rows;
            }
        }
        let long = "x".repeat(1_500_000);
        let begun = database.begin().and_then(|mut transaction| {
            if session == 0 {
                return Ok(());
            }
            transaction.insert(TABLE, &[ValueRef::String(&long)])?;
            transaction.rollback()
        });
        if begun.is_err() || database.rest().is_err() || database.close().is_err() {
            return done;
        }
        done.durable = done.rows;
    }
    done
}

/// Opens what a crash left, checks that, and continues.
fn judge(disk: &SimulatedDisk, done: Acknowledged, place: &str) {
    let database = match open(disk, Options::new()) {
        Ok(database) => database,
        Err(error) => panic!("{place}: {error:?}"),
    };
    let found = rows(&database);
    assert!((done.durable..=done.rows + 1).contains(&found), "{place}: {found} rows, {done:?}");
    insert(&database, found, 2_000, Level::Checksummed).unwrap();
    insert(&database, found + 1, 1_100_000, Level::Checksummed).unwrap();
    drop(database);
    let database = open(disk, Options::new().recovery(Recovery::Refuse)).unwrap();
    assert_eq!(rows(&database), found + 2, "{place}");
}

#[test]
fn a_power_cut_at_any_operation_loses_nothing_durable_and_reads_no_earlier_life() {
    let content = earlier_life(5 * MIB);
    let whole = disk_with(&content);
    assert_eq!(workload(&whole).rows, 12);
    let samples = if std::env::var_os("ANNALS_CRASH_FULL").is_some() { 40 } else { 1 };
    for operation in 0..whole.operations() {
        let disk = disk_with(&content);
        disk.crash_at(operation);
        let done = workload(&disk);
        let states = disk.crash_states();
        let mut rng = Rng::new(operation);
        judge(&states.oldest(), done, &format!("oldest@{operation}"));
        judge(&states.newest(), done, &format!("newest@{operation}"));
        for number in 0..samples {
            judge(&states.random(&mut rng), done, &format!("r{number}@{operation}"));
        }
    }
}

/// Returns a device with two long rows, closed; the third won't fit into the first MiB.
fn almost_a_step(content: &[u8], checkpoints: usize) -> SimulatedDisk {
    let disk = disk_with(content);
    let database = open(&disk, Options::new()).unwrap();
    for number in 0..2 {
        insert(&database, number, 450_000, Level::Checksummed).unwrap();
        if number < checkpoints {
            database.hard_checkpoint().unwrap();
        }
    }
    database.close().unwrap();
    disk.crash_states().newest()
}

#[test]
fn the_step_to_more_space_may_be_torn_anywhere() {
    let content = earlier_life(3 * MIB);
    let start = almost_a_step(&content, 0);
    let mut operation = 0;
    loop {
        let disk = start.crash_states().newest();
        disk.crash_at(operation);
        let third = open(&disk, Options::new())
            .and_then(|database| insert(&database, 2, 450_000, Level::Checksummed));
        let states = disk.crash_states();
        let mut rng = Rng::new(operation);
        for number in 0..20 {
            let database = open(&states.random(&mut rng), Options::new());
            let database =
                database.unwrap_or_else(|error| panic!("r{number}@{operation}: {error:?}"));
            let found = rows(&database);
            assert!(found >= if third.is_ok() { 3 } else { 2 }, "r{number}@{operation}: {found}");
        }
        if third.is_ok() && !disk.is_off() {
            break;
        }
        operation += 1;
    }
    assert!(operation > 20, "{operation} operations");
}

#[test]
fn space_that_just_grew_is_not_lost_by_a_crash_in_recovery() {
    let content = earlier_life(3 * MIB);
    for checkpoints in 0..3 {
        let disk = almost_a_step(&content, checkpoints);
        let database = open(&disk, Options::new()).unwrap();
        insert(&database, 2, 450_000, Level::Checksummed).unwrap();
        disk.crash();
        drop(database);
        let left = disk.crash_states().newest();
        let mut operation = 0;
        loop {
            let disk = left.crash_states().newest();
            disk.crash_at(operation);
            let opened = open(&disk, Options::new()).is_ok();
            let states = disk.crash_states();
            let mut rng = Rng::new(operation);
            for number in 0..8 {
                let place = format!("{checkpoints} checkpoints, r{number}@{operation}");
                let database = open(&states.random(&mut rng), Options::new());
                let database = database.unwrap_or_else(|error| panic!("{place}: {error:?}"));
                assert_eq!(rows(&database), 3, "{place}");
            }
            if opened && !disk.is_off() {
                break;
            }
            operation += 1;
        }
    }
}

#[test]
fn a_flush_that_fails_while_space_grows_is_final() {
    let content = earlier_life(4 * MIB);
    let whole = disk_with(&content);
    let done = workload(&whole);
    for operation in 0..whole.operations() {
        let disk = disk_with(&content);
        disk.fail_at(operation, Fault::FlushLoses);
        let partly = workload(&disk);
        assert!(partly.rows <= done.rows);
        disk.clear_plan();
        let after = disk.crash_states().random(&mut Rng::new(operation));
        judge(&after, partly, &format!("flush@{operation}"));
    }
}

#[test]
fn a_device_is_not_shared() {
    let disk = disk_with(&vec![0; MIB]);
    let error = open(&disk, Options::new().shared(true)).map(drop).unwrap_err();
    assert_eq!((error.kind(), disk.operations()), (ErrorKind::Unsupported, 0), "{error}");
}

#[test]
fn a_device_keeps_its_length() {
    let disk = disk_with(&[7; 1000]);
    let file = disk.open(NAME, Access::Write).unwrap();
    assert!(file.has_fixed_len());
    file.set_len(1000).unwrap();
    assert_eq!(file.set_len(999).unwrap_err().kind(), std::io::ErrorKind::Unsupported);
    let error = file.write_at(996, b"12345").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    assert_eq!(file.len().unwrap(), 1000);
    let after = disk.crash_states().newest();
    assert!(after.open(NAME, Access::Read).unwrap().has_fixed_len());
}
