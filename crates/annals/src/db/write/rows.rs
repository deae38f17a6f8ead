//! The changes of rows: their values before and after each transaction that is read.
//!
//! Invariants
//! 1. A row of the window that isn't `known` is as it is in `base`.
//! 2. `touched` has each row of the window that the current transaction touches once, as before it.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use annals_schema::{FieldNumber, RowId, Schema, Table, Txid, Value};

use crate::db::follow::scan::Sink;
use crate::db::write::changed::Changed;
use crate::db::write::changed::RowChange;
use crate::db::write::changed::is_same_row;
use crate::db::write::window::{Key, Window};
use crate::event::Event;
use crate::journal::Committed;
use crate::store::View;
use crate::{Error, ErrorKind, Result, Row};

/// The memory of a known row besides its values, and of each value, in bytes.
const ROW: usize = 80;
const VALUE: usize = size_of::<Value>();

/// The values of a row by field number, as far as there were fields when they were set; `None`: there is no row.
pub(in crate::db) type Values = Option<Vec<Value>>;

#[derive(Debug)]
struct KnownRow {
    values: Values,
    /// The transaction that touched it last.
    turn: u64,
    weight: usize,
}

/// Takes events, and returns the changes of rows by each transaction, through the present schema.
#[derive(Debug)]
pub struct RowChanges {
    base: Arc<View>,
    present: Arc<Schema>,
    known: HashMap<Key, KnownRow>,
    touched: Vec<(Key, Values)>,
    comments: Vec<String>,
    turn: u64,
    /// The approximate memory of the known rows, in bytes.
    weight: usize,
    /// How much they were given since that was counted.
    given: usize,
    /// The rows that are followed: others are left out.
    window: Window,
    /// Transactions that were read, and not yet taken.
    pub done: VecDeque<Changed>,
}

impl RowChanges {
    /// Begins with a state.
    #[must_use]
    pub fn new(base: Arc<View>, present: Arc<Schema>) -> Self {
        Self::within(base, present, Window::all())
    }

    /// Begins with a state, and leaves out the rows that aren't in a window.
    pub(in crate::db) fn within(base: Arc<View>, present: Arc<Schema>, window: Window) -> Self {
        Self {
            base,
            present,
            known: HashMap::new(),
            touched: Vec::new(),
            comments: Vec::new(),
            turn: 0,
            weight: 0,
            given: 0,
            window,
            done: VecDeque::new(),
        }
    }

    /// Follows these rows from now on.
    pub(in crate::db) fn bound(&mut self, window: Window) {
        self.window = window;
    }

    /// True if no other transaction can be read before [`rebase`](Self::rebase).
    pub(in crate::db) const fn is_full(&self) -> bool {
        self.window.bound().is_some() || self.weight > self.window.room() / 4
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
        self.window.widen();
    }

    /// Reads values through this schema from now on.
    pub(in crate::db) fn show_through(&mut self, present: &Arc<Schema>) {
        if !Arc::ptr_eq(&self.present, present) {
            self.present = Arc::clone(present);
        }
    }

    /// Ends a transaction, or several treated as one. Returns the rows whose values differ from those before it.
    pub(in crate::db) fn differing(&mut self) -> Vec<RowChange> {
        self.end(|values| values.clone())
    }

    /// Ends the last transaction: the rows aren't known afterwards.
    pub(in crate::db) fn into_differing(mut self) -> (Vec<RowChange>, Window) {
        (self.end(std::mem::take), self.window)
    }

    fn end(&mut self, last_values: impl Fn(&mut Values) -> Values) -> Vec<RowChange> {
        self.turn += 1;
        self.given = 0;
        let mut rows = Vec::new();
        for ((table, id), before) in std::mem::take(&mut self.touched) {
            let Some(known) = self.known.get_mut(&(table, id)) else { continue };
            let weight = weight_of(&known.values);
            self.weight = self.weight.saturating_sub(known.weight).saturating_add(weight);
            known.weight = weight;
            let Some(shown) = self.present.table(table) else { continue };
            let after = last_values(&mut known.values);
            let (before, after) = (fitted(before, shown), fitted(after, shown));
            if !is_same_row(before.as_deref(), after.as_deref()) {
                rows.push(RowChange { table, id, before, after });
            }
        }
        rows
    }

    /// Drops the last rows of the window if all of them take more memory than it has.
    fn make_room(&mut self) {
        // The values before are kept, too.
        let most = self.window.room() / 2;
        // Full parts need few passes over the journal; an eighth that is free lets it grow before it is cut again.
        let kept_at_most = most - most / 8;
        if self.weight.saturating_add(self.given) <= most {
            return;
        }
        (self.weight, self.given) = (0, 0);
        for known in self.known.values_mut() {
            known.weight = weight_of(&known.values);
            self.weight += known.weight;
        }
        if self.weight <= kept_at_most {
            return;
        }
        let mut keys: Vec<_> = self.known.iter().map(|(key, known)| (*key, known.weight)).collect();
        keys.sort_unstable();
        let mut kept = 0;
        let has_no_room = |(_, weight): &(Key, usize)| {
            kept += weight;
            kept > kept_at_most
        };
        // One row is always kept.
        let count = keys.iter().position(has_no_room).unwrap_or(keys.len()).max(1);
        let Some((bound, _)) = keys.get(count) else { return };
        self.window.narrow(*bound, self.touched.iter().map(|(key, _)| *key));
        self.known.retain(|key, _| key < bound);
        self.touched.retain(|(key, _)| key < bound);
        self.weight = self.known.values().map(|known| known.weight).sum();
    }

