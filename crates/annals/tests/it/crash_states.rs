//! What the simulated disk loses, tears and reorders, and what it keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use annals::storage::{Access, Directory, Hold, Lock, Storage};
use annals_simulated::{
    CrashStates, Fault, ReadFault, Rng, SECTOR_SIZE, SimulatedDisk, is_power_off,
};

type Content = BTreeMap<String, Vec<u8>>;

fn content(disk: &SimulatedDisk) -> Content {
    let names = disk.list().unwrap();
    names.into_iter().map(|name| (name.clone(), disk.content(&name).unwrap())).collect()
}

fn all(states: &CrashStates) -> BTreeSet<Content> {
    states.every().map(|disk| content(&disk)).collect()
}

fn sectors(letters: &str) -> Vec<u8> {
    letters.bytes().flat_map(|letter| [letter; SECTOR_SIZE]).collect()
}

/// Returns one letter for each sector of `file`; `.` for zeros, `#` for a sector of several bytes.
fn letters(content: &[u8]) -> String {
    let letter = |sector: &[u8]| match sector.iter().all(|byte| *byte == sector[0]) {
        true if sector[0] == 0 => '.',
        true => char::from(sector[0]),
        false => '#',
    };
    content.chunks(SECTOR_SIZE).map(letter).collect()
}

fn all_letters(states: &CrashStates) -> Vec<String> {
    let found: BTreeSet<String> =
        states.every().map(|disk| letters(&disk.content("file").unwrap())).collect();
    found.into_iter().collect()
}

/// Returns a disk with a file that is wholly on it, name and all.
fn disk_with(letters: &str) -> (SimulatedDisk, Arc<dyn Storage>) {
    let disk = SimulatedDisk::new(1);
    disk.install("file", &sectors(letters)).unwrap();
    let file = disk.open("file", Access::Write).unwrap();
    (disk, file)
}

#[test]
fn writes_reach_the_disk_in_any_order_and_torn_between_sectors() {
    let (disk, file) = disk_with("abc");
    file.write_at(0, &sectors("XY")).unwrap();
    file.write_at(1024, &sectors("Z")).unwrap();
    let states = disk.crash_states();
    assert_eq!(states.count(), Some(8));
    assert_eq!(
        all_letters(&states),
        ["XYZ", "XYc", "XbZ", "Xbc", "aYZ", "aYc", "abZ", "abc"],
        "also the later write without the earlier, and half of the earlier"
    );
    assert_eq!(letters(&disk.content("file").unwrap()), "XYZ", "reads give the newest");
}

#[test]
fn a_sector_written_twice_may_hold_any_of_its_contents() {
    let (disk, file) = disk_with("a");
    for content in ["b", "c", "b"] {
        file.write_at(0, &sectors(content)).unwrap();
    }
    assert_eq!(disk.crash_states().count(), Some(3), "the same content counts once");
    assert_eq!(all_letters(&disk.crash_states()), ["a", "b", "c"]);
    assert_eq!(letters(&disk.crash_states().newest().content("file").unwrap()), "b");
    assert_eq!(letters(&disk.crash_states().all_but_last().content("file").unwrap()), "c");
    assert_eq!(letters(&disk.crash_states().oldest().content("file").unwrap()), "a");
}

#[test]
fn what_is_flushed_is_certain_and_the_rest_is_not() {
    let (disk, file) = disk_with("ab");
    file.write_at(0, &sectors("XY")).unwrap();
    file.flush().unwrap();
    file.write_at(512, &sectors("Z")).unwrap();
    assert_eq!(all_letters(&disk.crash_states()), ["XY", "XZ"]);
    file.flush().unwrap();
    assert_eq!(disk.crash_states().count(), Some(1));
    assert_eq!(all_letters(&disk.crash_states()), ["XZ"]);
}

