//! The changes of a transaction as they are made there, and what stands against each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use annals::internals::{fitted, is_same, load};
use annals::{
    Changed, Field, Index, Obstacle, Result, RowChange, RowId, Table, TableNumber, Type, Value,
    ValueRef,
};

use super::clashes::Clash;
use super::replay::{Again, Replay};
use crate::undo::{Key, Step, Values, shown};

/// A field that isn't as it was: what was done with its row, the value that was seen, and the present one.
struct Unlike<'v> {
    what: String,
    seen: &'v Value,
    found: &'v Value,
}

impl Again {
    fn key(&self) -> Key {
        (self.step.table, self.step.id)
    }
}

impl Replay<'_, '_> {
    /// Returns the changes of a transaction, in its order; those that can't be made are clashes.
    pub(super) fn steps(&mut self, changed: &Changed) -> Result<Vec<Again>> {
        self.choose_ids(changed)?;
        let mut steps = Vec::new();
        for change in &changed.rows {
            let schema = Arc::clone(self.tx.view().schema());
            let key = (change.table, self.ids.of((change.table, change.id)));
            if self.failed.contains(&key) {
                continue;
            }
            let Some(table) = schema.table(change.table) else {
                let named = self.ours.schema().table(change.table);
                let name = named.map_or("?", |table| &table.name);
                let obstacle = Obstacle::new(name, change.id, "its table was dropped".to_owned());
                self.clash(changed, key, Clash { obstacle, cause: None });
                continue;
            };
            let now = load(self.tx.view(), key)?;
            let found = self.clashes.len();
            let target = self.target(table, changed, change, &now)?;
            if self.clashes.len() == found {
                let step = Step { table: key.0, id: key.1, now, target };
                steps.push(Again { step, id: change.id });
            }
        }
        self.check(changed, &steps)?;
        Ok(steps)
    }

    fn choose_ids(&mut self, changed: &Changed) -> Result<()> {
        let mut inserted = BTreeMap::<TableNumber, Vec<RowId>>::new();
        for change in changed.rows.iter().filter(|change| change.before.is_none()) {
            inserted.entry(change.table).or_default().push(change.id);
        }
        let there = self.tx.view();
        for (table, ids) in inserted {
            if there.schema().table(table).is_some() {
                self.ids.choose(table, &ids, &self.base, there)?;
            }
        }
        Ok(())
    }

    /// Notes a clash: nothing else is made of this row.
    fn clash(&mut self, changed: &Changed, key: Key, clash: Clash) {
        self.failed.insert(key);
        let obstacle = clash.obstacle.met_by(changed.txid);
        self.clashes.push(Clash { obstacle, ..clash });
    }

    /// Returns the values that a row gets; clashes if it isn't as our transaction found it.
    fn target(
        &mut self,
        table: &Table,
        changed: &Changed,
        change: &RowChange,
        now: &Values,
    ) -> Result<Values> {
        let values = self.values(table, &change.after)?;
        let (Some(before), None) = (&change.before, &values) else {
            return match (&change.before, now) {
                (None, _) => Ok(fitted(values, table)),
                (Some(_), None) => {
                    self.gone(table, changed, change);
                    Ok(None)
                }
                (Some(_), Some(now)) => self.updated(table, changed, change, now),
            };
        };
        let Some(now) = now else {
            self.gone(table, changed, change);
            return Ok(None);
        };
        let before = fitted(self.values(table, &Some(before.clone()))?, table);
        for field in &table.fields {
            let at = field.number.0 as usize;
            let seen = before.as_ref().and_then(|before| before.get(at));
            let (Some(seen), Some(found)) = (seen, now.get(at)) else { continue };
            if !is_same(seen.as_ref(), found.as_ref()) {
                let what = "deleted it".to_owned();
                self.differs(table, field, changed, change, &Unlike { what, seen, found });
                break;
            }
        }
        Ok(None)
    }

