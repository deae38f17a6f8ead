//! What a frame claims counts only in the file that it was made for, and no bytes can be chosen that hash
//! like others.

use std::sync::Arc;

use annals::journal::format::{FRAME_HEADER_LEN, FRAMES_AT, Live, hash};
use annals::storage::{Directory, MemoryDirectory};
use annals::{Command, Database, ErrorKind, Level, Options, Recovery, TableNumber, Type, ValueRef};
use annals_simulated::{SimulatedClock, SimulatedDisk};
use annals_tools::{inspect_in, scan_in};

pub(crate) const NAME: &str = "journal";
pub(crate) const TABLE: TableNumber = TableNumber(0);

/// Opens a file with these bytes, with randomness of a seed.
pub(crate) fn opened(bytes: &[u8], seed: u64) -> (SimulatedDisk, annals::Result<Database>) {
    let disk = SimulatedDisk::new(seed);
    disk.install(NAME, bytes).unwrap();
    let database = open(&disk, seed);
    (disk, database)
}

pub(crate) fn open(disk: &SimulatedDisk, seed: u64) -> annals::Result<Database> {
    let options = Options::new().background(false).recovery(Recovery::Checked);
    options.open_in(Arc::new(disk.clone()), NAME, Arc::new(SimulatedClock::new(seed)))
}

pub(crate) fn define(database: &Database) {
    let field = Command::AddField {
        table: TABLE,
        name: "v".to_owned(),
        ty: Type::Bytes,
        nullable: false,
        default: None,
    };
    database
        .write(|tx| {
            tx.apply_command(&Command::CreateTable { name: "t".to_owned() })?;
            tx.apply_command(&field)
        })
        .unwrap();
}

pub(crate) fn insert(database: &Database, value: &[u8], level: Level) {
    let inserted = database.write(|tx| {
        tx.set_level(level);
        tx.insert(TABLE, &[ValueRef::Bytes(value)])
    });
    inserted.unwrap();
}

/// Returns a journal of so many small commits, and where each of them ends.
pub(crate) fn journal(commits: usize) -> (Vec<u8>, Vec<usize>) {
    let disk = SimulatedDisk::new(1);
    let database = open(&disk, 1).unwrap();
    define(&database);
    let mut ends = vec![usize::try_from(database.read().point().position).unwrap()];
    for number in 0..commits {
        insert(&database, &[u8::try_from(number % 250).unwrap(); 40], Level::Checksummed);
        ends.push(usize::try_from(database.read().point().position).unwrap());
    }
    database.close().unwrap();
    (disk.content(NAME).unwrap(), ends)
}

/// Returns the file as it was closed after one of its commits, and as it continues from there.
pub(crate) fn early(commits: usize) -> (Vec<u8>, Vec<u8>, Vec<usize>) {
    let disk = SimulatedDisk::new(1);
    let database = open(&disk, 1).unwrap();
    define(&database);
    database.close().unwrap();
    let early = disk.content(NAME).unwrap();
    let database = open(&disk, 2).unwrap();
    let mut ends = vec![early.len()];
    for number in 0..commits {
        insert(&database, &[u8::try_from(number % 250).unwrap(); 40], Level::Checksummed);
        ends.push(usize::try_from(database.read().point().position).unwrap());
    }
    let later = disk.content(NAME).unwrap();
    (early, later, ends)
}

/// A copy of a file gets frames that the original made later, three of them with one flush, of which the
/// first is lost: they claim that the *original* was flushed.
pub(crate) fn lost_first_of_three() {
    let (early, later, ends) = early(6);
    // What the other one was given before: so that its slots are of an opening of its own.
    let (disk, database) = opened(&early, 7);
    let database = database.unwrap();
    database.write(|tx| tx.comment("one")).unwrap();
    std::mem::forget(database);
    let head = disk.content(NAME).unwrap()[..usize::try_from(FRAMES_AT).unwrap()].to_vec();
    for lost in 0..4 {
        let mut bytes = later.clone();
        bytes[..head.len()].copy_from_slice(&head);
        bytes.truncate(ends[lost + 3]);
        bytes[ends[lost]..ends[lost + 1]].fill(0);
        // Slots and live block tell of the beginning only.
        restore_live(&mut bytes, &early);
        let (_, database) = opened(&bytes, 9);
        let database = database.unwrap_or_else(|error| panic!("{lost}: {error}"));
        assert_eq!(database.read().txid(), annals::Txid(1 + lost as u64));
        assert!(database.recovered().cut.as_ref().unwrap().saved_as.is_some());
    }
}

/// Lets the live block be that of another file.
fn restore_live(bytes: &mut [u8], from: &[u8]) {
    bytes[12288..16384].copy_from_slice(&from[12288..16384]);
}