#[test]
fn a_file_may_have_any_length_it_had_and_holes_read_as_zeros() {
    let (disk, file) = disk_with("a");
    file.write_at(512, &sectors("b")).unwrap();
    file.write_at(1024, &sectors("c")).unwrap();
    assert_eq!(all_letters(&disk.crash_states()), ["a", "a.", "a..", "a.c", "ab", "ab.", "abc"]);
    assert_eq!(disk.crash_states().count(), Some(7), "none twice");

    let (disk, file) = disk_with("ab");
    file.set_len(100).unwrap();
    file.set_len(600).unwrap();
    for disk in disk.crash_states().every() {
        let content = disk.content("file").unwrap();
        assert!([100, 600, 1024].contains(&content.len()));
        let file = disk.open("file", Access::Write).unwrap();
        file.set_len(2048).unwrap();
        let longer = disk.content("file").unwrap();
        assert!(longer[content.len()..].iter().all(|byte| *byte == 0), "nothing comes back");
    }
    file.flush().unwrap();
    assert_eq!(disk.crash_states().count(), Some(1));
}

#[test]
fn names_are_facts_of_their_own() {
    let disk = SimulatedDisk::new(1);
    disk.install("old", b"old").unwrap();
    let file = disk.create("temporary").unwrap();
    file.write_at(0, b"new").unwrap();
    file.flush().unwrap();
    disk.rename("temporary", "old").unwrap();
    let starts = |content: &Content| {
        let start = |(name, bytes): (&String, &Vec<u8>)| format!("{name}={}", char::from(bytes[0]));
        content.iter().map(start).collect::<Vec<_>>().join(" ")
    };
    let found: BTreeSet<String> = all(&disk.crash_states()).iter().map(starts).collect();
    let expected = ["old=n", "old=n temporary=n", "old=o", "old=o temporary=n"];
    assert_eq!(found.into_iter().collect::<Vec<_>>(), expected, "both names, or neither");
    disk.flush().unwrap();
    let states = all(&disk.crash_states());
    assert_eq!(states.len(), 1);
    assert_eq!(states.first().unwrap()["old"], b"new");
}

#[test]
fn a_flushed_name_may_lead_to_a_file_without_its_content() {
    let disk = SimulatedDisk::new(1);
    let file = disk.create("file").unwrap();
    file.write_at(0, &sectors("a")).unwrap();
    disk.flush().unwrap();
    assert_eq!(all_letters(&disk.crash_states()), ["", ".", "a"]);
    disk.remove("file").unwrap();
    let found = all(&disk.crash_states());
    assert!(found.iter().any(|content| content.is_empty()));
    assert!(found.iter().any(|content| content.contains_key("file")));
}

#[test]
fn a_failed_flush_loses_data_that_no_later_flush_covers() {
    let (disk, file) = disk_with("ab");
    file.write_at(0, &sectors("X")).unwrap();
    disk.fail_at(disk.operations(), Fault::FlushLoses);
    assert!(file.flush().is_err());
    assert_eq!(letters(&disk.content("file").unwrap()), "Xb", "reads go on as if nothing was lost");
    file.write_at(512, &sectors("Y")).unwrap();
    file.flush().unwrap();
    assert_eq!(all_letters(&disk.crash_states()), ["XY", "aY"], "only what was written again");
    file.write_at(0, &sectors("X")).unwrap();
    file.flush().unwrap();
    assert_eq!(all_letters(&disk.crash_states()), ["XY"]);
}

#[test]
fn a_crash_ends_everything_and_may_leave_the_last_write_in_part() {
    let (disk, file) = disk_with("ab");
    assert!(file.try_lock(Lock::Head, Hold::Exclusive).unwrap());
    disk.crash_at(1);
    file.flush().unwrap();
    let error = file.write_at(0, &sectors("XY")).unwrap_err();
    assert!(is_power_off(&error), "{error}");
    let errors = [
        file.len().map(drop),
        file.read_at(0, &mut [0]).map(drop),
        file.flush(),
        file.set_len(0),
        file.try_lock(Lock::Head, Hold::Exclusive).map(drop),
        file.is_linked().map(drop),
        disk.open("file", Access::Read).map(drop),
        disk.create("file").map(drop),
        disk.list().map(drop),
        disk.remove("file"),
        Directory::flush(&disk),
    ];
    assert!(errors.into_iter().all(|result| is_power_off(&result.unwrap_err())));
    assert_eq!(disk.operations(), 2);
    assert_eq!(disk.transcript(), "flush file\nwrite file 0..1024: power off\n");
    assert_eq!(all_letters(&disk.crash_states()), ["XY", "Xb", "aY", "ab"]);

    let after = disk.crash_states().newest();
    assert_eq!((after.operations(), after.is_off()), (0, false));
    let file = after.open("file", Access::Write).unwrap();
    assert!(file.try_lock(Lock::Head, Hold::Exclusive).unwrap(), "a lock doesn't outlive a crash");
    file.write_at(0, b"on").unwrap();
}

