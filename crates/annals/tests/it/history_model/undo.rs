//! Restored rows, reverted transactions and blame in random histories, against all states that the model had.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use annals::model::OnDelete;
use annals::reports::Older;
use annals::storage::{MemoryDirectory, SystemClock};
use annals::{
    BackfillMode, Blame, Database, ErrorKind, FieldNumber, Level, Options, Pending, RowId,
    TableNumber, Txid, Type, Value, VersionKind,
};
use annals_tools::Undo as _;

use super::NAME;
use super::changes::{Rows, rows_of};
use super::look::{same, same_rows};
use super::model::{Answer, Model};
use super::rules::key;
use super::statements::{Step, agree};
use crate::store_model::Random;

/// A row of a table.
type Key = (u32, u64);

/// A database, and all states that it had.
struct World {
    random: Random,
    directory: MemoryDirectory,
    database: Option<Database>,
    states: Vec<Rc<Model>>,
    /// How often each outcome was met.
    met: BTreeMap<String, usize>,
}

/// When a field got its value, and how.
type Origin = (u64, VersionKind);

/// What a revert should do.
enum Expected {
    Steps(BTreeMap<Key, Option<Vec<Value>>>),
    Refused(ErrorKind),
}

impl World {
    fn new(seed: u64) -> Self {
        let (random, directory) = (Random::new(seed), MemoryDirectory::new());
        let states = vec![Rc::default()];
        let mut world = Self { random, directory, database: None, states, met: BTreeMap::new() };
        world.open();
        world
    }

    fn open(&mut self) {
        self.database.take().into_iter().for_each(|database| database.close().unwrap());
        let directory = Arc::new(self.directory.clone());
        let options = Options::new().background(false).key_frame_spacing(1000);
        self.database = Some(options.open_in(directory, NAME, Arc::new(SystemClock)).unwrap());
    }

    fn database(&self) -> &Database {
        self.database.as_ref().unwrap()
    }

    fn last(&self) -> u64 {
        self.states.len() as u64 - 1
    }

    fn state(&self, txid: u64) -> &Model {
        &self.states[usize::try_from(txid).unwrap()]
    }

    fn met(&mut self, what: impl Into<String>) {
        *self.met.entry(what.into()).or_default() += 1;
    }

    /// Runs a transaction with statements, and undoes something. It may begin before the one before is acknowledged.
    fn transaction(&mut self) {
        let database = self.database.take().unwrap();
        let earlier = self.random.chance(20).then(|| self.pending(&database)).flatten();
        let mut model = Model::clone(self.states.last().unwrap());
        let mut tx = database.begin().unwrap();
        let mut wrote = false;
        for _ in 0..1 + self.random.below(4) {
            match self.random.below(10) {
                0..2 => wrote |= self.restore(&mut tx, &mut model),
                2..4 => wrote |= self.revert(&mut tx, &mut model),
                _ => {
                    let random = &mut self.random;
                    let mut step = Step { tx: &mut tx, model: &mut model, random, wrote: false };
                    step.run();
                    wrote |= step.wrote;
                }
            }
        }
        super::look::rows(tx.view(), &model);
        if self.random.chance(10) || !wrote {
            tx.rollback().unwrap();
        } else {
            let verdict = model.verdict();
            agree(tx.commit(), verdict);
            if verdict.is_ok() {
                model.end_transaction();
                self.states.push(Rc::new(model));
            }
        }
        earlier.map(|earlier| earlier.wait().unwrap());
        self.database = Some(database);
    }

