//! What the tables have of the journal: changes and bytes.

use std::collections::BTreeMap;

use annals::event::Event;
use annals::{Blob, Schema, TableNumber, Type, ValueRef};

/// What a table has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// How many changes of rows.
    pub(crate) changes: u64,
    /// How many bytes their events have, and the blobs in them.
    pub(crate) bytes: u64,
}

impl Taken {
    pub(crate) fn add(&mut self, other: Self) {
        self.changes += other.changes;
        self.bytes += other.bytes;
    }
}

/// Whose bytes come next.
#[derive(Clone, Copy, Debug, Default)]
enum Whose {
    Table(TableNumber),
    /// A blob is written before the row that has it.
    Blob(Blob),
    #[default]
    Nobodys,
}

/// What the tables have in a transaction that is being read.
#[derive(Debug, Default)]
pub(super) struct Taking {
    tables: BTreeMap<TableNumber, Taken>,
    blobs: BTreeMap<Blob, u64>,
    whose: Whose,
}

impl Taking {
    /// Takes an event; its bytes follow.
    pub(super) fn event(&mut self, schema: &Schema, event: &Event<'_>) {
        self.whose = Whose::Nobodys;
        match *event {
            Event::Insert { table, values, .. } => {
                self.count(table, 1);
                values.iter().for_each(|value| self.take_blob(table, value));
            }
            Event::Update { table, ref value, .. } => {
                self.count(table, 1);
                self.take_blob(table, value);
            }
            Event::Delete { table, .. } => self.count(table, 1),
            Event::InsertVector { table, count, .. } | Event::DeleteVector { table, count, .. } => {
                self.count(table, count);
            }
            Event::UpdateVector { table, field, ref values, .. } => {
                let found = schema.table(table).and_then(|table| table.field(field));
                let Some(ty) = found.map(|field| field.ty) else { return };
                self.count(table, values.iter(ty).count() as u64);
                if ty == Type::Blob {
                    values.iter(ty).for_each(|value| self.take_blob(table, &value));
                }
            }
            Event::Blob { blob, .. } => self.whose = Whose::Blob(blob),
            Event::Schema(_) | Event::Comment(_) | Event::ValidData | Event::Timestamp(_) => {}
        }
    }

    fn count(&mut self, table: TableNumber, changes: u64) {
        self.tables.entry(table).or_default().changes += changes;
        self.whose = Whose::Table(table);
    }

    fn take_blob(&mut self, table: TableNumber, value: &ValueRef<'_>) {
        if let ValueRef::Blob(blob) = value
            && let Some(bytes) = self.blobs.remove(blob)
        {
            self.tables.entry(table).or_default().bytes += bytes;
        }
    }

    /// Takes how many bytes the last event has.
    pub(super) fn bytes(&mut self, count: u64) {
        match self.whose {
            Whose::Table(table) => self.tables.entry(table).or_default().bytes += count,
            Whose::Blob(blob) => *self.blobs.entry(blob).or_default() += count,
            Whose::Nobodys => {}
        }
    }

    /// Ends the transaction; returns what the tables have in it.
    pub(super) fn end(&mut self) -> BTreeMap<TableNumber, Taken> {
        std::mem::take(self).tables
    }
}
