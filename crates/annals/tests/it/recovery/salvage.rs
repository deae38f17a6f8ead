//! Salvage: what it keeps of a damaged journal is what a model says, which knows only which frames were
//! touched.

use std::collections::BTreeMap;
use std::sync::Arc;

use annals::model::OnDelete;
use annals::{
    Command, Committed, Database, ErrorKind, FieldNumber, Level, Options, Recovery, RowId,
    Timestamp, Type, ValueRef,
};
use annals_simulated::{Rng, SimulatedClock, SimulatedDisk};
use annals_tools::{Fate, Salvaged};

use super::{NAME, TABLE, TEXT, define, ends, install, open};

const NEW: &str = "salvaged";
const BLOB: FieldNumber = FieldNumber(1);

pub(super) fn salvage(bytes: &[u8]) -> annals::Result<(SimulatedDisk, Salvaged)> {
    let (from, to) = (install(bytes), SimulatedDisk::new(4));
    let clock = Arc::new(SimulatedClock::new(11));
    // What is proven is looked at elsewhere (`segments/salvage.rs`).
    let options = Options::new().unproven(true);
    let done = annals_tools::salvage_in(&options, &from, NAME, Arc::new(to.clone()), NEW, clock);
    assert_eq!(from.transcript(), "", "the old file is not touched");
    let left = annals::storage::Directory::list(&to).unwrap();
    assert!(left.iter().all(|name| name == NEW), "{left:?}");
    done.map(|salvaged| (to, salvaged))
}

/// Opens what was written, which must be a journal that was closed properly.
fn reopened(disk: &SimulatedDisk) -> Database {
    assert!(annals_tools::inspect_in(&Options::new(), disk, NEW).unwrap().is_closed());
    let clock = Arc::new(SimulatedClock::new(5));
    let options = super::options(Recovery::Refuse).create(false);
    let database = options.open_in(Arc::new(disk.clone()), NEW, clock).unwrap();
    database.read().check().unwrap();
    database
}

fn kept(salvaged: &Salvaged) -> Vec<u64> {
    let kept = salvaged.runs.iter().filter(|run| run.fate == Fate::Kept);
    kept.flat_map(|run| run.first..=run.last).collect()
}

