//! Rows of zeros at ids that were used before.
//!
//! joedb's interpreter and its pack tool leave the values of deleted rows in such rows, until each field is written.

use annals::event::Event;
use annals::{FieldNumber, Result, RowId, Schema, Table, TableNumber};

use super::numbers::{find_field, find_table};

/// Rows that were just inserted, and the fields that no event has set yet.
pub(super) struct Unset {
    pub(super) table: TableNumber,
    pub(super) first: RowId,
    pub(super) count: u64,
    pub(super) fields: Vec<FieldNumber>,
}

impl Unset {
    /// Begins with all fields of a table.
    pub(super) fn new(table: &Table, first: RowId, count: u64) -> Self {
        let fields = table.fields.iter().map(|field| field.number).collect();
        Self { table: table.number, first, count, fields }
    }

    /// True if an event sets a field of all these rows, and of no others; the field is then set.
    pub(super) fn is_set_by(&mut self, schema: &Schema, event: &Event<'_>) -> Result<bool> {
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
