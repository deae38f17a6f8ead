//! The Arrow schema of a table: types, and what Arrow has no type for as metadata.

use std::collections::HashMap;
use std::sync::Arc;

use annals::{Field, Result, Schema, Table, TableView, Type};
use arrow_schema::{DataType, Field as Column, Schema as Columns, SchemaRef, TimeUnit};

use crate::convert::{field_type, no_field};

/// The key of a field's metadata with its type in the schema language, as in `decimal(2)` or `references city`.
pub const TYPE_KEY: &str = "annals.type";
/// The key of a schema's metadata with the name of the table.
const TABLE_KEY: &str = "annals.table";
/// Arrow's key for the name of a type that is stored as another.
const EXTENSION: &str = "ARROW:extension:name";

/// How strings and bytes are laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Layout {
    /// As views: short values stand in their cells. What programs on the same machine take.
    #[default]
    Views,
    /// As offsets: what every reader of files and streams knows.
    Offsets,
}

/// Returns the Arrow schema of a table: `id`, then its fields in their order.
#[must_use]
pub fn table_schema(schema: &Schema, rows: &TableView<'_>) -> SchemaRef {
    columns_of(schema, rows, rows.schema(), Layout::default())
}

/// Does the same with a layout of strings, of the table with these fields.
pub(crate) fn columns_of(
    schema: &Schema,
    rows: &TableView<'_>,
    table: &Table,
    layout: Layout,
) -> SchemaRef {
    let mut columns = vec![Column::new("id", DataType::UInt64, false)];
    columns.extend(table.fields.iter().map(|field| {
        let may_be_null = field.nullable || rows.has_erased(field.number);
        column_of(schema, table, field, layout).with_nullable(may_be_null)
    }));
    Arc::new(Columns::new_with_metadata(columns, named(table)))
}

/// Returns metadata with a table's name.
pub(crate) fn named(table: &Table) -> HashMap<String, String> {
    HashMap::from([(TABLE_KEY.to_owned(), table.name.clone())])
}

/// Returns the column of a field; it may be null.
pub(crate) fn column_of(schema: &Schema, table: &Table, field: &Field, layout: Layout) -> Column {
    let mut metadata = HashMap::from([(TYPE_KEY.to_owned(), type_text(schema, field.ty))]);
    let extension = match field.ty {
        Type::Uuid => Some("arrow.uuid"),
        Type::Json => Some("arrow.json"),
        _ => None,
    };
    metadata.extend(extension.map(|name| (EXTENSION.to_owned(), name.to_owned())));
    let name = annals_json::key(table, field);
    Column::new(name, data_type(field.ty, layout), true).with_metadata(metadata)
}

/// Returns a type as the schema language writes it.
fn type_text(schema: &Schema, ty: Type) -> String {
    match ty {
        Type::Reference(to, rule) => {
            let name = schema.table(to).map_or("?", |table| &table.name);
            format!("references {name}{}", rule.words(false))
        }
        ty => ty.to_string(),
    }
}

/// Returns the type of a field that holds all values of a column, if the column's nullability is the field's: the one
/// that an Annals database had there, or else what Arrow's type means. References are numbers, since their table isn't
/// known.
///
/// # Errors
/// `Invalid`: no field takes values of its type.
pub fn field_type_of(column: &Column) -> Result<Type> {
    let ours = column.metadata().get(TYPE_KEY).and_then(|text| Type::named(text));
    let extension = match column.extension_type_name() {
        Some("arrow.uuid") => Some(Type::Uuid),
        Some("arrow.json") => Some(Type::Json),
        _ => None,
    };
    let ty = ours.or(extension).or_else(|| field_type(column.data_type()));
    ty.ok_or_else(|| no_field(format_args!("column {:?}", column.name()), column.data_type()))
}

/// Returns the Arrow type of a field's values.
pub(crate) fn data_type(ty: Type, layout: Layout) -> DataType {
    let (text, bytes) = match layout {
        Layout::Views => (DataType::Utf8View, DataType::BinaryView),
        Layout::Offsets => (DataType::Utf8, DataType::Binary),
    };
    match ty {
        Type::Bool => DataType::Boolean,
        Type::Int8 => DataType::Int8,
        Type::Int16 => DataType::Int16,
        Type::Int32 => DataType::Int32,
        Type::Int64 => DataType::Int64,
        Type::UInt8 => DataType::UInt8,
        Type::UInt16 => DataType::UInt16,
        Type::UInt32 => DataType::UInt32,
        Type::UInt64 | Type::Reference(..) => DataType::UInt64,
        Type::Float32 => DataType::Float32,
        Type::Float64 => DataType::Float64,
        // Arrow's extension of JSON is defined over offsets and views alike.
        Type::String | Type::Json => text,
        Type::Bytes | Type::Blob => bytes,
        Type::FixedBytes(len) => DataType::FixedSizeBinary(len.into()),
        Type::Uuid => DataType::FixedSizeBinary(16),
        Type::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Type::Date => DataType::Date32,
        Type::Decimal(scale) => DataType::Decimal128(38, scale.cast_signed()),
        Type::Enum(_) => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
    }
}
