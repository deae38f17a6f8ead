//! The types of fields in Python.

use annals_schema::{Field, Table, Type, Value};

use super::names::Names;

/// Returns the type of a field's values.
pub(super) fn of(names: &Names, table: &Table, field: &Field) -> String {
    let plain = match field.ty {
        Type::Bool => "_bool".to_owned(),
        Type::Float32 | Type::Float64 => "_float".to_owned(),
        Type::String | Type::Json => "_str".to_owned(),
        Type::Bytes | Type::FixedBytes(_) | Type::Blob => "_bytes".to_owned(),
        Type::Timestamp => "_datetime.datetime".to_owned(),
        Type::Date => "_datetime.date".to_owned(),
        Type::Uuid => "_uuid.UUID".to_owned(),
        Type::Decimal(_) => "_decimal.Decimal".to_owned(),
        Type::Enum(_) => names.variants(table, field).unwrap_or("_str").to_owned(),
        _ => "_int".to_owned(),
    };
    if field.nullable { format!("{plain} | None") } else { plain }
}

/// Returns the type of any of these strings; of none, if there are none.
pub(super) fn literal<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("\"{name}\"")).collect();
    if names.is_empty() { "_Never".to_owned() } else { format!("_Literal[{}]", names.join(", ")) }
}

/// True if a row can be inserted without a value of the field.
pub(super) fn has_default(field: &Field) -> bool {
    field.default.is_some() || matches!(field.default_value(), Value::Null)
}
