//! Salvage over all segments: what is kept, what is proven, and what comes from elsewhere.

use std::sync::Arc;

use annals::reports::Older;
use annals::storage::{Directory, MemoryDirectory};
use annals::{
    BackfillMode, Database, FieldNumber, Options, Point, RowId, Snapshot, Transaction, ValueRef,
};
use annals_simulated::SimulatedClock;
use annals_tools::{Fate, Salvaged};

use super::opening::{bytes, put};
use super::{NAME, NOW, TABLE, Text, content, define, history, open, options, split, write};

const NEW: &str = "new";
const KEPT: [&str; 3] = ["db-segment-000000", "db-segment-000001", NAME];

fn try_salvage(
    from: &MemoryDirectory,
    unproven: bool,
) -> annals::Result<(MemoryDirectory, Salvaged)> {
    let before = from.list().unwrap();
    let (to, clock) = (MemoryDirectory::new(), Arc::new(SimulatedClock::new(11)));
    let options = Options::new().unproven(unproven);
    let done = annals_tools::salvage_in(&options, from, NAME, Arc::new(to.clone()), NEW, clock);
    assert_eq!(from.list().unwrap(), before, "nothing is made beside it");
    done.map(|salvaged| (to, salvaged))
}

fn salvage(from: &MemoryDirectory) -> (Snapshot, Salvaged) {
    let (to, salvaged) = try_salvage(from, false).unwrap();
    let clock = Arc::new(SimulatedClock::new(5));
    let database = options().create(false).open_in(Arc::new(to), NEW, clock).unwrap();
    let snapshot = database.read();
    snapshot.check().unwrap();
    (snapshot, salvaged)
}

fn kept(salvaged: &Salvaged) -> Vec<u64> {
    let kept = salvaged.runs.iter().filter(|run| run.fate == Fate::Kept);
    kept.flat_map(|run| run.first..=run.last).collect()
}

/// Inserts a row of a number, and changes and deletes others.
fn row(tx: &mut Transaction<'_>, number: u64) -> annals::Result<()> {
    let name = format!("city {number}");
    let people = u32::try_from(number).unwrap();
    tx.insert_at(TABLE, RowId(number), &[(&*name).into(), people.into(), ValueRef::Null])?;
    if number % 4 == 3 {
        tx.update(TABLE, RowId(number - 1), FieldNumber(1), 7_u32.into())?;
        tx.delete(TABLE, RowId(number - 2))?;
    }
    Ok(())
}

/// Writes rows of numbers into segments of four, each of which begins as it says; returns the ends of transactions.
fn rows(database: &Database, segments: &[Older]) -> Vec<Point> {
    database.write(define).unwrap();
    let mut ends = vec![database.read().point()];
    for segment in 0..=segments.len() {
        for number in segment * 4..segment * 4 + 4 {
            database.write(|tx| row(tx, u64::try_from(number).unwrap())).unwrap();
            ends.push(database.read().point());
        }
        if let Some(&older) = segments.get(segment) {
            database.restart(older, NOW).unwrap();
        }
    }
    ends
}

fn flip(directory: &MemoryDirectory, name: &str, at: u64) {
    let mut bytes = bytes(directory, name);
    bytes[usize::try_from(at).unwrap()] ^= 1;
    put(directory, name, &bytes);
}

#[test]
fn a_sound_journal_of_several_segments_is_kept_whole() {
    for image in [true, false] {
        let (many, database, one) = split(3);
        write(&database, 20..23);
        let expected = content(&database.read());
        if image {
            database.backfill(BackfillMode::Full).unwrap();
        }
        database.close().unwrap();
        let (snapshot, salvaged) = salvage(&many);
        assert!(salvaged.is_complete() && salvaged.restored.is_empty(), "{salvaged:?}");
        assert_eq!(kept(&salvaged), (1..=16).collect::<Vec<_>>());
        assert_eq!(salvaged.segments.len(), 4);
        assert_eq!(content(&snapshot), expected);
        assert!(history(&many).starts_with(history(&one).trim_end()));
    }
}

#[test]
fn damage_in_any_segment_costs_its_transactions_alone() {
    let directory = MemoryDirectory::new();
    let database = open(&directory);
    let ends = rows(&database, &[Older::Kept, Older::Kept]);
    database.close().unwrap();
    let _ = directory.remove("db-image");
    let sound: Vec<_> = KEPT.map(|name| bytes(&directory, name)).into();
    for (place, end) in ends.iter().enumerate().skip(1) {
        let segment = (place - 1) / 4;
        let txid = end.txid.0;
        flip(&directory, KEPT[segment], end.position - 20);
        let (_, salvaged) = salvage(&directory);
        let lost: Vec<_> = (1..=13).filter(|txid| !kept(&salvaged).contains(txid)).collect();
        assert!(lost.contains(&txid), "{txid}: {:?}", salvaged.runs);
        // The one that deletes or changes its row is lost with it.
        assert!(lost.iter().all(|lost| (txid..=txid + 2).contains(lost)), "{txid}: {lost:?}");
        assert!(!salvaged.is_complete());
        put(&directory, KEPT[segment], &sound[segment]);
    }
}

