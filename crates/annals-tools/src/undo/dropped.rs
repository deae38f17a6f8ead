//! Values that have no place any more: a transaction replaced them, and their tables or fields were dropped since.

use std::collections::BTreeSet;
use std::sync::Arc;

use annals::internals::{RowChanges, is_same};
use annals::{Obstacle, Result, RowChange, Schema, Snapshot, Table, Transaction, Txid, Value};

/// Returns the values before a transaction that can't be restored, because their tables or fields were dropped since.
///
/// Nothing is lost with a field that had its default, or that the transaction left as it was.
///
/// Cost: the whole state before the transaction.
pub(super) fn dropped(
    tx: &Transaction<'_>,
    committed: &Snapshot,
    txid: u64,
) -> Result<Vec<Obstacle>> {
    let events = committed.events(Txid(txid - 1), Txid(txid))?;
    let before = Arc::clone(events.begin());
    let (then, now) = (Arc::clone(before.schema()), tx.view().schema());
    let mut changes = RowChanges::new(before, Arc::clone(&then));
    events.read(&mut changes)?;
    let (mut obstacles, mut tables) = (Vec::new(), BTreeSet::new());
    for change in changes.done.into_iter().flat_map(|changed| changed.rows) {
        let Some(old) = then.table(change.table) else { continue };
        if now.table(change.table).is_some() {
            obstacles.extend(of_fields(&change, old, now));
        } else if change.before.is_some() && tables.insert(change.table) {
            let reason = "the table was dropped".to_owned();
            obstacles.push(Obstacle::new(&old.name, change.id, reason));
        }
    }
    Ok(obstacles)
}

/// Returns the fields of a row whose values before a change are lost.
fn of_fields(change: &RowChange, then: &Table, now: &Schema) -> Vec<Obstacle> {
    let Some(now) = now.table(change.table) else { return Vec::new() };
    let fields = then.fields.iter().filter(|field| now.field(field.number).is_none());
    let lost = fields.filter(|field| {
        let of = |row: &Option<Vec<Value>>| row.as_ref()?.get(field.number.0 as usize).cloned();
        let Some(before) = of(&change.before) else { return false };
        let is_same_as = |other: &Value| is_same(before.as_ref(), other.as_ref());
        !is_same_as(&field.existing_value()) && !of(&change.after).is_some_and(|it| is_same_as(&it))
    });
    lost.map(|field| {
        let reason = format!("its field `{}` was dropped", field.name);
        Obstacle::new(&now.name, change.id, reason)
    })
    .collect()
}
