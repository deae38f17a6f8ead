//! Values that have no place any more: a transaction replaced them, and their tables or fields were dropped since.

use std::collections::BTreeSet;
use std::sync::Arc;

use annals_schema::{Schema, Table, Txid, Value};

use crate::db::changes::changed::{RowChange, is_same};
use crate::db::changes::moment::Moment;
use crate::db::changes::rows::RowChanges;
use crate::db::handle::transaction::Transaction;
use crate::db::past::at::Through;
use crate::db::present::snapshot::Published;
use crate::db::time::{events_of, past_of};
use crate::{Obstacle, Result};

/// Returns the values before a transaction that can't be restored, because their tables or fields were dropped since.
///
/// Nothing is lost with a field that had its default, or that the transaction left as it was.
///
/// Cost: the whole state before the transaction.
pub(super) fn dropped(
    tx: &Transaction<'_>,
    published: &Arc<Published>,
    txid: u64,
) -> Result<Vec<Obstacle>> {
    let moment = Moment::Txid(Txid(txid - 1));
    let before = past_of(tx.database, Arc::clone(published), &moment, Through::Then)?;
    let (then, now) = (Arc::clone(before.schema()), tx.view().schema());
    let mut changes = RowChanges::new(Arc::clone(&before.published.view), Arc::clone(&then));
    events_of(published, txid, &mut changes)?;
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
