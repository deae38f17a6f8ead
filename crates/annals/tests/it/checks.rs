//! Checks of commits: what they see, and what they refuse.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use annals::storage::{Directory, MemoryDirectory, SystemClock};
use annals::{
    Command, Database, ErrorKind, FieldNumber, Options, Proposed, Result, RowChange, RowId,
    TableNumber, Transaction, Type, Value, ValueRef, View,
};

use crate::store_model::Random;

const TABLE: TableNumber = TableNumber(0);
const OTHER: TableNumber = TableNumber(1);
const CENTS: FieldNumber = FieldNumber(0);

fn open_in(directory: &MemoryDirectory, is_shared: bool) -> Database {
    let directory: Arc<dyn Directory> = Arc::new(directory.clone());
    let options = Options::new().background(false).shared(is_shared);
    options.open_in(directory, "db", Arc::new(SystemClock)).unwrap()
}

fn define(tx: &mut Transaction<'_>) -> Result<()> {
    for (table, name) in [(TABLE, "account"), (OTHER, "note")] {
        tx.apply_command(&Command::CreateTable { name: name.to_owned() })?;
        let (name, ty, default) = ("cents".to_owned(), Type::Int64, None);
        tx.apply_command(&Command::AddField { table, name, ty, nullable: false, default })?;
    }
    let (name, fields) = ("by_cents".to_owned(), vec![CENTS]);
    tx.apply_command(&Command::CreateIndex {
        name,
        table: OTHER,
        fields,
        descending: Vec::new(),
        collated: Vec::new(),
        unique: true,
    })
}

fn database() -> Database {
    let db = open_in(&MemoryDirectory::new(), false);
    db.write(define).unwrap();
    db
}

fn cents(row: Option<&Vec<Value>>) -> i64 {
    match row.map(|row| &row[0]) {
        Some(Value::Int64(cents)) => *cents,
        None => 0,
        other => panic!("{other:?}"),
    }
}

/// Refuses a commit that changes the sum of all accounts.
fn balanced(proposed: &Proposed<'_>) -> annals::model::Checked {
    let mut sum = 0;
    for change in proposed.changes() {
        let change = change?;
        if change.table == TABLE {
            sum += cents(change.after.as_ref()) - cents(change.before.as_ref());
        }
    }
    if sum == 0 { Ok(()) } else { Err(format!("the sum changes by {sum}").into()) }
}

type Rows = BTreeMap<(u32, u64), Vec<Value>>;

fn rows(view: &View) -> Rows {
    let mut all = Rows::new();
    for table in view.schema().tables() {
        for row in view.table(table.number).unwrap().rows().map(Result::unwrap) {
            let values = table.fields.iter().map(|field| row.value(field.number).to_value());
            all.insert((table.number.0, row.id().0), values.collect());
        }
    }
    all
}

/// Returns the rows that differ, by comparing all.
fn differing(before: &Rows, after: &Rows) -> Vec<RowChange> {
    let mut keys: Vec<_> = before.keys().chain(after.keys()).copied().collect();
    keys.sort_unstable();
    keys.dedup();
    let change = |&(table, id): &(u32, u64)| RowChange {
        table: TableNumber(table),
        id: RowId(id),
        before: before.get(&(table, id)).cloned(),
        after: after.get(&(table, id)).cloned(),
    };
    keys.iter().map(change).filter(|change| change.before != change.after).collect()
}

/// Changes rows at random; in about half of the cases the sum stays.
fn change(tx: &mut Transaction<'_>, random: &mut Random) -> Result<()> {
    let cents = random.below(50).cast_signed();
    let [a, b] = [(); 2].map(|()| RowId(random.below(12)));
    let table = *random.pick(&[TABLE, OTHER]);
    match random.below(12) {
        0..3 => {
            tx.insert(TABLE, &[ValueRef::Int64(cents)])?;
            tx.insert(TABLE, &[ValueRef::Int64(-cents)]).map(drop)
        }
        3..6 => {
            let of = |id| tx.view().table(TABLE)?.get(id).map(|row| row.read::<i64>(CENTS));
            let (from, to) = (of(a)?, of(b)?);
            tx.update(TABLE, a, CENTS, ValueRef::Int64(from - cents))?;
            let to = if a == b { from } else { to + cents };
            tx.update(TABLE, b, CENTS, ValueRef::Int64(to))
        }
        6 => tx.insert(OTHER, &[ValueRef::Int64(cents)]).map(drop),
        7 => tx.delete(table, a),
        8 => tx.insert_vector(TABLE, random.below(4)).map(drop),
        9 => tx.update_vector(TABLE, a, CENTS, &[cents, -cents][..]),
        10 => tx.delete_vector(table, a, random.below(3)),
        _ => tx.update(table, a, CENTS, ValueRef::Int64(cents)),
    }
}

