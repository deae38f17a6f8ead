//! Erasing values from history: they are nowhere left, and nothing else changes.

mod beside;
mod crash;
mod random;
mod typed;

use std::sync::Arc;
use std::time::Duration;

use annals::event::{Event, Script};
use annals::reports::Older;
use annals::storage::Directory;
use annals::{
    BackfillMode, Command, Committed, Database, ErrorKind, FieldNumber, IndexNumber, Options,
    Result, RowId, Schema, Sink, Snapshot, TableNumber, Transaction, Type, ValueRef,
};
use annals_simulated::{SimulatedClock, SimulatedDisk};
use annals_tools::scan_in;
use annals_tools::{Erase, Erased};

const NAME: &str = "db";
const IMAGE: &str = "db-image";
const NOW: Duration = Duration::ZERO;
const PERSON: TableNumber = TableNumber(0);
const FIRST: RowId = RowId(0);

/// What is to be found nowhere: a string that is longer than a cell, and a number of eight bytes.
const SECRET: &str = "Anastasia Unmistakable Romanova, born in Peterhof";
const NUMBER: u64 = 0x1122_3344_5566_7788;
const PHOTO: &[u8] = b"a photo of which there is no other copy";

fn options() -> Options {
    Options::new().background(false).lock_timeout(NOW)
}

fn clock() -> Arc<SimulatedClock> {
    Arc::new(SimulatedClock::new(7))
}

fn try_open(disk: &SimulatedDisk) -> Result<Database> {
    options().open_in(Arc::new(disk.clone()), NAME, clock())
}

fn erase(disk: &SimulatedDisk, what: &Erase) -> Result<Erased> {
    let directory: Arc<dyn Directory> = Arc::new(disk.clone());
    annals_tools::erase_in(&options(), &directory, NAME, &(clock() as _), what)
}

fn of(table: &str, row: u64, field: Option<&str>) -> Erase {
    Erase { field: field.map(str::to_owned), ..Erase::new(table, RowId(row)) }
}

/// Makes a table of which only some fields may be null, with a unique index and another.
fn define(tx: &mut Transaction<'_>) -> Result<()> {
    tx.apply_command(&Command::CreateTable { name: "person".to_owned() })?;
    let dangle = annals::model::OnDelete::Dangle;
    for (name, ty, nullable) in [
        ("name", Type::String, false),
        ("code", Type::UInt64, false),
        ("note", Type::String, true),
        ("photo", Type::Blob, true),
        ("friend", Type::Reference(PERSON, dangle), true),
    ] {
        let (name, table) = (name.to_owned(), PERSON);
        tx.apply_command(&Command::AddField { table, name, ty, nullable, default: None })?;
    }
    for (name, field, unique) in [("by_name", 0, true), ("by_code", 1, false)] {
        let (name, fields) = (name.to_owned(), vec![FieldNumber(field)]);
        tx.apply_command(&Command::CreateIndex {
            name,
            table: PERSON,
            fields,
            descending: Vec::new(),
            collated: Vec::new(),
            unique,
        })?;
    }
    Ok(())
}

/// Adds a person whose values are secret.
fn secret(tx: &mut Transaction<'_>) -> Result<()> {
    let photo = tx.write_blob(PHOTO)?;
    let values = [SECRET.into(), NUMBER.into(), SECRET.into(), photo.into(), FIRST.into()];
    tx.insert(PERSON, &values)?;
    tx.comment("somebody")
}

/// Adds and changes others.
fn others(tx: &mut Transaction<'_>, number: u64) -> Result<()> {
    let name = format!("person {number}");
    let note = if number.is_multiple_of(2) { ValueRef::Null } else { ValueRef::String(&name) };
    let blob = tx.write_blob(name.as_bytes())?;
    let id =
        tx.insert(PERSON, &[(&*name).into(), number.into(), note, blob.into(), FIRST.into()])?;
    tx.update(PERSON, id, FieldNumber(2), ValueRef::String("changed"))
}

