//! Whether two databases hold the same.

use std::path::Path;

use annals::{Options, Schema, Snapshot, Type, Value, ValueRef};

/// What a format keeps of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// All commands whose order counts.
    Everything,
    /// The tables, fields and indexes that there are, but not which tables have a single row.
    TheRest,
}

/// A field without numbers, which are others where fields were dropped.
type Field = (String, String, bool, Option<String>);

/// Returns the name of a type. A reference to a dropped table comes back as a number: it has no name to be exported.
fn ty_name(schema: &Schema, ty: Type) -> String {
    match ty {
        Type::Reference(target, rule) => match schema.table(target) {
            Some(target) => format!("{} {rule:?}", target.name),
            None => Type::Int64.name().to_owned(),
        },
        ty => ty.to_string(),
    }
}

fn tables(schema: &Schema) -> Vec<(String, Vec<Field>)> {
    let field = |field: &annals::Field| {
        let default = field.default.as_ref();
        let default = default.map(|value| shown_as(schema, field.ty, value.as_ref()));
        (field.name.clone(), ty_name(schema, field.ty), field.nullable, default)
    };
    let table = |table: &std::sync::Arc<annals::Table>| {
        (table.name.clone(), table.fields.iter().map(field).collect())
    };
    schema.tables().iter().map(table).collect()
}

fn indexes(schema: &Schema) -> Vec<(String, String, Vec<String>, bool)> {
    let index = |index: &std::sync::Arc<annals::Index>| {
        let table = schema.table(index.table).unwrap();
        let column = |(field, word)| format!("{}{word}", table.field(field).unwrap().name);
        let columns = index.columns().map(column).collect();
        (index.name.clone(), table.name.clone(), columns, index.unique)
    };
    schema.indexes().iter().map(index).collect()
}

/// Writes a value so that different bits are different texts.
fn shown(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Float32(value) if !value.is_nan() => format!("f32 {:08x}", value.to_bits()),
        ValueRef::Float64(value) if !value.is_nan() => format!("f64 {:016x}", value.to_bits()),
        value => format!("{value:?}"),
    }
}

/// Writes a value of a type as it is after an export.
fn shown_as(schema: &Schema, ty: Type, value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Reference(id) if ty_name(schema, ty) == Type::Int64.name() => {
            shown(ValueRef::Int64(id.0.cast_signed()))
        }
        value => shown(value),
    }
}

/// Returns the rows of all tables; of a blob its bytes.
fn rows(snapshot: &Snapshot) -> Vec<Vec<(u64, Vec<String>)>> {
    let schema = snapshot.schema();
    let value = |ty, value: ValueRef<'_>| match value {
        ValueRef::Blob(blob) => {
            let bytes = snapshot.blob(blob).unwrap().to_vec(1 << 30).unwrap();
            format!("blob {}", shown(Value::Bytes(bytes).as_ref()))
        }
        value => shown_as(schema, ty, value),
    };
    let table = |table: &std::sync::Arc<annals::Table>| {
        let rows = snapshot.table(table.number).unwrap().rows().map(|row| {
            let row = row.unwrap();
            let values = table.fields.iter().map(|field| value(field.ty, row.value(field.number)));
            (row.id().0, values.collect())
        });
        rows.collect()
    };
    schema.tables().iter().map(table).collect()
}

/// Checks that two databases hold the same.
pub(super) fn compare(first: &Path, second: &Path, kept: Kept) {
    let [first, second] =
        [first, second].map(|path| Options::new().open_read_only(path).unwrap().read());
    let (before, after) = (first.schema(), second.schema());
    assert_eq!(tables(after), tables(before));
    assert_eq!(indexes(after), indexes(before));
    if kept == Kept::Everything {
        assert_eq!(annals_schema::first_difference(after, before), None);
    }
    let next_ids = |snapshot: &Snapshot| -> Vec<u64> {
        let tables = snapshot.schema().tables().iter();
        tables.map(|table| snapshot.table(table.number).unwrap().next_id()).collect()
    };
    assert_eq!(next_ids(&second), next_ids(&first));
    assert_eq!(rows(&second), rows(&first));
}
