//! The model of a rebase: plain maps, and the rules as they are documented.

use std::collections::{BTreeMap, BTreeSet};

use annals::{FieldNumber, RowId, Snapshot, Value};

use crate::offline::{ITEM, PART};

pub(crate) type Key = (u32, u64);
/// A row: what its fields are, as text; the reference of a part is the id of an item.
pub(crate) type Row = Vec<String>;

/// The rows of both tables, and the ids that are given out next.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct State {
    pub(crate) rows: BTreeMap<Key, Row>,
    pub(crate) next: BTreeMap<u32, u64>,
}

/// The change of a row.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) key: Key,
    pub(crate) before: Option<Row>,
    pub(crate) after: Option<Row>,
}

/// What is said of a change that can't be made: the transaction, the row, the field, and who came first.
pub(crate) type Clash = (u64, Key, Option<usize>, Option<u64>);

impl State {
    pub(crate) fn next(&self, table: u32) -> u64 {
        self.next.get(&table).copied().unwrap_or(0)
    }

    pub(crate) fn set(&mut self, key: Key, row: Option<Row>) {
        match row {
            Some(row) => {
                self.rows.insert(key, row);
                let next = self.next(key.0).max(key.1 + 1);
                self.next.insert(key.0, next);
            }
            None => drop(self.rows.remove(&key)),
        }
    }

    pub(crate) fn holder(&self, name: &str) -> Option<u64> {
        self.rows.iter().find(|(key, row)| key.0 == 0 && row[0] == name).map(|(key, _)| key.1)
    }

    pub(crate) fn parts_of(&self, item: u64) -> impl Iterator<Item = Key> + '_ {
        let of = item.to_string();
        self.rows.iter().filter(move |(key, row)| key.0 == 1 && row[0] == of).map(|(key, _)| *key)
    }

    pub(crate) fn read(snapshot: &Snapshot) -> BTreeMap<Key, Row> {
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
pub(crate) type Done = (u64, Vec<(Key, Vec<usize>)>);

pub(crate) fn fields(change: &Change) -> Vec<usize> {
    let len = change.before.as_ref().or(change.after.as_ref()).map_or(0, Vec::len);
    let at = |row: &Option<Row>, field: usize| row.as_ref().map(|row| row[field].clone());
    (0..len).filter(|&field| at(&change.before, field) != at(&change.after, field)).collect()
}

/// The naive rebase.
pub(crate) struct Rebase<'m> {
    pub(crate) there: State,
    pub(crate) base: &'m State,
    pub(crate) done: &'m [Done],
    pub(crate) since: u64,
    pub(crate) ids: BTreeMap<Key, u64>,
    pub(crate) failed: BTreeSet<Key>,
    pub(crate) clashes: BTreeSet<Clash>,
}

impl Rebase<'_> {
    pub(crate) fn id(&self, key: Key) -> Key {
        (key.0, self.ids.get(&key).copied().unwrap_or(key.1))
    }

    pub(crate) fn row(&self, table: u32, row: &Option<Row>) -> Option<Row> {
        let mut row = row.clone()?;
        if table == 1 {
            row[0] = self.id((0, row[0].parse().expect("an id"))).1.to_string();
        }
        Some(row)
    }

    pub(crate) fn blame(&self, key: Key, field: Option<usize>) -> Option<u64> {
        let later = self.done.iter().rev().filter(|(txid, _)| *txid > self.since);
        let of = |(_, rows): &&Done| {
            rows.iter().any(|(row, fields)| {
                *row == key && field.is_none_or(|field| fields.contains(&field))
            })
        };
        later.clone().find(of).map(|(txid, _)| *txid)
    }

    pub(crate) fn clash(
        &mut self,
        txid: u64,
        key: Key,
        field: Option<usize>,
        cause: (Key, Option<usize>),
    ) {
        let by = self.blame(cause.0, cause.1);
        self.clashes.insert((txid, key, field, by));
    }

    pub(crate) fn choose(&mut self, changes: &[Change]) {
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

    pub(crate) fn transaction(&mut self, txid: u64, changes: &[Change]) {
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

    pub(crate) fn check(&mut self, txid: u64, steps: &[(Key, Key, Option<Row>)]) {
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
