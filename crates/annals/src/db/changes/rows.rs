//! The changes of rows: their values before and after each transaction that is read.
//!
//! Invariants
//! 1. A row that isn't `known` is as it is in `base`.
//! 2. `touched` has each row that the current transaction touches once, as before it.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use annals_schema::{FieldNumber, RowId, Schema, Table, TableNumber, Value};

use crate::db::changes::changed::Changed;
use crate::db::changes::changed::RowChange;
use crate::db::changes::changed::is_same_row;
use crate::db::replay::scan::Sink;
use crate::event::Event;
use crate::journal::Committed;
use crate::store::View;
use crate::{Error, Result, Row};

/// The memory of a known row besides its values, and of each value, in bytes.
const ROW: usize = 80;
const VALUE: usize = size_of::<Value>();

/// A row of a table.
pub(in crate::db) type Key = (TableNumber, RowId);

/// The values of a row by field number, as far as there were fields when they were set; `None`: there is no row.
pub(in crate::db) type Values = Option<Vec<Value>>;

#[derive(Debug)]
struct Known {
    values: Values,
    /// The transaction that touched it last.
    turn: u64,
    weight: usize,
}

/// Takes events, and returns the changes of rows by each transaction, through the present schema.
#[derive(Debug)]
pub(in crate::db) struct RowChanges {
    base: Arc<View>,
    present: Arc<Schema>,
    known: HashMap<Key, Known>,
    touched: Vec<(Key, Values)>,
    comments: Vec<String>,
    turn: u64,
    /// The approximate memory of the known rows, in bytes.
    weight: usize,
    /// Transactions that were read, and not yet taken.
    pub(in crate::db) done: VecDeque<Changed>,
}

impl RowChanges {
    /// Begins with a state.
    pub(in crate::db) fn new(base: Arc<View>, present: Arc<Schema>) -> Self {
        Self {
            base,
            present,
            known: HashMap::new(),
            touched: Vec::new(),
            comments: Vec::new(),
            turn: 0,
            weight: 0,
            done: VecDeque::new(),
        }
    }

    /// Returns how many bytes it has in memory, about, beside the state it began with.
    pub(in crate::db) const fn weight(&self) -> usize {
        self.weight
    }

    /// Continues from the state after the last transaction that was read.
    pub(in crate::db) fn rebase(&mut self, base: Arc<View>) {
        self.base = base;
        self.known = HashMap::new();
        self.weight = 0;
    }

    /// Reads values through this schema from now on.
    pub(in crate::db) fn show_through(&mut self, present: &Arc<Schema>) {
        if !Arc::ptr_eq(&self.present, present) {
            self.present = Arc::clone(present);
        }
    }

    /// Ends a transaction, or several treated as one. Returns the rows whose values differ from those before it.
    pub(in crate::db) fn differing(&mut self) -> Vec<RowChange> {
        self.turn += 1;
        let mut rows = Vec::new();
        for ((table, id), before) in std::mem::take(&mut self.touched) {
            let Some(known) = self.known.get_mut(&(table, id)) else { continue };
            let weight = weight_of(&known.values);
            self.weight = self.weight.saturating_sub(known.weight).saturating_add(weight);
            known.weight = weight;
            let Some(shown) = self.present.table(table) else { continue };
            let (before, after) = (fitted(before, shown), fitted(known.values.clone(), shown));
            if !is_same_row(before.as_deref(), after.as_deref()) {
                rows.push(RowChange { table, id, before, after });
            }
        }
        rows
    }

    /// Returns the row, which the transaction touches.
    fn touch(&mut self, key: Key) -> Result<&mut Values> {
        let known = match self.known.entry(key) {
            Entry::Occupied(known) => {
                let known = known.into_mut();
                if known.turn != self.turn {
                    known.turn = self.turn;
                    self.touched.push((key, known.values.clone()));
                }
                known
            }
            Entry::Vacant(room) => {
                let values = load(&self.base, key)?;
                self.touched.push((key, values.clone()));
                room.insert(Known { values, turn: self.turn, weight: 0 })
            }
        };
        Ok(&mut known.values)
    }

    fn set(&mut self, table: &Table, id: RowId, field: FieldNumber, value: Value) -> Result<()> {
        let row = self.touch((table.number, id))?;
        let wide = fitted(row.take(), table).ok_or_else(|| no_row(table, id))?;
        let row = row.insert(wide);
        match row.get_mut(field.0 as usize) {
            Some(place) => *place = value,
            None => return Err(unknown_place()),
        }
        Ok(())
    }
}

