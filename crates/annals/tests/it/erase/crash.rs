//! Erasing on a disk that loses power, or fails, at each operation.

use annals::reports::Older;
use annals::storage::Directory;
use annals::{ErrorKind, FieldNumber, RowId, TableNumber};
use annals_simulated::{Fault, Rng, SimulatedDisk, is_power_off};
use annals_tools::Erase;

use super::{PERSON, content, erase, journal, leaks, log, of, try_open};

/// The field that is erased; `true` for values that were.
fn is_secret(table: TableNumber, row: RowId, _: FieldNumber) -> bool {
    (table, row) == (PERSON, RowId(1))
}

/// What a disk may show: all as it was, or all without the values.
struct Expected {
    disk: SimulatedDisk,
    operations: std::ops::Range<u64>,
    before: (Vec<String>, Vec<String>),
    after: (Vec<String>, Vec<String>),
}

fn expected(older: Older) -> Expected {
    let disk = SimulatedDisk::new(1);
    journal(&disk, older);
    let rows = |disk: &SimulatedDisk, but: bool| {
        content(&try_open(disk).unwrap().read(), |t, r, f| but && is_secret(t, r, f))
    };
    let before = (rows(&disk.fork(), false), log(&disk).events);
    let disk = disk.crash_states().newest();
    let done = disk.fork();
    let begin = done.operations();
    erase(&done, &of("person", 1, None)).unwrap();
    let operations = begin..done.operations();
    let after = (rows(&done.fork(), true), log(&done).events);
    assert!(before.0 != after.0 && before.1 != after.1);
    Expected { disk, operations, before, after }
}

impl Expected {
    /// Opens a disk, and sees that it has the one history or the other; returns whether the values are erased.
    fn look(&self, disk: &SimulatedDisk, place: &str) -> bool {
        // Who only reads sees one of them, too.
        let events = log(disk).events;
        let is_erased = events == self.after.1;
        assert!(is_erased || events == self.before.1, "{place}: {events:#?}");
        let database = try_open(disk).unwrap_or_else(|error| panic!("{place}: {error}"));
        let expected = if is_erased { &self.after.0 } else { &self.before.0 };
        let rows = content(&database.read(), |t, r, f| is_erased && is_secret(t, r, f));
        assert_eq!(rows, *expected, "{place}");
        assert_eq!(log(disk).events, events, "{place}: opening changed the history");
        if is_erased {
            assert_eq!(leaks(disk), [] as [&str; 0], "{place}: {:?}", disk.list().unwrap());
        }
        database.close().unwrap();
        is_erased
    }

    /// Looks at what a crash left, then erases again.
    fn judge(&self, disk: &SimulatedDisk, place: &str) -> bool {
        let is_erased = self.look(disk, place);
        let again = erase(disk, &of("person", 1, None));
        match is_erased {
            true => assert_eq!(again.unwrap_err().kind(), ErrorKind::NotFound, "{place}"),
            false => {
                again.unwrap_or_else(|error| panic!("{place}: {error}"));
                assert!(self.look(disk, place));
            }
        }
        let names = disk.list().unwrap();
        let strange = names.iter().find(|name| name.contains("eras"));
        assert_eq!(strange, None, "{place}");
        is_erased
    }
}

#[test]
fn a_power_cut_at_any_operation_leaves_the_one_history_or_the_other() {
    for older in [Older::Kept, Older::NotNeeded] {
        let expected = expected(older);
        let mut seen = [0, 0];
        for operation in expected.operations.clone() {
            let disk = expected.disk.fork();
            disk.crash_at(operation);
            let error = erase(&disk, &of("person", 1, None)).unwrap_err();
            assert!(is_power_off(&error), "{operation}: {error}");
            let states = disk.crash_states();
            let mut rng = Rng::new(operation);
            let random = (0..12).map(|_| states.random(&mut rng));
            let fixed = [states.oldest(), states.newest(), states.all_but_last()];
            for (number, state) in fixed.into_iter().chain(random).enumerate() {
                let is_erased = expected.judge(&state, &format!("{older:?}/{operation}/{number}"));
                seen[usize::from(is_erased)] += 1;
            }
        }
        assert!(seen[0] > 100 && seen[1] > 50, "{seen:?}");
    }
}

/// An image whose bytes were partly overwritten must not be taken for one that the disk damaged.
#[test]
fn a_kill_while_old_files_are_overwritten_leaves_no_damaged_image() {
    let expected = expected(Older::Kept);
    let what = Erase { overwrite: true, ..of("person", 1, None) };
    let done = expected.disk.fork();
    erase(&done, &what).unwrap();
    for operation in expected.operations.start..done.operations() {
        let disk = expected.disk.fork();
        disk.crash_at(operation);
        erase(&disk, &what).unwrap_err();
        let state = disk.crash_states().newest();
        let database = try_open(&state).unwrap();
        assert_eq!(database.recovered().findings, [] as [&str; 0], "{operation}");
        database.close().unwrap();
        expected.judge(&state, &format!("overwriting/{operation}"));
    }
}

#[test]
fn a_power_cut_in_what_opening_finishes_leaves_the_new_history() {
    let expected = expected(Older::NotNeeded);
    let mut unfinished = 0;
    for operation in expected.operations.clone() {
        let disk = expected.disk.fork();
        disk.crash_at(operation);
        erase(&disk, &of("person", 1, None)).unwrap_err();
        let state = disk.crash_states().newest();
        let marker = state.list().unwrap().iter().any(|name| name.contains(".erasing-"));
        if log(&state).events != expected.after.1 || !marker {
            continue;
        }
        unfinished += 1;
        let done = state.fork();
        let begin = done.operations();
        drop(try_open(&done).unwrap());
        for again in begin..done.operations() {
            let disk = state.fork();
            disk.crash_at(again);
            drop(try_open(&disk));
            let mut rng = Rng::new(again);
            let states = disk.crash_states();
            for state in [states.newest(), states.oldest(), states.random(&mut rng)] {
                assert!(expected.judge(&state, &format!("{operation}/again@{again}")));
            }
        }
    }
    assert!(unfinished > 3, "{unfinished}");
}

#[test]
fn an_operation_that_fails_leaves_the_one_history_or_the_other() {
    let expected = expected(Older::NotNeeded);
    for operation in expected.operations.clone() {
        let faults =
            [Fault::Io, Fault::NoSpace, Fault::ShortWrite { bytes: 700 }, Fault::FlushLoses];
        for fault in faults {
            let disk = expected.disk.fork();
            disk.fail_at(operation, fault);
            let erased = erase(&disk, &of("person", 1, None));
            disk.clear_plan();
            let place = format!("{operation}/{fault:?}: {erased:?}");
            let states = disk.crash_states();
            let mut rng = Rng::new(operation);
            for (number, state) in
                [states.newest(), states.oldest(), states.random(&mut rng)].iter().enumerate()
            {
                let is_erased = expected.judge(state, &format!("{place}/{number}"));
                assert!(is_erased || erased.is_err(), "{place}");
            }
        }
    }
}
