//! Rows of zeros whose fields joedb must be told.
//!
//! joedb's interpreter and its pack tool leave the values of deleted rows in rows at ids that were used before, until
//! each field is written. And its zero is the empty string where a field became a string, as `0.00` does.

use annals::event::Event;
use annals::{Field, FieldNumber, Result, RowId, Schema, Table, TableNumber};

use super::kind;
use super::numbers::{find_field, find_table};

/// Rows that were just inserted, and the fields that no event has set yet.
pub(crate) struct Unset {
    pub(crate) table: TableNumber,
    pub(crate) first: RowId,
    pub(crate) count: u64,
    pub(crate) fields: Vec<FieldNumber>,
}

impl Unset {
    /// Begins with all fields of a table.
    pub(crate) fn new(table: &Table, first: RowId, count: u64) -> Self {
        let fields = table.fields.iter().map(|field| field.number).collect();
        Self { table: table.number, first, count, fields }
    }

    /// Begins with the fields of new rows that `count` rows of joedb don't have: all if joedb knew `reused` of these
    /// rows, else those whose zero isn't joedb's. Returns `None` if there is none.
    pub(crate) fn of_zeros(table: &Table, first: RowId, count: u64, reused: u64) -> Option<Self> {
        let is_other = |field: &&Field| !field.nullable && kind::has_other_zero(field.ty);
        let others: Vec<_> = table.fields.iter().filter(is_other).map(|f| f.number).collect();
        match (reused, others.is_empty()) {
            (0, true) => None,
            (0, false) => Some(Self { table: table.number, first, count, fields: others }),
            (_, true) => Some(Self::new(table, first, reused)),
            (_, false) => Some(Self::new(table, first, count)),
        }
    }

    /// True if an event sets a field of all these rows, and of no others; the field is then set.
    pub(crate) fn is_set_by(&mut self, schema: &Schema, event: &Event<'_>) -> Result<bool> {
        let (table, id, field, count) = match *event {
            Event::Update { table, id, field, .. } => (table, id, field, 1),
            Event::UpdateVector { table, id, field, values } => {
                let ty = find_field(find_table(schema, table)?, field)?.ty;
                (table, id, field, values.len(ty).unwrap_or_default() as u64)
            }
            _ => return Ok(false),
        };
        let is_all = (table, id, count) == (self.table, self.first, self.count);
        if is_all {
            self.fields.retain(|unset| *unset != field);
        }
        Ok(is_all)
    }
}