    /// Returns the row, which the transaction touches; `None` if it isn't in the window.
    fn touch(&mut self, key: Key) -> Result<Option<&mut Values>> {
        self.make_room();
        if !self.window.take(key) {
            return Ok(None);
        }
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
                let weight = weight_of(&values);
                self.weight += weight;
                room.insert(KnownRow { values, turn: self.turn, weight })
            }
        };
        Ok(Some(&mut known.values))
    }

    /// Sets all values of a row, or deletes it, if it is in the window.
    fn put(&mut self, key: Key, values: Values) -> Result<()> {
        let given = weight_of(&values);
        let Some(row) = self.touch(key)? else { return Ok(()) };
        *row = values;
        self.given += given;
        Ok(())
    }

    /// Sets a value of a row, if that is in the window.
    fn set(&mut self, table: &Table, id: RowId, field: FieldNumber, value: Value) -> Result<()> {
        let given = weight_of_value(&value);
        let Some(row) = self.touch((table.number, id))? else { return Ok(()) };
        let wide = fitted(row.take(), table).ok_or_else(|| no_row(table, id))?;
        let row = row.insert(wide);
        match row.get_mut(field.0 as usize) {
            Some(place) => *place = value,
            None => return Err(unknown_place()),
        }
        self.given += given;
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
            // Of a row that isn't in the window no value is made.
            Event::Insert { id, .. } | Event::Update { id, .. }
                if !self.window.take((table.number, id)) => {}
            Event::Insert { id, values, .. } => {
                let values = values.iter().map(|value| value.to_value());
                self.put((table.number, id), Some(row_of(table, values)))?;
            }
            Event::Update { id, field, value, .. } => {
                self.set(table, id, field, value.to_value())?;
            }
            Event::Delete { id, .. } => self.put((table.number, id), None)?,
            Event::InsertVector { id, count, .. } => {
                let zero = row_of(table, table.fields.iter().map(annals_schema::Field::zero_value));
                for id in self.window.clip(table.number, id, count) {
                    self.put((table.number, RowId(id)), Some(zero.clone()))?;
                }
            }
            Event::UpdateVector { id, field, values, .. } => {
                let ty = table.field(field).ok_or_else(unknown_place)?.ty;
                let count = values.len(ty).unwrap_or_default() as u64;
                let ids = self.window.clip(table.number, id, count);
                let skipped = usize::try_from(ids.start - id.0).unwrap_or(usize::MAX);
                for (id, value) in ids.zip(values.iter(ty).skip(skipped)) {
                    self.set(table, RowId(id), field, value.to_value())?;
                }
            }
            Event::DeleteVector { id, count, .. } => {
                for id in self.window.clip(table.number, id, count) {
                    self.put((table.number, RowId(id)), None)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, _: Txid) -> Result<()> {
        // Rows that were left out aren't known: the state is to be looked up again.
        match self.is_full() {
            true => Err(Error::new(ErrorKind::Cancelled, "the rows take too much memory")),
            false => Ok(()),
        }
    }

    fn commit(&mut self, _: &Schema, committed: &Committed) -> Result<()> {
        let &Committed { txid, time, .. } = committed;
        let (comments, rows) = (std::mem::take(&mut self.comments), self.differing());
        let left_out = self.window.left_out();
        self.done.push_back(Changed { txid, time, comments, rows, left_out });
        Ok(())
    }
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

/// Returns the number of values of a row by field number: one more than the table's last field number.
fn width(table: &Table) -> usize {
    table.fields.last().map_or(0, |field| field.number.0 as usize + 1)
}

/// Returns the values of a row, by the numbers of its fields; `None` if the view doesn't have the row.
///
/// # Errors
/// `Corrupt`, `Io`.
pub fn load(view: &View, (table, id): Key) -> Result<Values> {
    // The view may be older than the table.
    let Some(schema) = view.schema().table(table) else { return Ok(None) };
    let values = |row: Row<'_>| {
        row_of(schema, schema.fields.iter().map(|field| row.value(field.number).to_value()))
    };
    Ok(view.table(table)?.find(id)?.map(values))
}

/// Returns the same row in the form of a schema: a field that was added later has its default, a dropped one is null.
#[must_use]
pub fn fitted(values: Values, table: &Table) -> Values {
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

/// Returns how many bytes a row has in memory, about.
pub(in crate::db) fn weight_of(values: &Values) -> usize {
    ROW + values.iter().flatten().map(weight_of_value).sum::<usize>()
}

/// Returns how many bytes a value has in memory, about.
pub(in crate::db) fn weight_of_value(value: &Value) -> usize {
    VALUE
        + match value {
            Value::String(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        }
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
