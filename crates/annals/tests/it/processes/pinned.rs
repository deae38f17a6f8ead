//! A process that reads an old root of the image, while another brings the image forward again and again;
//! and writers in turn that all bring it forward, and are killed.

#![allow(clippy::disallowed_methods, reason = "what other processes do meanwhile takes real time")]

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use annals::reports::BackfillOutcome;
use annals::{
    BackfillMode, Backfilled, Command, Database, FieldNumber, IndexNumber, Options, Result, RowId,
    Snapshot, TableNumber, Type, ValueRef,
};
use annals_simulated::Rng;
use annals_tools::inspect;

use super::child::{self, Child};
use super::effort;
use super::ledger::audit;
use super::turns::{Club, shared};

const TABLE: TableNumber = TableNumber(0);
const ROWS: u64 = 3000;
/// A cache so small that hardly anything stays in it.
const SMALL: u64 = 64 << 10;

/// Space is counted here, so no key frames have any.
fn options() -> Options {
    Options::new().memory(SMALL).background(false).key_frames(0)
}

fn create(path: &Path) -> Database {
    let database = options().open(path).unwrap();
    let field = |name: &str, ty| Command::AddField {
        table: TABLE,
        name: name.to_owned(),
        ty,
        nullable: false,
        default: None,
    };
    let index = Command::CreateIndex {
        name: "by_name".to_owned(),
        table: TABLE,
        fields: vec![FieldNumber(0)],
        descending: Vec::new(),
        collated: Vec::new(),
        unique: false,
    };
    let all = |tx: &mut annals::Transaction<'_>| {
        tx.apply_command(&Command::CreateTable { name: "item".to_owned() })?;
        tx.apply_command(&field("name", Type::String))?;
        tx.apply_command(&field("number", Type::Int64))?;
        tx.apply_command(&index)?;
        for number in 0..ROWS {
            let name = format!("the item of the number {number}, as it was first called");
            tx.insert(TABLE, &[ValueRef::String(&name), ValueRef::Int64(0)])?;
        }
        Ok(())
    };
    database.write(all).unwrap();
    database
}

/// Changes some rows.
fn change(database: &Database, rng: &mut Rng) -> Result<()> {
    database.write(|tx| {
        for _ in 0..60 {
            let id = RowId(rng.below(ROWS));
            let number = i64::try_from(rng.below(1 << 40)).unwrap();
            let name = format!("the item of the number {number}, as it is called now");
            tx.update(TABLE, id, FieldNumber(0), ValueRef::String(&name))?;
            tx.update(TABLE, id, FieldNumber(1), ValueRef::Int64(number))?;
        }
        Ok(())
    })
}

/// Reads all that there is, through rows and index.
fn digest(snapshot: &Snapshot) -> String {
    let mut hasher = DefaultHasher::new();
    for row in snapshot.table(TABLE).unwrap().rows() {
        format!("{:?}", row.unwrap()).hash(&mut hasher);
    }
    for row in snapshot.index(IndexNumber(0)).unwrap().rows() {
        row.unwrap().id().hash(&mut hasher);
    }
    format!("{} {:016x}", snapshot.txid(), hasher.finish())
}

/// Opens, as a reader or in another way, and holds a snapshot; reads all of it once it is told to, and pulls.
#[test]
fn child_that_reads_an_old_root() {
    let Some(job) = child::job() else { return };
    let reader = Options::new().memory(SMALL).open_read_only(&job[0]).unwrap();
    assert_eq!(reader.findings(), [""; 0]);
    let snapshot = reader.read();
    child::say("open");
    child::wait_for_the_parent();
    snapshot.check().unwrap();
    child::say(&digest(&snapshot));
    child::wait_for_the_parent();
    drop(snapshot);
    child::say(&digest(&reader.pull().unwrap()));
    child::wait_for_the_parent();
}

fn let_it_read(path: &Path) -> Child {
    let job = [path.to_str().unwrap()];
    let child = Child::start("processes::pinned::child_that_reads_an_old_root", &job);
    child.wait_for("open");
    child
}

/// Brings the image forward many times; returns the last report, and how long the image was at most.
fn advance(database: &Database, rng: &mut Rng, times: u64) -> (Backfilled, u64) {
    let (mut last, mut longest) = (None, 0);
    for _ in 0..times {
        change(database, rng).unwrap();
        let mode = if rng.percent(50) { BackfillMode::Passive } else { BackfillMode::Full };
        let done = database.backfill(mode).unwrap();
        assert_eq!(done.outcome, BackfillOutcome::Advanced);
        longest = done.image_bytes.max(longest);
        last = Some(done);
    }
    (last.unwrap(), longest)
}