/// Makes a journal of three segments, of which the last but one begins with the state if that is asked for; an
/// image; and a tail that was saved.
fn journal(disk: &SimulatedDisk, older: Older) {
    let database = try_open(disk).unwrap();
    database.write(define).unwrap();
    database.write(|tx| others(tx, 1)).unwrap();
    database.restart(Older::Kept, NOW).unwrap();
    database.write(secret).unwrap();
    database.write(|tx| others(tx, 2)).unwrap();
    database.restart(older, NOW).unwrap();
    let long = format!("{SECRET} and more");
    database.write(|tx| tx.update(PERSON, RowId(1), FieldNumber(2), (&*long).into())).unwrap();
    database
        .write(|tx| tx.update_vector(PERSON, RowId(0), FieldNumber(1), &[5, NUMBER][..]))
        .unwrap();
    database.write(|tx| others(tx, 3)).unwrap();
    database.backfill(BackfillMode::Full).unwrap();
    database.close().unwrap();
    let copies = [
        (IMAGE, "db-image-damaged"),
        (IMAGE, "db.before-recovery-7-0123456789abcdef-image"),
        (NAME, "db.before-recovery-7-0123456789abcdef"),
        (NAME, "db.next-0123456789abcdef"),
        (NAME, "db.new-0123456789abcdef"),
        (NAME, "db.backup-0123456789abcdef"),
    ];
    for (from, to) in copies {
        disk.install(to, &disk.content(from).unwrap()).unwrap();
    }
    let end = scan_end(disk);
    let tail = format!("db.tail-{}-{:016x}", end.txid, end.chain);
    disk.install(&tail, SECRET.as_bytes()).unwrap();
    disk.install("elsewhere", b"of somebody else").unwrap();
}

fn scan_end(disk: &SimulatedDisk) -> Committed {
    *log(disk).ends.last().unwrap()
}

/// Returns which files have the secrets.
fn leaks(disk: &SimulatedDisk) -> Vec<String> {
    let number = [NUMBER.to_le_bytes(), NUMBER.swap_bytes().to_le_bytes()];
    let secrets = [&SECRET.as_bytes()[5..25], PHOTO, &number[0], &number[1]];
    let names = disk.list().unwrap().into_iter();
    let has = |name: &String| {
        let content = disk.content(name).unwrap();
        secrets.iter().any(|secret| content.windows(secret.len()).any(|bytes| bytes == *secret))
    };
    names.filter(has).collect()
}

/// The history: a script without erased values, and what each transaction is.
#[derive(Default)]
struct Log {
    script: Script,
    events: Vec<String>,
    commits: Vec<(u64, annals::Level, annals::Timestamp, bool, usize)>,
    marks: Vec<annals::journal::Erasure>,
    ends: Vec<Committed>,
}

impl Sink for Log {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        let mut text = String::new();
        self.script.push(schema, event, &mut text)?;
        self.events.push(text);
        Ok(())
    }

    fn commit(&mut self, _: &Schema, committed: &Committed) -> Result<()> {
        let Committed { txid, level, time, explicit_time, .. } = *committed;
        self.commits.push((txid.0, level, time, explicit_time, self.events.len()));
        self.ends.push(*committed);
        Ok(())
    }

    fn erasure(&mut self, _: &Schema, erasure: &annals::journal::Erasure) -> Result<()> {
        self.marks.push(erasure.clone());
        Ok(())
    }
}

fn log(disk: &SimulatedDisk) -> Log {
    let mut log = Log::default();
    scan_in(&Options::new(), disk, NAME, &mut log).unwrap();
    log
}

/// Writes down all rows but the fields that are left out, all of indexes, and what blobs hold.
fn content(
    snapshot: &Snapshot,
    but: impl Fn(TableNumber, RowId, FieldNumber) -> bool,
) -> Vec<String> {
    snapshot.check().unwrap();
    let mut text = Vec::new();
    for table in snapshot.schema().tables() {
        let view = snapshot.table(table.number).unwrap();
        text.push(format!("{}: next {}, rows {}", table.name, view.next_id(), view.len()));
        for row in view.rows().map(Result::unwrap) {
            for field in &table.fields {
                if but(table.number, row.id(), field.number) {
                    let value = row.value(field.number);
                    assert!(
                        matches!(value, ValueRef::Null),
                        "{} {}: {value:?}",
                        row.id().0,
                        field.name
                    );
                    continue;
                }
                let value = match row.value(field.number) {
                    ValueRef::Blob(blob) => {
                        let bytes = snapshot.blob(blob).unwrap().to_vec(usize::MAX).unwrap();
                        format!("{} of {bytes:?}", blob.0)
                    }
                    value => format!("{value:?}"),
                };
                text.push(format!("{} {} {}: {value}", table.name, row.id().0, field.name));
            }
        }
    }
    text
}

