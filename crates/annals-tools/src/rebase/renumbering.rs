//! The ids of rows that are inserted again, where others may have taken theirs.

use std::collections::{BTreeMap, HashSet};

use annals::{FieldNumber, Result, RowId, Schema, Table, TableNumber, Type, Value, View};

use super::Renumbered;
use crate::undo::{Key, Values};

/// The rows that have other ids there than here.
#[derive(Debug, Default)]
pub(super) struct Renumbering {
    ids: BTreeMap<Key, RowId>,
}

impl Renumbering {
    /// Returns the id there of a row.
    pub(super) fn of(&self, key: Key) -> RowId {
        self.ids.get(&key).copied().unwrap_or(key.1)
    }

    /// Notes the id there of a row.
    pub(super) fn note(&mut self, key: Key, id: RowId) {
        match id == key.1 {
            true => self.ids.remove(&key),
            false => self.ids.insert(key, id),
        };
    }

    /// Chooses the ids of the rows that a transaction inserts into a table. A row keeps its id, unless there is such a row,
    /// or may have been.
    pub(super) fn choose(
        &mut self,
        table: TableNumber,
        inserted: &[RowId],
        base: &View,
        there: &View,
    ) -> Result<()> {
        let given_out = base.schema().table(table).map(|_| base.table(table)).transpose()?;
        let given_out = given_out.map_or(0, |rows| rows.next_id());
        let rows = there.table(table)?;
        let is_single = rows.schema().single_row;
        let (mut kept, mut others) = (HashSet::new(), Vec::new());
        for &id in inserted {
            let wanted = self.of((table, id));
            let is_old = id.0 < given_out || wanted != id;
            let is_free =
                is_single || if is_old { !rows.contains(wanted)? } else { id.0 >= rows.next_id() };
            match is_free && kept.insert(wanted) {
                true => self.note((table, id), wanted),
                false => others.push(id),
            }
        }
        let mut next = rows.next_id();
        for id in others {
            while kept.contains(&RowId(next)) {
                next += 1;
            }
            self.note((table, id), RowId(next));
            next += 1;
        }
        Ok(())
    }

    /// Returns a value as it is there: a reference follows its row.
    pub(super) fn value(&self, table: &Table, field: FieldNumber, value: Value) -> Value {
        match (table.field(field).map(|field| field.ty), value) {
            (Some(Type::Reference(to, _)), Value::Reference(id)) => {
                Value::Reference(self.of((to, id)))
            }
            (_, value) => value,
        }
    }

    /// Returns a row as it is there.
    pub(super) fn row(&self, table: &Table, values: Values) -> Values {
        let values = values?.into_iter().zip(0..);
        Some(values.map(|(value, field)| self.value(table, FieldNumber(field), value)).collect())
    }

    /// Lists the rows that have other ids.
    pub(super) fn renumbered(&self, schema: &Schema) -> Vec<Renumbered> {
        let named = |(&(table, from), &to): (&Key, &RowId)| {
            let table = schema.table(table)?.name.clone();
            Some(Renumbered { table, from, to })
        };
        self.ids.iter().filter_map(named).collect()
    }
}
