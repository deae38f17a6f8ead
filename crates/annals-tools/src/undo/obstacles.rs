//! What stands against undoing: later changes, references, keys, and values that are no longer known.

use std::collections::BTreeMap;

use annals::{
    Error, Field, FieldNumber, Index, Obstacle, Result, RowChange, Snapshot, Table, TableNumber,
    Transaction, Txid, Type, Value, ValueRef, Violation,
};
use annals_schema::write_value;

use super::erased::Erased;
use super::steps::{Key, Step};
use super::touched::last_change;

/// The obstacles that the message of an error shows; its data has all of them.
const SHOWN: usize = 1000;

/// Makes the error that names all obstacles.
#[cold]
pub(crate) fn conflict(what: &str, obstacles: Vec<Obstacle>) -> Error {
    let mut message = format!("{what}, and nothing was changed:");
    for obstacle in obstacles.iter().take(SHOWN) {
        message.push_str(&format!("\n  {obstacle}"));
    }
    if obstacles.len() > SHOWN {
        message.push_str(&format!("\n  and {} more", obstacles.len() - SHOWN));
    }
    Error::violating(Violation::Conflict { obstacles }, message)
}

/// Returns the later changes of a row that stand against undoing one.
pub(super) fn standing(
    table: &Table,
    change: &RowChange,
    later: &[(u64, RowChange)],
) -> Vec<Obstacle> {
    let by = |txid: u64, did: &str| {
        let reason = format!("transaction {txid} {did} it");
        Obstacle::new(&table.name, change.id, reason).by(Some(Txid(txid)))
    };
    if change.after.is_none() {
        return later.first().map(|(txid, _)| by(*txid, "inserted")).into_iter().collect();
    }
    if let Some((txid, _)) = later.iter().find(|(_, later)| later.after.is_none()) {
        return vec![by(*txid, "deleted")];
    }
    let changed = |field: &Field| {
        change.fields().find(|number| *number == field.number)?;
        let mut newest = later.iter().rev();
        let (txid, _) = newest.find(|(_, it)| it.fields().any(|it| it == field.number))?;
        Some(by(*txid, "changed").in_field(&field.name))
    };
    table.fields.iter().filter_map(changed).collect()
}

/// The steps of a revert, and the state that they change.
pub(super) struct Plan<'p, 'db> {
    pub(super) tx: &'p Transaction<'db>,
    pub(super) committed: &'p Snapshot,
    /// The transaction that is reverted.
    pub(super) txid: u64,
    pub(super) steps: &'p BTreeMap<Key, Step>,
    pub(super) erased: &'p Erased,
}

impl Plan<'_, '_> {
    /// Returns what other rows have, and what the schema says, against the steps.
    pub(super) fn obstacles(&self) -> Result<Vec<Obstacle>> {
        let mut obstacles = Vec::new();
        for step in self.steps.values() {
            let Some(table) = self.table(step.table) else { continue };
            if table.single_row && (step.now.is_none() || step.target.is_none()) {
                let reason = "it is the only row of a table of a single row".to_owned();
                obstacles.push(Obstacle::new(&table.name, step.id, reason));
            }
            obstacles.extend(step.missing_values(self.tx, table, self.erased));
            self.dangling(table, step, &mut obstacles)?;
            self.taken_keys(table, step, &mut obstacles)?;
        }
        self.referring(&mut obstacles)?;
        Ok(obstacles)
    }

    fn table(&self, number: TableNumber) -> Option<&Table> {
        self.tx.view().schema().table(number)
    }

    /// Adds references to rows that don't exist any more.
    fn dangling(&self, table: &Table, step: &Step, obstacles: &mut Vec<Obstacle>) -> Result<()> {
        for (field, value) in step.differing(table) {
            let (Type::Reference(target, rule), Value::Reference(to)) = (field.ty, value) else {
                continue;
            };
            // Without a rule it is just a number, also of a table that was dropped.
            if !rule.is_enforced() {
                continue;
            }
            let exists = match self.steps.get(&(target, *to)) {
                Some(other) => other.target.is_some(),
                None => self.tx.view().table(target)?.contains(*to)?,
            };
            if exists {
                continue;
            }
            let txid = last_change(self.committed, (target, *to), None)?;
            let by = txid.map_or_else(String::new, |txid| format!(" by transaction {txid}"));
            let name = self.table(target).map_or("?", |table| &table.name);
            let reason = format!("it referred to row {} of table `{name}`, deleted{by}", to.0);
            let obstacle = Obstacle::new(&table.name, step.id, reason);
            obstacles.push(obstacle.in_field(&field.name).by(txid.map(Txid)));
        }
        Ok(())
    }

