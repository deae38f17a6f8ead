//! Lookups against a list of all entries; and the power goes off at every operation.
#![allow(clippy::indexing_slicing, reason = "a test that indexes wrongly fails, as it should")]

mod document;

use std::sync::Arc;

use super::check::check;
use super::entry::Entry;
use super::file::IndexFile;
use super::format::Bound;
use super::read::Lookup;
use super::zone::Zone;
use crate::storage::simulated::{Rng, SimulatedClock, SimulatedDisk};
use crate::storage::{Access, Directory, MemoryDirectory};
use annals_storage::Point;

const NAME: &str = "db-history";
const ID: [u8; 16] = [7; 16];

/// One addition: consecutive zones, and their entries.
#[derive(Clone, Debug)]
struct Batch {
    zones: Vec<Zone>,
    entries: Vec<Entry>,
    bound: Bound,
}

fn point(at: u64) -> Point {
    Point { position: at * 100, txid: at, chain: at * 7 }
}

/// Draws a batch with zones from a number on; ten zones are a segment.
fn draw(rng: &mut Rng, first: u64, (zones, entries): (u64, u64)) -> Batch {
    let zone = |number: u64| Zone {
        segment: number / 10,
        start: point(number),
        end: point(number + 1),
        least_time: i64::try_from(rng_below(number, 1000)).unwrap(),
        commands: 3,
        flags: 0,
    };
    let mut all = Vec::new();
    for number in first..first + zones {
        for _ in 0..entries {
            let count = if rng.below(10) == 0 { rng.below(1 << 20) + 1 } else { 1 };
            let row = match rng.below(20) {
                0 => (1 << 62) + rng.below(1 << 62),
                1..5 => rng.below(1 << 30),
                _ => rng.below(100),
            };
            all.push(Entry { table: rng.below(3), first: row, count, zone: number });
        }
    }
    all.sort_unstable();
    all.dedup();
    let end = first + zones;
    let bound = Bound { segment: (end - 1) / 10, point: point(end), commands: 3 };
    Batch { zones: (first..end).map(zone).collect(), entries: all, bound }
}

fn rng_below(seed: u64, limit: u64) -> u64 {
    Rng::new(seed).below(limit)
}

fn directory(disk: &SimulatedDisk) -> Arc<dyn Directory> {
    Arc::new(disk.clone())
}

fn open(directory: &dyn Directory) -> crate::Result<Option<IndexFile>> {
    IndexFile::open(directory, NAME, ID, Access::Write)
}

fn add(directory: &Arc<dyn Directory>, batch: &Batch, oldest: u64) -> crate::Result<()> {
    let mut index = match open(&**directory)? {
        Some(index) => index,
        None => IndexFile::create(directory, NAME, ID, batch.bound, &SimulatedClock::new(1))?,
    };
    index.add(batch.zones.clone(), &batch.entries, batch.bound, oldest)
}

/// Compares an index with all that was added and isn't forgotten.
fn compare(index: &IndexFile, all: &[Batch], oldest: u64, rng: &mut Rng) {
    let zones: Vec<_> = all.iter().flat_map(|batch| &batch.zones).collect();
    let is_left = |zone: u64| zones[usize::try_from(zone).unwrap()].segment >= oldest;
    let mut lookup = Lookup::new(index);
    let entries: Vec<_> = all.iter().flat_map(|batch| &batch.entries).collect();
    for _ in 0..60 {
        let known = entries[usize::try_from(rng.below(entries.len() as u64)).unwrap()];
        let row = known.first + rng.below(known.count + 1);
        let has = |entry: &&&Entry| {
            entry.table == known.table && (entry.first..entry.first + entry.count).contains(&row)
        };
        let mut expected: Vec<_> = entries.iter().filter(has).map(|entry| entry.zone).collect();
        expected.sort_unstable();
        expected.dedup();
        expected.retain(|zone| is_left(*zone));
        let mut found = lookup.zones_of(known.table, row).unwrap();
        found.retain(|zone| is_left(*zone));
        assert_eq!(found, expected, "table {}, row {row}", known.table);
    }
    for number in (0..zones.len() as u64).filter(|zone| is_left(*zone)) {
        let zone = zones[usize::try_from(number).unwrap()];
        let found = lookup.zone(number).unwrap().unwrap();
        assert_eq!((found.start, found.end), (zone.start, zone.end));
        let before = (zone.segment, zone.end.position);
        assert_eq!(lookup.last_before(before).unwrap().unwrap().0, number);
    }
    for time in [0, 1, 100, 500, 999, 2000] {
        let last = zones.iter().rposition(|zone| zone.least_time <= time);
        let last = last.map(|last| last as u64).filter(|last| is_left(*last));
        let found = lookup.zone_of_time(time).unwrap().map(|(number, _)| number);
        assert_eq!(found.filter(|zone| is_left(*zone)), last, "{time}");
    }
    let mut seen = 0;
    check(index, &mut |_, _| Ok(()), &mut |_| {
        seen += 1;
        Ok(())
    })
    .unwrap();
    let left = entries.iter().filter(|entry| is_left(entry.zone)).count();
    assert!(seen >= left && (oldest > 0 || seen == left), "{seen} of {left}");
}

