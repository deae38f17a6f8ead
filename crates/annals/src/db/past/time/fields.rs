//! One transaction, field by field, without the rest of its rows.
//!
//! ```text
//! the events of the transaction                  the values after
//! the last earlier place of each touched row     the values before, backwards until each changed field is known
//! ```

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use annals_schema::{FieldNumber, RowId, Schema, Table, TableNumber, Timestamp, Txid, Value};

use crate::db::follow::scan::Sink;
use crate::db::past::lazy;
use crate::db::past::lazy::{PastState, Source};
use crate::db::past::time::changes::{ChangesBeginning, state_after};
use crate::db::past::time::cursor::{End, JournalCursor};
use crate::db::present::snapshot::Published;
use crate::db::write::changed::{RowChange, is_same};
use crate::db::write::rows::{Values, fitted, load, row_of, weight_of, weight_of_value};
use crate::db::write::window::Key;
use crate::db::write::window::LeftOut;
use crate::event::Event;
use crate::journal::Committed;
use crate::store::View;
use crate::{Error, Result};

/// How many bytes of values of one transaction are kept, about.
const ROOM: usize = 16 << 20;

/// What one transaction changed, field by field: see [`Snapshot::changed_fields`](crate::Snapshot::changed_fields).
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedFields {
    /// Its number.
    pub txid: Txid,
    /// Its time.
    pub time: Timestamp,
    /// Its comments, in order.
    pub comments: Vec<String>,
    /// The rows, each once, in the order in which they were first touched.
    pub rows: Vec<RowFields>,
    /// How many further rows it touched.
    pub left_out: u64,
}

/// Values of some fields, in the order of their numbers.
pub type FieldValues = Vec<(FieldNumber, Value)>;

/// The fields of one row that a transaction changed: all of them if it was inserted or deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct RowFields {
    /// Its table.
    pub table: TableNumber,
    /// The row.
    pub id: RowId,
    /// The values before; `None`: there was no such row.
    pub before: Option<FieldValues>,
    /// The values after; `None` if the row was deleted.
    pub after: Option<FieldValues>,
}

impl RowFields {
    /// Returns the approximate size of its values, in bytes.
    fn weight(&self) -> usize {
        let values = [&self.before, &self.after].into_iter().flatten().flatten();
        values.map(|(_, value)| weight_of_value(value)).sum()
    }

    /// Returns what differs of a row.
    fn of(table: &Table, RowChange { table: number, id, before, after }: RowChange) -> Self {
        let differs = |field: FieldNumber| {
            let value = |side: &Values| side.as_ref()?.get(field.0 as usize).cloned();
            match (value(&before), value(&after)) {
                (Some(before), Some(after)) => !is_same(before.as_ref(), after.as_ref()),
                _ => true,
            }
        };
        let differing: Vec<_> =
            table.fields.iter().map(|it| it.number).filter(|it| differs(*it)).collect();
        let part = |side: &Values| {
            let value = |field: &FieldNumber| side.as_ref()?.get(field.0 as usize).cloned();
            let part = differing.iter().map(|it| (*it, value(it).unwrap_or(Value::Null)));
            side.is_some().then(|| part.collect())
        };
        Self { table: number, id, before: part(&before), after: part(&after) }
    }
}

impl ChangedFields {
    pub(in crate::db) fn of(
        published: &Arc<Published>,
        txid: u64,
        wanted: Wanted,
    ) -> Result<Option<Self>> {
        if txid == 0 || txid > published.point.txid.0 {
            return Ok(None);
        }
        let (base, mut cursor, past) = match Source::of(published).beginning(txid - 1)? {
            Some(lazy::Beginning { base, since, schema, past }) => {
                (base, JournalCursor::at(since, schema), Some(past))
            }
            None => {
                let ChangesBeginning { base, cursor } = state_after(published, txid - 1)?;
                (base, cursor, None)
            }
        };
        let mut touched = TouchedRows::new(&published.view, wanted);
        let end = End { file: &published.file, position: published.point.position };
        cursor.read(&end, txid, u64::MAX, &mut touched)?;
        let Some((time, mut left_out)) = touched.ended else { return Ok(None) };
        let (mut rows, mut weight) = (Vec::with_capacity(touched.rows.len()), 0);
        for row in touched.rows {
            if weight > ROOM {
                left_out += 1;
                continue;
            }
            let found = row.differing(published.view.schema(), &base, past.as_deref())?;
            weight += found.as_ref().map_or(0, RowFields::weight);
            rows.extend(found);
        }
        Ok(Some(Self { txid: Txid(txid), time, comments: touched.comments, rows, left_out }))
    }
}

