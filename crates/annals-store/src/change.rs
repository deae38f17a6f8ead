//! Changing rows: everything is checked first, then everything is changed.

use annals_schema::{FieldNumber, IndexNumber, RowId, TableNumber, Value, ValueRef, WideValue};

use crate::blobs::{Blobs, no_blob};
use crate::collation::ONLY_READ;
use crate::columns::column::Column;
use crate::columns::fetched::Fetched;
use crate::columns::strings::MAX_LEN;
use crate::index::key;
use crate::index::tree::IndexTree;
use crate::view::{no_row, no_table};
use crate::{Error, ErrorKind, Result, Violation};
use crate::{Store, Uniqueness, View};

/// A value that a field of a row is about to get.
pub(super) struct NewValue<'v> {
    /// The place of the field's column.
    pub(super) field: usize,
    pub(super) value: ValueRef<'v>,
}

impl Store {
    /// Inserts a row at a free id. On error nothing has changed, unless it is one of loading (`Io`,
    /// `Corrupt`): then all that is left is to roll back. So it is with every change.
    #[inline]
    pub fn insert(
        &mut self,
        table: TableNumber,
        id: RowId,
        values: &[ValueRef<'_>],
        uniqueness: Uniqueness,
    ) -> Result<()> {
        self.insert_row(table, id, values, Some(uniqueness))
    }

    /// Inserts a row; without `uniqueness`, unique indexes are not checked.
    pub(super) fn insert_row(
        &mut self,
        number: TableNumber,
        id: RowId,
        values: &[ValueRef<'_>],
        uniqueness: Option<Uniqueness>,
    ) -> Result<()> {
        let at = number.0 as usize;
        let Some(table) = self.working.tables.get_mut(at) else { return Err(no_table(number)) };
        let same_count = table.columns.len() == values.len();
        let blobs = &self.working.blobs;
        if !same_count || !table.columns.iter().zip(values).all(|(c, v)| fits(c, v, blobs)) {
            return Err(refused(&self.working, number, values));
        }
        if id <= RowId::MAX && table.is_appended(id.0) {
            self.begin_change();
            let Some(table) = self.working.tables.get_mut(at) else { return Err(no_table(number)) };
            let table = table.make_mut_of(|| self.previous.table(at));
            table.begin(&self.epoch);
            return table.append(values, &self.epoch);
        }
        self.insert_anywhere(number, id, values, uniqueness)
    }

    /// Inserts a row whose values were checked.
    fn insert_anywhere(
        &mut self,
        number: TableNumber,
        id: RowId,
        values: &[ValueRef<'_>],
        uniqueness: Option<Uniqueness>,
    ) -> Result<()> {
        let at = number.0 as usize;
        let table = self.working.tables.get(at).ok_or_else(|| no_table(number))?;
        if table.single {
            return Err(single_row(&self.working, number));
        }
        if id > RowId::MAX || table.rows.find(id.0)?.is_some() {
            return Err(bad_id(&self.working, number, id));
        }
        let (indexed, refers) = (!table.indexes.is_empty(), table.refers);
        self.checked.clear();
        if indexed && let Some(uniqueness) = uniqueness {
            self.check_new_keys(at, id, values, uniqueness)?;
        }
        self.begin_change();
        if let Some(table) = self.working.tables.get_mut(at) {
            let table = table.make_mut_of(|| self.previous.table(at));
            table.begin(&self.epoch);
            table.insert(id, values, &self.epoch)?;
        }
        if indexed {
            self.index_row(at, id, values)?;
        }
        if refers {
            self.doubts.note_filled(number, None, id.0..id.0 + 1);
        }
        if refers && uniqueness.is_some() {
            self.note_references(number, None, id.0..id.0 + 1, true)?;
        }
        Ok(())
    }

    /// Searches the keys of a new row in the unique indexes of its table.
    fn check_new_keys(
        &mut self,
        at: usize,
        id: RowId,
        values: &[ValueRef<'_>],
        uniqueness: Uniqueness,
    ) -> Result<()> {
        let suspects = self.doubts.keys.len();
        let Some(table) = self.working.tables.get(at) else { return Ok(()) };
        for &number in &table.indexes {
            let Some(index) = self.working.indexes.get(number) else { continue };
            if !index.unique || !index.key(table, |f| given(values, f), &mut self.key)? {
                continue;
            }
            let (holder, spot) = index.holder_or_spot(&self.key)?;
            let Some(holder) = holder else {
                if let Some(spot) = spot {
                    key::encode_id(&mut self.key, id);
                    self.checked.note(number, &self.key, spot);
                }
                continue;
            };
            if uniqueness == Uniqueness::AtOnce {
                self.doubts.keys.truncate(suspects);
                let key = key_values(index, |field| given(values, field))?;
                return Err(duplicate(&self.working, number, holder, None, key));
            }
            self.doubts.keys.push((number, self.key.as_slice().into()));
        }
        Ok(())
    }

    fn index_row(&mut self, at: usize, id: RowId, values: &[ValueRef<'_>]) -> Result<()> {
        let Self { working, previous, checked, owed, key, epoch, .. } = self;
        let View { tables, indexes, .. } = working;
        let Some(table) = tables.get(at) else { return Ok(()) };
        let may_owe = owed.begin_rows(1);
        for &number in &table.indexes {
            let Some(index) = indexes.get_mut(number) else { continue };
            if may_owe && !index.unique {
                index.key(table, |field| given(values, field), key)?;
                key::encode_id(key, id);
                owed.push(number, key);
                continue;
            }
            index.make_mut_of(|| previous.index(number));
            if let Some((entry, spot)) = checked.of(number) {
                index.make_mut().entries.insert_at(spot, entry, &[], epoch)?;
                continue;
            }
            index.key(table, |field| given(values, field), key)?;
            key::encode_id(key, id);
            index.make_mut().insert(key, epoch)?;
        }
        Ok(())
    }

    /// Sets one field of one row. A duplicate in a unique index is found by `check_unique`.
    pub fn update(
        &mut self,
        table: TableNumber,
        id: RowId,
        field: FieldNumber,
        value: ValueRef<'_>,
    ) -> Result<()> {
        self.update_row(table, id, field, value, true)
    }

    /// Sets one field; notes second rows with the same unique key if `watch` says so.
    pub(super) fn update_row(
        &mut self,
        number: TableNumber,
        id: RowId,
        field: FieldNumber,
        value: ValueRef<'_>,
        watch: bool,
    ) -> Result<()> {
        self.settle()?;
        let at = number.0 as usize;
        let table = self.working.tables.get(at).ok_or_else(|| no_table(number))?;
        let slot = table.rows.find(id.0)?.ok_or_else(|| no_row(&self.working, number, id))?;
        let place = table.place_of(field).ok_or_else(|| no_field(&self.working, number, field))?;
        if !table.columns.get(place).is_some_and(|c| fits(c, &value, &self.working.blobs)) {
            return Err(bad_value(&self.working, number, field, &value));
        }
        self.changed = true;
        if !table.indexes.is_empty() {
            self.reindex_row(at, id, slot, NewValue { field: place, value }, watch)?;
        }
        if let Some(table) = self.working.tables.get_mut(at) {
            let table = table.make_mut_of(|| self.previous.table(at));
            table.begin(&self.epoch);
            table.update(slot, place, value, &self.epoch)?;
        }
        let ids = id.0..id.0 + 1;
        // A known update fills a field, too: salvage checks the commit of those.
        self.doubts.note_filled(number, Some(field), ids.clone());
        if watch && matches!(value, ValueRef::Reference(_)) {
            self.note_references(number, Some(place), ids, true)?;
        }
        Ok(())
    }

    /// Moves the entries of a row that is about to get another value.
    pub(super) fn reindex_row(
        &mut self,
        at: usize,
        id: RowId,
        slot: usize,
        new: NewValue<'_>,
        watch: bool,
    ) -> Result<()> {
        let Self { working, previous, doubts, key, old_key, epoch, .. } = self;
        let View { tables, indexes, .. } = working;
        let Some(table) = tables.get(at) else { return Ok(()) };
        for &number in &table.indexes {
            let Some(index) = indexes.get_mut(number).filter(|i| i.fields.contains(&new.field))
            else {
                continue;
            };
            index.key(table, |f| table.value(f, slot), old_key)?;
            let value = |field: usize| match field == new.field {
                true => Ok(Fetched::Here(new.value)),
                false => table.value(field, slot),
            };
            let counts = index.key(table, value, key)?;
            if key == old_key {
                continue;
            }
            if watch && counts && index.holder(key)?.is_some() {
                doubts.keys.push((number, key.as_slice().into()));
            }
            key::encode_id(old_key, id);
            key::encode_id(key, id);
            index.make_mut_of(|| previous.index(number));
            index.make_mut().remove(old_key, epoch)?;
            index.make_mut().insert(key, epoch)?;
        }
        Ok(())
    }

    /// Deletes a row.
    pub fn delete(&mut self, number: TableNumber, id: RowId) -> Result<()> {
        self.settle()?;
        let at = number.0 as usize;
        let table = self.working.tables.get(at).ok_or_else(|| no_table(number))?;
        let slot = table.rows.find(id.0)?.ok_or_else(|| no_row(&self.working, number, id))?;
        if table.single {
            return Err(single_row(&self.working, number));
        }
        self.changed = true;
        let Self { working, previous, key, epoch, .. } = self;
        let View { tables, indexes, .. } = working;
        let Some(table) = tables.get_mut(at) else { return Ok(()) };
        for &number in &table.indexes {
            if let Some(index) = indexes.get_mut(number) {
                index.key(table, |field| table.value(field, slot), key)?;
                key::encode_id(key, id);
                index.make_mut_of(|| previous.index(number));
                index.make_mut().remove(key, epoch)?;
            }
        }
        let table = table.make_mut_of(|| previous.table(at));
        table.begin(epoch);
        table.delete(id, slot, epoch)
    }

    /// Fails (kind `Unsupported`) if an index is unavailable: it would miss the changes. To call before commit.
    ///
    /// # Errors
    /// The reason, with the name of the index.
    pub fn check_available(&self) -> Result<()> {
        let Some((_, reason)) = self.working.unavailable_indexes().next() else { return Ok(()) };
        Err(Error::new(ErrorKind::Unsupported, reason).within(ONLY_READ))
    }

    /// Fails if a constraint is violated that only the commit can check: kind `Unique` as
    /// [`check_unique`](Self::check_unique), else `Reference`, if an enforced reference that this transaction set, or
    /// whose row it deleted, is dangling.
    ///
    /// Cost: a lookup for each doubtful key and reference. For rows that `restrict` protects it is one in an index that
    /// begins with the reference; without one, a scan of the referring table.
    #[inline]
    pub fn check_constraints(&self) -> Result<()> {
        if self.doubts.is_empty() {
            return Ok(());
        }
        self.check_unique()?;
        self.check_references()
    }

    /// Fails (kind `Unique`) if keys that this transaction wrote are duplicates. To call before commit. Costs a
    /// lookup for each key that was a duplicate at some time in the transaction; with very many, a scan of the index.
    pub fn check_unique(&self) -> Result<()> {
        for &number in &self.doubts.indexes {
            self.check_whole_index(number)?;
        }
        for (number, key) in &self.doubts.keys {
            let Some(index) = self.working.indexes.get(*number) else { continue };
            if let Some((a, b)) = index.holders(key)? {
                return Err(same_key(&self.working, *number, a, b));
            }
        }
        Ok(())
    }
}

#[inline]
fn value_at<'v>(values: &[ValueRef<'v>], field: usize) -> ValueRef<'v> {
    values.get(field).copied().unwrap_or(ValueRef::Null)
}

/// Returns a value of a new row, in the form of an existing one.
#[inline]
#[expect(clippy::unnecessary_wraps, reason = "a row that is there may have to be loaded")]
fn given<'v>(values: &[ValueRef<'v>], field: usize) -> Result<Fetched<'v>> {
    Ok(Fetched::Here(value_at(values, field)))
}

