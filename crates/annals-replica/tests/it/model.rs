//! Writers without a connection, who push and rebase, against a model of plain maps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use annals::{
    Database, ErrorKind, FieldNumber, Options, RowId, Snapshot, TableNumber, Transaction, Txid,
    Value, Violation,
};
use annals_replica::{Connection, Local, Patience, Replica};
use annals_storage::simulated::Rng;
use annals_storage::{Directory, MemoryDirectory, SystemClock};

use crate::offline::{ITEM, PART, create, insert_item, insert_part};

const NAME: FieldNumber = FieldNumber(0);
const VALUE: FieldNumber = FieldNumber(1);
const OF: FieldNumber = FieldNumber(0);

type Key = (u32, u64);
/// A row: what its fields are, as text; the reference of a part is the id of an item.
type Row = Vec<String>;

/// The rows of both tables, and the ids that are given out next.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    rows: BTreeMap<Key, Row>,
    next: BTreeMap<u32, u64>,
}

/// The change of a row.
#[derive(Clone, Debug)]
struct Change {
    key: Key,
    before: Option<Row>,
    after: Option<Row>,
}

/// What is said of a change that can't be made: the transaction, the row, the field, and who came first.
type Clash = (u64, Key, Option<usize>, Option<u64>);

impl State {
    fn next(&self, table: u32) -> u64 {
        self.next.get(&table).copied().unwrap_or(0)
    }

    fn set(&mut self, key: Key, row: Option<Row>) {
        match row {
            Some(row) => {
                self.rows.insert(key, row);
                let next = self.next(key.0).max(key.1 + 1);
                self.next.insert(key.0, next);
            }
            None => drop(self.rows.remove(&key)),
        }
    }

    fn holder(&self, name: &str) -> Option<u64> {
        self.rows.iter().find(|(key, row)| key.0 == 0 && row[0] == name).map(|(key, _)| key.1)
    }

    fn parts_of(&self, item: u64) -> impl Iterator<Item = Key> + '_ {
        let of = item.to_string();
        self.rows.iter().filter(move |(key, row)| key.0 == 1 && row[0] == of).map(|(key, _)| *key)
    }

    fn read(snapshot: &Snapshot) -> BTreeMap<Key, Row> {
        let mut rows = BTreeMap::new();
        let text = |value: Value| match value {
            Value::Reference(RowId(id)) => id.to_string(),
            Value::String(text) => text,
            Value::Int64(number) => number.to_string(),
            other => format!("{other:?}"),
        };
        for (table, fields) in [(ITEM, 2), (PART, 1)] {
            for row in snapshot.table(table).expect("a table").rows() {
                let row = row.expect("a row");
                let values =
                    (0..fields).map(|field| text(row.value(FieldNumber(field)).to_value()));
                rows.insert((table.0, row.id().0), values.collect());
            }
        }
        rows
    }
}

/// A transaction of the server: its number, and the changed rows with their changed fields.
type Done = (u64, Vec<(Key, Vec<usize>)>);

fn fields(change: &Change) -> Vec<usize> {
    let len = change.before.as_ref().or(change.after.as_ref()).map_or(0, Vec::len);
    let at = |row: &Option<Row>, field: usize| row.as_ref().map(|row| row[field].clone());
    (0..len).filter(|&field| at(&change.before, field) != at(&change.after, field)).collect()
}

/// The naive rebase.
struct Rebase<'m> {
    there: State,
    base: &'m State,
    done: &'m [Done],
    since: u64,
    ids: BTreeMap<Key, u64>,
    failed: BTreeSet<Key>,
    clashes: BTreeSet<Clash>,
}

