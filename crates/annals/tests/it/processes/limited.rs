//! A store that is larger than the memory that a process may have: whatever is done with it gives what it
//! gives a process without a limit.
#![allow(unsafe_code, reason = "the limit of a process is set by a call of the system")]

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Bound;
use std::path::Path;

use annals::{
    BackfillMode, Command, Database, FieldNumber, IndexNumber, Level, Options, Result, RowId,
    Snapshot, TableNumber, Transaction, Type, ValueRef,
};
use annals_simulated::Rng;

use super::child::{Child, job, say};
use super::effort;

const TABLE: TableNumber = TableNumber(0);
const NAME: FieldNumber = FieldNumber(0);
const NUMBER: FieldNumber = FieldNumber(1);
const BY_NAME: IndexNumber = IndexNumber(0);

const TEST: &str = "processes::limited::a_store_larger_than_memory_is_as_any_other";

/// How many rows there are; about 300 bytes of the image for each.
fn rows() -> u64 {
    effort(165_000, 900_000)
}

/// How much of the image may be kept in memory, in bytes.
fn budget() -> u64 {
    effort(2, 32) << 20
}

/// How much the process may have in all beside what it has when it begins, in bytes. The least with which
/// it runs is in `docs/costs.md`.
fn allowance() -> u64 {
    effort(30, 160) << 20
}

/// A text that doesn't compress to half, so that the image is as large as what is in memory.
fn name(number: u64, round: u64) -> String {
    let mixed = |part: u64| (number + round + part * rows()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let digits: String = (0..5).map(|part| format!("{:016x}", mixed(part))).collect();
    format!("{digits}, row {number}, round {round}")
}

fn define(tx: &mut Transaction<'_>) -> Result<()> {
    tx.apply_command(&Command::CreateTable { name: "t".to_owned() })?;
    for (name, ty) in [("name", Type::String), ("number", Type::UInt64)] {
        let (name, nullable, default) = (name.to_owned(), false, None);
        tx.apply_command(&Command::AddField { table: TABLE, name, ty, nullable, default })?;
    }
    let (name, fields) = ("by_name".to_owned(), vec![NAME]);
    tx.apply_command(&Command::CreateIndex {
        name,
        table: TABLE,
        fields,
        descending: Vec::new(),
        collated: Vec::new(),
        unique: true,
    })
}

/// Looks at everything, in every way, as one number.
fn digest(now: &Snapshot) -> u64 {
    let (mut digest, mut rng) = (DefaultHasher::new(), Rng::new(5));
    let (table, index) = (now.table(TABLE).unwrap(), now.index(BY_NAME).unwrap());
    for row in table.rows().map(Result::unwrap) {
        (row.id().0, row.read::<&str>(NAME), row.read::<u64>(NUMBER)).hash(&mut digest);
    }
    // In the order of the names each row is in another page.
    for row in index.rows().step_by(50).map(Result::unwrap) {
        row.read::<&str>(NAME).hash(&mut digest);
    }
    for _ in 0..2000 {
        let id = RowId(rng.below(rows()));
        let row = table.get(id).unwrap();
        let name = ValueRef::String(row.read::<&str>(NAME));
        let mut found = index.equal(&[name]).map(Result::unwrap);
        assert_eq!(found.next().expect("its name leads to it").id(), id);
        let behind =
            index.range(&[], Bound::Included(name), Bound::Unbounded).take(3).map(Result::unwrap);
        behind.for_each(|row| row.read::<u64>(NUMBER).hash(&mut digest));
    }
    digest.finish()
}

/// Updates rows at random in many transactions.
fn update_some(db: &Database, round: u64) {
    let mut rng = Rng::new(round);
    for _ in 0..100 {
        let mut tx = db.begin().unwrap();
        tx.set_level(Level::Soft);
        for _ in 0..20 {
            let id = rng.below(rows());
            let text = name(id, round);
            tx.update(TABLE, RowId(id), NAME, ValueRef::String(&text)).unwrap();
            tx.update(TABLE, RowId(id), NUMBER, ValueRef::UInt64(round)).unwrap();
        }
        tx.commit().unwrap();
    }
}

/// Updates every row in one transaction.
fn update_all(tx: &mut Transaction<'_>, round: u64) -> Result<()> {
    for id in (0..rows()).rev() {
        let text = name(id, round);
        tx.update(TABLE, RowId(id), NAME, ValueRef::String(&text))?;
    }
    Ok(())
}

/// Does everything that a process may do with the store; says what it sees.
fn work(path: &Path, memory: u64) {
    let open = || Options::new().memory(memory).open(path).unwrap();
    let see = |what: &str, db: &Snapshot| say(&format!("{what}: {:016x}", digest(db)));
    let db = open();
    let held = db.read();
    see("opened", &held);
    update_some(&db, 1);
    see("held", &held);
    see("updated", &db.read());
    drop(held);
    db.write(|tx| update_all(tx, 2)).unwrap();
    see("all updated", &db.read());
    let mut tx = db.begin().unwrap();
    update_all(&mut tx, 3).unwrap();
    tx.rollback().unwrap();
    see("rolled back", &db.read());
    update_some(&db, 4);
    db.backfill(BackfillMode::Full).unwrap();
    see("brought forward", &db.read());
    assert_eq!(db.image_error(), None);
    db.close().unwrap();
    see("opened again", &open().read());
    fs::remove_file(path.with_extension("annals-image")).unwrap();
    let db = open();
    assert_eq!((db.image_error(), &db.recovered().findings), (None, &Vec::new()));
    see("replayed", &db.read());
    db.close().unwrap();
    say("done");
}

/// Allows this process so much more memory than it has.
fn allow(more: libc::rlim_t) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let data = status.lines().find_map(|line| line.strip_prefix("VmData:")).unwrap();
    let data: libc::rlim_t = data.trim().trim_end_matches("kB").trim().parse().unwrap();
    let rlim_cur = (data << 10) + more;
    let limit = libc::rlimit { rlim_cur, rlim_max: rlim_cur };
    // SAFETY: the structure is whole, and only read.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_DATA, &raw const limit) }, 0);
}