#[inline]
pub(super) fn fits(column: &Column, value: &ValueRef<'_>, blobs: &Blobs) -> bool {
    column.accepts(value)
        && match value {
            ValueRef::String(text) => text.len() <= MAX_LEN,
            ValueRef::Bytes(bytes) => bytes.len() <= MAX_LEN,
            _ => blobs.allows(value),
        }
}

/// Makes the error for a key that a row has, and that another one would have too.
#[cold]
fn duplicate(
    view: &View,
    number: usize,
    row: RowId,
    other: Option<RowId>,
    key: Vec<Value>,
) -> Error {
    let schema = u32::try_from(number).ok().and_then(|n| view.schema.index(IndexNumber(n)));
    let index = schema.map_or("?", |index| &index.name).to_owned();
    let table = schema.map_or("?", |index| view.table_name(index.table)).to_owned();
    let texts: Vec<_> = key.iter().map(|value| shown(&value.as_ref())).collect();
    let texts = texts.join(", ");
    let message = match other {
        Some(other) => format!(
            "index `{index}`: {texts} is the key of rows {} and {}; keys of a unique index must be distinct",
            row.0, other.0
        ),
        None => format!(
            "index `{index}`: {texts} is the key of row {} already; keys of a unique index must be distinct",
            row.0
        ),
    };
    Error::violating(Violation::Unique { index, table, row, other, key }, message)
}