#[test]
fn what_is_erased_is_nowhere_and_all_else_is_as_it_was() {
    for older in [Older::Kept, Older::NotNeeded] {
        let disk = SimulatedDisk::new(1);
        journal(&disk, older);
        assert!(leaks(&disk).len() >= 5, "{:?}", leaks(&disk));
        let before = log(&disk);
        let is_secret = |table, row, _| (table, row) == (PERSON, RowId(1));
        let expected = {
            let snapshot = try_open(&disk).unwrap().read();
            let lines = content(&snapshot, |_, _, _| false);
            lines.into_iter().filter(|line| !line.starts_with("person 1 ")).collect::<Vec<_>>()
        };
        let what = of("person", 1, None);
        let planned = erase(&disk, &Erase { dry_run: true, ..what.clone() }).unwrap();
        assert!(!leaks(&disk).is_empty(), "nothing was done");
        let erased = erase(&disk, &what).unwrap();
        assert_eq!(erased, planned, "it does what it says");
        assert_eq!(erased.removed.len(), 8, "{:?}", erased.removed);
        assert_eq!(erased.unproven, [] as [&str; 0]);
        assert_eq!((erased.values, erased.blobs, erased.segments), (7, 1, 2));
        assert_eq!(erased.fields, ["name", "code", "note", "photo", "friend"]);
        assert_eq!((erased.held, erased.rewritten, erased.mark), ((3, 6), (3, 7), 8));
        assert_eq!(leaks(&disk), [] as [&str; 0]);
        let names: Vec<_> = disk.list().unwrap();
        assert_eq!(names, ["db", "db-segment-000000", "db-segment-000001", "elsewhere"]);

        let after = log(&disk);
        assert_eq!(after.commits[..7], before.commits[..]);
        assert_eq!(after.events.len(), before.events.len() + 1);
        assert_eq!(after.events.last().unwrap(), r#"comment "erased: table person, row 1""#);
        let text = after.events.join("\n");
        assert!(text.contains("insert person null! null! null null null"), "{text}");
        assert!(text.contains("update_vector person 0 code 2 5 null!"), "{text}");
        for again in 0..2 {
            let database = try_open(&disk).unwrap();
            assert_eq!(content(&database.read(), is_secret), expected);
            typed(&database.read());
            if again == 0 {
                database.backfill(BackfillMode::Full).unwrap();
            }
            database.close().unwrap();
        }
        let error = erase(&disk, &what).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }
}

/// Sees what getters, indexes and runs say of the erased row.
fn typed(snapshot: &Snapshot) {
    let table = snapshot.table(PERSON).unwrap();
    let row = table.get(RowId(1)).unwrap();
    assert_eq!((row.read::<&str>(FieldNumber(0)), row.read::<u64>(FieldNumber(1))), ("", 0));
    assert_eq!(row.read::<Option<&str>>(FieldNumber(0)), None);
    let codes = table.vector(FieldNumber(1), RowId(0), 4).unwrap().to_vec::<u64>().unwrap();
    assert_eq!(codes, [5, 0, 2, 3]);
    let index = snapshot.index(IndexNumber(0)).unwrap();
    assert_eq!(index.rows().map(|row| row.unwrap().id().0).collect::<Vec<_>>(), [1, 0, 2, 3]);
    assert!(index.first(&["".into()]).unwrap().is_none(), "null isn't the empty name");
}

#[test]
fn an_erased_value_can_be_written_again_but_null_cannot() {
    let disk = SimulatedDisk::new(1);
    journal(&disk, Older::Kept);
    erase(&disk, &of("person", 1, Some("name"))).unwrap();
    assert!(!leaks(&disk).is_empty(), "other fields stay");
    let database = try_open(&disk).unwrap();
    let name = FieldNumber(0);
    let refused = database.write(|tx| tx.update(PERSON, RowId(2), name, ValueRef::Null));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    // The empty name is nobody's, and only one may have it.
    database.write(|tx| tx.update(PERSON, RowId(2), name, "".into())).unwrap();
    let refused = database.write(|tx| tx.update(PERSON, RowId(1), name, "".into()));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unique);
    database.write(|tx| tx.update(PERSON, RowId(1), name, "Anna".into())).unwrap();
    assert_eq!(
        database.read().table(PERSON).unwrap().get(RowId(1)).unwrap().value(name),
        "Anna".into()
    );
    // An upgrade's index on a field with erased values, and rows of zeros.
    database
        .write(|tx| tx.insert_zero(PERSON, RowId(9)).and_then(|()| tx.delete(PERSON, RowId(2))))
        .unwrap();
    database.backfill(BackfillMode::Full).unwrap();
    let expected = content(&database.read(), |_, _, _| false);
    database.close().unwrap();
    let database = try_open(&disk).unwrap();
    assert_eq!(database.recovered().findings, [] as [&str; 0]);
    assert_eq!(content(&database.read(), |_, _, _| false), expected);
    database.close().unwrap();
    disk.remove("db-image").unwrap();
    assert_eq!(content(&try_open(&disk).unwrap().read(), |_, _, _| false), expected);
}

