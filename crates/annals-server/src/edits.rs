//! Changes of rows as JSON, applied to a transaction.

use std::collections::BTreeMap;

use annals::{
    Field, RowId, Schema, Snapshot, Table, TableNumber, Transaction, Type, Value, ValueRef, View,
};
use annals_json::Scalar;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::answer::{Answer, Refusal};
use crate::object;
use crate::rows::table;

/// A change of a row.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit<'r> {
    op: Op,
    table: String,
    id: Option<Which>,
    /// A name for a new row, for other changes of the transaction.
    #[serde(rename = "as")]
    name: Option<String>,
    #[serde(borrow, default, deserialize_with = "object::members")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    fields: BTreeMap<String, &'r RawValue>,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Op {
    Insert,
    Update,
    Delete,
}

/// A row: by its id, or by the name that an insert of the same transaction has given it.
#[derive(Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "id: write a row's number, or the name that an insert before has given it"
)]
pub(crate) enum Which {
    Id(u64),
    Name(String),
}

/// The names of inserted rows.
type Names<'r> = BTreeMap<&'r str, (TableNumber, RowId)>;

/// Applies changes in their order; returns the id of each one's row. After an error the transaction must be rolled back.
pub(crate) fn apply(tx: &mut Transaction<'_>, edits: &[Edit<'_>]) -> Answer<Vec<RowId>> {
    let schema = std::sync::Arc::clone(tx.view().schema());
    let mut names = Names::new();
    let mut ids = Vec::with_capacity(edits.len());
    for (place, edit) in edits.iter().enumerate() {
        let id = apply_one(tx, &schema, edit, &mut names).map_err(|refusal| Refusal {
            message: format!("change {}: {}", place + 1, refusal.message),
            ..refusal
        })?;
        ids.push(id);
    }
    Ok(ids)
}

fn apply_one<'e>(
    tx: &mut Transaction<'_>,
    schema: &Schema,
    edit: &'e Edit<'_>,
    names: &mut Names<'e>,
) -> Answer<RowId> {
    let table = table(schema, &edit.table)?;
    let given = edit.id.as_ref().map(|which| row_of(table, which, names)).transpose()?;
    let needed = || given.ok_or_else(|| Refusal::bad("id: which row?"));
    if edit.name.is_some() && !matches!(edit.op, Op::Insert) {
        return Err(Refusal::bad("as: only an insert names its row"));
    }
    let values = values(table, &edit.fields, names)?;
    let id = match edit.op {
        Op::Insert => insert(tx, table, given, values)?,
        Op::Update => {
            let id = needed()?;
            // Also without fields.
            tx.view().table(table.number)?.get(id)?;
            for (field, value) in &values {
                tx.update(table.number, id, field.number, value.as_ref())?;
            }
            id
        }
        Op::Delete if !values.is_empty() => return Err(Refusal::bad("fields: a delete has none")),
        Op::Delete => {
            let id = needed()?;
            tx.delete(table.number, id)?;
            id
        }
    };
    if let Some(name) = &edit.name
        && names.insert(name, (table.number, id)).is_some()
    {
        return Err(Refusal::bad(format!("as: two rows would have the name {name:?}")));
    }
    Ok(id)
}

/// Inserts a row; fields that aren't given have their defaults.
fn insert(
    tx: &mut Transaction<'_>,
    table: &Table,
    id: Option<RowId>,
    mut values: Vec<(&Field, Value)>,
) -> Answer<RowId> {
    let value = |field: &Field| {
        let place = values.iter().position(|(given, _)| given.number == field.number);
        if let Some(place) = place {
            return Ok(values.swap_remove(place).1);
        }
        let (name, table) = (&field.name, &table.name);
        match (field.ty, &field.default) {
            // Its default would be row 0, whichever that is.
            (Type::Reference(..), None) if !field.nullable => Err(Refusal::bad(format!(
                "field {name} of table {table} must refer to a row, and isn't given"
            ))),
            _ => Ok(field.default_value()),
        }
    };
    let row = table.fields.iter().map(value).collect::<Answer<Vec<Value>>>()?;
    let row: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
    Ok(match id {
        Some(id) => tx.insert_at(table.number, id, &row).map(|()| id)?,
        None => tx.insert(table.number, &row)?,
    })
}