/// Which rows are wanted.
#[derive(Clone, Copy, Debug)]
pub(in crate::db) struct Wanted {
    /// Only rows of this table; `None`: of all tables.
    pub(in crate::db) table: Option<TableNumber>,
    /// The largest number of rows.
    pub(in crate::db) most: usize,
}

/// A row that the transaction touched.
struct TouchedRow {
    key: Key,
    /// True if its first event isn't an insertion.
    was_there: bool,
    after: After,
}

/// The values of a row after the events.
enum After {
    /// Only these fields were set.
    Fields(BTreeMap<FieldNumber, Value>),
    /// The whole row, if it was inserted, perhaps after a deletion; `None` if it was deleted.
    Row(Values),
}

impl TouchedRow {
    /// Returns the approximate size of its values, in bytes.
    fn weight(&self) -> usize {
        match &self.after {
            After::Fields(fields) => fields.values().map(weight_of_value).sum(),
            After::Row(row) => weight_of(row),
        }
    }

    /// Returns the fields that differ, if there are any.
    fn differing(
        self,
        present: &Schema,
        base: &View,
        past: Option<&PastState>,
    ) -> Result<Option<RowFields>> {
        let Self { key, was_there, after } = self;
        let (number, id) = key;
        let Some(table) = present.table(number) else { return Ok(None) };
        let whole = || Ok::<_, Error>(fitted(load(base, key)?, table));
        let fields = match after {
            After::Row(None) if !was_there => return Ok(None),
            After::Row(after) => {
                let before = if was_there { whole()? } else { None };
                let change = RowChange { table: number, id, before, after: fitted(after, table) };
                let fields = RowFields::of(table, change);
                let is_same = fields.before.as_ref().is_some_and(Vec::is_empty);
                return Ok((!is_same || fields.after.is_none()).then_some(fields));
            }
            After::Fields(fields) => fields,
        };
        let shown = fields.into_iter().filter_map(|(number, value)| {
            table.field(number).map(|field| (number, field.shown(value)))
        });
        let after: FieldValues = shown.collect();
        let wanted: Vec<_> = after.iter().map(|(number, _)| *number).collect();
        let before = match past.map(|past| past.fields(number, id, &wanted)) {
            Some(Ok(Some(before))) => before,
            // The history index can't answer: the values are those of the whole row.
            _ => {
                let row = whole()?.unwrap_or_default();
                let value = |it: &FieldNumber| row.get(it.0 as usize).cloned();
                wanted.iter().map(|it| value(it).unwrap_or(Value::Null)).collect()
            }
        };
        let both = wanted.into_iter().zip(before).zip(after);
        let (before, after): (FieldValues, FieldValues) = both
            .filter(|((_, before), (_, after))| !is_same(before.as_ref(), after.as_ref()))
            .unzip();
        let fields = RowFields { table: number, id, before: Some(before), after: Some(after) };
        Ok(fields.after.as_ref().is_some_and(|it| !it.is_empty()).then_some(fields))
    }
}

/// Takes the events of a transaction.
struct TouchedRows<'v> {
    present: &'v Schema,
    wanted: Wanted,
    rows: Vec<TouchedRow>,
    /// Where each row is in the list.
    places: HashMap<Key, usize>,
    /// Further rows.
    left_out: LeftOut,
    /// How many bytes the values were that the rows in the list were given.
    weight: usize,
    comments: Vec<String>,
    /// When the transaction was committed, and how many rows are left out.
    ended: Option<(Timestamp, u64)>,
}

impl<'v> TouchedRows<'v> {
    fn new(present: &'v View, wanted: Wanted) -> Self {
        Self {
            present: present.schema(),
            wanted,
            rows: Vec::new(),
            places: HashMap::new(),
            left_out: LeftOut::default(),
            weight: 0,
            comments: Vec::new(),
            ended: None,
        }
    }