impl Rebase<'_> {
    fn id(&self, key: Key) -> Key {
        (key.0, self.ids.get(&key).copied().unwrap_or(key.1))
    }

    fn row(&self, table: u32, row: &Option<Row>) -> Option<Row> {
        let mut row = row.clone()?;
        if table == 1 {
            row[0] = self.id((0, row[0].parse().expect("an id"))).1.to_string();
        }
        Some(row)
    }

    fn blame(&self, key: Key, field: Option<usize>) -> Option<u64> {
        let later = self.done.iter().rev().filter(|(txid, _)| *txid > self.since);
        let of = |(_, rows): &&Done| {
            rows.iter().any(|(row, fields)| {
                *row == key && field.is_none_or(|field| fields.contains(&field))
            })
        };
        later.clone().find(of).map(|(txid, _)| *txid)
    }

    fn clash(&mut self, txid: u64, key: Key, field: Option<usize>, cause: (Key, Option<usize>)) {
        let by = self.blame(cause.0, cause.1);
        self.clashes.insert((txid, key, field, by));
    }

    fn choose(&mut self, changes: &[Change]) {
        for table in [0, 1] {
            let (mut kept, mut others) = (BTreeSet::new(), Vec::new());
            for change in changes.iter().filter(|it| it.key.0 == table && it.before.is_none()) {
                let wanted = self.id(change.key);
                let is_old = change.key.1 < self.base.next(table) || wanted != change.key;
                let is_free = match is_old {
                    true => !self.there.rows.contains_key(&wanted),
                    false => wanted.1 >= self.there.next(table),
                };
                match is_free && kept.insert(wanted.1) {
                    true => {}
                    false => others.push(change.key),
                }
            }
            let mut next = self.there.next(table);
            for key in others {
                while kept.contains(&next) {
                    next += 1;
                }
                self.ids.insert(key, next);
                next += 1;
            }
        }
    }

    fn transaction(&mut self, txid: u64, changes: &[Change]) {
        self.choose(changes);
        let mut steps: Vec<(Key, Key, Option<Row>)> = Vec::new();
        for change in changes {
            let key = self.id(change.key);
            if self.failed.contains(&key) {
                continue;
            }
            let now = self.there.rows.get(&key).cloned();
            let (before, after) = (self.row(key.0, &change.before), self.row(key.0, &change.after));
            match (before, after, now) {
                (None, after, _) => steps.push((change.key, key, after)),
                (Some(_), _, None) => {
                    self.failed.insert(key);
                    self.clash(txid, change.key, None, (key, None));
                }
                (Some(before), Some(after), Some(mut now)) => {
                    let mut is_good = true;
                    for field in fields(change) {
                        if now[field] == before[field] {
                            now[field].clone_from(&after[field]);
                        } else {
                            is_good = false;
                            self.failed.insert(key);
                            self.clash(txid, change.key, Some(field), (key, Some(field)));
                        }
                    }
                    if is_good {
                        steps.push((change.key, key, Some(now)));
                    }
                }
                (Some(before), None, Some(now)) => {
                    let differs = (0..now.len()).find(|&field| now[field] != before[field]);
                    match differs {
                        None => steps.push((change.key, key, None)),
                        Some(field) => {
                            self.failed.insert(key);
                            self.clash(txid, change.key, Some(field), (key, Some(field)));
                        }
                    }
                }
            }
        }
        self.check(txid, &steps);
        for (_, key, row) in steps {
            if !self.failed.contains(&key) {
                self.there.set(key, row);
            }
        }
    }

    fn check(&mut self, txid: u64, steps: &[(Key, Key, Option<Row>)]) {
        let by_key: BTreeMap<Key, Option<Row>> =
            steps.iter().map(|(_, key, row)| (*key, row.clone())).collect();
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        for (here, key, target) in steps {
            let now = self.there.rows.get(key);
            if let (1, Some(row)) = (key.0, target)
                && now.is_none_or(|now| now[0] != row[0])
            {
                let item = (0, row[0].parse().expect("an id"));
                let exists = match by_key.get(&item) {
                    Some(row) => row.is_some(),
                    None => self.there.rows.contains_key(&item),
                };
                if self.failed.contains(&item) {
                    failed.push(*key);
                } else if !exists {
                    failed.push(*key);
                    found.push((*here, Some(0), (item, None)));
                }
            }
            if let (0, Some(row)) = (key.0, target)
                && now.is_none_or(|now| now[0] != row[0])
                && let Some(holder) = self.there.holder(&row[0])
                && holder != key.1
                && !by_key.contains_key(&(0, holder))
            {
                failed.push(*key);
                found.push((*here, None, ((0, holder), Some(0))));
            }
            if let (0, None) = (key.0, target) {
                let stays = |part: &Key| match by_key.get(part) {
                    Some(Some(row)) => row[0] == key.1.to_string(),
                    Some(None) => false,
                    None => true,
                };
                if let Some(part) = self.there.parts_of(key.1).find(stays) {
                    failed.push(*key);
                    found.push((*here, None, (part, Some(0))));
                }
            }
        }
        self.failed.extend(failed);
        for (here, field, cause) in found {
            self.clash(txid, here, field, cause);
        }
    }
}

