//! The histories of all rows, by a scan of the whole journal that remembers everything.

use std::collections::{BTreeMap, BTreeSet};

use annals::event::Event;
use annals::storage::Directory;
use annals::{Committed, FieldNumber, RowId, Schema, Sink, TableNumber, Timestamp, Value, Version};
use annals_tools::scan_in;

use crate::history_model::look::same_rows;

/// A row: its values by the numbers of the fields that there were when it was inserted, and since.
type Fields = BTreeMap<u32, Value>;
type Of = (u32, u64);

/// What a transaction made of a row.
struct Step {
    txid: u64,
    time: Timestamp,
    comments: Vec<String>,
    before: Option<Fields>,
    after: Option<Fields>,
}

/// A commit: its number, its time, and its comments.
pub(super) type Dated = (u64, Timestamp, Vec<String>);

/// All that a scan finds.
#[derive(Default)]
pub(super) struct Oracle {
    rows: BTreeMap<Of, Fields>,
    before: BTreeMap<Of, Option<Fields>>,
    comments: Vec<String>,
    steps: BTreeMap<Of, Vec<Step>>,
    first: Option<u64>,
    /// Each commit, in order.
    pub(super) commits: Vec<Dated>,
}

impl Oracle {
    /// Reads all that is left of a journal.
    pub(super) fn of(directory: &dyn Directory, name: &str) -> Self {
        let mut oracle = Self::default();
        scan_in(&annals::Options::new(), directory, name, &mut oracle).unwrap();
        oracle
    }

    /// Returns the rows that ever were, of tables that there still are.
    pub(super) fn rows(&self, present: &Schema) -> BTreeSet<(TableNumber, RowId)> {
        let all = self.steps.keys().map(|&(table, id)| (TableNumber(table), RowId(id)));
        all.filter(|(table, _)| present.table(*table).is_some()).collect()
    }

    /// Returns the history of a row. `begins` says that the first transaction is the state.
    pub(super) fn history(
        &self,
        present: &Schema,
        (table, id): (TableNumber, RowId),
        begins: bool,
    ) -> Vec<Version> {
        let steps = self.steps.get(&(table.0, id.0)).map_or(&[][..], Vec::as_slice);
        let version = |step: &Step| {
            let side = |fields: &Option<Fields>| {
                fields.as_ref().map(|fields| shown(present, table, fields))
            };
            let (before, after) = (side(&step.before), side(&step.after));
            (!same_rows(before.as_ref(), after.as_ref())).then(|| Version {
                txid: annals::Txid(step.txid),
                time: step.time,
                comments: step.comments.clone(),
                change: annals::RowChange { table, id, before, after },
                is_beginning: begins && Some(step.txid) == self.first,
            })
        };
        steps.iter().filter_map(version).collect()
    }

    fn touch(&mut self, table: TableNumber, id: u64) -> Of {
        let of = (table.0, id);
        self.before.entry(of).or_insert_with(|| self.rows.get(&of).cloned());
        of
    }

    fn set(&mut self, table: TableNumber, id: u64, field: FieldNumber, value: Value) {
        let of = self.touch(table, id);
        self.rows.get_mut(&of).expect("a row that is changed is there").insert(field.0, value);
    }
}

/// Returns a row's values in the present fields.
fn shown(present: &Schema, table: TableNumber, fields: &Fields) -> Vec<Value> {
    let table = present.table(table).unwrap();
    let count = table.fields.last().map_or(0, |last| last.number.0 + 1);
    let value = |number| match table.field(FieldNumber(number)) {
        None => Value::Null,
        Some(field) => fields.get(&number).cloned().unwrap_or_else(|| field.default_value()),
    };
    (0..count).map(value).collect()
}

impl Sink for Oracle {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> annals::Result<()> {
        let fields = |table: TableNumber| &schema.table(table).unwrap().fields;
        match *event {
            Event::Insert { table, id, values } => {
                let of = self.touch(table, id.0);
                let values = values.iter().map(|value| value.to_value());
                let row = fields(table).iter().map(|field| field.number.0).zip(values).collect();
                self.rows.insert(of, row);
            }
            Event::InsertVector { table, id, count } => {
                for id in id.0..id.0 + count {
                    let of = self.touch(table, id);
                    let zero = |field: &annals::Field| (field.number.0, field.zero_value());
                    self.rows.insert(of, fields(table).iter().map(zero).collect());
                }
            }
            Event::Update { table, id, field, value } => {
                self.set(table, id.0, field, value.to_value());
            }
            Event::UpdateVector { table, id, field, values } => {
                let ty = schema.table(table).unwrap().field(field).unwrap().ty;
                for (id, value) in (id.0..).zip(values.iter(ty)) {
                    self.set(table, id, field, value.to_value());
                }
            }
            Event::Delete { table, id } => {
                let of = self.touch(table, id.0);
                self.rows.remove(&of);
            }
            Event::DeleteVector { table, id, count } => {
                for id in id.0..id.0 + count {
                    let of = self.touch(table, id);
                    self.rows.remove(&of);
                }
            }
            Event::Comment(text) => self.comments.push(text.to_owned()),
            _ => {}
        }
        Ok(())
    }

    fn commit(&mut self, _: &Schema, committed: &Committed) -> annals::Result<()> {
        self.first.get_or_insert(committed.txid.0);
        let comments = std::mem::take(&mut self.comments);
        self.commits.push((committed.txid.0, committed.time, comments.clone()));
        for (of, before) in std::mem::take(&mut self.before) {
            let after = self.rows.get(&of).cloned();
            self.steps.entry(of).or_default().push(Step {
                txid: committed.txid.0,
                time: committed.time,
                comments: comments.clone(),
                before,
                after,
            });
        }
        Ok(())
    }
}