    /// True if the rows of a table are wanted, and it is there at present.
    fn is_wanted(&self, table: TableNumber) -> bool {
        let is_wanted = self.wanted.table.is_none_or(|only| only == table);
        is_wanted && self.present.table(table).is_some()
    }

    /// Returns the row, which an event touches; `None` if it is left out.
    fn touch(&mut self, key: Key, is_insertion: bool) -> Option<&mut After> {
        let is_full = self.rows.len() >= self.wanted.most || self.weight > ROOM;
        let place = match self.places.entry(key) {
            Entry::Occupied(place) => *place.get(),
            Entry::Vacant(_) if is_full => {
                self.left_out.add(key.0, key.1, 1);
                return None;
            }
            Entry::Vacant(room) => {
                let after = After::Fields(BTreeMap::new());
                self.rows.push(TouchedRow { key, was_there: !is_insertion, after });
                *room.insert(self.rows.len() - 1)
            }
        };
        self.rows.get_mut(place).map(|row| &mut row.after)
    }

    /// Counts what a row in the list was given; leaves out the last ones, while there is no room.
    fn grow(&mut self, given: usize) {
        self.weight += given;
        if self.weight <= 2 * ROOM {
            return;
        }
        self.weight = self.rows.iter().map(TouchedRow::weight).sum();
        while self.weight > ROOM && self.rows.len() > 1 {
            let Some(row) = self.rows.pop() else { return };
            self.weight -= row.weight();
            self.places.remove(&row.key);
            self.left_out.add(row.key.0, row.key.1, 1);
            self.wanted.most = self.rows.len();
        }
    }

    fn set_row(&mut self, key: Key, row: Values) {
        let given = weight_of(&row);
        if let Some(after) = self.touch(key, row.is_some()) {
            *after = After::Row(row);
            self.grow(given);
        }
    }

    fn set_field(&mut self, table: &Table, id: RowId, field: FieldNumber, value: Value) {
        let given = weight_of_value(&value);
        match self.touch((table.number, id), false) {
            Some(After::Fields(fields)) => drop(fields.insert(field, value)),
            Some(After::Row(row)) => {
                let mut wide = fitted(row.take(), table).unwrap_or_default();
                if let Some(place) = wide.get_mut(field.0 as usize) {
                    *place = value;
                }
                *row = Some(wide);
            }
            None => return,
        }
        self.grow(given);
    }
}

impl Sink for TouchedRows<'_> {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        let of = |number| schema.table(number).filter(|_| self.is_wanted(number));
        let ids = |first: RowId, count| (first.0..first.0.saturating_add(count)).map(RowId);
        match *event {
            Event::Comment(comment) => self.comments.push(comment.to_owned()),
            Event::Insert { table, id, values } => {
                let Some(table) = of(table) else { return Ok(()) };
                let values = values.iter().map(|value| value.to_value());
                self.set_row((table.number, id), Some(row_of(table, values)));
            }
            Event::Update { table, id, field, value } => {
                let Some(table) = of(table) else { return Ok(()) };
                self.set_field(table, id, field, value.to_value());
            }
            Event::Delete { table, id } if of(table).is_some() => self.set_row((table, id), None),
            Event::InsertVector { table, id, count } => {
                let Some(table) = of(table) else { return Ok(()) };
                let zero = row_of(table, table.fields.iter().map(annals_schema::Field::zero_value));
                ids(id, count).for_each(|id| self.set_row((table.number, id), Some(zero.clone())));
            }
            Event::UpdateVector { table, id, field, values } => {
                let Some(table) = of(table) else { return Ok(()) };
                let Some(ty) = table.field(field).map(|field| field.ty) else { return Ok(()) };
                for (id, value) in ids(id, u64::MAX).zip(values.iter(ty)) {
                    self.set_field(table, id, field, value.to_value());
                }
            }
            Event::DeleteVector { table, id, count } if of(table).is_some() => {
                ids(id, count).for_each(|id| self.set_row((table, id), None));
            }
            _ => {}
        }
        Ok(())
    }

    fn commit(&mut self, _: &Schema, committed: &Committed) -> Result<()> {
        self.ended = Some((committed.time, self.left_out.count()));
        Ok(())
    }
}
