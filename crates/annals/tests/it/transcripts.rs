//! Golden transcripts: what each thing costs in file operations, one line for each.
//!
//! `UPDATE=1 cargo test -p annals transcripts` rewrites `transcripts.txt`.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use annals::{
    Blob, Command, Database, FieldNumber, Level, Options, Result, RowId, TableNumber, Transaction,
    Type, ValueRef,
};
use annals_simulated::{Fault, SimulatedClock, SimulatedDisk};

const TABLE: TableNumber = TableNumber(0);

/// A disk, and a text that tells what was done to it.
struct Story {
    disk: SimulatedDisk,
    text: String,
}

impl Story {
    fn new() -> Self {
        Self { disk: SimulatedDisk::new(1), text: String::new() }
    }

    /// Does something, and tells the operations that it took.
    fn tell<T>(&mut self, what: &str, act: impl FnOnce() -> T) -> T {
        self.disk.clear_transcript();
        let value = act();
        let operations = self.disk.transcript();
        let operations = if operations.is_empty() { "nothing\n" } else { &operations };
        write!(self.text, "# {what}\n{operations}\n").unwrap();
        value
    }

    /// Ends the process: what it wrote stays, nothing more is written.
    fn kill(&self, database: Database) {
        self.disk.fail_from(self.disk.operations(), Fault::Io);
        drop(database);
        self.disk.clear_plan();
    }
}

fn define(tx: &mut Transaction<'_>) -> Result<()> {
    tx.apply_command(&Command::CreateTable { name: "item".to_owned() })?;
    tx.apply_command(&Command::AddField {
        table: TABLE,
        name: "name".to_owned(),
        ty: Type::String,
        nullable: false,
        default: None,
    })
}

fn insert(tx: &mut Transaction<'_>, name: &str) -> Result<RowId> {
    tx.insert(TABLE, &[ValueRef::String(name)])
}

fn commit(database: &Database, level: Level) {
    let committed = database.write(|tx| -> Result<()> {
        tx.set_level(level);
        insert(tx, "apple").map(drop)
    });
    committed.unwrap();
}

/// Writes more than one data frame, and doesn't commit.
fn stream(database: &Database) -> Transaction<'_> {
    let mut tx = database.begin().unwrap();
    for _ in 0..12 {
        insert(&mut tx, &"long".repeat(25_000)).unwrap();
    }
    tx
}

fn tell_commits(story: &mut Story) {
    let disk = story.disk.clone();
    let database = story.tell("creation", || open(&disk));
    story.tell("the schema, checksummed", || database.write(define).unwrap());
    story.tell("a small commit, checksummed", || commit(&database, Level::Checksummed));
    story.tell("a small commit, soft", || commit(&database, Level::Soft));
    story.tell("rest: space ahead, live block, slot", || database.rest().unwrap());
    story.tell("a checksummed commit into that space", || commit(&database, Level::Checksummed));
    story.tell("a soft one", || commit(&database, Level::Soft));
    story.tell("an empty commit, soft", || {
        let mut tx = database.begin().unwrap();
        tx.set_level(Level::Soft);
        tx.commit().unwrap();
    });
    story.tell("an empty commit, checksummed, with a soft one before it", || {
        database.write(|_| -> Result<()> { Ok(()) }).unwrap();
    });
    story.tell("an empty commit, checksummed, with nothing to make durable", || {
        database.write(|_| -> Result<()> { Ok(()) }).unwrap();
    });
    story.tell("rest", || database.rest().unwrap());
    story.tell("rest again", || database.rest().unwrap());
    story.tell("a small transaction, rolled back", || {
        let mut tx = database.begin().unwrap();
        tx.update(TABLE, RowId(0), FieldNumber(0), ValueRef::String("pear")).unwrap();
        tx.rollback().unwrap();
    });
    commit(&database, Level::Soft);
    let point = story.tell("a soft checkpoint", || database.soft_checkpoint().unwrap());
    story.tell("another", || database.soft_checkpoint().unwrap());
    let hard = story.tell("a hard checkpoint, with a soft commit before it", || {
        database.hard_checkpoint().unwrap()
    });
    assert_eq!((hard, hard.txid), (point, database.read().txid()));
    story.tell("another", || database.hard_checkpoint().unwrap());
    commit(&database, Level::Checksummed);
    story.tell("a hard checkpoint, with a checksummed commit before it", || {
        database.hard_checkpoint().unwrap()
    });
    story.tell("closing behind it", || database.close().unwrap());
}

