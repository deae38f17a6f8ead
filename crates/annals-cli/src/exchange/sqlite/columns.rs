//! The first pass: the kinds of the values of all columns.

use rusqlite::{Connection, Result};

use super::outline::Table;
use super::{quoted, types};
use crate::exchange::scalar::Seen;

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

/// Reads all rows of a table.
pub(super) fn see(connection: &Connection, table: &Table) -> Result<Columns> {
    let declared: Vec<_> =
        table.columns.iter().map(|column| types::declared(&column.declared)).collect();
    let mut seen = vec![Seen::default(); declared.len()];
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
