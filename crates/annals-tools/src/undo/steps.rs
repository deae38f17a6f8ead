//! The change of one row that undoes others.

use std::sync::Arc;

use annals::event::is_erased;
use annals::internals::is_same;
use annals::store::Uniqueness;
use annals::{Field, Obstacle, Result, RowId, Table, TableNumber, Transaction, Value, ValueRef};

use super::erased::Erased;

/// A row of a table.
pub(crate) type Key = (TableNumber, RowId);

/// The values of a row by field number; `None`: there is no row.
pub(crate) type Values = Option<Vec<Value>>;

/// A row, and the values that it is to have.
pub(crate) struct Step {
    pub(crate) table: TableNumber,
    pub(crate) id: RowId,
    pub(crate) now: Values,
    /// `None`: it is to be deleted.
    pub(crate) target: Values,
}

impl Step {
    /// Returns the fields that get another value; all of them if the row is inserted.
    pub(crate) fn differing<'s>(
        &'s self,
        table: &'s Table,
    ) -> impl Iterator<Item = (&'s Field, &'s Value)> {
        table.fields.iter().filter_map(|field| {
            let at = field.number.0 as usize;
            let target = self.target.as_ref()?.get(at)?;
            let now = self.now.as_ref().and_then(|now| now.get(at));
            let is_same = now.is_some_and(|now| is_same(now.as_ref(), target.as_ref()));
            (!is_same).then_some((field, target))
        })
    }

    /// Returns the fields whose values are no longer known. `erased` is what was erased since they had them.
    pub(super) fn missing_values(
        &self,
        tx: &Transaction<'_>,
        table: &Table,
        erased: &Erased,
    ) -> Vec<Obstacle> {
        let was_erased = |field: &Field, value: &Value| {
            let is_null = matches!(value, Value::Null);
            is_null
                && (is_erased(field, &value.as_ref())
                    || erased.has(self.table, self.id, field.number))
        };
        let reason = |field: &Field, value: &Value| match value {
            value if was_erased(field, value) => Some("its value was erased".to_owned()),
            Value::Blob(blob) if tx.blob(*blob).is_err() => {
                Some(format!("blob {} was forgotten", blob.0))
            }
            _ => None,
        };
        let missing = self.differing(table).filter_map(|(field, value)| {
            let reason = reason(field, value)?;
            Some(Obstacle::new(&table.name, self.id, reason).in_field(&field.name))
        });
        missing.collect()
    }

    /// Changes the row. It was checked that all values are known.
    pub(crate) fn apply(&self, tx: &mut Transaction<'_>) -> Result<()> {
        let schema = Arc::clone(tx.view().schema());
        let Some(table) = schema.table(self.table) else { return Ok(()) };
        match (&self.now, &self.target) {
            (_, None) => match tx.view().table(self.table)?.contains(self.id)? {
                true => tx.delete(self.table, self.id),
                // It never was there, or went with a row that it refers to.
                false => Ok(()),
            },
            (None, Some(_)) => {
                let values: Vec<ValueRef<'_>> =
                    self.differing(table).map(|(_, value)| value.as_ref()).collect();
                tx.insert_row(self.table, self.id, &values, Uniqueness::AtCommit)
            }
            (Some(_), Some(_)) => self.differing(table).try_for_each(|(field, value)| {
                tx.update(self.table, self.id, field.number, value.as_ref())
            }),
        }
    }
}