/// What a transaction of the journal does.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Table,
    Index,
    Insert(u64, &'static str),
    Update(u64, &'static str),
    Delete(u64),
    Comment,
}

const DEEDS: [(Deed, Level); 12] = [
    (Deed::Table, Level::Checksummed),
    (Deed::Index, Level::Checksummed),
    (Deed::Insert(1, "one"), Level::Checksummed),
    (Deed::Insert(2, "two"), Level::Soft),
    (Deed::Update(1, "uno"), Level::Half),
    (Deed::Comment, Level::Checksummed),
    (Deed::Delete(2), Level::TwoPhase),
    (Deed::Insert(3, "two"), Level::Checksummed),
    (Deed::Update(3, "three"), Level::Soft),
    (Deed::Insert(4, "two"), Level::Checksummed),
    (Deed::Delete(1), Level::Half),
    (Deed::Update(4, "four"), Level::Checksummed),
];

/// Writes the journal, closed or not.
fn journal(close: bool) -> Vec<u8> {
    let disk = SimulatedDisk::new(9);
    let database = open(&disk, Recovery::Checked).unwrap();
    define(&database);
    for (number, (deed, level)) in DEEDS.into_iter().enumerate().skip(2) {
        let done = database.write(|tx| {
            tx.set_level(level);
            tx.set_time(Timestamp(i64::try_from(number).unwrap() * 1000));
            match deed {
                Deed::Insert(id, text) => {
                    tx.insert_at(TABLE, RowId(id), &[ValueRef::String(text), ValueRef::Null])
                }
                Deed::Update(id, text) => tx.update(TABLE, RowId(id), TEXT, ValueRef::String(text)),
                Deed::Delete(id) => tx.delete(TABLE, RowId(id)),
                Deed::Comment | Deed::Table | Deed::Index => tx.comment("all is well"),
            }
        });
        done.unwrap();
    }
    if close {
        database.close().unwrap();
    }
    disk.content(NAME).unwrap()
}

/// What is left if these transactions can't be read.
#[derive(Debug, Default, PartialEq, Eq)]
struct Model {
    kept: Vec<u64>,
    unfit: Vec<u64>,
    rows: BTreeMap<u64, &'static str>,
}

fn model(lost: impl Fn(u64) -> bool) -> Model {
    let mut model = Model::default();
    let (mut has_table, mut is_unique) = (false, false);
    for (txid, (deed, _)) in (1..).zip(DEEDS) {
        if lost(txid) {
            continue;
        }
        let rows = &mut model.rows;
        let is_free = |text: &str, rows: &BTreeMap<u64, &str>, id: u64| {
            !is_unique || !rows.iter().any(|(&other, &held)| held == text && other != id)
        };
        let fits = match deed {
            Deed::Table | Deed::Comment => true,
            Deed::Index => has_table,
            Deed::Insert(id, text) => {
                has_table && !rows.contains_key(&id) && is_free(text, rows, id)
            }
            Deed::Update(id, text) => rows.contains_key(&id) && is_free(text, rows, id),
            Deed::Delete(id) => rows.contains_key(&id),
        };
        if !fits {
            model.unfit.push(txid);
            continue;
        }
        model.kept.push(txid);
        match deed {
            Deed::Table => has_table = true,
            Deed::Index => is_unique = true,
            Deed::Insert(id, text) | Deed::Update(id, text) => drop(rows.insert(id, text)),
            Deed::Delete(id) => drop(rows.remove(&id)),
            Deed::Comment => {}
        }
    }
    model
}

/// The commits of a journal.
#[derive(Default)]
struct Commits(Vec<Committed>);

impl annals::Sink for Commits {
    fn event(&mut self, _: &annals::Schema, _: &annals::event::Event<'_>) -> annals::Result<()> {
        Ok(())
    }
    fn commit(&mut self, _: &annals::Schema, committed: &Committed) -> annals::Result<()> {
        self.0.push(*committed);
        Ok(())
    }
}

fn commits(disk: &SimulatedDisk, name: &str) -> Vec<Committed> {
    let mut commits = Commits::default();
    annals_tools::scan_in(&Options::new(), disk, name, &mut commits).unwrap();
    commits.0
}

/// Salvages a damaged journal and compares with the model, which knows which bytes differ.
fn judge(sound: &[u8], damaged: &[u8], what: &str) {
    let ends = ends(sound);
    let differs = |txid: u64| {
        let at = usize::try_from(txid).unwrap();
        sound[ends[at - 1]..ends[at]] != *damaged.get(ends[at - 1]..ends[at]).unwrap_or_default()
    };
    let slots =
        annals_tools::inspect_in(&Options::new(), &install(sound), NAME).unwrap().head.slots;
    let is_told =
        |txid: u64| slots.iter().flatten().flatten().any(|it| it.point.txid == annals::Txid(txid));
    // A stored chain is no loss where a slot or the frames after it say what it must be.
    let is_lost = |txid: u64| {
        let end = ends[usize::try_from(txid).unwrap()];
        let mut repaired = damaged.to_vec();
        let is_chain_alone = damaged.len() >= end && {
            repaired[end - 8..end].copy_from_slice(&sound[end - 8..end]);
            repaired[..end] == sound[..end]
        };
        let is_confirmed = is_told(txid) || sound.get(end..) == damaged.get(end..);
        let is_last = end == *ends.last().unwrap();
        let is_harmless = is_chain_alone && is_confirmed && (is_told(txid) || !is_last);
        differs(txid) && !is_harmless
    };
    let model = model(is_lost);
    let (disk, salvaged) = salvage(damaged).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(kept(&salvaged), model.kept, "{what}: {salvaged:?}");
    let is_unfit = |fate: &Fate| matches!(fate, Fate::Unfit(_));
    assert_eq!(salvaged.count(is_unfit), model.unfit.len() as u64, "{what}: {salvaged:?}");
    assert_eq!(salvaged.transactions, model.kept.len() as u64, "{what}");
    let database = reopened(&disk);
    let snapshot = database.read();
    let mut rows = BTreeMap::new();
    if let Ok(table) = snapshot.table(TABLE) {
        for row in table.rows() {
            let row = row.unwrap();
            rows.insert(row.id().0, row.read::<Option<&str>>(TEXT).unwrap().to_owned());
        }
    }
    let expected = model.rows.iter().map(|(id, text)| (*id, (*text).to_owned())).collect();
    assert_eq!(rows, expected, "{what}");
    let old = commits(&install(sound), NAME);
    for (new, txid) in commits(&disk, NEW).iter().zip(&model.kept) {
        let old = old.iter().find(|old| old.txid == annals::Txid(*txid)).unwrap();
        assert_eq!((new.time, new.level), (old.time, old.level), "{what}: {txid}");
        assert!(new.explicit_time);
    }
}

#[test]
fn a_sound_journal_is_kept_whole() {
    for close in [true, false] {
        let bytes = journal(close);
        judge(&bytes, &bytes, "sound");
        let (_, salvaged) = salvage(&bytes).unwrap();
        assert!(salvaged.skipped.is_empty(), "{salvaged:?}");
        assert_eq!((salvaged.runs.len(), salvaged.segments[0].headers), (1, 3));
    }
}

#[test]
fn flipped_bits_cost_their_transaction_and_what_needs_it() {
    for close in [true, false] {
        let sound = journal(close);
        let last = *ends(&sound).last().unwrap();
        for at in (16384..last).step_by(3) {
            let mut damaged = sound.clone();
            damaged[at] ^= 1 << (at % 8);
            judge(&sound, &damaged, &format!("byte {at}"));
        }
    }
}

#[test]
fn a_wrong_stored_chain_costs_nothing() {
    for close in [true, false] {
        let sound = journal(close);
        let ends = ends(&sound);
        for end in &ends[1..ends.len() - 2] {
            let mut damaged = sound.clone();
            damaged[end - 1] ^= 1;
            let clock = Arc::new(SimulatedClock::new(11));
            let to = Arc::new(SimulatedDisk::new(4));
            let salvaged =
                annals_tools::salvage_in(&Options::new(), &install(&damaged), NAME, to, NEW, clock)
                    .unwrap();
            assert!(salvaged.is_complete(), "{close}, before {end}: {salvaged:?}");
            assert_eq!(kept(&salvaged).len(), DEEDS.len(), "{close}, before {end}");
        }
    }
}

#[test]
fn zeroed_blocks_and_cut_files_cost_what_they_held() {
    let sound = journal(true);
    let last = *ends(&sound).last().unwrap();
    for len in [64, 200, 512, 1024, 4096] {
        for at in (16384..last).step_by(88) {
            let mut damaged = sound.clone();
            let end = (at + len).min(last);
            damaged[at..end].fill(0);
            judge(&sound, &damaged, &format!("{len} bytes from {at} on zeroed"));
        }
    }
    for len in (16384..last).step_by(24) {
        judge(&sound, &sound[..len], &format!("cut to {len} bytes"));
    }
}

#[test]
fn the_head_may_be_gone() {
    let sound = journal(true);
    for (what, range) in [
        ("the first header", 0..256),
        ("two headers", 0..4352),
        ("both slots", 4608..8192),
        ("all slots", 4608..12288),
        ("everything", 0..16384),
    ] {
        let mut damaged = sound.clone();
        damaged[range].fill(0);
        judge(&sound, &damaged, what);
    }
    // Together with a frame.
    let mut damaged = sound.clone();
    damaged[..16384].fill(0xee);
    let at = ends(&sound)[4] + 100;
    damaged[at] ^= 1;
    judge(&sound, &damaged, "everything and a frame");
}

#[test]
fn nothing_to_salvage_is_an_error_that_leaves_nothing() {
    for bytes in [Vec::new(), vec![7; 100_000], vec![0; 20_000]] {
        let error = salvage(&bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotAJournal, "{error}");
    }
    let (disk, clock) = (SimulatedDisk::new(4), Arc::new(SimulatedClock::new(11)));
    disk.install(NEW, b"mine").unwrap();
    let from = install(&journal(true));
    let done =
        annals_tools::salvage_in(&Options::new(), &from, NAME, Arc::new(disk.clone()), NEW, clock);
    assert_eq!(done.unwrap_err().kind(), ErrorKind::InUse);
    assert_eq!(disk.content(NEW).unwrap(), b"mine");
}

/// A transaction of several frames is kept or lost as a whole, and so is the one after it.
#[test]
fn long_transactions_are_kept_or_lost_as_a_whole() {
    let disk = SimulatedDisk::new(9);
    let database = open(&disk, Recovery::Checked).unwrap();
    define(&database);
    let text = "y".repeat(1_200_000);
    let long = database.write(|tx| (0..3).try_for_each(|_| tx.comment(&text)));
    long.unwrap();
    super::insert(&database, Level::Checksummed);
    super::insert(&database, Level::Checksummed);
    database.close().unwrap();
    let sound = disk.content(NAME).unwrap();
    let ends = ends(&sound);
    let (start, end) = (ends[2], ends[3]);
    // Three comments, each of several frames, and the commit frame of 48 bytes.
    let frame = 512 << 10;
    for (what, range, expected) in [
        ("a payload", start + 500..start + 501, &[1, 2, 4, 5][..]),
        ("the first header", start..start + 32, &[1, 2, 4, 5]),
        ("the second header", start + frame..start + frame + 32, &[1, 2, 4, 5]),
        ("the commit frame", end - 48..end, &[1, 2, 4, 5]),
        ("the last data frame and the commit", end - 48 - frame..end, &[1, 2, 4, 5]),
        ("all of it", start..end, &[1, 2, 4, 5]),
    ] {
        let mut damaged = sound.clone();
        damaged[range].fill(0);
        let (new, salvaged) = salvage(&damaged).unwrap();
        assert_eq!(kept(&salvaged), expected, "{what}: {:?}", salvaged.runs);
        let database = reopened(&new);
        let rows: Vec<u64> = expected.iter().copied().filter(|txid| *txid > 3).collect();
        assert_eq!(super::ids(&database.read()), rows, "{what}");
        assert!(new.content(NEW).unwrap().len() < 100_000, "{what}: nothing of it is left");
    }
}

#[test]
fn blobs_keep_their_numbers_and_none_leads_to_lost_bytes() {
    let disk = SimulatedDisk::new(9);
    let database = open(&disk, Recovery::Checked).unwrap();
    define(&database);
    for id in 1..=3u64 {
        let row = database.write(|tx| {
            let blob = tx.write_blob(&vec![u8::try_from(id).unwrap(); 300][..])?;
            tx.insert_at(TABLE, RowId(id), &[ValueRef::Null, ValueRef::Blob(blob)])
        });
        row.unwrap();
    }
    // Transaction 6 needs a blob of 4, but no row of it.
    let refer = |blob| {
        database.write(|tx| tx.update(TABLE, RowId(1), BLOB, ValueRef::Blob(annals::Blob(blob))))
    };
    refer(2).unwrap();
    refer(3).unwrap();
    database.close().unwrap();
    let mut damaged = disk.content(NAME).unwrap();
    let ends = ends(&damaged);
    damaged[ends[3] + 100] ^= 1;
    let (new, salvaged) = salvage(&damaged).unwrap();
    assert_eq!(kept(&salvaged), [1, 2, 3, 5, 7], "{:?}", salvaged.runs);
    let database = reopened(&new);
    let snapshot = database.read();
    let table = snapshot.table(TABLE).unwrap();
    for id in [1, 3] {
        let ValueRef::Blob(blob) = table.get(RowId(id)).unwrap().value(BLOB) else {
            panic!("no blob in row {id}");
        };
        assert_eq!(blob.0, 3);
        assert_eq!(snapshot.blob(blob).unwrap().to_vec(1000).unwrap(), [3; 300]);
    }
}

/// Rows that should have been changed or deleted before, by a transaction that is lost, keep the row that
/// they refer to.
#[test]
fn enforced_references_hold_behind_damage() {
    for (rule, frees) in [
        (OnDelete::Restrict, Deed::Delete(0)),
        (OnDelete::Cascade, Deed::Update(0, "nowhere")),
        (OnDelete::SetNull, Deed::Update(0, "nowhere")),
    ] {
        let disk = SimulatedDisk::new(9);
        let database = open(&disk, Recovery::Checked).unwrap();
        let (city, person, home) = (TABLE, annals::TableNumber(1), FieldNumber(0));
        let schema = database.write(|tx| {
            tx.apply_command(&Command::CreateTable { name: "city".to_owned() })?;
            tx.apply_command(&Command::CreateTable { name: "person".to_owned() })?;
            tx.apply_command(&Command::AddField {
                table: person,
                name: "home".to_owned(),
                ty: Type::Reference(city, rule),
                nullable: true,
                default: None,
            })
        });
        schema.unwrap();
        database.write(|tx| tx.insert_at(city, RowId(0), &[])).unwrap();
        let lives = [ValueRef::Reference(RowId(0))];
        database.write(|tx| tx.insert_at(person, RowId(0), &lives)).unwrap();
        let freed = database.write(|tx| match frees {
            Deed::Delete(id) => tx.delete(person, RowId(id)),
            _ => tx.update(person, RowId(0), home, ValueRef::Null),
        });
        freed.unwrap();
        database.write(|tx| tx.delete(city, RowId(0))).unwrap();
        database.write(|tx| tx.insert_at(city, RowId(1), &[])).unwrap();
        database.close().unwrap();
        let mut damaged = disk.content(NAME).unwrap();
        let at = ends(&damaged)[3] + 40;
        damaged[at] ^= 1;
        let (new, salvaged) = salvage(&damaged).unwrap();
        assert_eq!(kept(&salvaged), [1, 2, 3, 6], "{rule:?}: {:?}", salvaged.runs);
        let database = reopened(&new);
        assert_eq!(super::ids(&database.read()), [0, 1], "{rule:?}");
    }
}

/// What makes no sense at all costs neither a panic nor much time.
#[test]
fn nonsense_is_left_out() {
    let sound = journal(true);
    let mut rng = Rng::new(1);
    for round in 0..200 {
        let mut damaged = sound.clone();
        for _ in 0..1 + rng.below(20) {
            let at = rng.index(damaged.len());
            let end = damaged.len().min(at + rng.index(300));
            rng.fill(&mut damaged[at..end]);
        }
        damaged.truncate(sound.len() - rng.index(300));
        let (disk, salvaged) = salvage(&damaged).unwrap_or_else(|error| panic!("{round}: {error}"));
        assert!(salvaged.transactions <= DEEDS.len() as u64, "{round}");
        drop(reopened(&disk));
    }
}