#[test]
fn what_another_process_reads_stays_and_only_that() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("read.annals");
    let (database, mut rng) = (create(&path), Rng::new(1));
    let (begun, _) = advance(&database, &mut rng, 5);
    let expected = digest(&database.read());
    let mut child = let_it_read(&path);
    let times = effort(150, 2000);
    let (_, first) = advance(&database, &mut rng, times);
    let (done, second) = advance(&database, &mut rng, times);

    // The reader is told of, here and from outside.
    let reader = done.oldest_reader.unwrap();
    assert!(reader.root <= 6 && reader.age.is_some(), "{reader:?}");
    let image = inspect(&Options::new(), &path).unwrap().image.unwrap();
    assert_eq!(image.readers.first().unwrap().root, reader.root);
    assert!(image.newest.unwrap().number > 2 * times);
    if cfg!(target_os = "linux") {
        assert_eq!(reader.pid, Some(child.pid()), "{reader:?}");
        assert_eq!(image.readers.first().unwrap().pid, reader.pid);
    }

    // It keeps what it reads: no more than all that there was, however long it stays.
    assert!(first <= 3 * begun.image_bytes && second <= first + first / 8, "{first} {second}");

    child.go_on();
    assert_eq!(child.next_line().unwrap(), expected, "after {} backfills", 2 * times);
    // Once it has brought in what is new, it reads the newest root, and the old one is nobody's.
    let now = digest(&database.read());
    child.go_on();
    assert_eq!(child.next_line().unwrap(), now);
    let (done, _) = advance(&database, &mut rng, 3);
    let pulled = done.oldest_reader.map(|reader| reader.root);
    assert!(pulled.is_none_or(|root| root > 2 * times), "{pulled:?}");
    child.kill();
    let (done, _) = advance(&database, &mut rng, 3);
    assert_eq!(done.oldest_reader, None);
    let (_, after) = advance(&database, &mut rng, times);
    assert!(after <= second, "{after} after {second}");
}

#[test]
fn the_space_of_a_reader_that_is_killed_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("killed.annals");
    let (database, mut rng) = (create(&path), Rng::new(2));
    advance(&database, &mut rng, 5);
    let mut longest = 0;
    for round in 0..effort(5, 50) {
        let mut child = let_it_read(&path);
        let (done, len) = advance(&database, &mut rng, 40);
        assert!(done.oldest_reader.is_some());
        child.kill();
        let (done, _) = advance(&database, &mut rng, 2);
        assert_eq!(done.oldest_reader, None);
        if round == 1 {
            longest = len;
        }
        assert!(round < 2 || len <= longest + longest / 4, "round {round}: {len} after {longest}");
    }
    // A reader that begins after a writer that ended: another writer knows nothing of what it reads.
    let expected = digest(&database.read());
    database.close().unwrap();
    let mut child = let_it_read(&path);
    for _ in 0..5 {
        let database = options().open(&path).unwrap();
        advance(&database, &mut rng, 20);
        database.close().unwrap();
    }
    child.go_on();
    assert_eq!(child.next_line().unwrap(), expected);
}

fn image_of(path: &Path) -> PathBuf {
    path.with_file_name(format!("{}-image", path.file_name().unwrap().to_str().unwrap()))
}

#[test]
fn writers_in_turn_bring_the_image_forward_and_are_killed() {
    let folder = tempfile::tempdir().unwrap();
    let club = Club::new(folder.path());
    let seed = effort(1, u64::from(std::process::id()));
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let member = shared().memory(SMALL).open(&club.path).unwrap();
    let reader = Options::new().open_read_only(&club.path).unwrap();
    let mut children: Vec<_> =
        (0..3).map(|writer| club.start("shared image", writer, &mut rng)).collect();
    let mut advanced = 0;
    for writer in 3..effort(12, 200) {
        for _ in 0..4 {
            std::thread::sleep(Duration::from_millis(rng.below(60)));
            let mode = if rng.percent(50) { BackfillMode::Passive } else { BackfillMode::Full };
            let done = member.backfill(mode).unwrap();
            advanced += u64::from(done.outcome == BackfillOutcome::Advanced);
            let snapshot = member.read();
            assert!(audit(&snapshot).txid >= done.txid.0);
            // Whoever opens now begins with the image, and sees the same.
            let now = Options::new().open_read_only(&club.path).unwrap();
            assert_eq!(now.findings(), [""; 0]);
            assert!(audit(&now.read()).txid >= snapshot.txid().0);
        }
        children.iter().for_each(|child| club.hear(child));
        let place = rng.index(children.len());
        children[place].kill();
        club.hear_out(&children[place]);
        children[place] = club.start("shared image", writer, &mut rng);
        audit(&reader.pull().unwrap());
    }
    for mut child in children {
        assert!(child.end().success());
        club.hear_out(&child);
    }
    assert!(advanced > 3, "{advanced}");
    assert_eq!(member.image_error(), None);
    let said = club.said();
    let seen = audit(&member.pull().unwrap());
    said.is_kept_by(&seen);
    said.explains(&seen);
    member.backfill(BackfillMode::Full).unwrap();
    member.close().unwrap();
    let alone = Database::open(&club.path).unwrap();
    assert_eq!(alone.recovered().findings, [""; 0]);
    assert_eq!(audit(&alone.read()), seen);
    alone.close().unwrap();
    std::fs::remove_file(image_of(&club.path)).unwrap();
    assert_eq!(audit(&Database::open(&club.path).unwrap().read()), seen, "as replay gives it");
}
