//! Commits that verify, but whose events don't apply: the file can be read as of the commit before, is never
//! cut unless asked, and says which event it is.

use std::sync::Arc;
use std::time::Duration;

use annals::journal::format::{
    FLAG_FIRST, FRAME_HEADER_LEN, FRAME_TRAILER_LEN, FRAMES_AT, HEADER_LEN, Header, LIVE_AT,
    LIVE_COPY_AT, hash,
};
use annals::reports::Older;
use annals::storage::{Access, Directory, MemoryDirectory};
use annals::{
    BackfillMode, Database, ErrorKind, Level, Moment, Options, Reader, Recovery, Result, Retention,
    Txid, ValueRef,
};
use annals_simulated::SimulatedClock;
use annals_tools::inspect_in;

use super::crafted::{Draft, Frame, open_all};
use super::journals::{CITY, NAME, content, dump, install, open};

/// A deletion of row 0 of the table 0, which has none.
const NO_ROW: &[u8] = &[0x10, 1, 0x17, 1];
/// An insertion of the string "hi" at row 0 of the table 0.
const ROW: &[u8] = &[0x10, 1, 0x11, 1, 5, b'h', b'i'];

fn commit(payload: &[u8]) -> Frame {
    Frame::commit(payload)
}

/// Opens in every way a journal that holds a commit that doesn't apply, and sees that nothing is written.
#[track_caller]
pub(super) fn stays_before(bytes: &[u8], what: &str, words: &str) -> Database {
    let (directory, database) = open_all(bytes, what).unwrap();
    let unapplied = database.unapplied().unwrap_or_else(|| panic!("{what}: it applies")).clone();
    assert!(unapplied.reason.contains(words), "{what}: {unapplied}");
    assert_eq!(database.read().txid() + 1, unapplied.txid, "{what}");
    database.read().check().unwrap();
    let told = database.recovered().findings.join("\n");
    for word in
        [unapplied.what.as_str(), unapplied.reason.as_str(), "annals recover", "newer version"]
    {
        assert!(told.contains(word), "{what}: {word} isn't in {told}");
    }
    for refused in writes(&database) {
        let error = refused.unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string()),
            (ErrorKind::Unapplied, told.clone()),
            "{what}"
        );
    }
    let reader = Reader::open(&*directory, NAME).unwrap();
    assert_eq!(reader.unapplied(), Some(unapplied.clone()), "{what}");
    assert!(reader.findings().contains(&told), "{what}");
    assert_eq!(dump(&reader.read()), dump(&database.read()), "{what}");
    let error = reader.pull().err().unwrap();
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Unapplied, told), "{what}");
    let examination = annals_tools::examine_in(&Options::new(), &*directory, NAME).unwrap();
    assert_eq!((examination.unapplied, examination.problem), (Some(unapplied), None), "{what}");
    assert_eq!(dump(&examination.snapshot), dump(&database.read()), "{what}");
    assert_eq!(content(&*directory), bytes, "{what}");
    database
}

/// Everything that writes a database.
fn writes(database: &Database) -> Vec<Result<()>> {
    let forget = Retention { bytes: Some(0), ..Retention::default() };
    vec![
        database.begin().map(drop),
        database.write(|tx| tx.comment("more")),
        database.soft_checkpoint().map(drop),
        database.hard_checkpoint().map(drop),
        database.backfill(BackfillMode::Passive).map(drop),
        database.backfill(BackfillMode::Truncate).map(drop),
        database.restart(Older::Forgotten, Duration::ZERO).map(drop),
        database.pack(Duration::ZERO).map(drop),
        database.retain(&forget, Duration::ZERO).map(drop),
        database.forget_before(0).map(drop),
    ]
}

