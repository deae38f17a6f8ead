//! Values as the cells of a CSV file.

use annals::{Error, Field, Result, Table, Type, Value, ValueRef};

use crate::language;

/// Returns the heading of a field's column. `id` is the column of the row's id, so a field of that name gets its full
/// name.
pub(crate) fn heading(table: &Table, field: &Field) -> String {
    annals_json::key(table, field)
}

/// Reads a cell. An empty one is null where the field may be null, else the empty string; for other
/// types it is an error. Booleans may be `true`, `false`, `1` and `0`.
pub(crate) fn value(table: &Table, field: &Field, text: &str) -> Result<Value> {
    if text.is_empty() && field.nullable {
        return Ok(Value::Null);
    }
    match (field.ty, text) {
        (ty, _) if ty.is_text() => language::text_value(table, field, text),
        (Type::Bytes, "") => Ok(Value::Bytes(Vec::new())),
        (Type::Bool, "0") => Ok(Value::Bool(false)),
        (Type::Bool, "1") => Ok(Value::Bool(true)),
        (_, "") => Err(Error::invalid(format!(
            "field {} of table {} is empty, and it can't be null",
            field.name, table.name
        ))),
        _ => language::bare_value(table, field, text),
    }
}

/// Reads a cell of a CSV file, and whether it is quoted. Null is the text `null` if one is given; otherwise a cell
/// without quotes that is empty, where the field may be null.
pub(crate) fn cell(
    table: &Table,
    field: &Field,
    text: &str,
    quoted: bool,
    null: Option<&str>,
) -> Result<Value> {
    if null == Some(text) {
        return match field.nullable {
            true => Ok(Value::Null),
            false => Err(Error::invalid(format!(
                "field {} of table {} is {text:?}, and it can't be null",
                field.name, table.name
            ))),
        };
    }
    if field.ty.is_text() && (quoted || null.is_some()) {
        return language::text_value(table, field, text);
    }
    value(table, field, text)
}

/// Reads the bytes of a blob.
pub(crate) fn bytes(table: &Table, field: &Field, text: &str) -> Result<Vec<u8>> {
    let field = Field { ty: Type::Bytes, ..field.clone() };
    match language::bare_value(table, &field, text)? {
        Value::Bytes(bytes) => Ok(bytes),
        _ => Ok(Vec::new()),
    }
}

/// Writes a cell: null as an empty one, strings as they are, everything else as the shell does.
pub(crate) fn write(value: ValueRef<'_>, cell: &mut String) {
    match value {
        ValueRef::Null => {}
        ValueRef::String(value) => cell.push_str(value),
        ValueRef::Timestamp(value) => cell.push_str(&annals::Timestamp(value).to_string()),
        value => language::write_value(value, cell),
    }
}
