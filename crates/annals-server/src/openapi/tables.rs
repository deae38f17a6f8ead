//! The tables of a database in its description: a path and a shape for each.

use annals::{Field, Schema, Table, Type};
use annals_schema::TypeClass;
use serde_json::{Map, Value, json};

use super::{members, without};

/// Returns a general path, as `/t/{table}`, once for each table.
pub(super) fn paths(path: &str, methods: &Value, schema: &Schema) -> Vec<(String, Value)> {
    let of = |table: &Table| {
        let mut methods = methods.clone();
        for (_, operation) in members(&mut methods) {
            without(operation, "table");
            operation["tags"] = json!([table.name]);
            if let Some(id) = operation["operationId"].as_str() {
                operation["operationId"] = format!("{id}_{}", table.name).into();
            }
            rename(operation, &table.name);
        }
        (path.replace("{table}", &table.name), methods)
    };
    schema.tables().iter().map(|table| of(table)).collect()
}

/// Lets the references to general shapes of rows be to those of a table.
fn rename(value: &mut Value, table: &str) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match value.as_str() {
                    Some("#/components/schemas/Row") if key == "$ref" => {
                        *value = format!("#/components/schemas/t.{table}").into();
                    }
                    Some("#/components/schemas/Rows") if key == "$ref" => {
                        *value = format!("#/components/schemas/t.{table}.page").into();
                    }
                    _ => rename(value, table),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| rename(value, table)),
        _ => {}
    }
}

/// Returns the shape of each table's rows, and of pages of them.
pub(super) fn components(schema: &Schema) -> impl Iterator<Item = (String, Value)> {
    schema.tables().iter().flat_map(|table| {
        let row = format!("t.{}", table.name);
        let page = json!({
            "type": "object", "required": ["rows", "next"],
            "properties": {
                "rows": { "type": "array", "items": { "$ref": format!("#/components/schemas/{row}") } },
                "next": { "type": ["integer", "string", "null"] },
            },
        });
        [(row.clone(), of_row(schema, table)), (format!("{row}.page"), page)]
    })
}

fn of_row(schema: &Schema, table: &Table) -> Value {
    let mut properties = Map::new();
    properties.insert("id".to_owned(), json!({ "type": "integer", "minimum": 0 }));
    for field in &table.fields {
        properties.insert(annals_json::key(table, field), of_field(schema, field));
    }
    let required: Vec<_> = properties.keys().cloned().collect();
    json!({
        "type": "object", "required": required, "properties": properties, "additionalProperties": false,
    })
}

/// Returns the shape of a field's values, as they are written in JSON.
fn of_field(schema: &Schema, field: &Field) -> Value {
    let (mut kinds, mut more) = match (field.ty.class(), field.ty) {
        (TypeClass::Bool, _) => (vec!["boolean"], json!({})),
        (TypeClass::Integer { least, most }, _) => {
            let number = |limit: i128| serde_json::Number::from_i128(limit);
            (vec!["integer"], json!({ "minimum": number(least), "maximum": number(most) }))
        }
        // What JSON has no number for is a text.
        (TypeClass::Float32 | TypeClass::Float64, _) => (vec!["number", "string"], json!({})),
        (TypeClass::Reference, Type::Reference(target, _)) => {
            let target = schema.table(target).map(|table| table.name.as_str()).unwrap_or_default();
            (
                vec!["integer"],
                json!({ "minimum": 0, "description": format!("the id of a row of {target}") }),
            )
        }
        (TypeClass::Reference, _) => (vec!["integer"], json!({ "minimum": 0 })),
        (TypeClass::Timestamp, _) => (vec!["string"], json!({ "format": "date-time" })),
        (TypeClass::Bytes | TypeClass::Blob, _) => {
            (vec!["string"], json!({ "description": "hexadecimal digits after 0x" }))
        }
        (TypeClass::Written, Type::Enum(variants)) => {
            let mut names: Vec<_> = variants.iter().map(|it| it.name().into()).collect();
            names.extend(field.nullable.then_some(Value::Null));
            (vec!["string"], json!({ "enum": names }))
        }
        (TypeClass::Written, Type::Uuid) => (vec!["string"], json!({ "format": "uuid" })),
        (TypeClass::Written, Type::Date) => (vec!["string"], json!({ "format": "date" })),
        (TypeClass::String | TypeClass::Written, _) => (vec!["string"], json!({})),
    };
    kinds.extend(field.nullable.then_some("null"));
    more["type"] = json!(kinds);
    more
}