/// A writer: the state that it sees, what it has committed, and where it began.
struct Writer {
    replica: Replica,
    directory: MemoryDirectory,
    base: State,
    since: u64,
    state: State,
    own: Vec<Vec<Change>>,
}

struct World {
    origin: Database,
    server: State,
    done: Vec<Done>,
    rng: Rng,
}

impl World {
    fn record(&mut self, changes: &[Change]) {
        let txid = self.origin.read().txid().0;
        let rows = changes.iter().map(|change| (change.key, fields(change))).collect();
        assert!(self.done.last().is_none_or(|(last, _)| *last < txid));
        self.done.push((txid, rows));
    }

    /// Commits random changes that are possible in `state`; returns them as one change for each row.
    fn commit(&mut self, database: &Database, state: &mut State) -> Vec<Change> {
        let before = state.clone();
        let mut touched: Vec<Key> = Vec::new();
        let rng = &mut self.rng;
        let result = database.write(|tx| {
            for _ in 0..=rng.below(3) {
                let key = random_change(rng, tx, state)?;
                touched.extend(key.filter(|key| !touched.contains(key)));
            }
            Ok(())
        });
        result.expect("changes that are possible");
        let changes = touched.into_iter().map(|key| Change {
            key,
            before: before.rows.get(&key).cloned(),
            after: state.rows.get(&key).cloned(),
        });
        changes.filter(|change| change.before != change.after).collect()
    }
}

fn some(rng: &mut Rng, state: &State, table: u32) -> Option<Key> {
    let keys: Vec<Key> = state.rows.keys().filter(|key| key.0 == table).copied().collect();
    (!keys.is_empty()).then(|| keys[rng.index(keys.len())])
}

fn random_change(
    rng: &mut Rng,
    tx: &mut Transaction<'_>,
    state: &mut State,
) -> annals::Result<Option<Key>> {
    let name = format!("name {}", rng.below(25));
    let value = i64::try_from(rng.below(4)).expect("a small number");
    match rng.below(8) {
        0 | 1 if state.holder(&name).is_none() => {
            let id = insert_item(tx, &name, value)?;
            assert_eq!(id.0, state.next(0));
            state.set((0, id.0), Some(vec![name, value.to_string()]));
            Ok(Some((0, id.0)))
        }
        2 => {
            let Some(key) = some(rng, state, 0) else { return Ok(None) };
            if state.parts_of(key.1).next().is_some() {
                return Ok(None);
            }
            tx.delete(ITEM, RowId(key.1))?;
            state.set(key, None);
            Ok(Some(key))
        }
        3 if state.holder(&name).is_none() => {
            let Some(key) = some(rng, state, 0) else { return Ok(None) };
            tx.update(ITEM, RowId(key.1), NAME, annals::ValueRef::String(&name))?;
            let row = vec![name, state.rows[&key][1].clone()];
            state.set(key, Some(row));
            Ok(Some(key))
        }
        4 | 5 => {
            let Some(key) = some(rng, state, 0) else { return Ok(None) };
            tx.update(ITEM, RowId(key.1), VALUE, annals::ValueRef::Int64(value))?;
            let row = vec![state.rows[&key][0].clone(), value.to_string()];
            state.set(key, Some(row));
            Ok(Some(key))
        }
        6 => {
            let Some(item) = some(rng, state, 0) else { return Ok(None) };
            let (row, id) = (Some(vec![item.1.to_string()]), RowId(item.1));
            let key = match some(rng, state, 1).filter(|_| rng.percent(30)) {
                Some(key) => {
                    tx.update(PART, RowId(key.1), OF, annals::ValueRef::Reference(id))?;
                    key
                }
                None => (1, insert_part(tx, id)?.0),
            };
            state.set(key, row);
            Ok(Some(key))
        }
        7 => {
            let Some(key) = some(rng, state, 1) else { return Ok(None) };
            tx.delete(PART, RowId(key.1))?;
            state.set(key, None);
            Ok(Some(key))
        }
        _ => Ok(None),
    }
}

