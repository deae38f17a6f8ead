//! Surveys a history before it is written: which events were one statement.
//!
//! A long vector is several consecutive events, but one entry of joedb's, which begins with its number of values.

use std::collections::BTreeMap;

use annals::event::{Event, MAX_VECTOR, width};
use annals::{Committed, FieldNumber, Result, RowId, Schema, Sink, TableNumber};

/// The summary of a history.
#[derive(Debug, Default)]
pub struct Plan {
    /// By the number of an event with which a vector of several begins: how many rows it has in all.
    pub(crate) totals: BTreeMap<u64, u64>,
    events: u64,
    last: Option<Run>,
}

/// The vector that the last event was a part of.
#[derive(Debug)]
struct Run {
    /// The number of its first event.
    first: u64,
    table: TableNumber,
    /// The field whose values the vector sets; `None` if the vector inserts rows.
    field: Option<FieldNumber>,
    next: u64,
    total: u64,
    /// True if the last part was as long as one can be, so that more may follow.
    is_full: bool,
}

impl Plan {
    fn part(
        &mut self,
        table: TableNumber,
        field: Option<FieldNumber>,
        id: RowId,
        count: u64,
        is_full: bool,
    ) {
        let next = id.0.saturating_add(count);
        if let Some(run) = &mut self.last
            && run.is_full
            && (run.table, run.field, run.next) == (table, field, id.0)
        {
            (run.next, run.is_full) = (next, is_full);
            run.total += count;
            self.totals.insert(run.first, run.total);
            return;
        }
        self.last = Some(Run { first: self.events, table, field, next, total: count, is_full });
    }
}

impl Sink for Plan {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        /// How many values, or bytes of them, the library writes at once.
        const PART: (u64, usize) = (1024, 1 << 20);
        match *event {
            Event::InsertVector { table, id, count } => {
                self.part(table, None, id, count, count == MAX_VECTOR);
            }
            Event::UpdateVector { table, id, field, values } => {
                let known = schema.table(table).and_then(|table| table.field(field));
                let ty = known.map(|field| field.ty);
                let count = ty.and_then(|ty| values.len(ty)).unwrap_or_default() as u64;
                let most = ty.and_then(width).map(|width| (PART.1 / width) as u64);
                let is_full = count == PART.0 || Some(count) == most;
                self.part(table, Some(field), id, count, is_full);
            }
            _ => self.last = None,
        }
        self.events += 1;
        Ok(())
    }

    fn commit(&mut self, _: &Schema, _: &Committed) -> Result<()> {
        self.last = None;
        Ok(())
    }
}