#[test]
fn whatever_is_refused_the_sum_stays() {
    let (mut refused, mut committed) = (0, 0);
    for seed in 1..40 {
        let (db, mut random) = (database(), Random::new(seed));
        let seen = Arc::new(Mutex::new(None));
        db.check_commits("sums are zero", balanced).unwrap();
        let sight = Arc::clone(&seen);
        let look = move |proposed: &Proposed<'_>| {
            let (before, after) = (rows(proposed.before()), rows(proposed.after()));
            let changes: Vec<_> = proposed.changes().collect::<Result<_>>()?;
            assert_eq!(changes, differing(&before, &after));
            *sight.lock().unwrap() = Some((before, after, changes));
            Ok(())
        };
        db.check_commits("what is seen", look).unwrap();
        for _ in 0..30 {
            let before = rows(&db.read());
            let mut tx = db.begin().unwrap();
            for _ in 0..1 + random.below(4) {
                let part = tx.set_savepoint().unwrap();
                // What fails may have changed something.
                if change(&mut tx, &mut random).is_err() || random.chance(20) {
                    tx.roll_back_to(part).unwrap();
                }
            }
            let (after, is_empty) = (rows(tx.view()), tx.is_empty());
            let sum = |rows: &Rows| {
                rows.iter()
                    .filter(|(key, _)| key.0 == 0)
                    .map(|(_, row)| cents(Some(row)))
                    .sum::<i64>()
            };
            *seen.lock().unwrap() = None;
            match tx.commit() {
                Ok(commit) => {
                    assert_eq!(sum(&after), 0);
                    assert_eq!(rows(&db.read()), after);
                    let seen = seen.lock().unwrap().take();
                    assert_eq!(seen.is_none(), is_empty, "each commit is checked");
                    let Some(seen) = seen else { continue };
                    committed += 1;
                    assert_eq!((&seen.0, &seen.1), (&before, &after));
                    // The journal says the same.
                    let mut logged =
                        db.changes(commit.txid..).unwrap().next().unwrap().unwrap().rows;
                    logged.sort_by_key(|change| (change.table, change.id));
                    assert_eq!(logged, seen.2);
                }
                Err(error) => {
                    refused += 1;
                    match error.kind() {
                        ErrorKind::Unique => {}
                        ErrorKind::Refused => assert_ne!(sum(&after), 0, "{error}"),
                        _ => panic!("{error:?}"),
                    }
                    assert_eq!(rows(&db.read()), before);
                }
            }
        }
    }
    assert!(refused > 200 && committed > 200, "{refused} refused, {committed} committed");
}

#[test]
fn a_refusal_names_the_check_and_has_the_error_of_the_program() {
    #[derive(Debug)]
    struct Mine(i64);
    impl std::fmt::Display for Mine {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "{} is too much", self.0)
        }
    }
    impl std::error::Error for Mine {}

    let db = database();
    db.check_commits("limit", |proposed| {
        for row in proposed.after().table(TABLE)?.rows() {
            let cents = row?.read::<i64>(CENTS);
            if cents > 100 {
                return Err(Mine(cents).into());
            }
        }
        Ok(())
    })
    .unwrap();
    let insert = |cents| db.write(|tx| tx.insert(TABLE, &[ValueRef::Int64(cents)]));
    insert(100).unwrap();
    let error = insert(101).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(
        error.to_string(),
        "check `limit` refuses the commit, the transaction is rolled back: 101 is too much"
    );
    let inner = error.io_error().and_then(std::io::Error::get_ref).unwrap();
    assert_eq!(inner.downcast_ref::<Mine>().unwrap().0, 101);
    assert_eq!(insert(1).unwrap(), RowId(1), "nothing is left of what was refused");
}