impl Writer {
    fn begin(world: &World) -> Self {
        let connection: Arc<dyn Connection> = Arc::new(Local::new(world.origin.clone()));
        let directory = MemoryDirectory::new();
        let (options, patience) = (Options::new().background(false), Patience::default());
        let replica =
            Replica::connect_in(connection, directory.again(), "copy", &options, patience);
        let replica = replica.expect("a replica");
        let (base, since) = (world.server.clone(), world.origin.read().txid().0);
        Self { replica, directory, state: base.clone(), base, since, own: Vec::new() }
    }

    /// Begins again from what the other side has.
    fn restart(&mut self, world: &World) {
        self.replica.pull().expect("a pull");
        (self.base, self.since) = (world.server.clone(), world.origin.read().txid().0);
        self.state = self.base.clone();
        self.own.clear();
    }

    fn commit(&mut self, world: &mut World) {
        if self.own.is_empty() {
            self.restart(world);
        }
        let offline = self.replica.offline().expect("an offline journal");
        let before = offline.read().txid();
        let changes = world.commit(offline.database(), &mut self.state);
        if offline.read().txid() > before {
            self.own.push(changes);
        }
        assert_eq!(State::read(&offline.read()), self.state.rows, "both are seen");
        offline.close().expect("closing");
    }

    /// Pushes, and rebases if others came first; returns the number of clashes.
    fn push(&mut self, world: &mut World) -> usize {
        let before = world.origin.read().txid().0;
        let is_first = before == self.since;
        match self.replica.push() {
            Ok(sent) => {
                assert!(is_first || self.own.is_empty());
                assert_eq!(sent.transactions, self.own.len() as u64);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                let first = format!("transaction {} came first", self.since + 1);
                assert!(!is_first && error.to_string().contains(&first), "{error}");
                assert_eq!(world.origin.read().txid().0, before);
                return self.rebase(world);
            }
        }
        if self.own.is_empty() {
            self.restart(world);
            return 0;
        }
        world.server = self.state.clone();
        for (changes, txid) in std::mem::take(&mut self.own).iter().zip(before + 1..) {
            let rows = changes.iter().map(|change| (change.key, fields(change))).collect();
            world.done.push((txid, rows));
        }
        self.ended(world);
        0
    }