#[test]
fn a_copy_that_loses_the_first_of_three_foreign_frames_opens() {
    lost_first_of_three();
}

/// Frames of a later state of the same journal are planted in a value of an earlier one, each in the very
/// place that it was made for. The frame around them is torn.
pub(crate) fn planted_in_their_places() {
    let (early, later, _) = early(40);
    for shift in 0..8 {
        let (disk, database) = opened(&early, 11 + shift as u64);
        let database = database.unwrap();
        insert(&database, &vec![1; 8 * shift], Level::Soft);
        let start = usize::try_from(database.read().point().position).unwrap();
        // The value begins somewhere after the header; what lands in each place is what was there.
        let find = |value: &[u8]| {
            let (disk, database) = opened(&disk.content(NAME).unwrap(), 99);
            insert(&database.unwrap(), value, Level::Soft);
            let bytes = disk.content(NAME).unwrap();
            bytes.windows(16).position(|bytes| *bytes == value[..16]).unwrap()
        };
        let marker = vec![0xEE; later.len() - start - 200];
        let at = find(&marker);
        let value = &later[at..at + marker.len()];
        insert(&database, value, Level::Soft);
        let mut bytes = disk.content(NAME).unwrap();
        drop(database);
        assert_eq!(bytes[at..at + 16], value[..16]);
        bytes[start + 4] ^= 1; // the length of the frame around them
        let (_, database) = opened(&bytes, 12);
        let database = database.unwrap_or_else(|error| panic!("shift {shift}: {error}"));
        assert_eq!(database.read().txid(), annals::Txid(2));
        assert!(database.recovered().cut.is_some());
    }
}

#[test]
fn frames_that_are_planted_in_a_value_claim_nothing() {
    planted_in_their_places();
}

/// The secret with which XXH3 hashes long inputs without a seed.
const XXH3_SECRET: &str = "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221\
    b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8\
    a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb\
    170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e";

/// Returns five words that contribute to the hash, in one lane of the first five stripes of a block, what
/// five zeros do: a stripe adds `low(key) * high(key)` to its lane and the word to the lane beside it, the
/// key being the word with bits of the secret turned.
fn colliding(lane: usize, first_stripe: usize) -> [u64; 5] {
    let byte = |at: usize| u8::from_str_radix(&XXH3_SECRET[2 * at..2 * at + 2], 16).unwrap();
    let secret = |stripe: usize| {
        let at = 8 * stripe + 8 * lane;
        u64::from_le_bytes(std::array::from_fn(|place| byte(at + place)))
    };
    let keys: [u64; 5] = std::array::from_fn(|number| secret(first_stripe + number));
    let product = |key: u64| (key & 0xFFFF_FFFF).wrapping_mul(key >> 32);
    let wanted = keys.iter().fold(0_u64, |sum, key| sum.wrapping_add(product(*key)));
    for tried in 1_u64.. {
        let third = tried.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let rest = wanted.wrapping_sub(product(third));
        if rest >> 63 != 0 {
            continue;
        }
        // 2^31 times the one's upper half, and once the other's.
        let fourth = (rest >> 31) << 32 | 1 << 31;
        let fifth = (rest & 0x7FFF_FFFF) << 32 | 1;
        let [s1, s2, ..] = keys;
        let words = [third ^ keys[2], fourth ^ keys[3], fifth ^ keys[4]];
        let sum = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(*word));
        let left = 0_u64.wrapping_sub(sum);
        // The first has a key whose lower half is 0, the second one whose upper half is: no product.
        let low = (left & 0xFFFF_FFFF).wrapping_sub(s1 & 0xFFFF_FFFF) & 0xFFFF_FFFF;
        let second = s2 & !0xFFFF_FFFF | low;
        let high = left.wrapping_sub(second) >> 32;
        let first = high << 32 | s1 & 0xFFFF_FFFF;
        assert_eq!(first.wrapping_add(second), left);
        return [first, second, words[0], words[1], words[2]];
    }
    unreachable!("a number is found at once")
}