#[test]
fn what_is_not_there_is_named_and_who_has_it_open_is_waited_for_by_nobody() {
    let disk = SimulatedDisk::new(1);
    journal(&disk, Older::Kept);
    let before = disk.content(NAME).unwrap();
    for (what, expected) in [
        (of("people", 1, None), "no table `people`"),
        (of("person", 1, Some("names")), "no field `names`"),
        (of("person", 77, None), "no value to erase"),
    ] {
        let error = erase(&disk, &what).unwrap_err();
        assert!(
            error.kind() == ErrorKind::NotFound && error.to_string().contains(expected),
            "{error}"
        );
    }
    let database = try_open(&disk).unwrap();
    assert_eq!(erase(&disk, &of("person", 1, None)).unwrap_err().kind(), ErrorKind::Busy);
    drop(database);
    assert_eq!(disk.content(NAME).unwrap()[16_384..], before[16_384..]);
    disk.install("db-segment-000000", b"").unwrap();
    assert!(erase(&disk, &of("person", 1, None)).is_err());
}

#[test]
fn dropped_tables_and_fields_are_found_by_their_last_names() {
    let disk = SimulatedDisk::new(1);
    let database = try_open(&disk).unwrap();
    database.write(|tx| define(tx).and_then(|()| others(tx, 1)).and_then(|()| secret(tx))).unwrap();
    database
        .write(|tx| {
            tx.apply_command(&Command::DropField { table: PERSON, field: FieldNumber(2) })?;
            tx.apply_command(&Command::RenameTable { table: PERSON, name: "gone".to_owned() })?;
            tx.apply_command(&Command::DropTable { table: PERSON })
        })
        .unwrap();
    database.close().unwrap();
    assert_eq!(erase(&disk, &of("gone", 1, Some("note"))).unwrap().values, 1);
    assert_eq!(erase(&disk, &of("gone", 1, None)).unwrap().values, 4);
    assert_eq!(leaks(&disk), [] as [&str; 0]);
    try_open(&disk).unwrap().read().check().unwrap();
}

#[test]
fn what_had_the_same_name_before_is_told_and_erased_next() {
    let disk = SimulatedDisk::new(1);
    let database = try_open(&disk).unwrap();
    let (table, field) = (TableNumber(1), FieldNumber(5));
    let note = |table| Command::AddField {
        table,
        name: "note".to_owned(),
        ty: Type::String,
        nullable: true,
        default: None,
    };
    database.write(|tx| define(tx).and_then(|()| others(tx, 1)).and_then(|()| secret(tx))).unwrap();
    database
        .write(|tx| {
            tx.apply_command(&Command::DropField { table: PERSON, field: FieldNumber(2) })?;
            tx.apply_command(&note(PERSON))?;
            tx.update(PERSON, RowId(1), field, SECRET.into())?;
            tx.apply_command(&Command::DropTable { table: PERSON })?;
            tx.apply_command(&Command::CreateTable { name: "person".to_owned() })?;
            tx.apply_command(&note(table))?;
            tx.insert_at(table, RowId(1), &[SECRET.into()])
        })
        .unwrap();
    database.close().unwrap();
    for (what, expected) in [
        (of("person", 1, Some("note")), (1, 2)),
        (of("person", 1, Some("note")), (1, 1)),
        (of("person", 1, None), (5, 0)),
    ] {
        let erased = erase(&disk, &what).unwrap();
        assert_eq!((erased.values, erased.left), expected);
    }
    assert_eq!(leaks(&disk), [] as [&str; 0]);
}