#[test]
fn each_event_that_does_not_apply_is_told_by_number_kind_and_table() {
    let row = |rest: &[u8]| [ROW, rest].concat();
    for (payload, event, what, reason) in [
        (NO_ROW.to_vec(), 1, "a deletion of row 0 of table t", "row 0"),
        (row(&[0x17, 3]), 2, "a deletion of row 1 of table t", "row 1"),
        (row(&[0x13, 5, 1, 1]), 2, "an update of row 2 of table t", "row 2"),
        (row(&[0x12, 1, 0x12, 1, 0x11, 3, 1]), 4, "an insertion of row 1 of table t", "1"),
        (row(&[0x18, 1, 5]), 2, "an insertion of 2 rows from 0 on of table t", "0"),
        (vec![0x10, 17, 0x17, 1], 1, "a deletion in table number 8 (kind 0x17)", "table"),
        (row(&[0x13, 1, 7, 1]), 2, "an update in table t (kind 0x13)", "field"),
        (row(&[0xC0, 1]), 2, "of the unknown kind 0xc0", "newer version"),
        (vec![0x20, 3, b'c', 0x7F], 2, "of the unknown kind 0x7f", "unknown"),
        (vec![0x01, 3, b't'], 1, "a command of the schema (kind 0x01)", "t"),
        // Two rows of one key, and then a unique index.
        (
            row(&[0x12, 5, b'h', b'i', 0x03, 3, b'i', 1, 1, 3, 1, 0]),
            3,
            "the command `create_unique_index i t s`",
            "hi",
        ),
    ] {
        let draft = Draft::new().with(&commit(&payload));
        let database = stays_before(&draft.bytes, what, reason);
        let unapplied = database.unapplied().unwrap();
        assert_eq!((unapplied.event, unapplied.what.as_str()), (event, what));
        assert_eq!(unapplied.txid, annals::Txid(2));
    }
}

#[test]
fn commits_after_one_that_does_not_apply_are_not_shown() {
    let draft = Draft::new().with(&commit(ROW)).with(&commit(&[0x10, 1, 0x17, 3]));
    let draft = draft.with(&commit(&[0x10, 1, 0x17, 1])).with(&commit(NO_ROW));
    let database = stays_before(&draft.bytes, "two of them", "row 1");
    assert_eq!(database.read().table(CITY).unwrap().len(), 1);
    assert_eq!(database.at(Moment::Txid(annals::Txid(1))).unwrap().table(CITY).unwrap().len(), 0);
    assert!(database.at(Moment::Txid(annals::Txid(3))).is_err());
    let changes: Vec<_> = database.changes(Txid(2)..).unwrap().collect::<Result<_>>().unwrap();
    assert_eq!(changes.len(), 1);
    database.close().unwrap();
}

#[test]
fn the_event_is_found_in_any_frame_of_its_transaction() {
    let part = |payload: &[u8]| Frame { kind: 1, flags: 0, ..commit(payload) };
    let draft = Draft::new()
        .with(&Frame { flags: FLAG_FIRST, ..part(ROW) })
        .with(&part(&[0x10, 1, 0x11, 3, 1]));
    let start = draft.bytes.len() as u64;
    let draft = draft
        .with(&part(&[0x10, 1, 0x11, 5, 1, 0x17, 9]))
        .with(&Frame { flags: 0, ..commit(&[0x10, 1, 0x11, 7, 1]) });
    let database = stays_before(&draft.bytes, "the third frame", "row 4");
    let unapplied = database.unapplied().unwrap();
    assert_eq!((unapplied.event, unapplied.position), (4, start));
    assert_eq!(database.read().table(CITY).unwrap().len(), 0);
}

#[test]
fn events_without_a_commit_are_a_tail_whether_they_apply_or_not() {
    let draft = Draft::new().with(&commit(ROW)).with(&Frame { kind: 1, ..commit(NO_ROW) });
    let draft = draft.with(&Frame { kind: 1, flags: 0, ..commit(&[0x10, 1, 0x17, 9]) });
    let (_, database) = open_all(&draft.bytes, "no commit").unwrap();
    assert_eq!((database.unapplied(), database.read().txid().0), (None, 2));
    assert_eq!(database.recovered().cut.as_ref().unwrap().uncommitted_frames, 2);
    database.write(|tx| tx.comment("more")).unwrap();
}

#[test]
fn a_commit_that_does_not_apply_is_cut_only_on_request() {
    cut_only_on_request();
}

