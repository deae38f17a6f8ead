//! Restoring one row as it was at a moment.

use annals::internals::{fitted, load, past_of, schema_after};
use annals::{Moment, Obstacle, Result, RowId, Table, Transaction, Txid};

use super::erased::Erased;
use super::obstacles::conflict;
use super::steps::{Key, Step};

/// Changes a row to what it was at a moment.
pub(super) fn restore(tx: &mut Transaction<'_>, key: Key, moment: &Moment) -> Result<()> {
    let (table, id) = key;
    let described = tx.view().table(table)?.schema().clone();
    let then = past_of(tx, moment)?;
    let target = fitted(load(&then, key)?, &described);
    let step = Step { table, id, now: load(tx.view(), key)?, target };
    let erased = Erased::since(&tx.base(), then.txid())?;
    let mut obstacles = step.missing_values(tx, &described, &erased);
    // A row that wasn't there would be deleted: but not because its table wasn't there either.
    if step.target.is_none() {
        obstacles.extend(later_table(tx, &described, id, then.txid())?);
    }
    if !obstacles.is_empty() {
        let what = format!("row {} of table `{}` as of {moment}", id.0, described.name);
        return Err(conflict(&format!("cannot restore {what}"), obstacles));
    }
    step.apply(tx)
}

/// Returns what stands against restoring a row as of a moment before its table was created.
///
/// Cost: finding the schema of the moment; if the history index doesn't have it, the whole state.
fn later_table(
    tx: &Transaction<'_>,
    table: &Table,
    id: RowId,
    txid: Txid,
) -> Result<Option<Obstacle>> {
    let schema = schema_after(&tx.base(), txid)?;
    if schema.table(table.number).is_some() {
        return Ok(None);
    }
    let other = match schema.table_named(&table.name) {
        Some(_) => "; the one of that name then was another one: `as_it_was` shows its rows",
        None => "",
    };
    let reason = format!("the table was created later{other}");
    Ok(Some(Obstacle::new(&table.name, id, reason)))
}
