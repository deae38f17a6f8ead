//! A database of SQLite as one of ours.

use std::path::Path;

use annals::{Error, Result, RowId, Value};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::plan::{Plan, plan};
use super::{columns, failed, types};
use crate::exchange::arrival::{self, Arrived, Loading, To};
use crate::exchange::scalar::{Converted, Scalar, convert};
use crate::files;
use crate::progress::Rows;

/// Makes a database with the contents of SQLite's.
pub(crate) fn import(path: &Path, to: &To) -> Result<Arrived> {
    arrival::refuse_existing(&to.file)?;
    // SQLite's own message doesn't name the problem.
    drop(files::open_plain(path)?);
    let sqlite = |error: rusqlite::Error| failed(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(sqlite)?;
    // A name that the file doesn't have is an error, not a text.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false).map_err(sqlite)?;
    // Nothing in the file may have side effects, and both passes must see the same.
    connection.execute_batch("PRAGMA trusted_schema=OFF; BEGIN").map_err(sqlite)?;
    let (schema, plans) =
        plan(&connection).map_err(sqlite)?.map_err(|error| error.within(path.display()))?;
    let mut rows = Rows::new("reading", plans.iter().map(|plan| plan.rows).sum());
    arrival::fill(to, &schema, |loading| {
        for plan in &plans {
            let last = plan.table.last_id.filter(|_| plan.id.is_some());
            if let Some(last) = last.and_then(|last| u64::try_from(last).ok()) {
                loading.set_next_id(plan.number, last.min(RowId::MAX.0) + 1)?;
            }
        }
        for plan in &plans {
            read(&connection, path, plan, loading, &mut rows)?;
        }
        Ok(())
    })
}

fn read(
    connection: &Connection,
    path: &Path,
    plan: &Plan,
    loading: &mut Loading<'_>,
    progress: &mut Rows,
) -> Result<()> {
    let sqlite = |error: rusqlite::Error| failed(path, &error);
    let declared: Vec<_> =
        plan.table.columns.iter().map(|column| types::declared(&column.declared)).collect();
    let mut statement = connection.prepare(&columns::query(&plan.table)).map_err(sqlite)?;
    let mut rows = statement.query([]).map_err(sqlite)?;
    let mut values = Vec::with_capacity(plan.fields.len());
    while let Some(row) = rows.next().map_err(sqlite)? {
        values.clear();
        for &(place, ty) in &plan.fields {
            let declared = declared.get(place).copied().flatten();
            let scalar = types::scalar(row.get_ref(place).map_err(sqlite)?, declared);
            values.push(match convert(scalar, ty) {
                Some(Converted::Value(value)) => value,
                Some(Converted::Blob(bytes)) => Value::Blob(loading.write_blob(&*bytes)?),
                None => return Err(changed(path)),
            });
        }
        let id = match plan.id {
            Some(place) => Some(row_id(row, place).map_err(sqlite)?.ok_or_else(|| changed(path))?),
            None => None,
        };
        let inserted = loading.insert(plan.number, id, &values);
        inserted.map_err(|error| {
            error.within(format_args!("{}: {}", path.display(), plan.table.name))
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

fn changed(path: &Path) -> Error {
    Error::invalid(format!("{}: the file changed while it was read", path.display()))
}
