//! Reverting a transaction: everything is checked, then every row is changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use annals::internals::{fitted, is_same, load, name_of};
use annals::{
    Error, ErrorKind, Obstacle, Result, RowChange, Snapshot, Table, Transaction, Txid, Value,
};

use super::dropped::dropped;
use super::erased::Erased;
use super::obstacles::{Plan, conflict, standing};
use super::steps::{Key, Step, Values};
use super::touched::{Touched, versions_since};

/// Undoes a transaction; `committed` is the committed state before the open one.
pub(super) fn revert(tx: &mut Transaction<'_>, committed: &Snapshot, txid: u64) -> Result<()> {
    check_number(committed, txid)?;
    let schema = Arc::clone(tx.view().schema());
    let touched = Touched::by(committed, txid, &schema).map_err(|error| match error.kind() {
        ErrorKind::NotFound => forgotten(committed, txid),
        _ => error,
    })?;
    if let Some(command) = &touched.command {
        return Err(Error::invalid(format!(
            "cannot revert transaction {txid}: it changed the schema (`{command}`); only changes of rows can be \
             reverted"
        )));
    }
    let mut obstacles = match touched.is_of_dropped {
        true => dropped(tx, committed, txid)?,
        false => Vec::new(),
    };
    let mut steps = BTreeMap::new();
    for &key in &touched.rows {
        let Some(table) = schema.table(key.0) else { continue };
        let versions = versions_since(committed, txid, key)?;
        // A row that the transaction left as it was has no version by it.
        let Some((change, later)) = of_transaction(&versions, txid) else { continue };
        let now = load(tx.view(), key)?;
        let before = obstacles.len();
        obstacles.extend(standing(table, change, later));
        if obstacles.len() == before && !tx.is_empty() {
            let before = fitted(load(committed, key)?, table);
            obstacles.extend(own_change(table, change, &before, &now));
        }
        let target = target_of(table, change, &now);
        steps.insert(key, Step { table: key.0, id: key.1, now, target });
    }
    let erased = Erased::since(committed, Txid(txid - 1))?;
    let plan = Plan { tx, committed, txid, steps: &steps, erased: &erased };
    obstacles.extend(plan.obstacles()?);
    if !obstacles.is_empty() {
        return Err(conflict(&format!("cannot revert transaction {txid}"), obstacles));
    }
    if steps.is_empty() {
        return Err(Error::invalid(format!(
            "cannot revert transaction {txid}: it left all rows of the present tables as they were, so there is \
             nothing to revert"
        )));
    }
    apply(tx, &steps)?;
    tx.comment(&format!("revert of transaction {txid}"))
}

fn check_number(committed: &Snapshot, txid: u64) -> Result<()> {
    let Txid(last) = committed.txid();
    if (1..=last).contains(&txid) {
        return Ok(());
    }
    let those = match last {
        0 => "there is none yet".to_owned(),
        last => format!("they are 1 to {last}"),
    };
    let name = name_of(committed);
    Err(Error::new(ErrorKind::NotFound, format!("{name}: there is no transaction {txid}: {those}")))
}

#[cold]
fn forgotten(committed: &Snapshot, txid: u64) -> Error {
    let name = name_of(committed);
    Error::new(
        ErrorKind::NotFound,
        format!("{name}: cannot revert transaction {txid}: the history up to it was forgotten"),
    )
}

/// Returns the change by a transaction, and later ones.
fn of_transaction(
    versions: &[(u64, RowChange)],
    txid: u64,
) -> Option<(&RowChange, &[(u64, RowChange)])> {
    let ((first, change), later) = versions.split_first()?;
    (*first == txid).then_some((change, later))
}

/// Returns the values that a row is to have.
fn target_of(table: &Table, change: &RowChange, now: &Values) -> Values {
    let before = fitted(change.before.clone(), table)?;
    let Some(now) = now.clone().filter(|_| change.after.is_some()) else { return Some(before) };
    let mut target = fitted(Some(now), table)?;
    for field in change.fields() {
        let at = field.0 as usize;
        if let (Some(place), Some(value)) = (target.get_mut(at), before.get(at)) {
            *place = Value::clone(value);
        }
    }
    Some(target)
}

/// Returns what the open transaction itself changed of a row.
fn own_change(
    table: &Table,
    change: &RowChange,
    committed: &Values,
    now: &Values,
) -> Option<Obstacle> {
    let is_same = match (committed, now) {
        (Some(committed), Some(now)) => change.fields().all(|field| {
            let at = field.0 as usize;
            match (committed.get(at), now.get(at)) {
                (Some(committed), Some(now)) => is_same(committed.as_ref(), now.as_ref()),
                (committed, now) => committed.is_none() && now.is_none(),
            }
        }),
        (committed, now) => committed.is_none() && now.is_none(),
    };
    let reason = "this transaction changed it".to_owned();
    (!is_same).then(|| Obstacle::new(&table.name, change.id, reason))
}

/// Applies the steps: rows are deleted last, when nothing of the others refers to them.
fn apply(tx: &mut Transaction<'_>, steps: &BTreeMap<Key, Step>) -> Result<()> {
    let phase = |step: &Step| match (&step.now, &step.target) {
        (_, None) => 2,
        (None, _) => 1,
        _ => 0,
    };
    (0..=2).try_for_each(|now| {
        steps.values().filter(|step| phase(step) == now).try_for_each(|step| step.apply(tx))
    })
}