/// Runs a child to its end; returns what it said.
fn run(path: &Path, memory: u64, allowance: u64) -> Vec<String> {
    let (memory, allowance) = (memory.to_string(), allowance.to_string());
    let mut child = Child::start(TEST, &[path.to_str().unwrap(), &memory, &allowance]);
    let mut said = Vec::new();
    while let Some(line) = child.next_line() {
        if line == "done" {
            assert!(child.end().success());
            return said;
        }
        said.push(line);
    }
    panic!("the child ended early, with {allowance} bytes: {said:#?}");
}

#[test]
fn a_store_larger_than_memory_is_as_any_other() {
    if let Some([path, memory, allowance]) = job().as_deref() {
        match allowance.parse().unwrap() {
            0 => {}
            more => allow(more),
        }
        work(Path::new(path), memory.parse().unwrap());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [path, other] = ["a.annals", "b.annals"].map(|name| folder.path().join(name));
    let db = Database::open(&path).unwrap();
    db.write(define).unwrap();
    for part in 0..10 {
        let (from, to) = (part * rows() / 10, (part + 1) * rows() / 10);
        db.write(|tx| {
            (from..to).try_for_each(|number| {
                let text = name(number, 0);
                let values = [ValueRef::String(&text), ValueRef::UInt64(number)];
                tx.insert(TABLE, &values).map(drop)
            })
        })
        .unwrap();
    }
    db.backfill(BackfillMode::Full).unwrap();
    db.close().unwrap();
    let image = fs::metadata(path.with_extension("annals-image")).unwrap().len();
    assert!(image > allowance() * 3 / 2, "the image has {image} bytes");
    for file in ["annals", "annals-image"] {
        fs::copy(path.with_extension(file), other.with_extension(file)).unwrap();
    }
    let told = |name: &str| std::env::var(name).ok().and_then(|told| told.parse().ok());
    let allowed = told("ANNALS_TEST_ALLOWANCE").unwrap_or_else(allowance);
    let limited = run(&path, budget(), allowed);
    assert_eq!(limited, run(&other, 4 << 30, 0));
    assert_eq!(limited.len(), 8);
}
