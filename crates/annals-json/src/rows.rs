//! Rows, and changes of rows.

use annals::{FieldNumber, Row, RowChange, RowFields, RowId, Table, Value, ValueRef};

use crate::{key, push_csv, push_display, push_string, push_value};

/// Appends a row as an object: its `id`, then its fields in the order of the schema.
pub fn push_row(text: &mut String, table: &Table, row: &Row<'_>) {
    push_values(text, table, row.id(), |field| row.value(field));
}

/// Appends the values of a row in the same way.
pub fn push_values<'v>(
    text: &mut String,
    table: &Table,
    id: RowId,
    value: impl Fn(FieldNumber) -> ValueRef<'v>,
) {
    text.push_str("{\"id\":");
    push_display(text, id.0);
    for field in &table.fields {
        text.push(',');
        push_string(text, &key(table, field));
        text.push(':');
        push_value(text, value(field.number));
    }
    text.push('}');
}

/// Appends a row as a line of CSV: its `id`, then its fields in the order of the schema, as JSON has them but texts without
/// its quotes; null is empty.
pub fn push_csv_row(text: &mut String, table: &Table, row: &Row<'_>) {
    push_display(text, row.id().0);
    let mut json = String::new();
    for field in &table.fields {
        text.push(',');
        let value = row.value(field.number);
        if let ValueRef::String(value) = value {
            push_csv(text, value);
            continue;
        }
        json.clear();
        push_value(&mut json, value);
        // Those in quotes have no escapes.
        match json.as_str() {
            "null" => {}
            json => push_csv(text, json.trim_matches('"')),
        }
    }
    text.push('\n');
}

/// Appends a change of a row as an object: `table`, `id`, and its values `before` and `after`, null where there was no
/// row.
pub fn push_change(text: &mut String, table: &Table, row: &RowChange) {
    const NULL: Value = Value::Null;
    let RowChange { id, before, after, .. } = row;
    push_sides(
        text,
        table,
        *id,
        [before, after].map(|side| {
            let values = side.as_deref()?;
            let value = |number: FieldNumber| values.get(number.0 as usize).unwrap_or(&NULL);
            Some(table.fields.iter().map(move |field| (field.number, value(field.number))))
        }),
    );
}

/// Appends the changed fields of a row in the same way, without its other fields.
pub fn push_fields(text: &mut String, table: &Table, row: &RowFields) {
    push_sides(
        text,
        table,
        row.id,
        [&row.before, &row.after]
            .map(|side| Some(side.as_ref()?.iter().map(|(number, value)| (*number, value)))),
    );
}

fn push_sides<'v>(
    text: &mut String,
    table: &Table,
    id: RowId,
    [before, after]: [Option<impl Iterator<Item = (FieldNumber, &'v Value)>>; 2],
) {
    text.push_str("{\"table\":");
    push_string(text, &table.name);
    push_display(text, format_args!(",\"id\":{}", id.0));
    for (name, side) in [("before", before), ("after", after)] {
        push_display(text, format_args!(",\"{name}\":"));
        let Some(values) = side else {
            text.push_str("null");
            continue;
        };
        text.push('{');
        let names = values.filter_map(|(number, value)| Some((&table.field(number)?.name, value)));
        for (place, (name, value)) in names.enumerate() {
            text.push_str(if place > 0 { "," } else { "" });
            push_string(text, name);
            text.push(':');
            push_value(text, value.as_ref());
        }
        text.push('}');
    }
    text.push('}');
}
