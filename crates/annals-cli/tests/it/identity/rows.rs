//! Random changes of rows, which are right.

use std::collections::{BTreeMap, BTreeSet};

use super::generator::Generator;

impl Generator {
    /// Picks a row that is there.
    fn row(&mut self, table: usize) -> Option<u64> {
        let count = self.state.tables[table].rows.len() as u64;
        let place = (count > 0).then(|| self.random(count))?;
        self.state.tables[table].rows.keys().nth(usize::try_from(place).unwrap()).copied()
    }

    /// Picks an id that no row has: near, far, or the next one.
    fn free_id(&mut self, table: usize) -> u64 {
        let next = self.state.tables[table].next_id;
        let id = match self.random(12) {
            0 => self.random(1 << 62),
            1..=4 => next,
            _ => self.random(40),
        };
        if self.state.tables[table].rows.contains_key(&id) { next } else { id }
    }

    pub(super) fn take_id(&mut self, table: usize, id: u64) {
        let table = &mut self.state.tables[table];
        assert!(table.rows.insert(id, BTreeMap::new()).is_none());
        table.next_id = table.next_id.max(id + 1);
    }

    /// Picks a table that rows can come to.
    fn open_table(&mut self) -> Option<(usize, String)> {
        let at = self.table()?;
        let table = &self.state.tables[at];
        (!table.single).then(|| (at, table.name.clone()))
    }

    fn values(&mut self, table: usize, id: u64) -> String {
        let fields = self.state.tables[table].fields.clone();
        fields.iter().map(|field| format!(" {}", self.value_of(table, id, field))).collect()
    }

    pub(super) fn insert(&mut self) {
        let Some((table, name)) = self.open_table() else { return };
        let id = self.state.tables[table].next_id;
        self.take_id(table, id);
        let values = self.values(table, id);
        self.line(&format!("insert {name}{values}"));
    }

    pub(super) fn insert_at(&mut self) {
        let Some((table, name)) = self.open_table() else { return };
        let id = self.free_id(table);
        self.take_id(table, id);
        let values = self.values(table, id);
        self.line(&format!("insert_at {name} {id}{values}"));
    }

    pub(super) fn insert_into(&mut self) {
        let Some((table, name)) = self.open_table() else { return };
        let id = self.free_id(table);
        self.line(&format!("insert_into {name} {id}"));
        self.take_id(table, id);
    }

    pub(super) fn update(&mut self) {
        let Some(table) = self.table() else { return };
        let (Some(id), fields) = (self.row(table), self.state.tables[table].fields.clone()) else {
            return;
        };
        if !fields.is_empty() {
            let field = &fields[usize::try_from(self.random(fields.len() as u64)).unwrap()];
            let value = self.value_of(table, id, field);
            let name = self.state.tables[table].name.clone();
            self.line(&format!("update {name} {id} {} {value}", field.name));
        }
    }

    pub(super) fn delete(&mut self) {
        let Some(table) = self.table() else { return };
        let Some(id) = self.row(table) else { return };
        if self.take_away(table, id, 1) {
            let name = self.state.tables[table].name.clone();
            self.line(&format!("delete_from {name} {id}"));
        }
    }

    /// Changes rows with ids one after another.
    pub(super) fn vector(&mut self) {
        let Some(table) = self.table() else { return };
        let (fields, name) =
            (self.state.tables[table].fields.clone(), self.state.tables[table].name.clone());
        let (kind, count) = (self.random(3), 1 + self.random(6));
        if kind == 0 {
            let id = self.free_id(table);
            let table_is = &self.state.tables[table];
            if !table_is.single && table_is.rows.range(id..id + count).next().is_none() {
                self.line(&format!("insert_vector {name} {id} {count}"));
                (id..id + count).for_each(|id| self.take_id(table, id));
            }
            return;
        }
        let Some(id) = self.row(table) else { return };
        let rows = self.state.tables[table].rows.range(id..id + count).zip(id..);
        let run = rows.take_while(|((found, _), id)| **found == *id).count() as u64;
        if kind == 1 && !fields.is_empty() {
            let field = &fields[usize::try_from(self.random(fields.len() as u64)).unwrap()];
            let values = (id..id + run).map(|id| format!(" {}", self.value_of(table, id, field)));
            let values: String = values.collect();
            self.line(&format!("update_vector {name} {id} {} {run}{values}", field.name));
        } else if kind == 2 && self.take_away(table, id, run) {
            self.line(&format!("delete_vector {name} {id} {run}"));
        }
    }

    /// Deletes rows and what goes with them, unless something forbids it.
    fn take_away(&mut self, table: usize, id: u64, count: u64) -> bool {
        let key = self.state.tables[table].key;
        let mut gone: BTreeSet<_> = (id..id + count).map(|id| (key, id)).collect();
        let mut state = self.state.clone();
        loop {
            let before = gone.len();
            for table in &mut state.tables {
                for (&id, row) in &mut table.rows {
                    for field in &table.fields {
                        let Some((target, rule)) = field.enforced else { continue };
                        let Some(&to) = row.get(&field.key) else { continue };
                        if gone.contains(&(target, to)) && rule == "cascade" {
                            gone.insert((table.key, id));
                        }
                    }
                }
            }
            if gone.len() == before {
                break;
            }
        }
        for table in &mut state.tables {
            let is_gone = |id: &u64| gone.contains(&(table.key, *id));
            if table.single && table.rows.keys().any(is_gone) {
                return false;
            }
            table.rows.retain(|id, _| !gone.contains(&(table.key, *id)));
            for row in table.rows.values_mut() {
                for field in &table.fields {
                    let Some((target, rule)) = field.enforced else { continue };
                    let leads_there =
                        row.get(&field.key).is_some_and(|&to| gone.contains(&(target, to)));
                    if leads_there && rule == "restrict" {
                        return false;
                    }
                    if leads_there {
                        row.remove(&field.key);
                    }
                }
            }
        }
        self.state = state;
        true
    }
}