#[test]
fn a_crash_in_a_flush_leaves_it_undone() {
    let (disk, file) = disk_with("a");
    file.write_at(0, &sectors("b")).unwrap();
    disk.crash_at(1);
    assert!(is_power_off(&file.flush().unwrap_err()));
    assert_eq!(all_letters(&disk.crash_states()), ["a", "b"]);
}

#[test]
fn short_writes_fail_half_done_or_go_on() {
    let (disk, file) = disk_with("abc");
    disk.fail_at(0, Fault::ShortWrite { bytes: 512 });
    assert!(file.write_at(0, &sectors("XYZ")).is_err());
    assert_eq!(letters(&disk.content("file").unwrap()), "Xbc");

    let (disk, file) = disk_with("a");
    disk.fail_at(0, Fault::SplitWrite { bytes: 100 });
    file.write_at(0, &sectors("X")).unwrap();
    assert_eq!(all_letters(&disk.crash_states()), ["#", "X", "a"], "torn inside the sector");
}

#[test]
fn a_full_disk_fails_until_space_is_freed() {
    let (disk, file) = disk_with("a");
    disk.limit_space(1024);
    let kind = |result: std::io::Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(file.write_at(512, &sectors("XY"))), std::io::ErrorKind::StorageFull);
    assert_eq!(letters(&disk.content("file").unwrap()), "aX", "as far as there was room");
    assert_eq!(kind(file.set_len(5000)), std::io::ErrorKind::StorageFull);
    file.write_at(0, &sectors("b")).unwrap();
    file.set_len(512).unwrap();
    let other = disk.create("other").unwrap();
    other.write_at(0, &sectors("o")).unwrap();
    assert_eq!(kind(file.write_at(512, b"x")), std::io::ErrorKind::StorageFull);
    drop(other);
    disk.remove("other").unwrap();
    file.write_at(512, b"x").unwrap();
    disk.free_space();
    file.write_at(5000, b"x").unwrap();
    assert!(disk.transcript().contains("set_len file 5000: no space\n"), "{}", disk.transcript());
}