#[test]
fn a_missing_segment_and_one_of_another_journal_are_named() {
    for (number, name) in KEPT.iter().enumerate() {
        let directory = MemoryDirectory::new();
        let database = open(&directory);
        rows(&database, &[Older::Kept, Older::Kept]);
        database.close().unwrap();
        let _ = directory.remove("db-image");
        directory.remove(name).unwrap();
        let (_, salvaged) = salvage(&directory);
        let gone = 1 + 4 * u64::try_from(number).unwrap()..=5 + 4 * u64::try_from(number).unwrap();
        let kept = kept(&salvaged);
        match number {
            // Without the schema nothing fits.
            0 => assert!(kept.is_empty() && salvaged.missing == [0], "{salvaged:?}"),
            1 => assert!(kept.iter().all(|txid| !(6..=9).contains(txid)), "{gone:?}: {kept:?}"),
            _ => assert_eq!(kept, (1..=9).collect::<Vec<_>>()),
        }
        if number == 1 {
            assert_eq!(salvaged.missing, [1]);
            let other = MemoryDirectory::new();
            let clock = Arc::new(SimulatedClock::new(8));
            options().open_in(Arc::new(other.clone()), NAME, clock).unwrap().close().unwrap();
            put(&directory, name, &bytes(&other, NAME));
            assert_eq!(salvage(&directory).1.strangers, [directory.display(name)]);
        }
    }
}

#[test]
fn what_the_journal_lost_comes_from_the_image() {
    // Lost transactions of each segment, and the newest segment cut, or gone.
    for damage in 0..5 {
        let directory = MemoryDirectory::new();
        let database = open(&directory);
        let ends = rows(&database, &[Older::Kept, Older::Kept]);
        database.backfill(BackfillMode::Full).unwrap();
        let imaged = database.read().txid();
        if damage < 3 {
            // What follows the image fits the state that it has.
            database.write(|tx| tx.delete(TABLE, RowId(0))).unwrap();
            database.write(|tx| row(tx, 100)).unwrap();
        }
        let expected = content(&database.read());
        database.close().unwrap();
        match damage {
            0..3 => flip(&directory, KEPT[damage], ends[damage * 4 + 2].position - 20),
            3 => put(&directory, NAME, &bytes(&directory, NAME)[..16_600]),
            _ => directory.remove(NAME).unwrap(),
        }
        let (snapshot, salvaged) = salvage(&directory);
        let [restored] = &salvaged.restored[..] else { panic!("{damage}: {salvaged:?}") };
        assert_eq!(restored.txid, imaged, "{damage}");
        assert!(restored.from.ends_with("db-image") && !salvaged.is_complete(), "{restored:?}");
        assert_eq!(content(&snapshot), expected, "{damage}: {salvaged:?}");
    }
}

#[test]
fn a_segment_that_begins_with_the_state_makes_up_for_what_is_lost_before_it() {
    for gone in [false, true] {
        let directory = MemoryDirectory::new();
        let database = open(&directory);
        let ends = rows(&database, &[Older::Kept, Older::NotNeeded]);
        let expected = content(&database.read());
        database.close().unwrap();
        let _ = directory.remove("db-image");
        match gone {
            true => directory.remove(KEPT[1]).unwrap(),
            false => flip(&directory, KEPT[0], ends[2].position - 20),
        }
        let (snapshot, salvaged) = salvage(&directory);
        assert_eq!(salvaged.restored.len(), 1, "{salvaged:?}");
        assert_eq!(salvaged.restored[0].txid, annals::Txid(9));
        assert_eq!(content(&snapshot), expected, "{salvaged:?}");
        assert!(kept(&salvaged).ends_with(&[10, 11, 12, 13]), "{salvaged:?}");
    }
}

#[test]
fn the_transaction_that_takes_a_state_from_the_image_says_so() {
    let directory = MemoryDirectory::new();
    let database = open(&directory);
    let ends = rows(&database, &[Older::Kept]);
    database.backfill(BackfillMode::Full).unwrap();
    database.close().unwrap();
    flip(&directory, KEPT[0], ends[2].position - 20);
    let (to, _) = try_salvage(&directory, false).unwrap();
    let mut text = Text::default();
    annals_tools::scan_in(&Options::new(), &to, NEW, &mut text).unwrap();
    let comment = "salvage: the state after transaction 9 was taken from the image, since the journal has lost";
    assert!(text.1.contains(comment), "{}", text.1);
}

