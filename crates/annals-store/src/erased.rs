//! Erased values: null where a field may not be null.
//!
//! The first erased value adds room for null to a column. The indexes on it are rebuilt, since keys of a nullable
//! field have another form. From then on it is an ordinary column, which still refuses null from programs.

use annals_schema::{Field, FieldNumber, RowId, TableNumber, Value, ValueRef};

use crate::Result;
use crate::change::{NewValue, no_field};
use crate::reference::Doubts;
use crate::view::{no_row, no_table};
use crate::{Store, Uniqueness};
use annals_event::{Event, Vector, has_erased, is_erased};

impl Store {
    /// Applies an event in which null may mean an erased value. With `watch` it is from a program: constraints that
    /// only the commit can check are noted, unique keys too.
    ///
    /// # Errors
    /// The errors of the single changes. Part of the event may have been applied: all that is left is to roll back.
    #[doc(hidden)]
    pub fn restore(&mut self, event: &Event<'_>, watch: bool) -> Result<()> {
        self.settle()?;
        let schema = std::sync::Arc::clone(&self.working.schema);
        match *event {
            Event::Insert { table, id, values } => {
                let described = schema.table(table).ok_or_else(|| no_table(table))?;
                let erased = described.fields.iter().zip(values).filter(|(f, v)| is_erased(f, v));
                let erased: Vec<_> = erased.map(|(field, _)| field.number).collect();
                for &field in &erased {
                    self.make_room_for_null(table, field)?;
                }
                let zeros: Vec<_> = described.fields.iter().map(Field::zero_value).collect();
                let values = filled(values, |at| described.fields.get(at).zip(zeros.get(at)));
                self.insert_row(table, id, &values, watch.then_some(Uniqueness::AtCommit))?;
                erased.into_iter().try_for_each(|field| self.erase_value(table, id, field))
            }
            Event::Update { table, id, field, value } => {
                let described = schema.table(table).and_then(|table| table.field(field));
                match described.is_some_and(|field| is_erased(field, &value)) {
                    true => self.erase_value(table, id, field),
                    false => self.update_row(table, id, field, value, watch),
                }
            }
            Event::UpdateVector { table, id, field, values: Vector::Values(values) } => {
                let described = schema.table(table).and_then(|table| table.field(field));
                let described = described.ok_or_else(|| no_field(&self.working, table, field))?;
                let zero = described.zero_value();
                self.make_room_for_null(table, field)?;
                let filled = filled(values, |_| Some((described, &zero)));
                self.update_vector(table, id, field, Vector::Values(&filled), watch)?;
                for (id, _) in (id.0..).zip(values).filter(|(_, v)| is_erased(described, v)) {
                    self.erase_value(table, RowId(id), field)?;
                }
                Ok(())
            }
            _ => self.apply(event),
        }
    }

    /// True if an event has a null that only says that a value was erased.
    #[doc(hidden)]
    pub fn erases(&self, event: &Event<'_>) -> bool {
        let field = |table, field| self.working.field(table, field);
        match *event {
            Event::Insert { table, values, .. } => {
                self.working.schema.table(table).is_some_and(|table| has_erased(table, values))
            }
            Event::Update { table, field: number, value, .. } => {
                field(table, number).is_some_and(|field| is_erased(field, &value))
            }
            Event::UpdateVector {
                table, field: number, values: Vector::Values(values), ..
            } => {
                let field = field(table, number);
                field.is_some_and(|field| values.iter().any(|value| is_erased(field, value)))
            }
            _ => false,
        }
    }

    /// Makes a value null, whatever the schema says.
    fn erase_value(&mut self, number: TableNumber, id: RowId, field: FieldNumber) -> Result<()> {
        self.make_room_for_null(number, field)?;
        let at = number.0 as usize;
        let table = self.working.tables.get(at).ok_or_else(|| no_table(number))?;
        let slot = table.rows.find(id.0)?.ok_or_else(|| no_row(&self.working, number, id))?;
        let place = table.place_of(field).ok_or_else(|| no_field(&self.working, number, field))?;
        self.reindex_row(at, id, slot, NewValue { field: place, value: ValueRef::Null }, false)?;
        if let Some(table) = self.working.tables.get_mut(at) {
            let table = table.make_mut();
            table.begin(&self.epoch);
            let write = table.rows.write_at(slot, &self.epoch);
            if let Some(column) = table.columns.get_mut(place) {
                column.erase(slot, write)?;
            }
        }
        Ok(())
    }

    /// Returns a column room for null, if it has none, and builds the indexes on it again.
    fn make_room_for_null(&mut self, number: TableNumber, field: FieldNumber) -> Result<()> {
        let at = number.0 as usize;
        let table = self.working.tables.get_mut(at).ok_or_else(|| no_table(number))?;
        let place = table.place_of(field);
        let Some(place) = place.filter(|&place| !table.is_nullable(place)) else { return Ok(()) };
        self.changed = true;
        table.make_mut().make_room_for_null(place);
        let numbers = table.indexes.clone();
        for number in numbers {
            let index = self.working.indexes.get(number);
            if index.is_some_and(|index| index.fields.contains(&place)) {
                self.build_again(number)?;
            }
        }
        Ok(())
    }

    /// Builds an index from the rows of its table.
    fn build_again(&mut self, number: usize) -> Result<()> {
        // They are written as keys were before.
        let Doubts { keys, indexes, .. } = &mut self.doubts;
        let before = keys.len();
        keys.retain(|(index, _)| *index != number);
        if keys.len() < before && !indexes.contains(&number) {
            indexes.push(number);
        }
        let Some(index) = self.working.indexes.get_mut(number) else { return Ok(()) };
        let Some(table) = self.working.tables.get(index.table) else { return Ok(()) };
        // Within a transaction two rows may have a key.
        let mut built = index.emptied();
        built.unique = false;
        let _unique = built.build(table, &self.epoch)?;
        built.unique = index.unique;
        *index.make_mut() = built;
        Ok(())
    }
}

/// Returns the values of a row, or of a field, with zeros for erased ones.
fn filled<'v>(
    values: &[ValueRef<'v>],
    field: impl Fn(usize) -> Option<(&'v Field, &'v Value)>,
) -> Vec<ValueRef<'v>> {
    let fill = |(at, value): (usize, &ValueRef<'v>)| match field(at) {
        Some((field, zero)) if is_erased(field, value) => zero.as_ref(),
        _ => *value,
    };
    values.iter().enumerate().map(fill).collect()
}
