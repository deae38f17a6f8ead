//! The rows that a transaction changed, and their versions from that transaction on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use annals_schema::{FieldNumber, RowId, Schema, TableNumber};

use crate::Result;
use crate::db::changes::changed::RowChange;
use crate::db::changes::rows::Key;
use crate::db::present::snapshot::Published;
use crate::db::replay::scan::Sink;
use crate::db::time::{Changes, History, events_of};
use crate::event::Event;
use crate::journal::Committed;

/// The versions of a row: the number of each transaction, and its change.
pub(super) type Versions = Vec<(u64, RowChange)>;

/// Up to so many rows, the history of each is read, rather than all later transactions.
const MOST_HISTORIES: usize = 64;

/// The changes that the events of a transaction are about.
#[derive(Debug)]
pub(super) struct Touched {
    present: Arc<Schema>,
    /// The rows whose tables still exist.
    pub(super) rows: BTreeSet<Key>,
    /// The first row of each table that was dropped since, with the table's old name.
    pub(super) dropped_tables: BTreeMap<TableNumber, (RowId, String)>,
    /// The names of fields that were updated, and were dropped since, by rows.
    pub(super) dropped_fields: BTreeMap<Key, String>,
    /// The text of the first command of the schema.
    pub(super) command: Option<String>,
}

impl Touched {
    /// Reads the events of a transaction. `present` is the schema that its rows are changed through.
    ///
    /// # Errors
    /// `NotFound`: it was forgotten; `Corrupt`, `Unsupported`, `Io`.
    pub(super) fn by(published: &Arc<Published>, txid: u64, present: &Arc<Schema>) -> Result<Self> {
        let mut touched = Self {
            present: Arc::clone(present),
            rows: BTreeSet::new(),
            dropped_tables: BTreeMap::new(),
            dropped_fields: BTreeMap::new(),
            command: None,
        };
        events_of(published, txid, &mut touched)?;
        Ok(touched)
    }

    /// Returns the present name of a table.
    pub(super) fn name_of(&self, table: TableNumber) -> &str {
        self.present.table(table).map_or("?", |table| &table.name)
    }

    fn add(&mut self, then: &Schema, table: TableNumber, id: RowId, count: u64) {
        if self.present.table(table).is_some() {
            let ids = id.0..id.0.saturating_add(count);
            self.rows.extend(ids.map(|id| (table, RowId(id))));
        } else if let Some(old) = then.table(table) {
            self.dropped_tables.entry(table).or_insert_with(|| (id, old.name.clone()));
        }
    }

    fn add_update(&mut self, then: &Schema, key: Key, field: FieldNumber, count: u64) {
        let (table, first) = key;
        self.add(then, table, first, count);
        let is_present = self.present.table(table).is_none_or(|now| now.field(field).is_some());
        let old = then.table(table).and_then(|table| table.field(field));
        if let Some(old) = old.filter(|_| !is_present) {
            for id in first.0..first.0.saturating_add(count) {
                self.dropped_fields.insert((table, RowId(id)), old.name.clone());
            }
        }
    }
}

impl Sink for Touched {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        match *event {
            Event::Schema(command) => {
                self.command.get_or_insert_with(|| schema.command_text(command));
            }
            Event::Insert { table, id, .. } | Event::Delete { table, id } => {
                self.add(schema, table, id, 1);
            }
            Event::InsertVector { table, id, count } | Event::DeleteVector { table, id, count } => {
                self.add(schema, table, id, count);
            }
            Event::Update { table, id, field, .. } => {
                self.add_update(schema, (table, id), field, 1);
            }
            Event::UpdateVector { table, id, field, values } => {
                let described = schema.table(table).and_then(|table| table.field(field));
                let count = described.and_then(|field| values.len(field.ty)).unwrap_or(0);
                self.add_update(schema, (table, id), field, count as u64);
            }
            Event::Blob { .. } | Event::ValidData | Event::Comment(_) | Event::Timestamp(_) => {}
        }
        Ok(())
    }

    fn commit(&mut self, _: &Schema, _: &Committed) -> Result<()> {
        Ok(())
    }
}

/// Returns the versions of rows from a transaction on.
///
/// # Errors
/// `Corrupt`, `Unsupported`, `Io`.
pub(super) fn versions_since(
    published: &Arc<Published>,
    first: u64,
    rows: &BTreeSet<Key>,
) -> Result<BTreeMap<Key, Versions>> {
    let mut found = BTreeMap::<Key, Versions>::new();
    if rows.len() <= MOST_HISTORIES {
        for &(table, id) in rows {
            for version in History::open(published, table, id)? {
                let version = version?;
                if version.txid >= first && !version.is_beginning {
                    found.entry((table, id)).or_default().push((version.txid, version.change));
                }
            }
        }
        return Ok(found);
    }
    for changed in Changes::between(published, &(first..))? {
        let changed = changed?;
        for change in changed.rows {
            let key = (change.table, change.id);
            if rows.contains(&key) {
                found.entry(key).or_default().push((changed.txid, change));
            }
        }
    }
    Ok(found)
}

/// Returns the last transaction that changed a row; with `field`, the last one that changed that field.
pub(super) fn last_change(
    published: &Arc<Published>,
    key: Key,
    field: Option<FieldNumber>,
) -> Result<Option<u64>> {
    let mut last = None;
    for version in History::open(published, key.0, key.1)? {
        let version = version?;
        let counts = field.is_none_or(|field| version.change.fields().any(|it| it == field));
        last = if counts { Some(version.txid) } else { last };
    }
    Ok(last)
}