    fn gone(&mut self, table: &Table, changed: &Changed, change: &RowChange) {
        let key = (change.table, self.ids.of((change.table, change.id)));
        let reason = format!("{} changed it, and it isn't there any more", by(changed));
        let obstacle = Obstacle::new(&table.name, change.id, reason);
        self.clash(changed, key, Clash { obstacle, cause: Some((key, None)) });
    }

    /// Returns the values of a row after an update of it.
    fn updated(
        &mut self,
        table: &Table,
        changed: &Changed,
        change: &RowChange,
        now: &[Value],
    ) -> Result<Values> {
        let mut target = now.to_vec();
        let before = self.values(table, &change.before)?.unwrap_or_default();
        let after = self.values(table, &change.after)?.unwrap_or_default();
        for number in change.fields() {
            let at = number.0 as usize;
            let (Some(seen), Some(new)) = (before.get(at), after.get(at)) else { continue };
            let Some(field) = table.field(number) else {
                let key = (change.table, self.ids.of((change.table, change.id)));
                let reason = format!("{} set field {}, which was dropped", by(changed), number.0);
                let obstacle = Obstacle::new(&table.name, change.id, reason);
                self.clash(changed, key, Clash { obstacle, cause: None });
                continue;
            };
            let Some(place) = target.get_mut(at) else { continue };
            if is_same(seen.as_ref(), place.as_ref()) {
                *place = new.clone();
                continue;
            }
            let (what, found) = (format!("set it to {}", shown(new.as_ref())), &*place);
            self.differs(table, field, changed, change, &Unlike { what, seen, found });
        }
        Ok(Some(target))
    }

    /// Notes that a field isn't as our transaction found it.
    fn differs(
        &mut self,
        table: &Table,
        field: &Field,
        changed: &Changed,
        change: &RowChange,
        unlike: &Unlike<'_>,
    ) {
        let Unlike { what, seen, found } = unlike;
        let key = (change.table, self.ids.of((change.table, change.id)));
        let (seen, found) = (shown(seen.as_ref()), shown(found.as_ref()));
        let reason = format!("{} {what}, where it was {seen}; it is {found}", by(changed));
        let obstacle = Obstacle::new(&table.name, change.id, reason).in_field(&field.name);
        self.clash(changed, key, Clash { obstacle, cause: Some((key, Some(field.number))) });
    }

    /// Finds what other rows have against the changes.
    fn check(&mut self, changed: &Changed, steps: &[Again]) -> Result<()> {
        let by_key: BTreeMap<Key, &Step> = steps.iter().map(|it| (it.key(), &it.step)).collect();
        let schema = Arc::clone(self.tx.view().schema());
        let mut found = Vec::new();
        for again in steps {
            let Some(table) = schema.table(again.step.table) else { continue };
            self.dangling(table, again, &by_key, changed, &mut found)?;
            self.taken_keys(table, again, &by_key, changed, &mut found)?;
        }
        self.referring(steps, &by_key, changed, &mut found)?;
        for (key, clash) in found {
            if let Some(clash) = clash {
                self.clash(changed, key, clash);
            }
            self.failed.insert(key);
        }
        Ok(())
    }

    fn dangling(
        &self,
        table: &Table,
        again: &Again,
        steps: &BTreeMap<Key, &Step>,
        changed: &Changed,
        found: &mut Vec<(Key, Option<Clash>)>,
    ) -> Result<()> {
        for (field, value) in again.step.differing(table) {
            let (Type::Reference(target, rule), Value::Reference(to)) = (field.ty, value) else {
                continue;
            };
            if !rule.is_enforced() {
                continue;
            }
            if self.failed.contains(&(target, *to)) {
                found.push((again.key(), None));
                continue;
            }
            let exists = match steps.get(&(target, *to)) {
                Some(other) => other.target.is_some(),
                None => self.tx.view().table(target)?.contains(*to)?,
            };
            if !exists {
                let schema = self.tx.view().schema();
                let name = schema.table(target).map_or("?", |table| &table.name);
                let reason = format!(
                    "{} made it refer to row {} of table `{name}`, which isn't there any more",
                    by(changed),
                    to.0
                );
                let obstacle = Obstacle::new(&table.name, again.id, reason).in_field(&field.name);
                let cause = Some(((target, *to), None));
                found.push((again.key(), Some(Clash { obstacle, cause })));
            }
        }
        Ok(())
    }

