//! Changes, differences and subscriptions of random histories, against the states that the model had.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use annals::reports::Older;
use annals::storage::{MemoryDirectory, SystemClock};
use annals::{
    BackfillMode, Changed, Database, FieldNumber, Level, Options, Reader, RowChange, RowFields,
    RowId, Subscription, TableNumber, Txid, Value,
};

use super::NAME;
use super::look::same_rows;
use super::model::Model;
use super::statements::{Step, agree};
use crate::store_model::Random;

/// The rows of a moment, as the present schema shows them.
pub(super) type Rows = BTreeMap<(u32, u64), Vec<Value>>;

/// A database, and all states that it had.
struct Past {
    random: Random,
    directory: MemoryDirectory,
    database: Option<Database>,
    /// The state after each transaction, and its comments.
    states: Vec<Rc<Model>>,
    /// Who follows: always, at times, hardly ever; and from another handle.
    followers: Vec<(u64, Subscription, Vec<Changed>)>,
    reader: Option<Reader>,
}

fn options() -> Options {
    Options::new().background(false)
}

impl Past {
    fn new(seed: u64) -> Self {
        let directory = MemoryDirectory::new();
        let mut past = Self {
            random: Random::new(seed),
            directory,
            database: None,
            states: vec![Rc::default()],
            followers: Vec::new(),
            reader: None,
        };
        past.open();
        past
    }

    /// Opens, and begins to follow; whoever followed the handle before has given all.
    fn open(&mut self) {
        if let Some(database) = self.database.take() {
            database.close().unwrap();
            self.reader = None;
            for (_, follower, heard) in &mut self.followers {
                heard.extend(follower.map(Result::unwrap).take(usize::MAX));
                assert!(follower.is_over());
                assert!(follower.try_next().unwrap().is_none());
            }
        }
        let directory = Arc::new(self.directory.clone());
        let database = options().open_in(directory, NAME, Arc::new(SystemClock)).unwrap();
        let reader = Reader::open(&self.directory, NAME).unwrap();
        let begun = database.read().txid().0 + 1;
        let all = self.compare_followers();
        assert_eq!(all, begun - 1, "nobody missed anything");
        self.followers = [100, 30, 3]
            .into_iter()
            .map(|chance| {
                (chance, database.subscribe_from(annals::Txid(begun)).unwrap(), Vec::new())
            })
            .collect();
        self.followers.push((30, reader.subscribe(), Vec::new()));
        (self.database, self.reader) = (Some(database), Some(reader));
    }

    /// Compares what followers heard with what happened; returns the last transaction that they heard of.
    fn compare_followers(&mut self) -> u64 {
        let mut last = self.states.len() as u64 - 1;
        for (place, (_, follower, heard)) in self.followers.iter().enumerate() {
            let txids: Vec<u64> = heard.iter().map(|changed| changed.txid.0).collect();
            assert!(txids.is_sorted_by(|a, b| a + 1 == *b), "{txids:?}");
            assert_eq!(
                follower.txid(),
                annals::Txid(txids.last().copied().unwrap_or(follower.txid().0))
            );
            for changed in heard {
                let expected = self.difference(changed.txid.0 - 1, changed.txid.0);
                assert_eq!(self.shown(&changed.rows), expected, "transaction {}", changed.txid);
            }
            // One ends with its reader, which was dropped; the others have heard all.
            if place < 3 {
                last = last.min(follower.txid().0);
            }
        }
        last
    }

    /// Returns changes that were seen through an earlier schema as the present one shows them.
    fn shown(&self, rows: &[RowChange]) -> Vec<RowChange> {
        let present = self.states.last().unwrap();
        let mut rows = sorted(rows);
        rows.retain_mut(|row| {
            let Some(table) = present.tables.get(&row.table.0) else { return false };
            for values in [&mut row.before, &mut row.after].into_iter().flatten() {
                let old = std::mem::take(values);
                let width = table.fields.last().map_or(0, |field| field.number as usize + 1);
                values.resize(width, Value::Null);
                for field in &table.fields {
                    let number = field.number as usize;
                    values[number] = old.get(number).unwrap_or(&field.default).clone();
                }
            }
            !same_rows(row.before.as_ref(), row.after.as_ref())
        });
        rows
    }

    fn transaction(&mut self) {
        let database = self.database.as_ref().unwrap();
        let mut model = Model::clone(self.states.last().unwrap());
        let mut tx = database.begin().unwrap();
        tx.set_level(*self.random.pick(&Level::ALL));
        let random = &mut self.random;
        let mut step = Step { tx: &mut tx, model: &mut model, random, wrote: false };
        for _ in 0..step.random.below(8) {
            step.run();
        }
        let wrote = step.wrote;
        if self.random.chance(10) || !wrote {
            return tx.rollback().unwrap();
        }
        let verdict = model.verdict();
        agree(tx.commit(), verdict);
        if verdict.is_ok() {
            model.end_transaction();
            self.states.push(Rc::new(model));
        }
        for (chance, follower, heard) in &mut self.followers {
            if self.random.chance(*chance) {
                while let Some(changed) = follower.try_next().unwrap() {
                    heard.push(changed);
                    if self.random.chance(20) {
                        follower.shrink_to(0);
                    }
                }
            }
        }
        let (_, _, always) = &self.followers[0];
        let last = always.last().map_or(0, |changed| changed.txid.0);
        assert!(always.is_empty() || last == self.states.len() as u64 - 1, "it hears at once");
    }