    fn rebase(&mut self, world: &mut World) -> usize {
        let before = world.origin.read().txid().0;
        let mut naive = Rebase {
            there: world.server.clone(),
            base: &self.base,
            done: &world.done,
            since: self.since,
            ids: BTreeMap::new(),
            failed: BTreeSet::new(),
            clashes: BTreeSet::new(),
        };
        let mut log = Vec::new();
        for (changes, number) in self.own.iter().zip(1..) {
            let there = naive.there.clone();
            naive.transaction(self.since + number, changes);
            let keys = changes.iter().map(|change| naive.id(change.key));
            let rows = keys.map(|key| {
                let [before, after] =
                    [&there, &naive.there].map(|state| state.rows.get(&key).cloned());
                (key, fields(&Change { key, before, after }))
            });
            log.push((before + number, rows.filter(|(_, fields)| !fields.is_empty()).collect()));
        }
        let Rebase { there, ids, clashes, .. } = naive;
        match self.replica.rebase() {
            Ok(rebased) => {
                assert_eq!(clashes, BTreeSet::new());
                assert_eq!(rebased.transactions, self.own.len() as u64);
                let found: BTreeMap<Key, u64> = rebased
                    .renumbered
                    .iter()
                    .map(|it| ((u32::from(it.table == "part"), it.from.0), it.to.0))
                    .collect();
                assert_eq!(found, ids);
                world.server = there;
                world.done.extend(log);
                self.ended(world);
                0
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                let Some(Violation::Conflict { obstacles }) = error.violation() else {
                    panic!("{error}")
                };
                let found: BTreeSet<Clash> = obstacles
                    .iter()
                    .map(|it| {
                        let table = u32::from(it.table == "part");
                        let field = it.field.as_deref().map(|field| usize::from(field == "value"));
                        let again = it.again.expect("a transaction").0;
                        (again, (table, it.row.0), field, it.txid.map(|Txid(txid)| txid))
                    })
                    .collect();
                assert_eq!(found, clashes, "{error}");
                assert_eq!(world.origin.read().txid().0, before, "nothing was changed");
                let offline = self.replica.offline().expect("it is still there");
                assert_eq!(State::read(&offline.read()), self.state.rows);
                offline.close().expect("closing");
                self.directory.remove("copy-local").expect("given up");
                self.restart(world);
                clashes.len()
            }
        }
    }

    fn ended(&mut self, world: &World) {
        assert_eq!(State::read(&world.origin.read()), world.server.rows);
        self.restart(world);
        assert_eq!(State::read(&self.replica.read()), world.server.rows);
        assert_eq!(self.replica.cursor(), world.origin.read().point().into());
        let names = self.directory.list().expect("names");
        assert!(!names.iter().any(|name| name == "copy-local"), "{names:?}");
    }
}

#[test]
fn three_writers_rebase_as_the_model_does() {
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    let (mut clean, mut clashing, mut renumbered) = (0, 0, 0);
    for seed in 0..if full { 400 } else { 12 } {
        let directory = MemoryDirectory::new().again();
        let options = Options::new().background(false);
        let origin = options.open_in(directory, "origin", Arc::new(SystemClock));
        let origin = origin.expect("a database");
        origin.write(create).expect("a first transaction");
        let (server, done, rng) = (State::default(), Vec::new(), Rng::new(seed));
        let mut world = World { origin, server, done, rng };
        let mut writers: Vec<Writer> = (0..3).map(|_| Writer::begin(&world)).collect();
        for _ in 0..60 {
            let writer = world.rng.index(3);
            let writer = &mut writers[writer];
            match world.rng.below(10) {
                0..5 => writer.commit(&mut world),
                5 | 6 => {
                    let origin = world.origin.clone();
                    let mut server = world.server.clone();
                    let before = origin.read().txid();
                    let changes = world.commit(&origin, &mut server);
                    world.server = server;
                    if origin.read().txid() > before {
                        world.record(&changes);
                    }
                }
                7 => drop(writer.replica.pull().expect("a pull")),
                8 => {
                    let mode = annals::BackfillMode::Full;
                    writer.replica.database().backfill(mode).expect("a backfill");
                }
                _ => {
                    let had = writer.own.len();
                    match writer.push(&mut world) {
                        0 => clean += usize::from(had > 0),
                        _ => clashing += 1,
                    }
                }
            }
        }
        renumbered += world.server.rows.len();
    }
    assert!(clean > 10 && clashing > 10 && renumbered > 10, "{clean} {clashing} {renumbered}");
}

/// The tables have these numbers in the model.
const _: () = assert!(ITEM.0 == 0 && PART.0 == 1);
const _: TableNumber = ITEM;