/// A commit that doesn't apply is never cut, unless the user goes back to what is known to have been flushed.
pub(crate) fn cut_only_on_request() {
    let draft = Draft::new();
    let end = draft.bytes.len() as u64;
    let draft = draft.with(&Frame { durable: end, ..commit(ROW) });
    let end = draft.bytes.len() as u64;
    let draft = draft.with(&commit(&[0x10, 1, 0x17, 19]));
    for recovery in [Recovery::Checked, Recovery::ToEnd, Recovery::Refuse] {
        let directory = install(&draft.bytes);
        let database = open(&directory, recovery, 3).unwrap();
        assert_eq!(database.unapplied().map(|unapplied| unapplied.is_hard), Some(false));
        let told = database.recovered().findings.join("\n");
        assert!(told.contains("--to hard"), "{told}");
        database.close().unwrap();
        assert_eq!(content(&*directory), draft.bytes);
    }
    let directory = install(&draft.bytes);
    let database = open(&directory, Recovery::ToHard, 3).unwrap();
    assert_eq!((database.unapplied(), database.read().txid().0), (None, 1));
    assert!(database.recovered().cut.as_ref().unwrap().saved_as.is_some());
    database.write(|tx| tx.comment("more")).unwrap();
    drop(database);

    // What is known to have been flushed is never cut; a new file leaves it out.
    let draft = draft.with(&commit(ROW));
    let hard = draft.bytes.len() as u64;
    let draft = draft.with(&Frame { durable: hard, ..commit(&[0x20, 1]) });
    let directory = install(&draft.bytes);
    assert!(end < hard);
    let database = open(&directory, Recovery::ToHard, 3).unwrap();
    assert_eq!(
        database.unapplied().map(|unapplied| (unapplied.txid.0, unapplied.is_hard)),
        Some((3, true))
    );
    let told = database.recovered().findings.join("\n");
    assert!(told.contains("--salvage") && !told.contains("--to hard"), "{told}");
    drop(database);
    let clock = Arc::new(SimulatedClock::new(1));
    let to = Arc::clone(&directory) as _;
    annals_tools::salvage_in(&Options::new(), &*directory, NAME, to, "new", clock).unwrap();
    let reader = Reader::open(&*directory, "new").unwrap();
    assert_eq!((reader.unapplied(), reader.read().table(CITY).unwrap().len()), (None, 1));
}

/// A tail after a commit that doesn't apply stays, and `Refuse` refuses it.
#[test]
fn a_tail_after_a_commit_that_does_not_apply_stays() {
    let mut draft = Draft::new().with(&commit(NO_ROW));
    draft.bytes.extend([7; 100]);
    let directory = install(&draft.bytes);
    let database = open(&directory, Recovery::Checked, 3).unwrap();
    assert_eq!(database.unapplied().map(|unapplied| unapplied.txid.0), Some(2));
    database.close().unwrap();
    assert_eq!(content(&*directory), draft.bytes);
    let refused = open(&directory, Recovery::Refuse, 3).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NeedsRecovery);
}

/// Adds a commit to a journal that the library wrote and closed.
fn added(directory: &Arc<MemoryDirectory>, payload: &[u8]) {
    let bytes = content(&**directory);
    let end = inspect_in(&Options::new(), &**directory, NAME).unwrap().end;
    let mut draft = Draft {
        segment: hash(&bytes[..HEADER_LEN]),
        bytes: bytes[..usize::try_from(end.position).unwrap()].to_vec(),
        chain: end.chain,
        txid: end.txid.0,
    };
    draft.add(&Frame { durable: FRAMES_AT, ..commit(payload) });
    let added = draft.bytes.split_off(usize::try_from(end.position).unwrap());
    let storage = directory.open(NAME, Access::Write).unwrap();
    storage.write_at(end.position, &added).unwrap();
}

/// Lets the live block tell that all up to a transaction is acknowledged.
fn told(directory: &MemoryDirectory, txid: u64) {
    let storage = directory.open(NAME, Access::Write).unwrap();
    let mut live = inspect_in(&Options::new(), directory, NAME).unwrap().head.live.unwrap();
    live.soft = inspect_in(&Options::new(), directory, NAME).unwrap().end;
    assert_eq!(live.soft.txid, annals::Txid(txid));
    for copy in LIVE_COPY_AT {
        storage.write_at(LIVE_AT + copy, &live.encode()).unwrap();
    }
}

fn written(shared: bool) -> (Arc<MemoryDirectory>, Database) {
    let directory = install(&Draft::new().bytes);
    let database = opened(&directory, shared);
    for name in ["Lille", "Oulu"] {
        database.write(|tx| tx.insert(CITY, &[ValueRef::String(name)])).unwrap();
    }
    (directory, database)
}

fn opened(directory: &Arc<MemoryDirectory>, shared: bool) -> Database {
    let options = Options::new().background(false).level(Level::TwoPhase).shared(shared);
    options.open_in(Arc::clone(directory) as _, NAME, Arc::new(SimulatedClock::new(5))).unwrap()
}