#[test]
fn the_words_collide_with_zeros_where_the_seed_is_known() {
    for (block, lane, stripe) in [(0, 0, 0), (0, 3, 8), (1, 7, 9)] {
        for prefix in 0..50 {
            let mut bytes = vec![prefix; 4096];
            bytes[1024 * block..1024 * (block + 1)].fill(0);
            let zeros = hash(&bytes);
            for (number, word) in colliding(lane, stripe).into_iter().enumerate() {
                let at = 1024 * block + 64 * (stripe + number) + 8 * lane;
                bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
            assert_eq!(hash(&bytes), zeros);
        }
    }
}

/// A value is chosen so that the commit hashes the same without one of its sectors. That sector doesn't
/// reach the disk.
pub(crate) fn torn_where_it_collides() {
    let (bytes, _) = journal(0);
    let (disk, database) = opened(&bytes, 3);
    let database = database.unwrap();
    let start = usize::try_from(database.read().point().position).unwrap();
    // Blocks of the hash begin where the frame does; the first stripes of the third one.
    let mut value = vec![0; 8000];
    let find = |value: &[u8]| {
        let (disk, database) = opened(&bytes, 99);
        let mut marked = value.to_vec();
        marked[..16].fill(0xEE);
        insert(&database.unwrap(), &marked, Level::Soft);
        let bytes = disk.content(NAME).unwrap();
        bytes.windows(16).position(|bytes| bytes == [0xEE; 16]).unwrap()
    };
    let at = find(&value);
    assert!(at > start + FRAME_HEADER_LEN);
    // A run of five stripes within one sector of the file.
    let (block, stripe) = (2..7)
        .flat_map(|block| (0..11).map(move |stripe| (block, stripe)))
        .find(|(block, stripe)| {
            let first = start + 1024 * block + 64 * stripe;
            first / 512 == (first + 5 * 64 - 1) / 512
        })
        .unwrap();
    for (number, word) in colliding(1, stripe).into_iter().enumerate() {
        let place = start + 1024 * block + 64 * (stripe + number) + 8 - at;
        value[place..place + 8].copy_from_slice(&word.to_le_bytes());
    }
    insert(&database, &value, Level::Soft);
    let mut bytes = disk.content(NAME).unwrap();
    drop(database);
    let sector = (start + 1024 * block + 64 * stripe) / 512 * 512;
    assert!(bytes[sector..sector + 512].iter().any(|&byte| byte != 0));
    bytes[sector..sector + 512].fill(0);
    let (_, database) = opened(&bytes, 5);
    let database = database.unwrap();
    assert_eq!(database.read().txid(), annals::Txid(1), "a state is shown that never was");
}

#[test]
fn a_torn_commit_never_verifies_whatever_its_value() {
    torn_where_it_collides();
}

/// Flips each bit of the head that says anything, and some of the others.
pub(crate) fn head_flipped() {
    let is_full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    for level in Level::ALL {
        for is_closed in [true, false] {
            let disk = SimulatedDisk::new(4);
            let database = open(&disk, 4).unwrap();
            define(&database);
            insert(&database, b"first", Level::TwoPhase);
            insert(&database, b"last", level);
            if is_closed {
                database.close().unwrap();
            } else {
                std::mem::forget(database);
            }
            let bytes = disk.content(NAME).unwrap();
            for bit in 0..8 * usize::try_from(FRAMES_AT).unwrap() {
                let says = bytes[bit / 8] != 0 || (bit / 8) % 512 < 96;
                if !(is_full || says && bit % 8 == (bit / 8) % 8) {
                    continue;
                }
                let mut bytes = bytes.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let memory = MemoryDirectory::new();
                memory.create(NAME).unwrap().write_at(0, &bytes).unwrap();
                let place = format!("{level:?}, closed {is_closed}, bit {bit}");
                let options = Options::new().background(false);
                let clock = Arc::new(SimulatedClock::new(8));
                match options.open_in(Arc::new(memory), NAME, clock) {
                    Ok(database) => assert_eq!(database.read().txid(), annals::Txid(3), "{place}"),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{place}: {error}"),
                }
            }
        }
    }
}

#[test]
fn a_flipped_bit_of_the_head_costs_no_row() {
    head_flipped();
}

/// The live block tells of more than the frames have: soft, that is what a power cut leaves; hard, it is
/// damage.
pub(crate) fn live_ahead() {
    let (bytes, ends) = journal(3);
    let mut live = Live::decode(bytes[12288..12352].try_into().unwrap()).unwrap();
    let mut shorter = bytes.clone();
    shorter.truncate(ends[2]);
    // The slots tell of the beginning.
    let (early, ..) = journal(0);
    shorter[4096..12288].copy_from_slice(&early[4096..12288]);
    let mut opens = |live: &Live| {
        for copy in [12288, 12800] {
            shorter[copy..copy + 64].copy_from_slice(&live.encode());
        }
        opened(&shorter, 6).1.map(|database| database.read().txid())
    };
    live.hard = ends[2] as u64;
    assert_eq!(opens(&live).unwrap(), annals::Txid(3));
    live.hard = ends[3] as u64;
    assert_eq!(opens(&live).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn a_live_block_that_tells_of_more_flushed_frames_is_a_witness() {
    live_ahead();
}

#[test]
fn a_wrong_stored_chain_is_repaired() {
    wrong_chain();
}

/// Flips the stored chain of the last frame, and of one before it.
pub(crate) fn wrong_chain() {
    let (bytes, ends) = journal(5);
    for end in [ends[5], ends[2]] {
        let mut bytes = bytes.clone();
        bytes[end - 3] ^= 4;
        let (disk, database) = opened(&bytes, 13);
        assert_eq!(
            inspect_in(&Options::new(), &disk, NAME).unwrap().end.txid,
            annals::Txid(6),
            "{end}"
        );
        let database = database.unwrap();
        assert_eq!(database.read().txid(), annals::Txid(6), "{end}");
        database.close().unwrap();
        let inspection = inspect_in(&Options::new(), &disk, NAME).unwrap();
        assert_eq!((inspection.wrong_chain(), inspection.is_closed()), (None, true));
        scan_in(&Options::new(), &disk, NAME, &mut Nothing).unwrap();
    }
}

#[test]
fn every_wrong_stored_chain_is_repaired() {
    let (mut bytes, ends) = journal(5);
    for end in [ends[1], ends[3]] {
        bytes[end - 3] ^= 4;
    }
    let (disk, database) = opened(&bytes, 13);
    scan_in(&Options::new(), &disk, NAME, &mut Nothing).unwrap();
    let database = database.unwrap();
    assert_eq!(database.read().txid(), annals::Txid(6));
    database.close().unwrap();
    let inspection = inspect_in(&Options::new(), &disk, NAME).unwrap();
    assert_eq!((inspection.wrong_chain(), inspection.is_closed()), (None, true));
}

/// Takes a history, and looks at nothing.
struct Nothing;

impl annals::Sink for Nothing {
    fn event(&mut self, _: &annals::Schema, _: &annals::event::Event<'_>) -> annals::Result<()> {
        Ok(())
    }
    fn commit(&mut self, _: &annals::Schema, _: &annals::Committed) -> annals::Result<()> {
        Ok(())
    }
}

/// One copy of a slot is left that tells of the last commit, and that commit is damaged.
pub(crate) fn one_copy_is_enough() {
    let (bytes, ends) = journal(3);
    for kept in [4096 + 512, 4096 + 1024, 8192 + 512, 8192 + 1024] {
        let position = u64::from_le_bytes(bytes[kept + 8..kept + 16].try_into().unwrap());
        if position < ends[3] as u64 {
            continue;
        }
        let mut bytes = bytes.clone();
        for copy in [4096 + 512, 4096 + 1024, 8192 + 512, 8192 + 1024] {
            if copy != kept {
                bytes[copy + 20] ^= 1;
            }
        }
        bytes[12288..16384].fill(0);
        assert_eq!(opened(&bytes, 14).1.unwrap().read().txid(), annals::Txid(4));
        bytes[ends[2]..].fill(0);
        let error = opened(&bytes, 14).1.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}

#[test]
fn one_copy_of_one_slot_is_a_witness() {
    one_copy_is_enough();
}

/// Whatever a power cut leaves after a two-phase commit, a slot tells of it.
pub(crate) fn two_phase_is_known() {
    let disk = SimulatedDisk::new(15);
    let database = open(&disk, 15).unwrap();
    define(&database);
    for _ in 0..4 {
        insert(&database, b"known", Level::TwoPhase);
        let end = database.read().point().position;
        for state in disk.crash_states().every().take(500) {
            let slots = inspect_in(&Options::new(), &state, NAME).unwrap().head.slots;
            let newest = slots.iter().flatten().flatten().map(|slot| slot.point.position).max();
            assert_eq!(newest, Some(end));
        }
    }
}

#[test]
fn a_two_phase_commit_is_known_to_be_durable() {
    two_phase_is_known();
}

/// Counts the writes of slots, each of which must have a flush between it and one of the other slot.
pub(crate) fn slots_take_turns() {
    let disk = SimulatedDisk::new(16);
    let database = open(&disk, 16).unwrap();
    define(&database);
    for level in Level::ALL.iter().cycle().take(20) {
        insert(&database, b"turn", *level);
        if *level == Level::Soft {
            database.hard_checkpoint().unwrap();
            database.rest().unwrap();
        }
    }
    std::mem::forget(database);
    disk.crash();
    let newest = disk.crash_states().newest();
    let recovered = open(&newest, 17).unwrap();
    insert(&recovered, b"more", Level::TwoPhase);
    recovered.close().unwrap();
    for transcript in [disk.transcript(), newest.transcript()] {
        let (mut last, mut writes) = (None, 0);
        for line in transcript.lines() {
            match line {
                "flush journal" => last = None,
                _ if line.starts_with("write journal 4608..") => {
                    assert_ne!(last.replace(0), Some(1), "{transcript}");
                    writes += 1;
                }
                _ if line.starts_with("write journal 8704..") => {
                    assert_ne!(last.replace(1), Some(0), "{transcript}");
                    writes += 1;
                }
                _ => {}
            }
        }
        assert!(writes > 2, "{transcript}");
    }
}

#[test]
fn a_flush_lies_between_the_two_slots() {
    slots_take_turns();
}