#[test]
fn a_blob_of_a_row_from_the_image_is_read_where_its_bytes_verify_and_else_null() {
    // In the last event of the transaction; in the bytes of its blob.
    for (back, lost) in [(20, 0), (30_000, 1)] {
        let (many, database, _) = split(1);
        write(&database, 6..8);
        let expected = content(&database.read());
        database.backfill(BackfillMode::Full).unwrap();
        let end = database.read().point();
        database.close().unwrap();
        flip(&many, NAME, end.position - back);
        let (snapshot, salvaged) = salvage(&many);
        let [restored] = &salvaged.restored[..] else { panic!("{salvaged:?}") };
        assert_eq!((restored.lost_blobs, restored.inserted), (lost, 1), "{restored:?}");
        match lost {
            0 => assert_eq!(content(&snapshot), expected),
            _ => assert!(content(&snapshot).contains("city 7"), "{}", content(&snapshot)),
        }
    }
}

/// Frames that somebody stored in a value verify by themselves once the frame around them doesn't: nothing but the
/// chain tells that they aren't the journal's.
#[test]
fn frames_in_values_are_not_taken() {
    let frames = |seed: u64, people: u32| {
        let directory = MemoryDirectory::new();
        let clock = Arc::new(SimulatedClock::new(seed));
        let database = options().open_in(Arc::new(directory.clone()), NAME, clock).unwrap();
        database.write(define).unwrap();
        for number in 1..4 {
            let planted = format!("planted {number}");
            let values = [(&*planted).into(), people.into(), ValueRef::Null];
            database.write(|tx| tx.insert(TABLE, &values).map(drop)).unwrap();
        }
        let end = usize::try_from(database.read().point().position).unwrap();
        database.close().unwrap();
        bytes(&directory, NAME)[16_384..end].to_vec()
    };
    // The same clock gives a journal of the same id: an older state of this one.
    for (what, planted) in [("this journal", frames(7, 1)), ("another", frames(9, 2))] {
        for shift in 0..8 {
            let directory = MemoryDirectory::new();
            let database = open(&directory);
            database.write(define).unwrap();
            let mut value = vec![b'x'; shift];
            value.extend_from_slice(&planted);
            let blob = |tx: &mut Transaction<'_>| {
                let blob = tx.write_blob(&value[..])?;
                tx.insert_at(TABLE, RowId(50), &["a".into(), ValueRef::Null, blob.into()])
            };
            let start = database.read().point();
            database.write(blob).unwrap();
            let values = [ValueRef::String("genuine"), ValueRef::Null, ValueRef::Null];
            database.write(|tx| tx.insert_at(TABLE, RowId(60), &values)).unwrap();
            database.close().unwrap();
            let _ = directory.remove("db-image");
            // The header of the frame that holds them.
            flip(&directory, NAME, start.position + 16);
            let (snapshot, salvaged) = salvage(&directory);
            let place = format!("{what}, {shift}: {:?}", salvaged.runs);
            assert_eq!(kept(&salvaged), [1, 3], "{place}");
            let text = content(&snapshot);
            assert!(text.contains("genuine") && !text.contains("planted"), "{place}");
        }
    }
}

#[test]
fn what_nothing_proves_is_taken_on_request_only() {
    let directory = MemoryDirectory::new();
    let database = open(&directory);
    let ends = rows(&database, &[]);
    // Not closed: no slot tells of the last transactions.
    let bytes = bytes(&directory, NAME);
    drop(database);
    let damaged = MemoryDirectory::new();
    put(&damaged, NAME, &bytes);
    // Nothing is known of where the rest ends but by frames.
    for at in [4608, 5120, 8704, 9216] {
        let mut head = self::bytes(&damaged, NAME);
        head[at..at + 64].fill(0);
        put(&damaged, NAME, &head);
    }
    flip(&damaged, NAME, ends[2].position - 20);
    let (_, salvaged) = salvage(&damaged);
    assert_eq!(kept(&salvaged), [1, 2], "{:?}", salvaged.runs);
    assert_eq!(salvaged.count(|fate| *fate == Fate::Unproven), 2, "{:?}", salvaged.runs);
    let (_, salvaged) = try_salvage(&damaged, true).unwrap();
    assert_eq!(kept(&salvaged), [1, 2, 4], "{:?}", salvaged.runs);
}