#[test]
fn an_error_of_the_database_in_a_check_keeps_its_kind() {
    let db = database();
    db.check_commits("lost", |proposed| {
        proposed.before().table(TABLE)?.get(RowId(99))?;
        Ok(())
    })
    .unwrap();
    let error = db.write(|tx| tx.comment("none")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(
        error.to_string().starts_with("check `lost`, the transaction is rolled back: "),
        "{error}"
    );
}

#[test]
fn checks_are_registered_once_and_outside_of_transactions() {
    let db = database();
    db.check_commits("a", |_| Ok(())).unwrap();
    let again = db.check_commits("a", |_| Ok(())).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Invalid);
    let tx = db.begin().unwrap();
    let nested = db.check_commits("b", |_| Ok(())).unwrap_err();
    assert_eq!(nested.kind(), ErrorKind::Invalid);
    // Another thread waits: the open transaction isn't checked, the next one is.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| db.check_commits("none", |_| Err("no".into())));
        let mut tx = tx;
        tx.insert(TABLE, &[ValueRef::Int64(1)]).unwrap();
        tx.commit().unwrap();
        waiting.join().unwrap().unwrap();
    });
    assert_eq!(db.write(|tx| tx.comment("x")).unwrap_err().kind(), ErrorKind::Refused);
    let mut tx = db.begin().unwrap();
    tx.comment("x").unwrap();
    assert_eq!(tx.submit().map(drop).unwrap_err().kind(), ErrorKind::Refused);
    db.begin().unwrap().commit().unwrap(); // it has nothing to be checked
}

#[test]
fn a_check_that_panics_rolls_back() {
    let db = database();
    db.check_commits("panics", |proposed| {
        assert!(proposed.after().table(TABLE)?.len() < 2, "as it must");
        Ok(())
    })
    .unwrap();
    let insert = || db.write(|tx| tx.insert(TABLE, &[ValueRef::Int64(0)]));
    insert().unwrap();
    catch_unwind(AssertUnwindSafe(insert)).unwrap_err();
    assert_eq!(db.read().table(TABLE).unwrap().len(), 1);
    assert!(catch_unwind(AssertUnwindSafe(insert)).is_err(), "it is still checked");
}

/// A row is read through the schema after the transaction; one that only gets a new field has not changed.
#[test]
fn changes_are_seen_through_the_schema_after_them() {
    let db = database();
    db.write(|tx| tx.insert_vector(TABLE, 3)).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sight = Arc::clone(&seen);
    let look = move |proposed: &Proposed<'_>| {
        *sight.lock().unwrap() = proposed.changes().collect::<Result<Vec<_>>>()?;
        Ok(())
    };
    db.check_commits("seen", look).unwrap();
    let (name, ty, default) = ("more".to_owned(), Type::Int64, Some(Value::Int64(7)));
    let field = Command::AddField { table: TABLE, name, ty, nullable: false, default };
    db.write(|tx| {
        tx.apply_command(&field)?;
        tx.update(TABLE, RowId(1), CENTS, ValueRef::Int64(5))?;
        tx.insert(OTHER, &[ValueRef::Int64(5)])?;
        tx.apply_command(&Command::DropTable { table: OTHER })
    })
    .unwrap();
    let row = |cents| Some(vec![Value::Int64(cents), Value::Int64(7)]);
    let expected = RowChange { table: TABLE, id: RowId(1), before: row(0), after: row(5) };
    assert_eq!(*seen.lock().unwrap(), [expected]);
}

#[test]
fn in_shared_mode_only_the_commits_of_this_handle_are_checked() {
    let directory = MemoryDirectory::new();
    let [ours, theirs] = [(); 2].map(|()| open_in(&directory, true));
    ours.write(define).unwrap();
    ours.check_commits("sums are zero", balanced).unwrap();
    let insert = |db: &Database, cents| db.write(|tx| tx.insert(TABLE, &[ValueRef::Int64(cents)]));
    insert(&theirs, 5).unwrap();
    // What others committed is before the transaction.
    insert(&ours, 0).unwrap();
    assert_eq!(insert(&ours, 5).unwrap_err().kind(), ErrorKind::Refused);
    insert(&theirs, 7).unwrap();
    assert_eq!(ours.pull().unwrap().table(TABLE).unwrap().len(), 3);
}