    fn other(&mut self) {
        let database = self.database.as_ref().unwrap();
        match self.random.below(6) {
            0 => self.open(),
            1 => {
                let older = *self.random.pick(&[Older::Kept, Older::NotNeeded]);
                database.restart(older, Duration::ZERO).map(drop).unwrap_or_default();
            }
            2 => drop(database.soft_checkpoint().unwrap()),
            _ => drop(database.backfill(BackfillMode::Full).unwrap()),
        }
    }

    /// Returns the rows after a transaction.
    fn rows(&self, txid: u64) -> Rows {
        let present = self.states.last().unwrap();
        rows_of(&self.states[usize::try_from(txid).unwrap()], present)
    }

    fn difference(&self, from: u64, to: u64) -> Vec<RowChange> {
        let (from, to) = (self.rows(from), self.rows(to));
        let keys = from.keys().chain(to.keys()).copied().collect::<std::collections::BTreeSet<_>>();
        let change = |(table, id): (u32, u64)| RowChange {
            table: TableNumber(table),
            id: RowId(id),
            before: from.get(&(table, id)).cloned(),
            after: to.get(&(table, id)).cloned(),
        };
        let is_one = |it: &RowChange| !same_rows(it.before.as_ref(), it.after.as_ref());
        keys.into_iter().map(change).filter(is_one).collect()
    }

    /// Compares the fields that a transaction changed with its whole rows.
    fn compare_fields(&self, changed: &Changed) {
        let now = self.database.as_ref().unwrap().read();
        let found = now.changed_fields(changed.txid, None, usize::MAX).unwrap().unwrap();
        assert_eq!((found.txid, found.time), (changed.txid, changed.time));
        assert_eq!((&found.comments, found.left_out), (&changed.comments, 0));
        let part = |row: &RowChange, side: &Option<Vec<Value>>| {
            let table = now.schema().table(row.table).unwrap();
            let fields = row.fields().filter(|it| table.field(*it).is_some());
            let value = |side: &Vec<Value>, it: FieldNumber| (it, side[it.0 as usize].clone());
            side.as_ref().map(|side| fields.map(|it| value(side, it)).collect::<Vec<_>>())
        };
        let expected = changed.rows.iter().map(|row| RowFields {
            table: row.table,
            id: row.id,
            before: part(row, &row.before),
            after: part(row, &row.after),
        });
        assert_eq!(found.rows, expected.collect::<Vec<_>>(), "transaction {}", changed.txid);
        let one = now.changed_fields(changed.txid, None, 1).unwrap().unwrap();
        assert!(one.rows.len() <= 1 && one.left_out + 1 >= found.rows.len() as u64);
        for table in now.schema().tables().iter().map(|table| table.number) {
            let of_table = now.changed_fields(changed.txid, Some(table), usize::MAX);
            let expected = found.rows.iter().filter(|row| row.table == table);
            assert!(of_table.unwrap().unwrap().rows.iter().eq(expected), "{}", changed.txid);
        }
    }

    /// Compares the rows that were deleted up to a moment, and aren't there then, with the states before.
    fn compare_deletions(&self, txid: u64) {
        let mut expected = std::collections::BTreeMap::new();
        for txid in 1..=txid {
            let (before, after) = (self.rows(txid - 1), self.rows(txid));
            expected.retain(|key, _| !after.contains_key(key));
            let gone = before.into_iter().filter(|(key, _)| !after.contains_key(key));
            expected.extend(gone.map(|(key, values)| (key, (txid, values))));
        }
        let now = self.database.as_ref().unwrap().read();
        for table in now.schema().tables() {
            let Some(deletions) = now.deletions(table.number).unwrap() else {
                assert!(!table.history_index, "{}", table.name);
                continue;
            };
            let of_table = expected.iter().filter(|((number, _), _)| *number == table.number.0);
            let mut of_table = of_table.map(|((_, id), gone)| (*id, gone));
            let mut from = RowId(0);
            while let Some((row, deletion)) =
                deletions.first_in(from..RowId(u64::MAX), Txid(txid)).unwrap()
            {
                assert!(row >= from);
                from = RowId(row.0 + 1);
                let Some(version) = deletion else { continue };
                let (id, (txid, values)) = of_table.next().expect("it was deleted");
                assert_eq!((row.0, version.txid.0, version.change.id), (id, *txid, row));
                assert!(same_rows(version.change.before.as_ref(), Some(values)));
            }
            assert_eq!(of_table.next(), None, "up to transaction {txid}");
        }
    }