impl Sink for RowChanges {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        let table = match *event {
            Event::Comment(comment) => {
                self.comments.push(comment.to_owned());
                return Ok(());
            }
            Event::Insert { table, .. }
            | Event::Update { table, .. }
            | Event::Delete { table, .. }
            | Event::InsertVector { table, .. }
            | Event::UpdateVector { table, .. }
            | Event::DeleteVector { table, .. } => table,
            Event::Schema(_) | Event::Blob { .. } | Event::ValidData | Event::Timestamp(_) => {
                return Ok(());
            }
        };
        if self.present.table(table).is_none() {
            return Ok(()); // it was dropped since
        }
        let table = schema.table(table).ok_or_else(unknown_place)?;
        match *event {
            Event::Insert { id, values, .. } => {
                let values = values.iter().map(|value| value.to_value());
                *self.touch((table.number, id))? = Some(row_of(table, values));
            }
            Event::Update { id, field, value, .. } => {
                self.set(table, id, field, value.to_value())?;
            }
            Event::Delete { id, .. } => *self.touch((table.number, id))? = None,
            Event::InsertVector { id, count, .. } => {
                let zero = row_of(table, table.fields.iter().map(annals_schema::Field::zero_value));
                for id in run(id, count) {
                    *self.touch((table.number, id))? = Some(zero.clone());
                }
            }
            Event::UpdateVector { id, field, values, .. } => {
                let ty = table.field(field).ok_or_else(unknown_place)?.ty;
                for (id, value) in run(id, u64::MAX).zip(values.iter(ty)) {
                    self.set(table, id, field, value.to_value())?;
                }
            }
            Event::DeleteVector { id, count, .. } => {
                for id in run(id, count) {
                    *self.touch((table.number, id))? = None;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn commit(&mut self, _: &Schema, committed: &Committed) -> Result<()> {
        let &Committed { txid, time, .. } = committed;
        let (comments, rows) = (std::mem::take(&mut self.comments), self.differing());
        self.done.push_back(Changed { txid, time, comments, rows });
        Ok(())
    }
}

/// Returns the ids of a run of rows.
fn run(first: RowId, count: u64) -> impl Iterator<Item = RowId> {
    (first.0..first.0.saturating_add(count)).map(RowId)
}

/// Returns a row with these values of a table's fields, by number.
pub(in crate::db) fn row_of(table: &Table, values: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut row = vec![Value::Null; width(table)];
    for (field, value) in table.fields.iter().zip(values) {
        if let Some(place) = row.get_mut(field.number.0 as usize) {
            *place = value;
        }
    }
    row
}

/// Returns how many field numbers a table's rows have values for.
fn width(table: &Table) -> usize {
    table.fields.last().map_or(0, |field| field.number.0 as usize + 1)
}

/// Returns the values of a row, by the numbers of its fields.
pub(in crate::db) fn load(view: &View, (table, id): Key) -> Result<Values> {
    // It isn't there yet otherwise.
    let Some(schema) = view.schema().table(table) else { return Ok(None) };
    let values = |row: Row<'_>| {
        row_of(schema, schema.fields.iter().map(|field| row.value(field.number).to_value()))
    };
    Ok(view.table(table)?.find(id)?.map(values))
}

/// Returns the same row in the form of a schema: a field that was added later has its default, a dropped one is null.
pub(in crate::db) fn fitted(values: Values, table: &Table) -> Values {
    let mut values = values?;
    let had = values.len();
    values.resize(width(table), Value::Null);
    let mut fields = table.fields.iter().peekable();
    for (number, value) in values.iter_mut().enumerate() {
        match fields.next_if(|field| field.number.0 as usize == number) {
            Some(field) if number >= had => *value = field.existing_value(),
            Some(field) => *value = field.shown(std::mem::replace(value, Value::Null)),
            None => *value = Value::Null,
        }
    }
    Some(values)
}

/// Returns how a row differs between two states, read through the schema of the later one.
pub(in crate::db) fn row_change(
    before: &View,
    after: &View,
    key: Key,
) -> Result<Option<RowChange>> {
    let (table, id) = key;
    let Some(shown) = after.schema().table(table) else { return Ok(None) };
    let (before, after) = (load(before, key)?, load(after, key)?);
    let (before, after) = (fitted(before, shown), fitted(after, shown));
    let is_same = is_same_row(before.as_deref(), after.as_deref());
    Ok((!is_same).then_some(RowChange { table, id, before, after }))
}

fn weight_of(values: &Values) -> usize {
    let heap = |value: &Value| match value {
        Value::String(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    let values = values.as_deref().unwrap_or_default();
    ROW + values.iter().map(|value| VALUE + heap(value)).sum::<usize>()
}

fn no_row(table: &Table, id: RowId) -> Error {
    Error::corrupt(format!(
        "the journal changes row {} of table `{}`, which isn't there",
        id.0, table.name
    ))
}

fn unknown_place() -> Error {
    Error::corrupt("an event speaks of a table or field that isn't there")
}
