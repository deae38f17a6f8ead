//! Frames that were made for another file, or for an earlier state of this one: what they claim counts nowhere else.

use std::sync::Arc;

use annals::journal::format::{HEADER_LEN, SLOT_LEN, Slot, hash};
use annals::storage::Directory;
use annals::{BackfillMode, ErrorKind, FieldNumber, Level, Options, Reader, Value};
use annals_simulated::{SimulatedClock, SimulatedDisk};

use crate::claims::{NAME, TABLE, define, early, insert, journal, open, opened};

/// Where the frames begin.
const FRAMES: usize = 16_384;

/// Plants frames in values so that they begin at each offset, and tears the frame around them. `frames` were made for
/// another file, or for an earlier state of this one.
fn plant(frames: &[u8], base: &[u8], what: &str) {
    for offset in 0..64 {
        let (disk, database) = opened(base, 40);
        let database = database.unwrap();
        let known = database.read().txid();
        let start = usize::try_from(database.read().point().position).unwrap();
        let value = [&vec![0xEE; offset], frames].concat();
        insert(&database, &value, Level::Soft);
        let mut bytes = disk.content(NAME).unwrap();
        drop(database);
        assert!(bytes.windows(frames.len()).any(|bytes| bytes == frames), "{what}");
        bytes[start + 4] ^= 1; // the length of the frame around them
        let place = format!("{what}, offset {offset}");
        let (_, database) = opened(&bytes, 41);
        let database = database.unwrap_or_else(|error| panic!("{place}: {error}"));
        assert_eq!(database.read().txid(), known, "{place}");
        assert!(database.recovered().cut.as_ref().unwrap().saved_as.is_some(), "{place}");
    }
}

#[test]
fn frames_of_another_file_or_an_earlier_state_claim_nothing_at_any_offset() {
    let (base, ends) = journal(12);
    plant(&base[FRAMES..ends[12]], &base, "the file's own earlier frames");
    let disk = SimulatedDisk::new(42);
    let other = open(&disk, 42).unwrap();
    define(&other);
    for number in 0..40 {
        insert(&other, &[number; 40], Level::Checksummed);
    }
    let end = usize::try_from(other.read().point().position).unwrap();
    let bytes = disk.content(NAME).unwrap();
    plant(&bytes[FRAMES..end], &base, "another file");
}

/// A file that continues from these bytes: what it has after a transaction, what it has after some more, and where
/// each of those ends.
struct Gone {
    first: Vec<u8>,
    all: Vec<u8>,
    ends: Vec<usize>,
}

/// Opens a file and writes on. Whatever a power cut leaves on the way opens, with all that was durable.
fn go_on(bytes: &[u8], seed: u64, what: &str) -> Gone {
    let (disk, database) = opened(bytes, seed);
    let database = database.unwrap_or_else(|error| panic!("{what}: {error}"));
    let start = database.read().txid();
    let mut gone = Gone { first: Vec::new(), all: Vec::new(), ends: Vec::new() };
    for number in 0..6_u8 {
        insert(&database, &[number; 40], Level::Checksummed);
        let states = disk.crash_states();
        for state in states.every().take(40).chain([states.oldest(), states.all_but_last()]) {
            let opened =
                open(&state, seed + 1000).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(opened.read().txid(), start + 1 + u64::from(number), "{what}");
        }
        gone.all = disk.content(NAME).unwrap();
        if gone.first.is_empty() {
            gone.first.clone_from(&gone.all);
        }
        gone.ends.push(usize::try_from(database.read().point().position).unwrap());
    }
    gone
}

