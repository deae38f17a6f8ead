//! Events that own their values, and counts of decoded events: for tests.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "it is for tests, which fail where it is wrong, as they should"
)]

use annals_schema::{Blob, Command, FieldNumber, RowId, Schema, TableNumber, Value, ValueRef};

use super::{Event, Vector, decode};
use crate::Result;

pub use crate::counted::{decoded_by_all, decoded_events};

/// An event that owns its values. Floats are compared by their bits.
#[derive(Clone, Debug)]
pub enum Owned {
    Schema(Command),
    Insert(TableNumber, RowId, Vec<Value>),
    Update(TableNumber, RowId, FieldNumber, Value),
    Delete(TableNumber, RowId),
    Comment(String),
    Timestamp(i64),
    ValidData,
    InsertVector(TableNumber, RowId, u64),
    UpdateVector(TableNumber, RowId, FieldNumber, Vec<Value>),
    DeleteVector(TableNumber, RowId, u64),
    /// The last number is the position of the bytes; the encoder ignores it.
    Blob(Blob, u64, Vec<u8>, u64),
}

impl Owned {
    pub fn of(schema: &Schema, event: &Event<'_>) -> Self {
        match *event {
            Event::Schema(command) => Self::Schema(command.clone()),
            Event::Insert { table, id, values } => {
                Self::Insert(table, id, values.iter().map(|value| value.to_value()).collect())
            }
            Event::Update { table, id, field, value } => {
                Self::Update(table, id, field, value.to_value())
            }
            Event::Delete { table, id } => Self::Delete(table, id),
            Event::Comment(text) => Self::Comment(text.to_owned()),
            Event::Timestamp(seconds) => Self::Timestamp(seconds),
            Event::ValidData => Self::ValidData,
            Event::InsertVector { table, id, count } => Self::InsertVector(table, id, count),
            Event::UpdateVector { table, id, field, values } => {
                let ty = schema.table(table).unwrap().field(field).unwrap().ty;
                let values: Vec<_> = values.iter(ty).map(ValueRef::to_value).collect();
                Self::UpdateVector(table, id, field, values)
            }
            Event::DeleteVector { table, id, count } => Self::DeleteVector(table, id, count),
            Event::Blob { blob, offset, bytes, position } => {
                Self::Blob(blob, offset, bytes.to_vec(), position)
            }
        }
    }

    pub fn encode(&self, encoder: &mut super::Encoder, schema: &Schema, out: &mut Vec<u8>) {
        match self {
            Self::Schema(command) => encoder.encode(schema, &Event::Schema(command), out),
            Self::Insert(table, id, values) => {
                let values: Vec<_> = values.iter().map(Value::as_ref).collect();
                let event = Event::Insert { table: *table, id: *id, values: &values };
                encoder.encode(schema, &event, out);
            }
            Self::Update(table, id, field, value) => {
                let (table, id, field, value) = (*table, *id, *field, value.as_ref());
                encoder.encode(schema, &Event::Update { table, id, field, value }, out);
            }
            Self::Delete(table, id) => {
                encoder.encode(schema, &Event::Delete { table: *table, id: *id }, out);
            }
            Self::InsertVector(table, id, count) => {
                let (table, id, count) = (*table, *id, *count);
                encoder.encode(schema, &Event::InsertVector { table, id, count }, out);
            }
            Self::UpdateVector(table, id, field, values) => {
                let values: Vec<_> = values.iter().map(Value::as_ref).collect();
                let (table, id, field, values) = (*table, *id, *field, Vector::Values(&values));
                encoder.encode(schema, &Event::UpdateVector { table, id, field, values }, out);
            }
            Self::DeleteVector(table, id, count) => {
                let (table, id, count) = (*table, *id, *count);
                encoder.encode(schema, &Event::DeleteVector { table, id, count }, out);
            }
            Self::Blob(blob, offset, bytes, position) => {
                let (blob, offset, position) = (*blob, *offset, *position);
                encoder.encode(schema, &Event::Blob { blob, offset, bytes, position }, out);
            }
            Self::ValidData => encoder.encode(schema, &Event::ValidData, out),
            Self::Comment(text) => encoder.encode(schema, &Event::Comment(text), out),
            Self::Timestamp(seconds) => encoder.encode(schema, &Event::Timestamp(*seconds), out),
        }
    }

    /// Two events are the same if their text is the same: that compares floats by their bits,
    /// except NaNs. Where a piece of a blob is in the file doesn't matter.
    pub fn text(&self) -> String {
        match self {
            Self::Blob(blob, offset, bytes, _) => format!("{:?}", (blob, offset, bytes)),
            _ => format!("{self:?}"),
        }
    }
}

/// Decodes a payload at `position` in its file.
pub fn decoded(payload: &[u8], position: u64, schema: &mut Schema) -> Result<Vec<Owned>> {
    let mut events = Vec::new();
    decode(payload, position, schema, &mut |schema, event| {
        events.push(Owned::of(schema, event));
        Ok(())
    })?;
    Ok(events)
}