/// Makes the error for two rows that have the same key; or says why they can't be shown.
#[cold]
pub(super) fn same_key(view: &View, number: usize, a: RowId, b: RowId) -> Error {
    match key_of(view, number, a) {
        Ok(key) => duplicate(view, number, a, Some(b), key),
        Err(error) => error,
    }
}

/// Returns the key of a row.
fn key_of(view: &View, number: usize, id: RowId) -> Result<Vec<Value>> {
    let Some(index) = view.indexes.get(number) else { return Ok(Vec::new()) };
    let Some(table) = view.tables.get(index.table) else { return Ok(Vec::new()) };
    match table.rows.find(id.0)? {
        Some(slot) => key_values(index, |field| table.value(field, slot)),
        None => Ok(Vec::new()),
    }
}

fn key_values<'v>(
    index: &IndexTree,
    value: impl Fn(usize) -> Result<Fetched<'v>>,
) -> Result<Vec<Value>> {
    index.fields.iter().map(|&field| Ok(value(field)?.as_ref().to_value())).collect()
}

/// Writes a value for people, at most about a hundred bytes of it.
pub(super) fn shown(value: &ValueRef<'_>) -> String {
    match value.widen() {
        WideValue::Null => "null".to_owned(),
        WideValue::Bool(v) => v.to_string(),
        WideValue::Integer(v) => v.to_string(),
        WideValue::Timestamp(v) => v.to_string(),
        WideValue::Written(v) => v.to_string(),
        WideValue::Float32(v) => v.to_string(),
        WideValue::Float64(v) => v.to_string(),
        WideValue::Blob(v) => format!("blob:{}", v.0),
        WideValue::Reference(v) => v.0.to_string(),
        WideValue::Bytes(v) => format!("{} bytes", v.len()),
        WideValue::String(v) if v.len() <= 100 => format!("{v:?}"),
        WideValue::String(v) => {
            let end = (0..=100).rev().find(|&at| v.is_char_boundary(at)).unwrap_or(0);
            format!("{:?}..", v.get(..end).unwrap_or_default())
        }
    }
}