    /// Commits a statement without waiting for it.
    fn pending<'db>(&mut self, database: &'db Database) -> Option<Pending<'db>> {
        let mut model = Model::clone(self.states.last().unwrap());
        let mut tx = database.begin().unwrap();
        tx.set_level(Level::Checksummed);
        let random = &mut self.random;
        let mut step = Step { tx: &mut tx, model: &mut model, random, wrote: false };
        step.statement();
        if !step.wrote || model.verdict().is_err() {
            return None;
        }
        model.end_transaction();
        self.states.push(Rc::new(model));
        Some(tx.submit().unwrap())
    }

    /// Restores a row; returns whether anything was written.
    fn restore(&mut self, tx: &mut annals::Transaction<'_>, model: &mut Model) -> bool {
        let tables: Vec<_> = model.tables.keys().copied().collect();
        if tables.is_empty() {
            return false;
        }
        let (table, id) = (*self.random.pick(&tables), self.random.below(14));
        let txid = self.random.below(self.last() + 1);
        if !self.state(txid).tables.contains_key(&table) {
            self.met("restore: before the table");
            agree(
                tx.restore((TableNumber(table), RowId(id)), Txid(txid)),
                Err(ErrorKind::Conflict),
            );
            return false;
        }
        let then = rows_of(self.state(txid), model).remove(&(table, id));
        let before = Model::clone(model);
        let expected = put(model, (table, id), then);
        self.met(format!("restore: {expected:?}"));
        agree(tx.restore((TableNumber(table), RowId(id)), Txid(txid)), expected);
        let then = self.state(txid).tables.get(&table).cloned();
        let described = model.table(table).clone();
        for (place, field) in described.fields.iter().enumerate() {
            let is_later = then.as_ref().is_none_or(|then| then.place(field.number).is_none());
            // As the past shows it: without a default that would dangle then.
            if let (true, Type::Reference(..), Ok(()), Some(row)) =
                (is_later, field.ty, expected, model.table_mut(table).rows.get_mut(&id))
            {
                let shown = tx.view().table(TableNumber(table)).unwrap().get(RowId(id)).unwrap();
                let shown = shown.value(FieldNumber(field.number)).to_value();
                assert!(shown == Value::Null || shown == row[place], "{shown:?}");
                row[place] = shown;
            }
        }
        let row = |model: &Model| rows_of(model, model);
        let (before, after) = (row(&before), row(model));
        let is_same = |key| same_rows(before.get(key), after.get(key));
        expected.is_ok() && !before.keys().chain(after.keys()).all(is_same)
    }

    /// Reverts a transaction; returns whether anything was written.
    fn revert(&mut self, tx: &mut annals::Transaction<'_>, model: &mut Model) -> bool {
        // Mostly one of the last.
        let last = self.last();
        let most = if self.random.chance(70) { 4 } else { last + 2 };
        let back = self.random.below(most);
        let txid = (last + 1).saturating_sub(back);
        let expected = self.expected(txid, model, tx.is_empty());
        let done = tx.revert(annals::Txid(txid));
        match expected {
            Expected::Refused(kind) => {
                self.met(format!("refused: {kind:?}"));
                agree(done, Err(kind));
                false
            }
            Expected::Steps(steps) if steps.is_empty() => {
                agree(done, Err(ErrorKind::Invalid));
                false
            }
            Expected::Steps(steps) => {
                done.unwrap();
                self.met("reverted");
                let [mut deleted, mut others] = [Vec::new(), Vec::new()];
                for (key, target) in steps {
                    if target.is_none() { &mut deleted } else { &mut others }.push((key, target));
                }
                for ((table, id), target) in others.into_iter().chain(deleted) {
                    // A row may have gone with another one.
                    agree(Ok(()), put(model, (table, id), target));
                }
                model.notes.push(format!("comment revert of transaction {txid}"));
                true
            }
        }
    }

    /// True if a transaction replaced values of tables or fields that were dropped since.
    fn has_lost(&self, txid: u64, now: &Model) -> bool {
        let [before, after] = [txid - 1, txid].map(|txid| &self.state(txid).tables);
        before.iter().any(|(number, table)| {
            table.rows.iter().any(|(id, old)| {
                let new = after[number].rows.get(id);
                let Some(now) = now.tables.get(number) else { return !same_rows(Some(old), new) };
                table.fields.iter().enumerate().any(|(at, field)| {
                    let is = |other: &Value| same(old[at].as_ref(), other);
                    let is_gone = now.place(field.number).is_none();
                    is_gone && !is(&field.default) && !new.is_some_and(|new| is(&new[at]))
                })
            })
        })
    }

    /// Returns what a revert should do.
    fn expected(&self, txid: u64, now: &Model, is_first: bool) -> Expected {
        if txid == 0 || txid > self.last() {
            return Expected::Refused(ErrorKind::NotFound);
        }
        if self.state(txid - 1).commands.len() != self.state(txid).commands.len() {
            return Expected::Refused(ErrorKind::Invalid);
        }
        let at = |txid| rows_of(self.state(txid), now);
        let [before, after] = [at(txid - 1), at(txid)];
        let (committed, present) = (at(self.last()), rows_of(now, now));
        let mut steps = BTreeMap::new();
        for key in before.keys().chain(after.keys()) {
            let [old, new] = [&before, &after].map(|rows| rows.get(key));
            if same_rows(old, new) {
                continue;
            }
            let fields = differing(old, new);
            if self.is_changed_since(txid, key, &fields, now) {
                return Expected::Refused(ErrorKind::Conflict);
            }
            let [was, is] = [&committed, &present].map(|rows| rows.get(key));
            let own = was.is_some() != is.is_some() || !differing(was, is).is_disjoint(&fields);
            if !is_first && own {
                return Expected::Refused(ErrorKind::Conflict);
            }
            let target = match (old, new, is) {
                (Some(old), Some(_), Some(is)) => {
                    let mut target = is.clone();
                    fields.iter().for_each(|&field| target[field] = old[field].clone());
                    Some(target)
                }
                (old, ..) => old.cloned(),
            };
            steps.insert(*key, target);
        }
        if self.has_lost(txid, now) {
            return Expected::Refused(ErrorKind::Conflict);
        }
        if stands_against(&steps, now, &present) {
            return Expected::Refused(ErrorKind::Conflict);
        }
        match steps.is_empty() {
            true => Expected::Refused(ErrorKind::Invalid),
            false => Expected::Steps(steps),
        }
    }

    /// True if a later transaction changed one of the fields, or deleted or inserted the row.
    fn is_changed_since(
        &self,
        txid: u64,
        key: &Key,
        fields: &BTreeSet<usize>,
        now: &Model,
    ) -> bool {
        let mut states = (txid..=self.last()).map(|at| rows_of(self.state(at), now).remove(key));
        let mut before = states.next().unwrap();
        states.any(|after| {
            let (old, new) = (before.as_ref(), after.as_ref());
            let is_changed =
                old.is_some() != new.is_some() || !differing(old, new).is_disjoint(fields);
            before = after;
            is_changed
        })
    }

    fn other(&mut self) {
        match self.random.below(5) {
            0 => self.open(),
            1 => {
                let older = *self.random.pick(&[Older::Kept, Older::NotNeeded]);
                self.database().restart(older, Duration::ZERO).map(drop).unwrap_or_default();
            }
            2 => drop(self.database().soft_checkpoint().unwrap()),
            _ => drop(self.database().backfill(BackfillMode::Full).unwrap()),
        }
    }

    /// Compares the blame of some rows.
    fn blame(&mut self) {
        let now = Rc::clone(self.states.last().unwrap());
        let states: Vec<Rows> = self.states.iter().map(|state| rows_of(state, &now)).collect();
        for (&table, described) in &now.tables {
            for id in 0..6 {
                let found = self.database().blame(TableNumber(table), RowId(id));
                let history = states.iter().map(|rows| rows.get(&(table, id)));
                let Some(expected) = origins(history) else {
                    agree(found, Err(ErrorKind::NotFound));
                    continue;
                };
                let found: Vec<_> = found.unwrap();
                let fields: Vec<_> = described.fields.iter().map(|field| field.number).collect();
                let numbers: Vec<_> = found.iter().map(|blame| blame.field.0).collect();
                assert_eq!(numbers, fields);
                for Blame { field: FieldNumber(field), value, txid, kind, .. } in found {
                    let (expected, expected_value) = &expected[&(field as usize)];
                    assert_eq!((txid.0, kind), *expected, "row {id} of {table}, field {field}");
                    assert_eq!(value, *expected_value);
                }
            }
        }
    }
}

