//! A row as the events of its history make it, in the fields of the present schema.

use std::sync::Arc;

use annals_schema::{Field, FieldNumber, RowId, Schema, Table, TableNumber, Type, Value, ValueRef};

use crate::event::Event;
use crate::{Error, ErrorKind, Result};

/// The row that is followed, as of some event.
#[derive(Debug)]
pub(in crate::db) struct Running {
    present: Arc<Schema>,
    pub(in crate::db) table: TableNumber,
    pub(in crate::db) id: RowId,
    /// Its values by the numbers of fields; `None` if it doesn't exist.
    pub(in crate::db) values: Option<Vec<Value>>,
}

fn type_of(schema: &Schema, table: TableNumber, field: FieldNumber) -> Option<Type> {
    Some(schema.table(table)?.field(field)?.ty)
}

/// Returns a table of the present schema.
///
/// # Errors
/// `NotFound`: it has no such table.
pub(in crate::db) fn existing(present: &Schema, table: TableNumber) -> Result<&Table> {
    present.table(table).ok_or_else(|| {
        let text =
            format!("there is no table number {}: it was dropped, or never created", table.0);
        Error::new(ErrorKind::NotFound, text)
    })
}

impl Running {
    /// Begins with a row that doesn't exist.
    ///
    /// # Errors
    /// `NotFound`: the present schema has no such table.
    pub(in crate::db) fn new(present: &Arc<Schema>, table: TableNumber, id: RowId) -> Result<Self> {
        existing(present, table)?;
        Ok(Self { present: Arc::clone(present), table, id, values: None })
    }

    /// True if an event is one of this row. `schema` is the one before it.
    pub(in crate::db) fn is_changed_by(&self, schema: &Schema, event: &Event<'_>) -> bool {
        match *event {
            Event::Insert { table, id, .. }
            | Event::Update { table, id, .. }
            | Event::Delete { table, id } => self.is(table, id, 1),
            Event::InsertVector { table, id, count } | Event::DeleteVector { table, id, count } => {
                self.is(table, id, count)
            }
            Event::UpdateVector { table, id, field, values } => {
                let len = type_of(schema, table, field).and_then(|ty| values.len(ty));
                self.is(table, id, len.unwrap_or(0) as u64)
            }
            _ => false,
        }
    }

    /// Applies an event of this row. `schema` is the one before it.
    ///
    /// # Errors
    /// `Corrupt` if it changes a missing row.
    pub(in crate::db) fn apply(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        match *event {
            Event::Insert { values, .. } => self.insert(schema, |place, _| {
                values.get(place).map_or(Value::Null, |value| value.to_value())
            }),
            Event::InsertVector { .. } => self.insert(schema, |_, field| field.zero_value()),
            Event::Update { field, value, .. } => self.set(field, value)?,
            Event::UpdateVector { table, id, field, values } => {
                let place = usize::try_from(self.id.0 - id.0).unwrap_or(usize::MAX);
                let ty = type_of(schema, table, field);
                let value = ty.and_then(|ty| values.iter(ty).nth(place));
                self.set(field, value.unwrap_or(ValueRef::Null))?;
            }
            _ => self.values = None,
        }
        Ok(())
    }

    const fn is(&self, table: TableNumber, id: RowId, count: u64) -> bool {
        self.table.0 == table.0 && self.id.0 >= id.0 && self.id.0 - id.0 < count
    }

    fn present(&self) -> Option<&Table> {
        self.present.table(self.table)
    }

    /// A later field has its default; a field that was dropped since is null.
    fn insert(&mut self, then: &Schema, value: impl Fn(usize, &Field) -> Value) {
        let Some(table) = self.present() else { return };
        let count = table.fields.last().map_or(0, |last| last.number.0 as usize + 1);
        let mut values = vec![Value::Null; count];
        for field in &table.fields {
            if let Some(to) = values.get_mut(field.number.0 as usize) {
                *to = field.existing_value();
            }
        }
        let fields = then.table(self.table).map_or(&[][..], |then| &then.fields);
        for (place, field) in fields.iter().enumerate() {
            if let Some(shown) = table.field(field.number)
                && let Some(to) = values.get_mut(field.number.0 as usize)
            {
                *to = shown.shown(value(place, field));
            }
        }
        self.values = Some(values);
    }

    fn set(&mut self, field: FieldNumber, value: ValueRef<'_>) -> Result<()> {
        let present = self.present.table(self.table).and_then(|table| table.field(field));
        let Some(values) = &mut self.values else {
            return Err(Error::corrupt(format!(
                "the journal changes row {} of table number {} where there is none",
                self.id.0, self.table.0
            )));
        };
        if let (Some(to), Some(field)) = (values.get_mut(field.0 as usize), present) {
            *to = field.shown(value.to_value());
        }
        Ok(())
    }
}

/// The fields of a row that some events set, whatever it was before them.
#[derive(Debug)]
pub(in crate::db) struct PartOfRow {
    row: Running,
    /// True for all fields after an insertion.
    is_whole: bool,
    set: Vec<FieldNumber>,
}

impl PartOfRow {
    /// Begins with no field.
    ///
    /// # Errors
    /// `NotFound`: the present schema has no such table.
    pub(in crate::db) fn new(present: &Arc<Schema>, table: TableNumber, id: RowId) -> Result<Self> {
        let mut row = Running::new(present, table, id)?;
        let last = row.present().and_then(|table| table.fields.last());
        let count = last.map_or(0, |last| last.number.0 as usize + 1);
        row.values = Some(vec![Value::Null; count]);
        Ok(Self { row, is_whole: false, set: Vec::new() })
    }

    /// Takes an event, if it is one of this row. `schema` is the one before it.
    ///
    /// # Errors
    /// `Corrupt` if it changes a missing row.
    pub(in crate::db) fn see(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        if !self.row.is_changed_by(schema, event) {
            return Ok(());
        }
        match *event {
            Event::Insert { .. } | Event::InsertVector { .. } => self.is_whole = true,
            Event::Update { field, .. } | Event::UpdateVector { field, .. } => self.set.push(field),
            _ => {}
        }
        self.row.apply(schema, event)
    }

    /// Returns the value of a field, if the events set it.
    pub(in crate::db) fn take(&mut self, field: FieldNumber) -> Option<Value> {
        let is_set = self.is_whole || self.set.contains(&field);
        let value = self.row.values.as_mut()?.get_mut(field.0 as usize).filter(|_| is_set)?;
        Some(std::mem::replace(value, Value::Null))
    }
}
