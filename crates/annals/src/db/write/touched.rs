//! The rows that the open transaction has touched: a superset of those that it changes.

use annals_schema::{RowId, Schema, TableNumber};

use crate::event::Event;
use crate::store::RowRuns;

/// Runs of touched rows.
#[derive(Debug, Default)]
pub(in crate::db) struct Touched(RowRuns<TableNumber>);

impl Touched {
    /// Notes the rows of an event.
    pub(in crate::db) fn note(&mut self, schema: &Schema, event: &Event<'_>) {
        match *event {
            Event::Insert { table, id, .. }
            | Event::Update { table, id, .. }
            | Event::Delete { table, id } => self.add(table, id, 1),
            Event::InsertVector { table, id, count } | Event::DeleteVector { table, id, count } => {
                self.add(table, id, count);
            }
            Event::UpdateVector { table, id, field, values } => {
                let field = schema.table(table).and_then(|table| table.field(field));
                let count = field.and_then(|field| values.len(field.ty)).unwrap_or_default();
                self.add(table, id, count as u64);
            }
            Event::Schema(_)
            | Event::Blob { .. }
            | Event::Comment(_)
            | Event::Timestamp(_)
            | Event::ValidData => {}
        }
    }

    /// Notes consecutive rows.
    pub(in crate::db) fn add(&mut self, table: TableNumber, first: RowId, count: u64) {
        self.0.add(table, first.0..first.0.saturating_add(count));
    }

    /// Returns how many runs are noted.
    pub(in crate::db) const fn len(&self) -> usize {
        self.0.runs().len()
    }

    /// Returns how many rows there are.
    pub(in crate::db) fn count(&mut self) -> u64 {
        self.0.merge();
        self.0.runs().iter().map(|(_, ids)| ids.end - ids.start).sum()
    }

    /// Joins the runs, so that each row is in one.
    pub(in crate::db) fn merge(&mut self) {
        self.0.merge();
    }

    /// Returns all rows, by table and id, after [`merge`](Self::merge).
    pub(in crate::db) fn rows(&self) -> impl Iterator<Item = (TableNumber, RowId)> + '_ {
        let rows = |(table, ids): &(TableNumber, std::ops::Range<u64>)| {
            let table = *table;
            ids.clone().map(move |id| (table, RowId(id)))
        };
        self.0.runs().iter().flat_map(rows)
    }
}
