//! All questions about the past, with any object of the image damaged: the answers are those of a model.

use std::collections::BTreeMap;

use annals::storage::MemoryDirectory;
use annals::{
    BackfillMode, Command, Database, ErrorKind, Moment, Reader, Result, RowChange, RowId,
    Timestamp, Txid, Value, ValueRef,
};
use annals_tools::Undo as _;

use super::damage::{bytes, put};
use super::{CITY, IMAGE, NAME, PEOPLE, define, open};
use crate::hostile::journals::thorough;
use crate::store_model::Random;

type Rows = BTreeMap<u64, Vec<Value>>;

/// A database, and what it held after each transaction.
struct Told {
    directory: MemoryDirectory,
    states: Vec<Rows>,
    /// The last transaction with a comment.
    commented: BTreeMap<String, u64>,
}

const fn time(txid: u64) -> Timestamp {
    Timestamp(1_000_000 * txid.cast_signed())
}

fn values(name: &str, people: u32) -> Vec<Value> {
    vec![Value::String(name.to_owned()), Value::UInt32(people)]
}

impl Told {
    fn new() -> Self {
        let directory = MemoryDirectory::new();
        let database = open(&directory);
        define(&database);
        let (name, fields) = ("by_people".to_owned(), vec![PEOPLE]);
        let index = Command::CreateIndex {
            name,
            table: CITY,
            fields,
            descending: Vec::new(),
            collated: Vec::new(),
            unique: false,
        };
        database
            .write(|tx| {
                tx.set_time(time(2));
                tx.apply_command(&index)
            })
            .unwrap();
        let mut told = Self { directory, states: vec![Rows::new(); 3], commented: BTreeMap::new() };
        let mut random = Random::new(5);
        told.change(&database, &mut random, 300);
        database.backfill(BackfillMode::Full).unwrap();
        for round in 0..3 {
            (0..30).for_each(|_| told.change(&database, &mut random, 2));
            if round < 2 {
                database.backfill(BackfillMode::Full).unwrap();
            }
        }
        // The last transactions are after the index.
        database.close().unwrap();
        told
    }

    /// Commits some changes of rows, with a comment.
    fn change(&mut self, database: &Database, random: &mut Random, count: u64) {
        let txid = self.states.len() as u64;
        let (mut rows, comment) = (self.states.last().unwrap().clone(), format!("c{}", txid % 37));
        database
            .write(|tx| {
                for _ in 0..count {
                    let number = u32::try_from(random.below(1000)).unwrap();
                    let id = random.below(400);
                    let there = rows.contains_key(&id);
                    if there && random.chance(20) {
                        rows.remove(&id);
                        tx.delete(CITY, RowId(id))?;
                    } else if there {
                        rows.get_mut(&id).unwrap()[1] = Value::UInt32(number);
                        tx.update(CITY, RowId(id), PEOPLE, number.into())?;
                    } else {
                        let name = format!("city {number}");
                        tx.insert_at(CITY, RowId(id), &[name.as_str().into(), number.into()])?;
                        rows.insert(id, values(&name, number));
                    }
                }
                tx.set_time(time(txid));
                tx.comment(&comment)
            })
            .unwrap();
        self.states.push(rows);
        self.commented.insert(comment, txid);
    }

    fn last(&self) -> u64 {
        self.states.len() as u64 - 1
    }

    fn state(&self, txid: u64) -> &Rows {
        &self.states[usize::try_from(txid).unwrap()]
    }

    /// Asks something; each number is another question.
    fn ask(&self, reader: &Reader, question: u64, random: &mut Random) {
        let (some, other) = (3 + random.below(self.last() - 2), 3 + random.below(self.last() - 2));
        let id = random.below(400);
        match question % 6 {
            0 => {
                let (comment, txid) =
                    self.commented.iter().nth(usize::try_from(other % 37).unwrap()).unwrap();
                self.at(reader, Moment::Comment(comment.clone()), *txid, id);
            }
            1 => self.at(reader, Moment::Time(Timestamp(time(some).0 + 7)), some, id),
            2 => self.at(reader, Moment::Txid(annals::Txid(some)), some, id),
            3 => {
                let (from, to) = (annals::Txid(some), annals::Txid(other));
                let found = again(|| reader.read().differences(from, to));
                assert_eq!(found, differences(self.state(some), self.state(other)));
            }
            4 => {
                let history = reader.history_of(CITY, RowId(id)).unwrap().map(Result::unwrap);
                let found: Vec<_> =
                    history.map(|it| (it.txid.0, it.comments, it.change.after)).collect();
                assert_eq!(found, self.history(id));
            }
            _ => {
                let found = reader.blame(CITY, RowId(id)).ok();
                let found = found
                    .map(|all| all.into_iter().map(|it| (it.txid.0, it.value)).collect::<Vec<_>>());
                assert_eq!(found, self.blame(id));
            }
        }
    }

    fn at(&self, reader: &Reader, moment: Moment, txid: u64, id: u64) {
        let row = again(|| {
            let then = reader.at(moment.clone())?;
            assert_eq!(then.txid(), annals::Txid(txid));
            let row = then.table(CITY)?.find(RowId(id))?;
            Ok(row.map(|row| [0, 1].map(|at| row.value(annals::FieldNumber(at)).to_value())))
        });
        let then = reader.at(moment).unwrap();
        let expected = self.state(txid).get(&id);
        assert_eq!(row.as_ref().map(|row| row.as_slice()), expected.map(Vec::as_slice));
        assert_eq!(then.table(CITY).unwrap().len(), self.state(txid).len() as u64);
    }

