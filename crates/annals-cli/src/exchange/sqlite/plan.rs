//! The schema that holds a database of SQLite, and how its rows go there.

use std::path::Path;

use annals::model::OnDelete;
use annals::{Command, Error, Field, FieldNumber, Result, Schema, TableNumber, Type};
use rusqlite::Connection;

use super::columns::{self, Columns};
use super::outline::{self, Column, Reference, Table};
use super::{defaults, failed, types};
use crate::exchange::naming::Naming;
use crate::exchange::scalar::Seen;
use crate::notes::note;

/// A table and how its rows become ours.
pub(super) struct Plan {
    pub(super) number: TableNumber,
    pub(super) table: Table,
    pub(super) rows: u64,
    /// The place of the column that is the row's id.
    pub(super) id: Option<usize>,
    /// The place of each field's column, and the field's type.
    pub(super) fields: Vec<(usize, Type)>,
    seen: Columns,
    /// Which fields hold values of several kinds as texts, or are no good as keys for another reason.
    blurred: Vec<bool>,
}

/// Reads the file, and returns a schema that fits.
pub(super) fn plan(connection: &Connection, path: &Path) -> Result<(Schema, Vec<Plan>)> {
    let sqlite = |error: rusqlite::Error| failed(path.display(), &error);
    outline::tell_settings(connection).map_err(sqlite)?;
    let mut plans = Vec::new();
    let tables = outline::tables(connection).map_err(sqlite)?;
    for (number, mut table) in (0..).map(TableNumber).zip(tables) {
        let seen = columns::see_readable(connection, &mut table);
        let seen = seen.map_err(|error| {
            failed(format_args!("{}: table {}", path.display(), table.name), &error)
        })?;
        let id = table.id.filter(|&place| {
            let are_ids = seen.seen.get(place).is_none_or(Seen::are_ids);
            if !are_ids {
                let what = "a primary key is negative or too large for an id: rows get new ids";
                note(&format!("{}: {what}, and the key is a field", table.name));
            }
            are_ids
        });
        let (rows, fields, blurred) = (seen.rows, Vec::new(), Vec::new());
        plans.push(Plan { number, table, rows, id, fields, seen, blurred });
    }
    let mut schema = Schema::default();
    let mut names = Naming::default();
    for plan in &plans {
        let original = &plan.table.name;
        let name = names.take(original);
        tell_name(original, &name);
        add(&mut schema, original, Command::CreateTable { name })
            .map_err(|error| error.within(path.display()))?;
    }
    for place in 0..plans.len() {
        add_fields(connection, &mut schema, &mut plans, place)
            .map_err(sqlite)?
            .map_err(|error| error.within(path.display()))?;
    }
    let mut names = Naming::default();
    for index in outline::indexes(connection).map_err(sqlite)? {
        add_index(&mut schema, &plans, &mut names, &index)
            .map_err(|error| error.within(path.display()))?;
    }
    Ok((schema, plans))
}

fn add(schema: &mut Schema, what: &str, command: Command) -> Result<()> {
    schema.apply(command).map_err(|error| Error::invalid(format!("{what}: {error}")))
}

fn tell_name(original: &str, name: &str) {
    if original != name {
        note(&format!("{original:?} becomes {name}"));
    }
}

/// Adds the fields of a table.
fn add_fields(
    connection: &Connection,
    schema: &mut Schema,
    plans: &mut [Plan],
    place: usize,
) -> rusqlite::Result<Result<()>> {
    let Some(plan) = plans.get(place) else { return Ok(Ok(())) };
    let (mut fields, mut blurred) = (Vec::new(), Vec::new());
    let mut names = Naming::default();
    let table = plan.number;
    for (place, (column, seen)) in plan.table.columns.iter().zip(&plan.seen.seen).enumerate() {
        let shown = format!("{}.{}", plan.table.name, column.name);
        if plan.id == Some(place) {
            if !column.name.eq_ignore_ascii_case("id") {
                note(&format!("{shown} is the id of the row"));
            }
            for reference in references(&plan.table, column) {
                let what = "is the id of the row, and can't be a reference, too: that to";
                note(&format!("{shown} {what} {} was left out", reference.target));
            }
            continue;
        }
        let name = names.take(field_name(&plan.table, column));
        if !shown.ends_with(&format!(".{name}")) && column.name != name {
            tell_name(&shown, &name);
        }
        let ty = field_type(connection, plans, plan, column, seen, &shown)?;
        if column.not_null && ty.is_always_nullable() && ty != Type::Blob {
            note(&format!("{shown} is NOT NULL: a reference that isn't enforced may be null here"));
        }
        let nullable = ty.is_always_nullable() || !column.not_null || seen.nulls;
        let number = FieldNumber(0);
        let field = Field { number, name: name.clone(), ty, nullable, default: None };
        let expression = column.default.as_deref();
        let words = &column.declared;
        let default = expression.and_then(|text| defaults::value(connection, &field, text, words));
        if let (Some(text), None) = (expression, &default) {
            note(&format!("{shown}: the default {text} was left out: it is no value of the type"));
        }
        if let Err(error) =
            add(schema, &shown, Command::AddField { table, name, ty, nullable, default })
        {
            return Ok(Err(error));
        }
        fields.push((place, ty));
        let is_mixture = seen.is_mixed() && !seen.fits(ty);
        blurred.push(is_mixture || seen.is_rewritten() || ty == Type::Blob);
    }
    if let Some(plan) = plans.get_mut(place) {
        (plan.fields, plan.blurred) = (fields, blurred);
    }
    Ok(Ok(()))
}