#[cold]
fn refused(view: &View, number: TableNumber, values: &[ValueRef<'_>]) -> Error {
    let table = view.schema.table(number);
    let count = table.map_or(0, |table| table.fields.len());
    if count != values.len() {
        let (name, given) = (view.table_name(number), values.len());
        return Error::invalid(format!(
            "table `{name}` has {count} fields, but {given} values were given"
        ));
    }
    let columns = view.tables.get(number.0 as usize).map_or(&[][..], |table| &table.columns);
    let bad = columns.iter().zip(values).position(|(c, value)| !fits(c, value, &view.blobs));
    let place = bad.unwrap_or_default();
    let field = columns.get(place).map_or(FieldNumber(u32::MAX), Column::field);
    bad_value(view, number, field, &value_at(values, place))
}

#[cold]
pub(super) fn bad_value(
    view: &View,
    number: TableNumber,
    field: FieldNumber,
    value: &ValueRef<'_>,
) -> Error {
    let Some(field) = view.field(number, field) else {
        return Error::invalid("there is no such field");
    };
    let what = if let Some(what) = no_blob(value).filter(|_| field.accepts(*value)) {
        what
    } else if field.accepts(*value) {
        "the value is longer than 1 GiB".to_owned()
    } else if matches!(value, ValueRef::Null) {
        "it may not be null".to_owned()
    } else {
        format!("{} is not a value of type {}", shown(value), field.ty)
    };
    Error::invalid(format!("table `{}`, field `{}`: {what}", view.table_name(number), field.name))
}

#[cold]
pub(super) fn bad_id(view: &View, number: TableNumber, id: RowId) -> Error {
    let name = view.table_name(number);
    if id > RowId::MAX {
        let max = RowId::MAX.0;
        return Error::invalid(format!("table `{name}`: {} is no id, the largest is {max}", id.0));
    }
    Error::new(ErrorKind::InUse, format!("table `{name}` has a row {} already", id.0))
}

/// Returns the error that a table would have no row, or two, and always has one.
#[cold]
pub(super) fn single_row(view: &View, number: TableNumber) -> Error {
    let name = view.table_name(number);
    Error::invalid(format!(
        "table `{name}` always has exactly one row: set its fields, or say `set_single_row {name} \
         false` first"
    ))
}

#[cold]
pub(super) fn no_field(view: &View, number: TableNumber, field: FieldNumber) -> Error {
    let name = view.table_name(number);
    Error::new(ErrorKind::NotFound, format!("table `{name}` has no field number {}", field.0))
}