#[test]
fn a_commit_that_does_not_apply_after_the_image_is_judged_without_it() {
    let (directory, database) = written(false);
    database.backfill(BackfillMode::Full).unwrap();
    database.write(|tx| tx.insert(CITY, &[ValueRef::String("Wien")])).unwrap();
    database.close().unwrap();
    added(&directory, &[0x10, 1, 0x17, 19]);
    let names = names(&directory);
    let (before, database) = (content(&*directory), opened(&directory, false));
    assert_eq!(database.unapplied().map(|unapplied| unapplied.txid.0), Some(5));
    assert_eq!(database.read().table(CITY).unwrap().len(), 3);
    for refused in writes(&database) {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unapplied);
    }
    let reader = Reader::open(&*directory, NAME).unwrap();
    assert_eq!(dump(&reader.read()), dump(&database.read()));
    let hard = Options::new().hard_only(true).open_read_only_in(&*directory, NAME).unwrap();
    assert_eq!((hard.read().txid().0, hard.unapplied()), (4, None));
    drop((reader, hard));
    database.close().unwrap();
    assert_eq!((self::names(&directory), content(&*directory)), (names, before));
    let options = Options::new().background(false).recovery(Recovery::ToHard);
    let clock = Arc::new(SimulatedClock::new(6));
    let database = options.open_in(Arc::clone(&directory) as _, NAME, clock).unwrap();
    assert_eq!((database.unapplied(), database.read().table(CITY).unwrap().len()), (None, 3));
}

fn names(directory: &Arc<MemoryDirectory>) -> Vec<String> {
    let mut names = directory.list().unwrap();
    names.sort();
    names
}

#[test]
fn a_follower_stays_before_a_commit_that_does_not_apply() {
    for shared in [false, true] {
        let (directory, database) = written(shared);
        database.hard_checkpoint().unwrap();
        let reader = Reader::open(&*directory, NAME).unwrap();
        let mut changes = reader.subscribe();
        let follower = shared.then(|| opened(&directory, true));
        added(&directory, &[0x10, 1, 0x11, 5, 1]);
        added(&directory, &[0x10, 1, 0x17, 19]);
        added(&directory, &[0x10, 1, 0x17, 1]);
        for _ in 0..2 {
            let error = reader.pull().err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Unapplied, "{error}");
            let unapplied = reader.unapplied().unwrap();
            assert_eq!((unapplied.txid.0, reader.read().txid().0), (5, 4));
            assert_eq!(reader.read().table(CITY).unwrap().len(), 3);
        }
        // The live block tells that the new ones are acknowledged.
        told(&directory, 6);
        assert_eq!(changes.try_next().unwrap().map(|changed| changed.txid.0), Some(4));
        let error = changes.try_next().unwrap_err();
        assert_eq!((error.kind(), changes.is_over()), (ErrorKind::Unapplied, true), "{error}");
        let Some(follower) = follower else { continue };
        let error = follower.pull().err().unwrap();
        assert!(error.to_string().contains("a deletion of row 9 of table t"), "{error}");
        assert_eq!((follower.read().txid().0, follower.unapplied().unwrap().txid.0), (4, 5));
        // The other one finds it when it begins a transaction.
        for database in [&follower, &database] {
            for refused in writes(database) {
                let error = refused.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Unapplied, "{error}");
            }
            assert_eq!(database.read().table(CITY).unwrap().len(), 3);
        }
        let before = content(&*directory);
        let third = opened(&directory, true);
        assert_eq!(third.unapplied().map(|unapplied| unapplied.txid.0), Some(5));
        for database in [third, follower, database] {
            database.close().unwrap();
        }
        assert_eq!(content(&*directory), before);
    }
}

#[test]
fn a_file_with_a_commit_that_does_not_apply_is_not_merged_and_can_be_copied() {
    let directory = install(&Draft::new().with(&commit(NO_ROW)).bytes);
    let clock = || Arc::new(SimulatedClock::new(1));
    let to = || Arc::clone(&directory) as Arc<dyn Directory>;
    let from: [(&dyn Directory, &str); 1] = [(&*directory, NAME)];
    let merged = annals_tools::merge_in(
        &Options::new(),
        &from,
        to(),
        "merged",
        clock(),
        annals_tools::OnConflict::Refuse,
    );
    let error = merged.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unapplied, "{error}");
    assert!(error.to_string().contains("nothing was written"), "{error}");
    // A copy has the same bytes, so the same commit.
    annals_tools::backup_in(&Options::new(), to(), NAME, to(), "copy", clock()).unwrap();
}