#[test]
fn planned_errors_come_when_they_should() {
    let (disk, file) = disk_with("a");
    disk.fail_at(0, Fault::Io);
    disk.fail_at(1, Fault::NoSpace);
    disk.fail_from(3, Fault::Io);
    assert!(file.write_at(0, b"x").is_err());
    assert_eq!(file.set_len(0).unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    file.write_at(0, b"x").unwrap();
    for _ in 0..3 {
        assert!(file.flush().is_err());
    }
    disk.clear_plan();
    file.flush().unwrap();
    assert_eq!(disk.crash_states().count(), Some(1), "these failures dropped nothing");

    disk.fail_read_at(0, ReadFault::Io);
    disk.fail_read_at(1, ReadFault::BitFlip);
    let mut buffer = [0; 512];
    assert!(file.read_at(0, &mut buffer).is_err());
    assert_eq!(file.read_at(0, &mut buffer).unwrap(), 512);
    let ones = |bytes: &[u8]| bytes.iter().map(|byte| byte.count_ones()).sum::<u32>();
    let stored = disk.content("file").unwrap();
    assert_eq!(ones(&buffer).abs_diff(ones(&stored)), 1);
    file.read_at(0, &mut buffer).unwrap();
    assert_eq!(buffer[..], stored[..], "the disk itself was right");
}

#[test]
fn random_states_reach_every_state_of_a_small_disk() {
    let (disk, file) = disk_with("abc");
    for (sector, letter) in [(2, "Z"), (0, "X"), (1, "Y"), (0, "W")] {
        file.write_at(sector * 512, &sectors(letter)).unwrap();
    }
    let states = disk.crash_states();
    let mut rng = Rng::new(9);
    let mut counts = BTreeMap::new();
    for _ in 0..1200 {
        *counts.entry(letters(&states.random(&mut rng).content("file").unwrap())).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 12, "{counts:?}");
    assert!(counts.values().all(|count| *count > 30), "{counts:?}");
}

#[test]
fn random_states_favour_orders_in_which_programs_are_wrong() {
    let (disk, file) = disk_with(&"a".repeat(100));
    for sector in 0..100 {
        file.write_at(sector * 512, &sectors("X")).unwrap();
    }
    let states = disk.crash_states();
    assert_eq!((states.count(), states.open_facts()), (Some(1 << 100), 100));
    let mut rng = Rng::new(2);
    let (mut prefixes, mut suffixes, mut odd, mut mixed) = (0, 0, 0, 0);
    for _ in 0..2000 {
        let found = letters(&states.random(&mut rng).content("file").unwrap());
        let new = found.matches('X').count();
        match (new, found.contains("aX"), found.contains("Xa")) {
            (0 | 1 | 99 | 100, _, _) => odd += 1,
            (_, false, _) => prefixes += 1,
            (_, _, false) => suffixes += 1,
            _ => mixed += 1,
        }
    }
    let found = [prefixes, suffixes, odd, mixed];
    assert!(found.into_iter().all(|count| count > 60), "{found:?}");
}

#[test]
fn counting_saturates_and_states_are_still_made() {
    let (disk, file) = disk_with(&"a".repeat(200));
    file.write_at(0, &sectors(&"X".repeat(200))).unwrap();
    let states = disk.crash_states();
    assert_eq!(states.count(), None);
    assert_eq!(letters(&states.state(5).content("file").unwrap())[..4], *"XaXa");
    assert_eq!(states.every().take(10).count(), 10);
}

#[test]
fn harsh_disks_leave_garbage_only_where_something_was_written() {
    let (disk, file) = disk_with("ab");
    file.write_at(0, &sectors("X")).unwrap();
    assert_eq!(all_letters(&disk.crash_states_with_garbage()), ["#b", "Xb", "ab"]);
}

/// Does random things and gives all that can be told afterwards.
fn wander(seed: u64, crash_at: Option<u64>) -> (SimulatedDisk, Content) {
    let disk = SimulatedDisk::new(seed);
    if let Some(operation) = crash_at {
        disk.crash_at(operation);
    }
    let mut rng = Rng::new(seed);
    let mut flushed = Content::new();
    let names = ["a", "b", "c"];
    let mut step = || -> std::io::Result<()> {
        let name = names[rng.index(3)];
        let file = match disk.open(name, Access::Write) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => disk.create(name)?,
            other => other?,
        };
        match rng.below(8) {
            0 => file.set_len(rng.below(3000))?,
            1 => disk.rename(name, names[rng.index(3)])?,
            2 => disk.remove(name)?,
            3 => {
                // Everything is flushed: from here on at least this is certain.
                for name in disk.list()? {
                    disk.open(&name, Access::Write)?.flush()?;
                }
                Directory::flush(&disk)?;
                flushed = content(&disk);
                assert_eq!(disk.crash_states().count(), Some(1));
                assert_eq!(all(&disk.crash_states()), BTreeSet::from([flushed.clone()]));
            }
            _ => {
                let mut data = vec![0; rng.index(1500)];
                rng.fill(&mut data);
                file.write_at(rng.below(3000), &data)?;
            }
        }
        Ok(())
    };
    for _ in 0..60 {
        if let Err(error) = step() {
            assert!(is_power_off(&error), "{error}");
            break;
        }
    }
    (disk, flushed)
}

#[test]
fn flushed_disks_are_certain_and_runs_repeat_exactly() {
    for seed in 0..50 {
        let (whole, _) = wander(seed, None);
        assert_eq!(whole.transcript(), wander(seed, None).0.transcript(), "seed {seed}");
        let operations = whole.operations();
        assert_eq!(whole.transcript().lines().count() as u64, operations);
        let at = Rng::new(seed).below(operations);
        let (disk, flushed) = wander(seed, Some(at));
        assert!(disk.is_off());
        let states = disk.crash_states();
        // A crash among flushes leaves some of them done.
        if !disk.transcript().lines().last().unwrap().starts_with("flush") {
            assert_eq!(content(&states.oldest()), flushed, "seed {seed}, operation {at}");
        }
        // The newest state is what reads gave last.
        let names = content(&states.newest());
        for (name, bytes) in names {
            assert_eq!(disk.content(&name).unwrap(), bytes, "seed {seed}");
        }
    }
}