    fn taken_keys(
        &self,
        table: &Table,
        again: &Again,
        steps: &BTreeMap<Key, &Step>,
        changed: &Changed,
        found: &mut Vec<(Key, Option<Clash>)>,
    ) -> Result<()> {
        let (view, step) = (self.tx.view(), &again.step);
        let differs = |index: &Index| {
            step.differing(table).any(|(field, _)| index.fields.contains(&field.number))
        };
        for index in view.schema().indexes_of(table).filter(|index| index.unique) {
            let Some(target) = step.target.as_ref().filter(|_| differs(index)) else { continue };
            let value = |at: u32| target.get(at as usize).map(Value::as_ref);
            let key: Option<Vec<ValueRef<'_>>> = index
                .fields
                .iter()
                .map(|field| value(field.0).filter(|value| !matches!(value, ValueRef::Null)))
                .collect();
            let Some(key) = key else { continue };
            let holder = view.index(index.number)?.first(&key)?.map(|row| row.id());
            let holder = holder.filter(|&id| id != step.id);
            let Some(holder) = holder.filter(|&id| !steps.contains_key(&(table.number, id))) else {
                continue;
            };
            let key: Vec<_> = key.into_iter().map(shown).collect();
            let reason = format!(
                "{} gave it the key {} of index `{}`, which row {} has",
                by(changed),
                key.join(", "),
                index.name,
                holder.0
            );
            let obstacle = Obstacle::new(&table.name, again.id, reason);
            let cause = Some(((table.number, holder), index.fields.first().copied()));
            found.push((again.key(), Some(Clash { obstacle, cause })));
        }
        Ok(())
    }

    /// Finds rows of others that refer to rows which would be deleted.
    fn referring(
        &self,
        all: &[Again],
        steps: &BTreeMap<Key, &Step>,
        changed: &Changed,
        found: &mut Vec<(Key, Option<Clash>)>,
    ) -> Result<()> {
        let mut deleted = BTreeMap::<TableNumber, BTreeMap<u64, RowId>>::new();
        for Again { step, id } in all.iter().filter(|it| it.step.target.is_none()) {
            deleted.entry(step.table).or_default().insert(step.id.0, *id);
        }
        let schema = self.tx.view().schema();
        for (target, ids) in deleted {
            let name = schema.table(target).map_or("?", |table| &table.name);
            let listed: Vec<u64> = ids.keys().copied().collect();
            let mut blocked = BTreeSet::new();
            for (table, row, field) in self.tx.view().referring(target, &listed)? {
                let value = |values: &Vec<Value>| values.get(field.0 as usize).cloned();
                let now = load(self.tx.view(), (table, row))?.as_ref().and_then(value);
                let goes = steps.get(&(table, row)).is_some_and(|step| {
                    let new = step.target.as_ref().map(value);
                    new.is_none() || new != step.now.as_ref().map(value)
                });
                let Some(Value::Reference(to)) = now.filter(|_| !goes) else { continue };
                if !blocked.insert(to) {
                    continue;
                }
                let referrer = schema.table(table).map_or("?", |table| &table.name);
                let reason = format!(
                    "{} deleted it, and row {} of table `{referrer}` refers to it",
                    by(changed),
                    row.0
                );
                let id = ids.get(&to.0).copied().unwrap_or(to);
                let obstacle = Obstacle::new(name, id, reason);
                let cause = Some(((table, row), Some(field)));
                found.push(((target, to), Some(Clash { obstacle, cause })));
            }
        }
        Ok(())
    }
}

/// Names a transaction of ours.
fn by(changed: &Changed) -> String {
    match changed.comments.first() {
        Some(comment) => format!("transaction {} here ({comment:?})", changed.txid),
        None => format!("transaction {} here", changed.txid),
    }
}