/// Reads the payload of the seal, which is the last frame.
fn seal_of(bytes: &[u8]) -> Vec<u8> {
    let mut at = usize::try_from(FRAMES_AT).unwrap();
    loop {
        let [a, b, c] = bytes[at + 4..at + 7].try_into().unwrap();
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        let payload = at + FRAME_HEADER_LEN..at + FRAME_HEADER_LEN + length;
        if bytes[at + 2] == 3 {
            return bytes[payload].to_vec();
        }
        at = payload.end.next_multiple_of(8) + FRAME_TRAILER_LEN;
    }
}

fn bytes_of(directory: &MemoryDirectory, name: &str) -> Vec<u8> {
    let storage = directory.open(name, Access::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(storage.len().unwrap()).unwrap()];
    storage.read_at(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_commit_that_does_not_apply_in_a_kept_segment_is_named() {
    let (directory, database) = written(false);
    database.restart(Older::Kept, Duration::ZERO).unwrap();
    database.close().unwrap();
    let kept = format!("{NAME}-segment-000000");
    let seal = seal_of(&bytes_of(&directory, &kept));
    let first = bytes_of(&directory, NAME)[..HEADER_LEN].try_into().unwrap();
    let next = Header::decode(&first).unwrap();
    // The same history, but for the third transaction.
    let before = Draft::new().with(&commit(ROW)).with(&commit(&[0x10, 1, 0x17, 19]));
    let before = before.with(&Frame { kind: 3, level: 0, ..commit(&seal) });
    let after =
        Draft::with_header(|header| *header = Header { previous_chain: before.chain, ..next });
    let after = after.with(&commit(&[0x10, 1, 0x11, 7, 1]));
    let made = Arc::new(MemoryDirectory::new());
    for (name, bytes) in [(kept.as_str(), &before.bytes), (NAME, &after.bytes)] {
        made.create(name).unwrap().write_at(0, bytes).unwrap();
    }
    let words =
        "segment 0: transaction 3 verifies, but its event 1, a deletion of row 9 of table t";
    for error in [
        open(&made, Recovery::Checked, 3).map(drop).unwrap_err(),
        open(&made, Recovery::ToHard, 3).map(drop).unwrap_err(),
        Reader::open(&*made, NAME).map(drop).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Unapplied, "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.to_string().contains("--salvage"), "{error}");
    }
    let examination = annals_tools::examine_in(&Options::new(), &*made, NAME).unwrap();
    assert_eq!(examination.unapplied.map(|unapplied| unapplied.txid.0), Some(3));
    assert!(examination.problem.unwrap().contains(words));
    let clock = Arc::new(SimulatedClock::new(1));
    annals_tools::salvage_in(&Options::new(), &*made, NAME, Arc::clone(&made) as _, "new", clock)
        .unwrap();
    let reader = Reader::open(&*made, "new").unwrap();
    assert_eq!(reader.read().table(CITY).unwrap().len(), 2);
    assert_eq!((bytes_of(&made, &kept), bytes_of(&made, NAME)), (before.bytes, after.bytes));
}

/// The file that the program's transcript `unapplied.txt` is about. `UPDATE=1` writes it.
#[test]
fn the_program_is_tried_on_a_file_like_this() {
    let lille = [0x10, 1, 0x11, 1, 11, b'L', b'i', b'l', b'l', b'e'];
    let oulu = [0x10, 1, 0x11, 3, 9, b'O', b'u', b'l', b'u', 0x17, 19];
    let draft = Draft::new().with(&commit(&lille));
    let durable = draft.bytes.len() as u64;
    let draft = draft.with(&Frame { durable, ..commit(&oulu) });
    let draft = draft.with(&Frame { durable, ..commit(&[0x10, 1, 0x17, 1]) });
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../annals-cli/tests/it/files/unapplied.annals");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &draft.bytes).unwrap();
    }
    assert!(std::fs::read(path).unwrap() == draft.bytes, "run with UPDATE=1 to write it");
}

/// Replay doesn't look for them, since the writer did; a check does.
#[test]
fn two_rows_with_one_key_are_found_by_a_check_alone() {
    let index = [0x03, 3, b'i', 1, 1, 3, 1, 0];
    let draft = Draft::new().with(&commit(&index));
    let rows = [ROW, &[0x12, 5, b'h', b'i']].concat();
    let (_, database) = open_all(&draft.with(&commit(&rows)).bytes, "two rows").unwrap();
    assert_eq!((database.unapplied(), database.read().table(CITY).unwrap().len()), (None, 2));
    assert_eq!(database.read().check().unwrap_err().kind(), ErrorKind::Unique);
}