    /// Compares what little memory makes of differences and of transactions with all of them.
    fn compare_parts(&self, (from, to): (u64, u64), all: &[RowChange]) {
        let now = self.database.as_ref().unwrap().read();
        // A few parts, or about twenty, each of which reads the journal.
        let all_changes = || now.changes(Txid(from.min(to) + 1)..=Txid(from.max(to))).unwrap();
        let touched: usize = all_changes().map(|changed| changed.unwrap().rows.len()).sum();
        for room in [300 + 20 * touched, 4_000 + 80 * touched] {
            let differing = || now.differing(Txid(from), Txid(to), room).unwrap();
            let whole: Vec<_> = differing().map(Result::unwrap).collect();
            assert_eq!(whole, all, "between {from} and {to}, in parts of {room} bytes");
            // From each place the rest follows, and with it the place.
            let (mut rows, mut left) = (differing(), all);
            while let Some((table, id)) = rows.place() {
                if left.len().is_multiple_of(1 + all.len() / 5) {
                    let rest = differing().starting_at(table, id).map(Result::unwrap);
                    assert!(rest.eq(left.iter().cloned()), "from row {} on", id.0);
                }
                if rows.next().is_none() {
                    break;
                }
                left = &left[1..];
            }
            for table in now.schema().tables().iter().map(|table| table.number) {
                let expected = all.iter().filter(|row| row.table == table).cloned();
                assert!(differing().of(table).map(Result::unwrap).eq(expected));
            }
            let (bounded, mut whole) = (all_changes().within(room), all_changes());
            for some in bounded.map(Result::unwrap) {
                let all = whole.next().unwrap().unwrap();
                assert_eq!(
                    (some.txid, some.time, &some.comments),
                    (all.txid, all.time, &all.comments)
                );
                assert!(
                    some.rows.iter().all(|row| all.rows.contains(row)),
                    "transaction {}",
                    all.txid
                );
                let left_out = all.rows.len() - some.rows.len();
                assert!(some.left_out >= left_out as u64 && (some.left_out > 0 || left_out == 0));
            }
            assert!(whole.next().is_none());
        }
    }

    /// Compares all that can be asked of the past with the states that there were.
    fn compare(&mut self) {
        let last = self.states.len() as u64 - 1;
        let database = self.database.as_ref().unwrap();
        let changes: Vec<Changed> =
            database.changes(..).unwrap().collect::<Result<_, _>>().unwrap();
        let txids: Vec<u64> = changes.iter().map(|changed| changed.txid.0).collect();
        assert_eq!(txids, (1..=last).collect::<Vec<_>>());
        for changed in &changes {
            assert_eq!(sorted(&changed.rows), self.difference(changed.txid.0 - 1, changed.txid.0));
            for row in &changed.rows {
                assert!(
                    row.fields().next().is_some() || row.before.is_none() || row.after.is_none()
                );
            }
            self.compare_fields(changed);
        }
        self.compare_deletions(last);
        self.compare_deletions(self.states.len() as u64 / 2);
        for count in 0..6 {
            let from = self.random.below(last + 1);
            let to = self.random.below(last + 1);
            let found = database.read().differences(annals::Txid(from), annals::Txid(to)).unwrap();
            assert_eq!(found, self.difference(from, to), "between {from} and {to}");
            if count == 0 {
                self.compare_parts((from, to), &found);
            }
            let some: Vec<Changed> =
                database.changes(Txid(from)..Txid(to)).unwrap().collect::<Result<_, _>>().unwrap();
            let first = usize::try_from(from.max(1)).unwrap() - 1;
            let expected = changes.get(first..(usize::try_from(to).unwrap().max(1) - 1).max(first));
            assert_eq!(some, expected.unwrap_or_default());
            let rest = database.subscribe_from(annals::Txid(from.max(1))).unwrap();
            let rest: Vec<Changed> =
                rest.map(Result::unwrap).take(changes.len().saturating_sub(first)).collect();
            assert_eq!(rest, changes[first..]);
        }
        assert_eq!(self.compare_followers().max(last), last);
    }
}

/// Returns the rows of a moment, as a later schema shows them.
pub(super) fn rows_of(then: &Model, present: &Model) -> Rows {
    let mut rows = Rows::new();
    for (number, table) in &present.tables {
        let Some(was) = then.tables.get(number) else { continue };
        for (id, values) in &was.rows {
            let width = table.fields.last().map_or(0, |field| field.number as usize + 1);
            let mut row = vec![Value::Null; width];
            for field in &table.fields {
                let place = was.fields.iter().position(|old| old.number == field.number);
                row[field.number as usize] =
                    place.map_or_else(|| field.default.clone(), |place| values[place].clone());
            }
            rows.insert((*number, *id), row);
        }
    }
    rows
}

fn sorted(rows: &[RowChange]) -> Vec<RowChange> {
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| (row.table.0, row.id));
    rows
}

#[test]
fn changes_of_random_histories_are_what_differs() {
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    for seed in super::seeds(if full { 400 } else { 25 }) {
        println!("repeat the last history with ANNALS_TEST_HISTORY={seed}");
        let mut past = Past::new(seed);
        for _ in 0..80 {
            match past.random.chance(85) {
                true => past.transaction(),
                false => past.other(),
            }
        }
        past.compare();
    }
}