    /// Adds rows that have a unique key which the row of the step gets back. Rows of other steps change, too; those
    /// keys are checked at commit.
    fn taken_keys(&self, table: &Table, step: &Step, obstacles: &mut Vec<Obstacle>) -> Result<()> {
        let view = self.tx.view();
        let differs = |index: &Index| {
            step.differing(table).any(|(field, _)| index.fields.contains(&field.number))
        };
        for index in view.schema().indexes_of(table).filter(|index| index.unique) {
            let Some(target) = step.target.as_ref().filter(|_| differs(index)) else { continue };
            let key: Option<Vec<ValueRef<'_>>> = index
                .fields
                .iter()
                .map(|field| Some(target.get(field.0 as usize)?.as_ref()))
                .map(|value| value.filter(|value| !matches!(value, ValueRef::Null)))
                .collect();
            let Some(key) = key else { continue };
            let Some(holder) = view.index(index.number)?.first(&key)?.map(|row| row.id()) else {
                continue;
            };
            let holder_key = (table.number, holder);
            if self.steps.contains_key(&holder_key) {
                continue;
            }
            let txid = last_change(self.committed, holder_key, index.fields.first().copied())?;
            let by = txid.map_or_else(String::new, |txid| format!(", since transaction {txid}"));
            let shown: Vec<_> = key.iter().copied().map(shown).collect();
            let shown = shown.join(", ");
            let reason = format!(
                "it has the key {shown} of index `{}`, which row {} had{by}",
                index.name, step.id.0
            );
            obstacles.push(Obstacle::new(&table.name, holder, reason).by(txid.map(Txid)));
        }
        Ok(())
    }

    /// Adds enforced references to rows that would be deleted, unless the steps take them away.
    fn referring(&self, obstacles: &mut Vec<Obstacle>) -> Result<()> {
        let mut deleted = BTreeMap::<TableNumber, Vec<u64>>::new();
        for step in self.steps.values().filter(|step| step.target.is_none() && step.now.is_some()) {
            deleted.entry(step.table).or_default().push(step.id.0);
        }
        for (target, ids) in deleted {
            for (table, row, field) in self.tx.view().referring(target, &ids)? {
                let value = |values: &Vec<Value>| values.get(field.0 as usize).cloned();
                let goes = self.steps.get(&(table, row)).is_some_and(|step| {
                    let new = step.target.as_ref().map(value);
                    new.is_none() || new != step.now.as_ref().map(value)
                });
                if !goes {
                    obstacles.push(self.referrer(target, (table, row), field)?);
                }
            }
        }
        Ok(())
    }

    /// Makes the obstacle of a reference to an inserted row of `target`.
    fn referrer(&self, target: TableNumber, from: Key, field: FieldNumber) -> Result<Obstacle> {
        let txid = last_change(self.committed, from, Some(field))?;
        let since = txid.map_or_else(String::new, |txid| format!(", since transaction {txid}"));
        let target = self.table(target).map_or("?", |table| &table.name);
        let reason = format!(
            "it refers to a row of table `{target}` that transaction {} inserted{since}",
            self.txid
        );
        let table = self.table(from.0);
        let obstacle = Obstacle::new(table.map_or("?", |table| &table.name), from.1, reason);
        let field = table.and_then(|table| table.field(field)).map_or("?", |field| &field.name);
        Ok(obstacle.in_field(field).by(txid.map(Txid)))
    }
}

/// Returns a value as text.
pub(crate) fn shown(value: ValueRef<'_>) -> String {
    let mut text = String::new();
    // Writing to a string doesn't fail.
    let _ = write_value(&mut text, value);
    text
}