/// Returns for each field of a row, given its states, when it got its value, and that; `None` if there is no row.
fn origins<'s>(
    states: impl Iterator<Item = Option<&'s Vec<Value>>>,
) -> Option<BTreeMap<usize, (Origin, Value)>> {
    let (mut before, mut origins) = (None, BTreeMap::new());
    for (txid, state) in (0..).zip(states) {
        let kind = if before.is_none() { VersionKind::Insert } else { VersionKind::Update };
        let fields =
            if same_rows(state, before) { BTreeSet::new() } else { differing(before, state) };
        for field in fields {
            state.map(|row| origins.insert(field, ((txid, kind), row[field].clone())));
        }
        before = state;
    }
    before.map(|_| origins)
}

/// Returns the places of fields that differ; all where there is one row only.
fn differing(a: Option<&Vec<Value>>, b: Option<&Vec<Value>>) -> BTreeSet<usize> {
    let len = a.or(b).map_or(0, Vec::len);
    let is_same = |at: usize| a.zip(b).is_some_and(|(a, b)| same(a[at].as_ref(), &b[at]));
    (0..len).filter(|&at| !is_same(at)).collect()
}

/// Makes a row as it is to be, or says why that can't be.
fn put(model: &mut Model, (table, id): Key, target: Option<Vec<Value>>) -> Answer {
    let exists = model.has(table, id);
    let Some(target) = target else {
        return if exists { model.delete(table, id, 1) } else { Ok(()) };
    };
    let fields = model.table(table).fields.iter();
    let values: Vec<_> = fields.map(|field| target[field.number as usize].clone()).collect();
    if exists {
        *model.table_mut(table).rows.get_mut(&id).unwrap() = values;
        return Ok(());
    }
    model.table(table).free(id, 1)?;
    model.table_mut(table).insert(id, values);
    Ok(())
}