/// A copy is copied with `cp` after one push and after the next. All of them continue by themselves. None of them
/// proves anything to another.
#[test]
fn copies_made_with_cp_before_and_after_pushes_go_on_alone() {
    let disk = SimulatedDisk::new(50);
    let original = open(&disk, 50).unwrap();
    define(&original);
    let directory = || Arc::new(disk.clone()) as Arc<dyn Directory>;
    let clock = Arc::new(SimulatedClock::new(51));
    let mut push =
        annals_tools::push_in(&Options::new(), directory(), NAME, directory(), "copy", clock);
    let mut files = Vec::new();
    for round in 0..3 {
        for number in 0..4 {
            insert(&original, &[16 * round + number; 40], Level::Checksummed);
        }
        original.hard_checkpoint().unwrap();
        push.bring_up().unwrap();
        files.push((format!("copied after push {round}"), disk.content("copy").unwrap()));
    }
    push.close().unwrap();
    files.push(("the copy".to_owned(), disk.content("copy").unwrap()));
    files.push(("copied again".to_owned(), disk.content("copy").unwrap()));
    files.push(("the original".to_owned(), disk.content(NAME).unwrap()));
    let gone: Vec<_> = files
        .iter()
        .zip(60..)
        .map(|((what, bytes), seed)| (what, bytes, go_on(bytes, seed, what)))
        .collect();
    // The same bytes twice, which then went two ways: frames of the one after the head of the other.
    for ((what, bytes, ours), (other, _, theirs)) in gone.iter().zip(&gone[1..]) {
        let is_same = ours.ends[0] == theirs.ends[0];
        if !is_same {
            continue;
        }
        for lost in 0..3 {
            let mut mixed = theirs.all.clone();
            mixed[..FRAMES].copy_from_slice(&ours.first[..FRAMES]);
            // The live block tells of the beginning, as after a power cut.
            mixed[12_288..FRAMES].copy_from_slice(&bytes[12_288..FRAMES]);
            mixed.truncate(theirs.ends[lost + 3]);
            mixed[theirs.ends[lost]..theirs.ends[lost + 1]].fill(0);
            let place = format!("{other} behind the head of {what}, without {lost}");
            let (_, database) = opened(&mixed, 90);
            let database = database.unwrap_or_else(|error| panic!("{place}: {error}"));
            assert!(database.recovered().cut.is_some(), "{place}");
        }
    }
    assert!(gone.windows(2).any(|pair| pair[0].2.ends[0] == pair[1].2.ends[0]));
}

/// Frames of a later state of the file lie in a value, each in the very place that it was made for, and the frame
/// around them is damaged. They verify by themselves there; only the chain tells that they aren't the journal's.
pub(crate) fn planted_for_salvage() {
    let (early, later, _) = early(40);
    let (_, database) = opened(&early, 21);
    let start = usize::try_from(database.unwrap().read().point().position).unwrap();
    let planted = |value: &[u8]| {
        let (disk, database) = opened(&early, 22);
        let database = database.unwrap();
        insert(&database, value, Level::Soft);
        insert(&database, b"genuine", Level::TwoPhase);
        database.close().unwrap();
        disk.content(NAME).unwrap()
    };
    let marker = vec![0xEE; later.len() - start - 200];
    let at = planted(&marker).windows(16).position(|bytes| bytes == [0xEE; 16]).unwrap();
    let mut bytes = planted(&later[at..at + marker.len()]);
    assert!(bytes[at..at + 16] == later[at..at + 16]);
    bytes[start + 4] ^= 1; // the length of the frame around them
    let disk = SimulatedDisk::new(23);
    disk.install(NAME, &bytes).unwrap();
    let to = Arc::new(disk.clone()) as Arc<dyn Directory>;
    let clock = Arc::new(SimulatedClock::new(24));
    let salvaged =
        annals_tools::salvage_in(&Options::new(), &disk, NAME, to, "new", clock).unwrap();
    let reader = Reader::open(&disk, "new").unwrap();
    let snapshot = reader.read();
    let rows = snapshot.table(TABLE).unwrap();
    let values: Vec<_> =
        rows.rows().map(|row| row.unwrap().value(FieldNumber(0)).to_value()).collect();
    assert_eq!(values, [Value::Bytes(b"genuine".to_vec())], "{:?}", salvaged.runs);
}

#[test]
fn frames_planted_in_their_places_are_not_salvaged() {
    planted_for_salvage();
}

/// The older slot tells of another history. Opening begins with the image, which stands for a later point.
pub(crate) fn foreign_slot() {
    let disk = SimulatedDisk::new(25);
    let database = open(&disk, 25).unwrap();
    define(&database);
    for number in 0..5 {
        insert(&database, &[number; 40], Level::TwoPhase);
    }
    database.backfill(BackfillMode::Full).unwrap();
    database.close().unwrap();
    let mut bytes = disk.content(NAME).unwrap();
    let end = annals_tools::inspect_in(&Options::new(), &disk, NAME).unwrap().end.position;
    let header = hash(&bytes[..HEADER_LEN]);
    let mut changed = 0;
    for copy in [4096 + 512, 4096 + 1024, 8192 + 512, 8192 + 1024] {
        let place = copy..copy + SLOT_LEN;
        let mut slot = Slot::decode(&bytes[place.clone()].try_into().unwrap(), header).unwrap();
        if slot.point.position < end {
            slot.point.chain ^= 1;
            bytes[place].copy_from_slice(&slot.encode(header));
            changed += 1;
        }
    }
    assert_eq!(changed, 2, "one slot is older");
    disk.install(NAME, &bytes).unwrap();
    let error = open(&disk, 26).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("histories"), "{error}");
}

#[test]
fn a_slot_of_another_history_is_damage_though_an_image_is_beyond_it() {
    foreign_slot();
}
