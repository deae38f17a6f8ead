//! Applying events that another writer made, and that aren't history yet: everything is checked, as for a statement.

use annals_event::Event;
use annals_schema::{FieldNumber, RowId, TableNumber, ValueRef};

use crate::{Error, ErrorKind, Result, Store, Uniqueness};

impl Store {
    /// Applies an event that is about to become history: it must be one that a transaction here could have made. So
    /// its values fit their fields, and rows that a deletion deletes or changes by enforced references were deleted or
    /// changed by events before it. [`check_constraints`](Self::check_constraints) checks unique keys and references,
    /// at the transaction's end.
    ///
    /// # Errors
    /// Those of the statement that makes such an event. `Reference`: a deleted row is still referred to. After an
    /// error all that is left is to roll back.
    #[doc(hidden)]
    pub fn apply_checked(&mut self, event: &Event<'_>) -> Result<()> {
        match *event {
            Event::Delete { table, id } => self.see_unreferred(table, id, 1)?,
            Event::DeleteVector { table, id, count } => self.see_unreferred(table, id, count)?,
            _ => {}
        }
        self.apply_event(event, true)
    }

    /// Fails if the deletion of rows needs further changes, which would have to be in the journal before it.
    fn see_unreferred(&mut self, table: TableNumber, id: RowId, count: u64) -> Result<()> {
        if !self.is_referred(table) {
            return Ok(());
        }
        let plan = self.plan_deletion(table, id, count)?;
        let of_row = plan.rows.first().map(|&(table, row)| (table, row));
        let of_field =
            plan.nulls.first().map(|&(table, row, _): &(_, _, FieldNumber)| (table, row));
        let Some((by, row)) = of_row.or(of_field) else { return Ok(()) };
        let (name, by) = (self.view().table_name(table), self.view().table_name(by));
        Err(Error::new(
            ErrorKind::Reference,
            format!(
                "row {} of `{name}` is deleted, but row {} of `{by}` still refers to it: the transaction must delete \
                 that row, or change the reference, before",
                id.0, row.0
            ),
        ))
    }

    /// Applies a run of inserts, given the values of each field, as [`apply_checked`](Self::apply_checked) does one by
    /// one.
    ///
    /// # Errors
    /// As there.
    #[doc(hidden)]
    pub fn apply_checked_rows(
        &mut self,
        table: TableNumber,
        first: RowId,
        count: u64,
        columns: &[Vec<ValueRef<'_>>],
    ) -> Result<()> {
        let mut values = vec![ValueRef::Null; columns.len()];
        for row in 0..count {
            for (value, column) in values.iter_mut().zip(columns) {
                let place = usize::try_from(row).unwrap_or(usize::MAX);
                *value = column.get(place).copied().unwrap_or(ValueRef::Null);
            }
            self.insert(table, RowId(first.0 + row), &values, Uniqueness::AtCommit)?;
        }
        Ok(())
    }
}