fn row_of(table: &Table, which: &Which, names: &Names<'_>) -> Answer<RowId> {
    match which {
        Which::Id(id) => Ok(RowId(*id)),
        Which::Name(name) => named(name, table.number, names),
    }
}

fn named(name: &str, table: TableNumber, names: &Names<'_>) -> Answer<RowId> {
    let found = names.get(name).filter(|(of, _)| *of == table);
    found.map(|(_, id)| *id).ok_or_else(|| {
        Refusal::bad(format!(
            "no insert before this one has `\"as\":{name:?}` for a row of that table; an id is a number"
        ))
    })
}

/// Reads the values of some fields.
fn values<'t>(
    table: &'t Table,
    fields: &BTreeMap<String, &RawValue>,
    names: &Names<'_>,
) -> Answer<Vec<(&'t Field, Value)>> {
    let value = |(key, raw): (&String, &&RawValue)| {
        let field = table.fields.iter().find(|field| annals_json::key(table, field) == *key);
        let field = field.ok_or_else(|| {
            let keys = table.fields.iter().map(|field| annals_json::key(table, field));
            let known = keys.collect::<Vec<_>>().join(", ");
            let why = match key.as_str() {
                // That of a row is a member of the change.
                "id" => {
                    "`id` isn't among the fields of a change, since it is the row's id".to_owned()
                }
                key => format!("table {} has no field {key:?}", table.name),
            };
            Refusal::bad(format!("{why}; the fields of table {} are: {known}", table.name))
        })?;
        Ok((field, read(table, field, raw.get(), names)?))
    };
    fields.iter().map(value).collect()
}

/// Reads the value of a field.
fn read(table: &Table, field: &Field, raw: &str, names: &Names<'_>) -> Answer<Value> {
    let string = raw.starts_with('"').then(|| serde_json::from_str::<String>(raw).ok()).flatten();
    let value = match (string.as_deref(), raw, field.ty) {
        (Some(name), _, Type::Reference(target, _)) => {
            return named(name, target, names).map(Value::Reference);
        }
        (Some(text), ..) => annals_json::parse_value(field.ty, Scalar::String(text)),
        (None, "null", _) => Some(Value::Null),
        (None, json, Type::Json) => Some(Value::String(json.to_owned())),
        (None, "true" | "false", _) => {
            annals_json::parse_value(field.ty, Scalar::Bool(raw == "true"))
        }
        (None, number, _) => annals_json::parse_value(field.ty, Scalar::Number(number)),
    };
    value.filter(|value| field.accepts(value.as_ref())).ok_or_else(|| {
        let shown = annals_schema::shorten(raw);
        let (ty, name) = (field.ty, &field.name);
        Refusal::bad(format!(
            "field {name} of table {}: {shown} is no value of type {ty}",
            table.name
        ))
    })
}

/// A row as a client has read it.
pub(crate) struct Before {
    table: TableNumber,
    name: String,
    id: RowId,
    row: Option<Vec<Value>>,
}

impl Before {
    /// Takes a row of a state.
    pub(crate) fn of(then: &Snapshot, table: &Table, id: RowId) -> Answer<Self> {
        let row = values_of(then, table.number, id)?;
        Ok(Self { table: table.number, name: table.name.clone(), id, row })
    }
}

fn values_of(view: &View, table: TableNumber, id: RowId) -> Answer<Option<Vec<Value>>> {
    let rows = view.table(table)?;
    if !rows.contains(id)? {
        return Ok(None);
    }
    let row = rows.get(id)?;
    let fields = rows.schema().fields.iter();
    Ok(Some(fields.map(|field| row.value(field.number).to_value()).collect()))
}

/// Fails if a row isn't what a client has read.
pub(crate) fn check_unchanged(tx: &Transaction<'_>, before: &[Before]) -> Answer<()> {
    for then in before {
        if values_of(tx.view(), then.table, then.id)? != then.row {
            let (table, id) = (&then.name, then.id.0);
            let message =
                format!("row {id} of table {table} was changed after `base`: read it again");
            return Err(Refusal::new(StatusCode::PRECONDITION_FAILED, "conflict", message));
        }
    }
    Ok(())
}