/// The levels that need a slot, and commits that share a flush.
fn tell_levels(story: &mut Story) {
    let disk = story.disk.clone();
    let database = open(&disk);
    commit(&database, Level::Soft);
    database.rest().unwrap();
    for level in [Level::Half, Level::Half, Level::TwoPhase, Level::TwoPhase, Level::Half] {
        story.tell(&format!("a small commit, {}", level.name()), || commit(&database, level));
    }
    story.tell("rest", || database.rest().unwrap());
    let submit = |level: Level| {
        let mut tx = database.begin().unwrap();
        tx.set_level(level);
        insert(&mut tx, "pear").unwrap();
        tx.submit().unwrap()
    };
    let (first, second, third) = story
        .tell("three commits submitted, the second of them soft", || {
            (submit(Level::Checksummed), submit(Level::Soft), submit(Level::Checksummed))
        });
    story.tell("waiting for the second", || second.wait().unwrap());
    story.tell("waiting for the others", || (first.wait().unwrap(), third.wait().unwrap()));
    let pending = [Level::Soft, Level::Checksummed, Level::TwoPhase].map(submit);
    story.tell("waiting for a soft, a checksummed and a two-phase commit", || {
        pending.map(|pending| pending.wait().unwrap())
    });
    story.tell("closing", || database.close().unwrap());

    let padded = |disk: &SimulatedDisk| {
        let clock = Arc::new(SimulatedClock::new(1));
        let options = Options::new().background(false).sector_padding(4096);
        options.open_in(Arc::new(disk.clone()), "padded", clock).unwrap()
    };
    let database = padded(&disk);
    database.write(define).unwrap();
    for level in [Level::Checksummed, Level::Soft] {
        story.tell(&format!("with padding: a small commit, {}", level.name()), || {
            commit(&database, level);
        });
    }
}

fn write_blob(database: &Database) {
    let write = |tx: &mut Transaction<'_>| -> Result<RowId> {
        let blob = tx.write_blob(&[7; 100_000][..])?;
        insert(tx, &format!("photo {}", blob.0))
    };
    database.write(write).unwrap();
}

fn open(disk: &SimulatedDisk) -> Database {
    let clock = Arc::new(SimulatedClock::new(1));
    Options::new().background(false).open_in(Arc::new(disk.clone()), "journal", clock).unwrap()
}

fn tell_openings(story: &mut Story) {
    let disk = story.disk.clone();
    let open = || open(&disk);
    let database = story.tell("opening after a clean close", open);
    story.tell("a hard checkpoint at once", || database.hard_checkpoint().unwrap());
    story.tell("a blob of 100,000 bytes and a row, checksummed", || write_blob(&database));
    story.tell("reading that blob", || {
        let read = database.read().blob(Blob(1)).unwrap().to_vec(1 << 20).unwrap();
        assert_eq!(read.len(), 100_000);
    });
    database.close().unwrap();
    let database = open();
    story.tell("closing at once", || database.close().unwrap());
    let database = open();
    commit(&database, Level::Soft);
    story.kill(database);
    let database = story.tell("opening after the process died behind a soft commit", open);
    story.tell("a long transaction: two data frames and a commit frame", || {
        let mut tx = stream(&database);
        for _ in 0..12 {
            insert(&mut tx, &"long".repeat(25_000)).unwrap();
        }
        tx.commit().unwrap();
    });
    story.tell("a long transaction, rolled back", || stream(&database).rollback().unwrap());
    let tx = stream(&database);
    story.disk.fail_from(story.disk.operations(), Fault::Io);
    drop(tx);
    story.kill(database);
    let database = story.tell("opening after the process died in a long transaction", open);
    database.close().unwrap();
    let end = story.disk.content("journal").unwrap().len() as u64;
    damage(&story.disk, end);
    let database = story.tell("opening with a tail that doesn't verify", open);
    story.tell("closing", || database.close().unwrap());
}

/// Puts bytes after the end that are no frame, and that no flush ever covered.
fn damage(disk: &SimulatedDisk, end: u64) {
    use annals::storage::{Access, Directory};
    disk.open("journal", Access::Write).unwrap().write_at(end, b"what is this?").unwrap();
}

#[test]
fn each_thing_costs_what_it_costs() {
    let mut story = Story::new();
    tell_commits(&mut story);
    tell_levels(&mut story);
    tell_openings(&mut story);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/transcripts.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &story.text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    // Story by story, so that a failure shows the one that changed.
    for (told, expected) in story.text.split("\n\n").zip(expected.split("\n\n")) {
        assert_eq!(told, expected, "UPDATE=1 rewrites {}", path.display());
    }
    assert!(story.text == expected, "one of them has more stories");
}

#[test]
fn a_durable_commit_is_one_write_and_one_flush_and_a_soft_one_is_one_write() {
    let story = Story::new();
    let database = open(&story.disk);
    database.write(define).unwrap();
    for (level, costs) in [(Level::Checksummed, [1, 1]), (Level::Soft, [1, 0])] {
        for _ in 0..20 {
            story.disk.clear_transcript();
            commit(&database, level);
            let transcript = story.disk.transcript();
            let count = |word| transcript.lines().filter(|line| line.starts_with(word)).count();
            assert_eq!([count("write"), count("flush")], costs, "{transcript}");
            assert_eq!(transcript.lines().count(), costs.iter().sum::<usize>(), "{transcript}");
        }
    }
}
