//! The rows that the open transaction has touched: a superset of those that it changes.

use annals_schema::{RowId, Schema, TableNumber};

use crate::event::Event;

/// Consecutive rows of a table.
#[derive(Clone, Copy, Debug)]
struct RowRun {
    table: TableNumber,
    first: u64,
    end: u64,
}

/// The number of runs that are noted before the first merge.
const MERGED: usize = 1024;

/// Runs of touched rows.
#[derive(Debug, Default)]
pub(in crate::db) struct Touched {
    runs: Vec<RowRun>,
    /// How many runs there were after the last merge.
    merged: usize,
}

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
        let (first, end) = (first.0, first.0.saturating_add(count));
        match self.runs.last_mut() {
            Some(run) if run.table == table && run.first <= first && first <= run.end => {
                run.end = run.end.max(end);
            }
            _ => self.runs.push(RowRun { table, first, end }),
        }
        if self.runs.len() > MERGED + 2 * self.merged {
            self.merge();
        }
    }

    /// Sorts the runs, and joins those that overlap or touch.
    fn merge(&mut self) {
        self.runs.sort_unstable_by_key(|run| (run.table, run.first));
        self.runs.dedup_by(|next, run| {
            let touches = next.table == run.table && next.first <= run.end;
            if touches {
                run.end = run.end.max(next.end);
            }
            touches
        });
        self.merged = self.runs.len();
    }

    /// Returns how many runs are noted.
    pub(in crate::db) const fn len(&self) -> usize {
        self.runs.len()
    }

    /// Returns how many rows there are.
    pub(in crate::db) fn count(&mut self) -> u64 {
        self.merge();
        self.runs.iter().map(|run| run.end - run.first).sum()
    }

    /// Returns all rows, each once, by table and id.
    pub(in crate::db) fn rows(mut self) -> TouchedRows {
        self.merge();
        TouchedRows(self.runs)
    }
}

/// Touched rows in order.
#[derive(Debug)]
pub(in crate::db) struct TouchedRows(Vec<RowRun>);

impl TouchedRows {
    pub(in crate::db) fn iter(&self) -> impl Iterator<Item = (TableNumber, RowId)> + '_ {
        self.0.iter().flat_map(|run| (run.first..run.end).map(|id| (run.table, RowId(id))))
    }
}
