//! The first pass: the kinds of the values of all columns.

use annals::Type;
use annals_schema::shorten;
use rusqlite::{Connection, Result};

use super::outline::{Column, Table};
use super::{quoted, types};
use crate::exchange::scalar::{Scalar, Seen};
use crate::notes::note;

/// The values seen of a table.
pub(super) struct Columns {
    pub(super) seen: Vec<Seen>,
    pub(super) rows: u64,
}

/// Returns the query for all rows of a table, in the order in which they are stored.
pub(super) fn query(table: &Table) -> String {
    let columns: Vec<String> = table.columns.iter().map(|column| quoted(&column.name)).collect();
    format!("SELECT {} FROM {} NOT INDEXED", columns.join(", "), quoted(&table.name))
}

/// Reads all rows of a table. A computed column that can't be computed is left out of it.
pub(super) fn see_readable(connection: &Connection, table: &mut Table) -> Result<Columns> {
    let error = match see(connection, table) {
        Ok(seen) => return Ok(seen),
        Err(error) => error,
    };
    let mut is_mended = false;
    for place in (0..table.columns.len()).rev() {
        let Some(column) = table.columns.get(place).filter(|column| column.is_virtual) else {
            continue;
        };
        let (name, quoted_name) = (&column.name, quoted(&column.name));
        let alone = format!("SELECT {quoted_name} FROM {} NOT INDEXED", quoted(&table.name));
        if let Err(error) = connection.prepare(&alone).and_then(|mut it| read_all(&mut it)) {
            note(&format!(
                "{}.{name} is computed, and SQLite can't: {error}; the column was left out",
                table.name
            ));
            table.leave_out(place);
            is_mended = true;
        }
    }
    if is_mended { see(connection, table) } else { Err(error) }
}

fn read_all(statement: &mut rusqlite::Statement<'_>) -> Result<()> {
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// Reads all rows of a table.
fn see(connection: &Connection, table: &Table) -> Result<Columns> {
    let declared: Vec<_> =
        table.columns.iter().map(|column| types::declared(&column.declared)).collect();
    let mut seen: Vec<_> = declared.iter().map(|declared| Seen::declared(*declared)).collect();
    let mut count = 0;
    let mut statement = connection.prepare(&query(table))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        for (place, (seen, declared)) in seen.iter_mut().zip(&declared).enumerate() {
            seen.see(types::scalar(row.get_ref(place)?, *declared));
        }
        count += 1;
    }
    Ok(Columns { seen, rows: count })
}

/// Returns the first value of a column that is none of a type, and its row, for the end of a clause.
pub(super) fn first_misfit(
    connection: &Connection,
    table: &Table,
    column: &Column,
    ty: Type,
) -> Result<String> {
    let mut statement = connection.prepare(&query(table))?;
    let mut rows = statement.query([])?;
    let mut number = 0_u64;
    while let Some(row) = rows.next()? {
        number += 1;
        let value = types::scalar(row.get_ref(column.name.as_str())?, Some(ty));
        let mut alone = Seen::declared(Some(ty));
        alone.see(value);
        if value != Scalar::Null && !alone.fits(ty) {
            let id = table.id.map(|place| row.get::<_, i64>(place)).transpose()?;
            let (value, row) =
                (value.to_string(), id.map_or(number.to_string(), |id| id.to_string()));
            let of = if id.is_some() { "row" } else { "row number" };
            return Ok(format!(", as {} in {of} {row}", shorten(&value)));
        }
    }
    Ok(String::new())
}

/// Returns true if a value of a column is a dangling reference.
pub(super) fn dangles(
    connection: &Connection,
    table: &str,
    column: &str,
    target: &str,
    id: &str,
) -> Result<bool> {
    let (table, column, target, id) = (quoted(table), quoted(column), quoted(target), quoted(id));
    let query = format!(
        "SELECT EXISTS(SELECT 1 FROM {table} a WHERE a.{column} IS NOT NULL AND \
         NOT EXISTS(SELECT 1 FROM {target} b WHERE b.{id} = a.{column}))"
    );
    connection.query_row(&query, [], |row| row.get(0))
}