/// Returns the name that a column has with us: `city.id` is how a field `id` was written.
fn field_name<'c>(table: &Table, column: &'c Column) -> &'c str {
    match column.name.strip_suffix(".id") {
        Some(owner) if table.id.is_some() && table.name.starts_with(owner) => "id",
        _ => &column.name,
    }
}

fn field_type(
    connection: &Connection,
    plans: &[Plan],
    plan: &Plan,
    column: &Column,
    seen: &Seen,
    shown: &str,
) -> rusqlite::Result<Type> {
    let mut kept = None;
    for reference in references(&plan.table, column) {
        let to = &reference.target;
        match target(plans, reference).filter(|_| seen.are_ids()) {
            Some(_) if kept.is_some() => note(&format!(
                "{shown} refers to {to}, too: a field is one reference, and that one was left out"
            )),
            Some((number, target, id)) => {
                let rule = rule(connection, plan, column, reference, target, id)?;
                kept = Some(Type::Reference(number, rule));
            }
            None => note(&format!(
                "{shown} refers to {to}, but not to ids of rows: that reference was left out"
            )),
        }
    }
    if let Some(ty) = kept {
        return Ok(ty);
    }
    let declared = types::declared(&column.declared);
    let ty = declared.filter(|ty| seen.fits(*ty)).unwrap_or_else(|| seen.natural(false));
    if let Some(declared) = declared.filter(|declared| *declared != ty) {
        let words = &column.declared;
        let first = columns::first_misfit(connection, &plan.table, column, declared)?;
        note(&format!(
            "{shown} is declared {words} and holds other values{first}: it becomes {ty}"
        ));
    }
    if seen.is_mixed() && !seen.fits(ty) {
        let what = "holds values of several kinds: they become";
        note(&format!("{shown} {what} {}", if ty == Type::String { "texts" } else { "bytes" }));
    }
    Ok(ty)
}

/// Returns the foreign keys of a column, in the order of their declaration.
fn references<'t>(table: &'t Table, column: &Column) -> impl Iterator<Item = &'t Reference> {
    let is_of = |key: &&Reference| key.column.eq_ignore_ascii_case(&column.name);
    table.references.iter().filter(is_of)
}

/// Finds the table that a foreign key refers to, and the name of its id, if it refers to that.
fn target<'p>(plans: &'p [Plan], reference: &Reference) -> Option<(TableNumber, &'p str, &'p str)> {
    let plan = plans.iter().find(|plan| plan.table.name.eq_ignore_ascii_case(&reference.target))?;
    let id = &plan.table.columns.get(plan.id?)?.name;
    let is_id = reference.to.as_ref().is_none_or(|to| to.eq_ignore_ascii_case(id));
    is_id.then_some((plan.number, plan.table.name.as_str(), id.as_str()))
}

fn rule(
    connection: &Connection,
    plan: &Plan,
    column: &Column,
    reference: &Reference,
    target: &str,
    id: &str,
) -> rusqlite::Result<OnDelete> {
    let rule = match reference.on_delete.as_str() {
        "RESTRICT" => OnDelete::Restrict,
        "CASCADE" => OnDelete::Cascade,
        "SET NULL" => OnDelete::SetNull,
        // It is never null: then it leads to a row.
        _ if column.not_null => OnDelete::Restrict,
        _ => OnDelete::Dangle,
    };
    let (table, column) = (plan.table.name.as_str(), column.name.as_str());
    if rule.is_enforced() && columns::dangles(connection, table, column, target, id)? {
        let what = "leads to rows that aren't there: nothing is enforced";
        note(&format!("{table}.{column} {what}"));
        return Ok(OnDelete::Dangle);
    }
    Ok(rule)
}

fn add_index(
    schema: &mut Schema,
    plans: &[Plan],
    names: &mut Naming,
    index: &outline::Index,
) -> Result<()> {
    let Some(plan) = plans.iter().find(|plan| plan.table.name == index.table) else {
        return Ok(());
    };
    let (mut fields, mut descending, mut unique) = (Vec::new(), Vec::new(), index.unique);
    for (column, is_descending) in &index.columns {
        let place = plan.table.columns.iter().position(|known| known.name == *column);
        let field = plan.fields.iter().position(|(known, _)| Some(*known) == place);
        let Some(number) = field.and_then(|field| u32::try_from(field).ok()).map(FieldNumber)
        else {
            let what =
                if place.is_some() { "the id of the row" } else { "a column that was left out" };
            note(&format!("the index {} is on {what}: it was left out", index.name));
            return Ok(());
        };
        if fields.contains(&number) {
            let what = "names a column twice: here it has it once";
            note(&format!("the index {} {what}: {column}", index.name));
            continue;
        }
        if unique && field.and_then(|field| plan.blurred.get(field)) == Some(&true) {
            note(&format!("the index {} can't be unique with what {column} becomes", index.name));
            unique = false;
        }
        fields.push(number);
        descending.extend(is_descending.then_some(number));
    }
    let name = if index.is_implied {
        let columns = index.columns.iter().map(|(name, _)| name.as_str());
        names.take(&format!("{}_by_{}", index.table, columns.collect::<Vec<_>>().join("_")))
    } else {
        names.take(&index.name)
    };
    if !index.is_implied {
        tell_name(&index.name, &name);
    }
    let table = plan.number;
    let collated = Vec::new();
    let command = Command::CreateIndex { name, table, fields, descending, collated, unique };
    add(schema, &index.name, command)
}
