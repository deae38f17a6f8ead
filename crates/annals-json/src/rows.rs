//! Rows, and changes of rows.

use annals::{Row, RowChange, Table, Value};

use crate::{key, push_display, push_string, push_value};

/// Appends a row as an object: its `id`, then its fields in the order of the schema.
pub fn push_row(text: &mut String, table: &Table, row: &Row<'_>) {
    text.push_str("{\"id\":");
    push_display(text, row.id().0);
    for field in &table.fields {
        text.push(',');
        push_string(text, &key(table, field));
        text.push(':');
        push_value(text, row.value(field.number));
    }
    text.push('}');
}

/// Appends a change of a row as an object: `table`, `id`, and its values `before` and `after`, null where there was no
/// row.
pub fn push_change(text: &mut String, table: &Table, row: &RowChange) {
    text.push_str("{\"table\":");
    push_string(text, &table.name);
    push_display(text, format_args!(",\"id\":{}", row.id.0));
    for (name, side) in [("before", &row.before), ("after", &row.after)] {
        push_display(text, format_args!(",\"{name}\":"));
        let Some(values) = side else {
            text.push_str("null");
            continue;
        };
        text.push('{');
        for (place, field) in table.fields.iter().enumerate() {
            text.push_str(if place > 0 { "," } else { "" });
            push_string(text, &field.name);
            text.push(':');
            let value = values.get(field.number.0 as usize).unwrap_or(&Value::Null);
            push_value(text, value.as_ref());
        }
        text.push('}');
    }
    text.push('}');
}
