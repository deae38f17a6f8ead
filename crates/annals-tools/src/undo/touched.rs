//! The rows that a transaction changed, and their versions from that transaction on.

use std::collections::BTreeSet;
use std::sync::Arc;

use annals::event::Event;
use annals::{
    Committed, FieldNumber, Result, RowChange, RowId, Schema, Sink, Snapshot, TableNumber, Txid,
};

use super::steps::Key;

/// The versions of a row: the number of each transaction, and its change.
pub(super) type Versions = Vec<(u64, RowChange)>;

/// The changes that the events of a transaction are about.
#[derive(Debug)]
pub(super) struct Touched {
    present: Arc<Schema>,
    /// The rows whose tables still exist.
    pub(super) rows: BTreeSet<Key>,
    /// True if it replaced values of tables or fields that were dropped since.
    pub(super) is_of_dropped: bool,
    /// The text of the first command of the schema.
    pub(super) command: Option<String>,
}

impl Touched {
    /// Reads the events of a transaction. `present` is the schema that its rows are changed through.
    ///
    /// # Errors
    /// `NotFound`: it was forgotten; `Corrupt`, `Unsupported`, `Io`.
    pub(super) fn by(committed: &Snapshot, txid: u64, present: &Arc<Schema>) -> Result<Self> {
        let mut touched = Self {
            present: Arc::clone(present),
            rows: BTreeSet::new(),
            is_of_dropped: false,
            command: None,
        };
        committed.read_events(Txid(txid - 1), Txid(txid), &mut touched)?;
        Ok(touched)
    }

    fn add(&mut self, table: TableNumber, id: RowId, count: u64) {
        if self.present.table(table).is_some() {
            let ids = id.0..id.0.saturating_add(count);
            self.rows.extend(ids.map(|id| (table, RowId(id))));
        }
    }

    /// Notes that values of a field, or of all fields, are replaced.
    fn note_replaced(&mut self, then: &Schema, table: TableNumber, field: Option<FieldNumber>) {
        let now = self.present.table(table);
        let is_there = |field| now.is_some_and(|now| now.field(field).is_some());
        let fields = then.table(table).map_or(&[][..], |then| &then.fields);
        let are_there = fields
            .iter()
            .filter(|it| field.is_none_or(|field| field == it.number))
            .all(|it| is_there(it.number));
        self.is_of_dropped |= now.is_none() || !are_there;
    }
}

impl Sink for Touched {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        match *event {
            Event::Schema(command) => {
                self.command.get_or_insert_with(|| schema.command_text(command));
            }
            Event::Insert { table, id, .. } => self.add(table, id, 1),
            Event::InsertVector { table, id, count } => self.add(table, id, count),
            Event::Delete { table, id } => {
                self.add(table, id, 1);
                self.note_replaced(schema, table, None);
            }
            Event::DeleteVector { table, id, count } => {
                self.add(table, id, count);
                self.note_replaced(schema, table, None);
            }
            Event::Update { table, id, field, .. } => {
                self.add(table, id, 1);
                self.note_replaced(schema, table, Some(field));
            }
            Event::UpdateVector { table, id, field, values } => {
                let described = schema.table(table).and_then(|table| table.field(field));
                let count = described.and_then(|field| values.len(field.ty)).unwrap_or(0);
                self.add(table, id, count as u64);
                self.note_replaced(schema, table, Some(field));
            }
            Event::Blob { .. } | Event::ValidData | Event::Comment(_) | Event::Timestamp(_) => {}
        }
        Ok(())
    }

    fn commit(&mut self, _: &Schema, _: &Committed) -> Result<()> {
        Ok(())
    }
}

/// Returns the versions of a row from a transaction on.
///
/// # Errors
/// `Corrupt`, `Unsupported`, `Io`.
pub(super) fn versions_since(committed: &Snapshot, first: u64, row: Key) -> Result<Versions> {
    let mut found = Versions::new();
    for version in committed.history_of(row.0, row.1)? {
        let version = version?;
        if version.txid >= Txid(first) && !version.is_beginning {
            found.push((version.txid.0, version.change));
        }
    }
    Ok(found)
}

/// Returns the last transaction that changed a row; with `field`, the last one that changed that field.
pub(super) fn last_change(
    committed: &Snapshot,
    key: Key,
    field: Option<FieldNumber>,
) -> Result<Option<u64>> {
    let mut last = None;
    for version in committed.history_of(key.0, key.1)? {
        let version = version?;
        let counts = field.is_none_or(|field| version.change.fields().any(|it| it == field));
        last = if counts { Some(version.txid.0) } else { last };
    }
    Ok(last)
}