/// True if other rows, or a table of a single row, stand against the steps.
fn stands_against(steps: &BTreeMap<Key, Option<Vec<Value>>>, now: &Model, present: &Rows) -> bool {
    let is_single = |&(table, id): &Key| {
        let target = &steps[&(table, id)];
        now.table(table).single && (target.is_none() || !present.contains_key(&(table, id)))
    };
    let refers = now.references(OnDelete::is_enforced).iter().any(|&((table, id, field), to)| {
        let is_deleted = steps.get(&to).is_some_and(Option::is_none);
        let now = &present[&(table, id)][field as usize];
        let stays = steps
            .get(&(table, id))
            .is_none_or(|target| target.as_ref().is_some_and(|row| row[field as usize] == *now));
        is_deleted && stays
    });
    let dangles = |(key, target): (&Key, &Option<Vec<Value>>)| {
        let Some(target) = target else { return false };
        now.table(key.0).fields.iter().any(|field| {
            let at = field.number as usize;
            let is_same = present.get(key).is_some_and(|row| row[at] == target[at]);
            let (Type::Reference(to, rule), Value::Reference(id)) = (field.ty, &target[at]) else {
                return false;
            };
            let there = steps
                .get(&(to.0, id.0))
                .map_or_else(|| present.contains_key(&(to.0, id.0)), Option::is_some);
            !is_same && rule.is_enforced() && !there
        })
    };
    let taken = |(&(table, id), target): (&Key, &Option<Vec<Value>>)| {
        let Some(target) = target else { return false };
        let described = now.table(table);
        let dense = |row: &[Value]| -> Vec<Value> {
            described.fields.iter().map(|field| row[field.number as usize].clone()).collect()
        };
        let old = present.get(&(table, id)).map(|row| dense(row));
        let target = dense(target);
        now.unique_indexes(table).any(|index| {
            let new = key(described, &index.fields, &target);
            let is_same = old.as_ref().is_some_and(|old| key(described, &index.fields, old) == new);
            let has_null = new.contains(&Value::Null);
            !is_same
                && !has_null
                && holder(described, &index.fields, &new)
                    .is_some_and(|holder| !steps.contains_key(&(table, holder)))
        })
    };
    steps.keys().any(is_single) || refers || steps.iter().any(dangles) || steps.iter().any(taken)
}

/// Returns the first row that has a key.
fn holder(table: &super::model::Table, fields: &[u32], wanted: &[Value]) -> Option<u64> {
    let mut rows = table.rows.iter();
    rows.find(|(_, row)| key(table, fields, row) == wanted).map(|(id, _)| *id)
}

#[test]
fn restored_and_reverted_rows_are_as_the_model_says() {
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    let mut met = BTreeMap::<String, usize>::new();
    for seed in super::seeds(if full { 600 } else { 30 }) {
        println!("repeat the last history with ANNALS_TEST_HISTORY={seed}");
        let mut world = World::new(seed);
        for _ in 0..70 {
            match world.random.chance(88) {
                true => world.transaction(),
                false => world.other(),
            }
        }
        world.blame();
        world.met.into_iter().for_each(|(what, count)| *met.entry(what).or_default() += count);
    }
    println!("{met:?}");
    for what in ["reverted", "refused: Conflict", "refused: Invalid", "restore: Ok(())"] {
        assert!(met.get(what).copied().unwrap_or(0) > 20, "{what} was met too seldom: {met:?}");
    }
}