#[test]
fn lookups_find_what_was_added() {
    for seed in 1..6 {
        let (mut rng, mut all) = (Rng::new(seed), Vec::new());
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let (mut next, mut oldest) = (0, 0);
        for step in 0..60 {
            let sizes = (1 + rng.below(6), if step == 9 { 9000 } else { rng.below(300) });
            let batch = draw(&mut rng, next, sizes);
            next += sizes.0;
            if step > 30 && rng.below(8) == 0 {
                oldest = (next / 10).saturating_sub(rng.below(12)).max(oldest);
            }
            all.push(batch.clone());
            add(&directory, &batch, oldest).unwrap();
            let index = open(&*directory).unwrap().unwrap();
            assert_eq!(index.head().bound, batch.bound);
            if step % 5 == 0 {
                compare(&index, &all, oldest, &mut rng);
            }
        }
        let index = open(&*directory).unwrap().unwrap();
        assert!(index.head().runs.len() < 16, "{} runs", index.head().runs.len());
        let runs: u64 = index.head().runs.iter().map(|run| run.end() - run.place).sum();
        let len = index.len().unwrap();
        assert!(len < 5 * runs + (2 << 20), "{len} bytes for {runs}");
    }
}

/// After a crash there are as many batches as were added, or one more, and all of each.
fn judge(disk: &SimulatedDisk, all: &[Batch]) -> usize {
    let Some(index) = open(&*directory(disk)).unwrap() else { return 0 };
    let bound = index.head().bound;
    let added = 1 + all.iter().position(|batch| batch.bound == bound).unwrap();
    let (mut entries, mut zones) = (Vec::new(), 0);
    check(
        &index,
        &mut |_, _| {
            zones += 1;
            Ok(())
        },
        &mut |entry| {
            entries.push(*entry);
            Ok(())
        },
    )
    .unwrap();
    let mut expected: Vec<_> =
        all[..added].iter().flat_map(|batch| batch.entries.clone()).collect();
    expected.sort_unstable();
    entries.sort_unstable();
    assert!(entries == expected, "{added} batches");
    assert_eq!(zones, all[..added].iter().map(|batch| batch.zones.len()).sum::<usize>());
    added
}

fn run(disk: &SimulatedDisk, all: &[Batch], done: usize) -> usize {
    let directory = directory(disk);
    let added = all[done..].iter().take_while(|batch| add(&directory, batch, 0).is_ok()).count();
    done + added
}

#[test]
fn a_crash_leaves_all_of_what_was_added_before() {
    let mut rng = Rng::new(5);
    let all: Vec<_> = (0..14).map(|step| draw(&mut rng, step * 2, (2, 40))).collect();
    let mut judged = 0;
    for operation in 1.. {
        let disk = SimulatedDisk::new(3);
        disk.crash_at(operation);
        let done = run(&disk, &all, 0);
        let states = disk.crash_states();
        let mut rng = Rng::new(operation);
        let some: Vec<_> = (0..12).map(|_| states.random(&mut rng)).collect();
        let ends = [states.oldest(), states.newest(), states.all_but_last()];
        for state in ends.into_iter().chain(some) {
            let found = judge(&state, &all);
            // The newest head need not be on permanent storage before the next but one is.
            assert!(
                found <= done + 1 && found + 1 >= done,
                "{found} behind {done} at operation {operation}\n{}",
                disk.transcript()
            );
            judged += 1;
            assert_eq!(run(&state, &all, found), all.len());
            assert_eq!(judge(&state, &all), all.len());
        }
        if !disk.is_off() {
            break;
        }
    }
    assert!(judged > 500, "{judged} states");
}
