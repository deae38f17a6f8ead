//! Further changes of a transaction that enforced references and single rows require.

use crate::db::write::statement;
use annals_schema::{Command, Field, RowId, TableNumber, Value};

use crate::db::write::transaction::Transaction;
use crate::event::Event;
use crate::{Error, Result};

/// Deletes the rows, and makes null the references, that refer to rows which are about to be
/// deleted, as their rules say. All is found before anything is changed.
pub(in crate::db) fn delete_referring(
    tx: &mut Transaction<'_>,
    table: TableNumber,
    id: RowId,
    count: u64,
) -> Result<()> {
    if count == 0 || !tx.writing.store.is_referred(table) {
        return Ok(());
    }
    let deletion = statement::change(tx, |store| store.plan_deletion(table, id, count))?;
    for (table, id, field) in deletion.nulls {
        let value = tx.writing.store.reference_to_nothing(table, field);
        statement::change(tx, |store| store.update(table, id, field, value))?;
        tx.note(&Event::Update { table, id, field, value })?;
    }
    for (table, id) in deletion.rows {
        statement::change(tx, |store| store.delete(table, id))?;
        tx.note(&Event::Delete { table, id })?;
    }
    Ok(())
}

/// Returns a table that is about to be one of a single row its row, of default values, if it has
/// none.
pub(in crate::db) fn prepare(tx: &mut Transaction<'_>, command: &Command) -> Result<()> {
    let Command::SetSingleRow { table, single: true } = *command else { return Ok(()) };
    let schema = std::sync::Arc::clone(tx.view().schema());
    schema.check(command)?;
    if !tx.view().table(table)?.is_empty() {
        return Ok(());
    }
    let fields = schema.table(table).map(|table| table.fields.as_slice()).unwrap_or_default();
    let values: Vec<_> = fields.iter().map(Field::default_value).collect();
    let values: Vec<_> = values.iter().map(Value::as_ref).collect();
    tx.insert(table, &values)
        .map(drop)
        .map_err(|error: Error| error.within("the single row can't be inserted"))
}
