//! Somebody who asks about the past and leaves: the work for the answer ends, and later questions have right answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use annals::internals::read_while;
use annals::storage::MemoryDirectory;
use annals::{Database, Error, ErrorKind, FieldNumber, Result, RowId, Txid, ValueRef};

use super::{TABLE, define, options, try_open};

/// The transactions that change a row.
const CHANGES: u64 = 20_000;
const ROWS: u64 = 50;
const NUMBER: FieldNumber = FieldNumber(1);

/// Creates a long history, all of which is in the journal only.
fn create() -> Result<Database> {
    let database = try_open(&options(), &MemoryDirectory::new())?;
    database.write(|tx| {
        define(tx)?;
        (0..ROWS).try_for_each(|_| {
            tx.insert(TABLE, &[ValueRef::String("name"), ValueRef::Int64(0), ValueRef::Null])
                .map(drop)
        })
    })?;
    for change in 0..CHANGES {
        let value = ValueRef::Int64(1 + i64::try_from(change).unwrap());
        database.write(|tx| {
            // Who reads a state is looked for after each MiB of the journal.
            tx.comment(&"because ".repeat(40))?;
            tx.update(TABLE, RowId(change % ROWS), NUMBER, value)
        })?;
    }
    Ok(database)
}

/// Asks something; returns a number that its answer has.
type Question = fn(&Database) -> Result<u64>;

const QUESTIONS: [(&str, Question); 6] = [
    ("a whole state", |db| {
        let then = db.at(Txid(CHANGES / 2))?;
        let mut sum = 0;
        for row in then.table(TABLE)?.range(RowId(0)..) {
            sum += row?.id().0;
        }
        Ok(sum)
    }),
    ("a history", |db| {
        let versions = db.history_of(TABLE, RowId(7))?.collect::<Result<Vec<_>>>()?;
        Ok(versions.len() as u64)
    }),
    ("blame", |db| Ok(db.blame(TABLE, RowId(7))?.last().map_or(0, |it| it.txid.0))),
    ("changes", |db| {
        let all = db.changes(..)?.collect::<Result<Vec<_>>>()?;
        Ok(all.len() as u64)
    }),
    ("bounded changes", |db| {
        let all = db.changes(Txid(CHANGES / 2)..)?.within(1 << 20).collect::<Result<Vec<_>>>()?;
        Ok(all.len() as u64)
    }),
    ("differences", |db| {
        let now = db.read();
        let rows = now.differing(Txid(1), now.txid(), 1 << 20)?.collect::<Result<Vec<_>>>()?;
        Ok(rows.len() as u64)
    }),
];

/// Asks for somebody who leaves after some looks at whether they are there; returns how often they were looked for.
fn ask(database: &Database, question: Question, stays: u64) -> (Result<u64>, u64) {
    let looks = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&looks);
    let is_wanted = move || counted.fetch_add(1, Ordering::Relaxed) < stays;
    let answer = read_while(is_wanted, || question(database));
    (answer, looks.load(Ordering::Relaxed))
}

#[test]
fn work_for_somebody_who_has_left_ends() {
    for (what, question) in QUESTIONS {
        let database = create().unwrap();
        let kind = |(answer, _): (Result<u64>, u64)| answer.as_ref().err().map(Error::kind);
        // Before anybody has asked anything, and then in the midst.
        assert_eq!(kind(ask(&database, question, 0)), Some(ErrorKind::Cancelled), "{what}");
        let (answer, looks) = ask(&database, question, u64::MAX);
        let answer = answer.unwrap();
        assert!(looks > 1, "{what}: somebody was looked for {looks} times only");
        for stays in [1, looks / 2, looks - 1] {
            // Another one each time: a state that was made before is kept, and the next question takes less.
            let fresh = create().unwrap();
            let (left, looks) = ask(&fresh, question, stays);
            assert_eq!(left.unwrap_err().kind(), ErrorKind::Cancelled, "{what} after {stays}");
            // A reader that was gone isn't looked for again and again: what begins anew would be.
            assert!(looks <= stays + 2, "{what}: looked for {looks} times, gone after {stays}");
            // Nothing wrong was kept.
            assert_eq!(question(&fresh).unwrap(), answer, "{what}");
        }
        // Who asks without leaving is never stopped.
        assert_eq!(question(&database).unwrap(), answer, "{what}");
    }
}
