//! A database of SQLite as one of ours.

use std::path::Path;

use annals::{Error, Result, RowId, Value};
use rusqlite::Connection;

use super::open::Input;
use super::plan::{Plan, plan};
use super::{columns, failed, types};
use crate::exchange::arrival::{self, Arrived, Loading, To};
use crate::exchange::scalar::{Converted, Scalar, convert};
use crate::progress::Rows;

/// Makes a database with the contents of SQLite's.
pub(crate) fn import(path: &Path, to: &To) -> Result<Arrived> {
    arrival::refuse_existing(&to.file)?;
    let input = Input::open(path)?;
    let (schema, plans) = plan(&input.connection, path)?;
    let mut rows = Rows::new("reading", plans.iter().map(|plan| plan.rows).sum());
    arrival::fill(to, &schema, |loading| {
        for plan in &plans {
            let last = plan.table.last_id.filter(|_| plan.id.is_some());
            if let Some(last) = last.and_then(|last| u64::try_from(last).ok()) {
                loading.set_next_id(plan.number, last.min(RowId::MAX.0) + 1)?;
            }
        }
        for plan in &plans {
            read(&input.connection, path, plan, loading, &mut rows)?;
        }
        input.check_unchanged()
    })
}

fn read(
    connection: &Connection,
    path: &Path,
    plan: &Plan,
    loading: &mut Loading<'_>,
    progress: &mut Rows,
) -> Result<()> {
    let shown = || format!("{}: table {}", path.display(), plan.table.name);
    let sqlite = |error: rusqlite::Error| failed(shown(), &error);
    let declared: Vec<_> =
        plan.table.columns.iter().map(|column| types::declared(&column.declared)).collect();
    let mut statement = connection.prepare(&columns::query(&plan.table)).map_err(sqlite)?;
    let mut rows = statement.query([]).map_err(sqlite)?;
    let mut values = Vec::with_capacity(plan.fields.len());
    let mut number = 0_u64;
    while let Some(row) = rows.next().map_err(sqlite)? {
        values.clear();
        number += 1;
        for &(place, ty) in &plan.fields {
            let declared = declared.get(place).copied().flatten();
            let scalar = types::scalar(row.get_ref(place).map_err(sqlite)?, declared);
            values.push(match convert(scalar, ty) {
                Some(Converted::Value(value)) => value,
                Some(Converted::Blob(bytes)) => Value::Blob(loading.write_blob(&*bytes)?),
                None => return Err(changed(shown())),
            });
        }
        let id = match plan.id {
            Some(place) => {
                Some(row_id(row, place).map_err(sqlite)?.ok_or_else(|| changed(shown()))?)
            }
            None => None,
        };
        let inserted = loading.insert(plan.number, id, &values);
        inserted.map_err(|error| {
            let row = id.map_or(number, |id| id.0);
            let of = if id.is_some() { "row" } else { "row number" };
            error.within(format_args!("{}, {of} {row}", shown()))
        })?;
        progress.count();
    }
    Ok(())
}

fn row_id(row: &rusqlite::Row<'_>, place: usize) -> rusqlite::Result<Option<RowId>> {
    Ok(match types::scalar(row.get_ref(place)?, None) {
        Scalar::Int(id) => u64::try_from(id).ok().map(RowId),
        _ => None,
    })
}

fn changed(place: String) -> Error {
    Error::invalid(format!("{place}: the file changed while it was read: try again"))
}