    fn history(&self, id: u64) -> Vec<(u64, Vec<String>, Option<Vec<Value>>)> {
        let rows = self.states.iter().map(|rows| rows.get(&id));
        let pairs = rows.clone().zip(rows.skip(1)).zip(1..);
        let differing = pairs.filter(|((before, after), _)| before != after);
        differing
            .map(|((_, after), txid)| (txid, vec![format!("c{}", txid % 37)], after.cloned()))
            .collect()
    }

    /// Returns since when each field of a row has its value.
    fn blame(&self, id: u64) -> Option<Vec<(u64, Value)>> {
        let row = self.states.last().unwrap().get(&id)?;
        let since = |field: usize| {
            let has = |rows: &&Rows| rows.get(&id).is_some_and(|it| it[field] == row[field]);
            let same = self.states.iter().rev().take_while(has).count() as u64;
            (self.last() + 1 - same, row[field].clone())
        };
        Some(vec![since(0), since(1)])
    }
}

fn differences(from: &Rows, to: &Rows) -> Vec<RowChange> {
    let ids: std::collections::BTreeSet<_> = from.keys().chain(to.keys()).copied().collect();
    let change = |id| RowChange {
        table: CITY,
        id: RowId(id),
        before: from.get(&id).cloned(),
        after: to.get(&id).cloned(),
    };
    ids.into_iter().map(change).filter(|change| change.before != change.after).collect()
}

fn content(database: &Database) -> Rows {
    let row = |row: Result<annals::Row<'_>>| {
        let row = row?;
        let values = [0, 1].map(|at| row.value(annals::FieldNumber(at)).to_value());
        Ok((row.id().0, values.to_vec()))
    };
    again(|| database.read().table(CITY)?.rows().map(row).collect())
}

/// Asks something; again, if a page was lost: then it is known.
fn again<T>(ask: impl Fn() -> Result<T>) -> T {
    match ask() {
        Err(error) if error.kind() == ErrorKind::PageLost => ask().unwrap(),
        answer => answer.unwrap(),
    }
}

#[test]
fn with_a_damaged_image_all_questions_are_answered() {
    let told = Told::new();
    let [sound, journal] = [IMAGE, NAME].map(|name| bytes(&told.directory, name));
    let mut random = Random::new(9);
    let rounds = if thorough() { 40 } else { 1 };
    let (mut found, mut alone) = (0, 0);
    for (unit, round) in
        (0..sound.len() / 4096).flat_map(|unit| (0..rounds).map(move |it| (unit, it)))
    {
        println!("unit {unit}, round {round}");
        let mut wrong = sound.clone();
        wrong[unit * 4096 + usize::try_from(random.below(24)).unwrap()] ^= 0x41;
        put(&told.directory, IMAGE, &wrong);
        for question in 0..6 {
            // Each is the first question once, and the second.
            let reader = Reader::open(&told.directory, NAME).unwrap();
            told.ask(&reader, question, &mut random);
            let next = random.next();
            told.ask(&reader, next, &mut random);
        }
        for is_commented in [false, true] {
            put(&told.directory, IMAGE, &wrong);
            put(&told.directory, NAME, &journal);
            let database = open(&told.directory);
            undo(&told, &database, is_commented);
            found += usize::from(!database.image_damage().is_empty());
            database.backfill(BackfillMode::Full).unwrap();
            let check = annals_tools::check_history_index(&database.read(), true).unwrap();
            assert_eq!(check.unwrap().problem, None);
            database.close().unwrap();
        }
        put(&told.directory, NAME, &journal);
        put(&told.directory, IMAGE, &wrong);
        alone += usize::from(index_is_replaced(&told));
        put(&told.directory, NAME, &journal);
    }
    assert!(found > 2 && alone > 0, "{found}, {alone}");
}

/// Asks for all histories. If only the index is damaged, the root stays, and the next backfill stores another index.
fn index_is_replaced(told: &Told) -> bool {
    let database = open(&told.directory);
    for id in 0..400 {
        let history = database.history_of(CITY, RowId(id)).unwrap().map(Result::unwrap);
        let found: Vec<_> = history.map(|it| (it.txid.0, it.comments, it.change.after)).collect();
        assert_eq!(found, told.history(id));
    }
    for (comment, txid) in &told.commented {
        assert_eq!(
            database.txid_of(Moment::Comment(comment.clone())).unwrap(),
            annals::Txid(*txid)
        );
    }
    let damage = database.image_damage();
    let is_alone = |finding: &String| finding.contains("only makes reading the past faster");
    if damage.is_empty() || !damage.iter().all(is_alone) {
        return false;
    }
    assert_eq!(content(&database), *told.states.last().unwrap());
    database.backfill(BackfillMode::Full).unwrap();
    let check = annals_tools::check_history_index(&database.read(), true).unwrap();
    assert_eq!(check.unwrap().problem, None);
    assert_eq!(database.image_damage().len(), damage.len());
    database.close().unwrap();
    let reader = Reader::open(&told.directory, NAME).unwrap();
    for id in 0..400 {
        let mut history = reader.history_of(CITY, RowId(id)).unwrap();
        assert_eq!(history.by_ref().count(), told.history(id).len());
        assert_eq!(history.index_problem(), None);
    }
    true
}

/// Reverts the last transaction, or restores the rows that it changed.
fn undo(told: &Told, database: &Database, is_restored: bool) {
    let last = told.last();
    again(|| {
        database.write(|tx| {
            if !is_restored {
                return tx.revert(annals::Txid(last));
            }
            let ids = differences(told.state(last - 1), told.state(last)).into_iter();
            ids.map(|change| change.id).try_for_each(|id| tx.restore((CITY, id), Txid(last - 1)))
        })
    });
    assert!(content(database) == *told.state(last - 1));
    let first = RowId(*told.state(last - 1).keys().next().unwrap());
    again(|| database.write(|tx| tx.update(CITY, first, PEOPLE, ValueRef::UInt32(1))));
}
