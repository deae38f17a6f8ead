//! Writers without a connection, who push and rebase, against a model of plain maps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use annals::{
    Database, ErrorKind, FieldNumber, Options, RowId, TableNumber, Transaction, Txid, Violation,
};
use annals_replica::{Connection, Local, Patience, Replica};
use annals_simulated::Rng;
use annals_storage::{Directory, MemoryDirectory, SystemClock};

use crate::naive::{Change, Clash, Done, Key, Rebase, State, fields};
use crate::offline::{ITEM, PART, create, insert_item, insert_part};

const NAME: FieldNumber = FieldNumber(0);
const VALUE: FieldNumber = FieldNumber(1);
const OF: FieldNumber = FieldNumber(0);

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