#[test]
fn a_tail_tells_that_what_it_read_was_written_anew() {
    let disk = SimulatedDisk::new(1);
    journal(&disk, Older::Kept);
    let mut tail = annals::Tail::open_in(&disk, NAME);
    tail.read(&mut Log::default()).unwrap();
    assert_eq!(tail.txid(), annals::Txid(7));
    erase(&disk, &of("person", 1, None)).unwrap();
    let error = tail.read(&mut Log::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Diverged, "{error}");
}

#[test]
fn a_tail_that_read_all_that_was_forgotten_goes_on() {
    let disk = SimulatedDisk::new(1);
    journal(&disk, Older::Kept);
    let mut tail = annals::Tail::open_in(&disk, NAME);
    tail.read(&mut Log::default()).unwrap();
    let database = try_open(&disk).unwrap();
    for number in 4..7 {
        database.pack(NOW).unwrap();
        database.write(|tx| others(tx, number)).unwrap();
        database.hard_checkpoint().unwrap();
        let mut log = Log::default();
        tail.read(&mut log).unwrap();
        assert_eq!((tail.txid(), log.commits.len()), (database.read().txid(), 1));
    }
    database.write(|tx| others(tx, 7)).unwrap();
    database.pack(NOW).unwrap();
    let error = tail.read(&mut Log::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[test]
fn the_state_that_history_begins_with_is_written_anew_too() {
    let disk = SimulatedDisk::new(1);
    journal(&disk, Older::Kept);
    let database = try_open(&disk).unwrap();
    database.pack(NOW).unwrap();
    let last = database.read().txid().0;
    database.close().unwrap();
    let before = end_of(&disk);
    let erased = erase(&disk, &of("person", 1, None)).unwrap();
    assert_eq!((erased.held, erased.rewritten), ((last, last), (last, last)));
    let marks = log(&disk).marks;
    assert_eq!(marks.len(), 1);
    let after = marks[0].carry(annals::Txid(before.0), before.1);
    assert!(after.is_some_and(|chain| chain != before.1), "{after:?}");
}

/// Returns the last transaction and its chain.
fn end_of(disk: &SimulatedDisk) -> (u64, u64) {
    let end = annals_tools::inspect_in(&Options::new(), disk, NAME).unwrap().end;
    (end.txid.0, end.chain)
}

#[test]
fn a_blob_that_something_else_leads_to_stays() {
    let disk = SimulatedDisk::new(1);
    let database = try_open(&disk).unwrap();
    database.write(|tx| define(tx).and_then(|()| others(tx, 1)).and_then(|()| secret(tx))).unwrap();
    let photo = FieldNumber(3);
    database.write(|tx| tx.update(PERSON, RowId(0), photo, annals::Blob(2).into())).unwrap();
    database.write(|tx| tx.update(PERSON, RowId(0), photo, ValueRef::Null)).unwrap();
    database.close().unwrap();
    assert_eq!(erase(&disk, &of("person", 1, None)).unwrap().blobs, 0);
    assert_eq!(leaks(&disk), [NAME], "the photo was the other's, too");
    assert_eq!(erase(&disk, &of("person", 0, Some("photo"))).unwrap().blobs, 2);
    assert_eq!(leaks(&disk), [] as [&str; 0]);
}

#[test]
fn large_values_and_large_blobs_become_small() {
    let disk = SimulatedDisk::new(1);
    let database = try_open(&disk).unwrap();
    let (long, huge) = (SECRET.repeat(30_000), SECRET.repeat(100_000));
    database
        .write(|tx| {
            define(tx)?;
            let photo = tx.write_blob(huge.as_bytes())?;
            tx.insert(
                PERSON,
                &["a".into(), 1_u64.into(), (&*long).into(), photo.into(), ValueRef::Null],
            )?;
            others(tx, 1)
        })
        .unwrap();
    database.close().unwrap();
    let erased = erase(&disk, &of("person", 0, None)).unwrap();
    assert_eq!((erased.values, erased.blobs), (4, 1));
    assert_eq!(leaks(&disk), [] as [&str; 0]);
    let left = disk.content(NAME).unwrap().len();
    assert!(left < 1 << 20, "{left}");
    let database = try_open(&disk).unwrap();
    assert_eq!(database.read().table(PERSON).unwrap().len(), 2);
    let blob = database.read().blob(annals::Blob(1)).unwrap().to_vec(usize::MAX).unwrap();
    assert!(blob.len() < 100 && blob.iter().all(|&byte| byte == 0));
}
