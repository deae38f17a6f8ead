//! Events of a transaction.

use annals::event::Event;
use annals::{Error, Result, Schema, Table, ValueRef};

use crate::{push_display, push_string, push_value};

/// Appends an event as an object: `op`, and what it concerns.
///
/// # Errors
/// `Corrupt`: it speaks of a table or a field that the schema doesn't have.
pub fn push_event(text: &mut String, schema: &Schema, event: &Event<'_>) -> Result<()> {
    match *event {
        Event::Schema(command) => {
            text.push_str("{\"op\":\"schema\",\"command\":");
            push_string(text, &schema.command_text(command));
        }
        Event::Insert { table, id, values } => {
            let table = schema.table(table).ok_or_else(unknown_place)?;
            push_place(text, "insert", table, id.0);
            push_fields(text, table, values);
        }
        Event::Update { table, id, field, value } => {
            let table = schema.table(table).ok_or_else(unknown_place)?;
            let field = table.field(field).ok_or_else(unknown_place)?;
            push_place(text, "update", table, id.0);
            text.push_str(",\"field\":");
            push_string(text, &field.name);
            text.push_str(",\"value\":");
            push_value(text, value);
        }
        Event::Delete { table, id } => {
            let table = schema.table(table).ok_or_else(unknown_place)?;
            push_place(text, "delete", table, id.0);
        }
        Event::InsertVector { table, id, count } => {
            push_place(text, "insert_vector", schema.table(table).ok_or_else(unknown_place)?, id.0);
            push_display(text, format_args!(",\"count\":{count}"));
        }
        Event::UpdateVector { table, id, field, values } => {
            let table = schema.table(table).ok_or_else(unknown_place)?;
            let field = table.field(field).ok_or_else(unknown_place)?;
            push_place(text, "update_vector", table, id.0);
            text.push_str(",\"field\":");
            push_string(text, &field.name);
            text.push_str(",\"values\":[");
            for (place, value) in values.iter(field.ty).enumerate() {
                text.push_str(if place > 0 { "," } else { "" });
                push_value(text, value);
            }
            text.push(']');
        }
        Event::DeleteVector { table, id, count } => {
            push_place(text, "delete_vector", schema.table(table).ok_or_else(unknown_place)?, id.0);
            push_display(text, format_args!(",\"count\":{count}"));
        }
        Event::Blob { blob, offset, bytes, .. } => {
            let (blob, bytes) = (blob.0, ValueRef::Bytes(bytes));
            push_display(
                text,
                format_args!("{{\"op\":\"blob\",\"blob\":{blob},\"offset\":{offset}"),
            );
            text.push_str(",\"bytes\":");
            push_value(text, bytes);
        }
        Event::ValidData => text.push_str("{\"op\":\"valid_data\""),
        Event::Comment(comment) => {
            text.push_str("{\"op\":\"comment\",\"text\":");
            push_string(text, comment);
        }
        Event::Timestamp(seconds) => {
            text.push_str("{\"op\":\"timestamp\",\"seconds\":");
            push_display(text, seconds);
        }
    }
    text.push('}');
    Ok(())
}

fn push_fields(text: &mut String, table: &Table, values: &[ValueRef<'_>]) {
    text.push_str(",\"values\":{");
    for (place, (field, value)) in table.fields.iter().zip(values).enumerate() {
        text.push_str(if place > 0 { "," } else { "" });
        push_string(text, &field.name);
        text.push(':');
        push_value(text, *value);
    }
    text.push('}');
}

fn push_place(text: &mut String, op: &str, table: &Table, id: u64) {
    text.push_str("{\"op\":\"");
    text.push_str(op);
    text.push_str("\",\"table\":");
    push_string(text, &table.name);
    text.push_str(",\"id\":");
    push_display(text, id);
}

fn unknown_place() -> Error {
    Error::corrupt("an event speaks of a table or field that isn't there")
}
