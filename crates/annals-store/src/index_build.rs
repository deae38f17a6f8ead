//! Entries of a run of rows: inserted into an index, or removed, in the order of their keys.

use std::ops::Range;

use annals_schema::{RowId, ValueRef};

use crate::Result;
use crate::change::same_key;
use crate::columns::fetched::Fetched;
use crate::entries::Entries;
use crate::index::key;
use crate::index::tree::IndexTree;
use crate::pages::cells::place;
use crate::{Store, View};

/// How many rows' keys are made and sorted at a time: the memory for that doesn't grow with the run.
const SORTED: u64 = 1 << 16;

/// So many keys of an index may be suspect, or a sixteenth of all, before the index as a whole is.
const SUSPECTS: usize = 1024;

/// Returns the key of an entry.
fn key_of(entry: &[u8]) -> &[u8] {
    entry.get(..entry.len().saturating_sub(8)).unwrap_or_default()
}

impl Store {
    /// Adds the entries of rows to the indexes of their table, or to those on one field (its place);
    /// notes second rows with the same unique key if `watch` says so.
    pub(crate) fn index_run(
        &mut self,
        at: usize,
        ids: Range<u64>,
        field: Option<usize>,
        watch: bool,
    ) -> Result<()> {
        let mut entries = Entries::default();
        let Self { working, doubts, owed, epoch, key, .. } = self;
        let View { tables, indexes, .. } = working;
        let Some(table) = tables.get(at) else { return Ok(()) };
        let is_short = ids.end.saturating_sub(ids.start) < SORTED;
        let may_owe = field.is_none() && is_short && owed.begin_rows(ids.end - ids.start);
        for &number in &table.indexes {
            let Some(index) = concerned(indexes.get_mut(number), field) else { continue };
            if may_owe && !index.unique {
                owed.collect(index, table, ids.clone(), key)?;
                continue;
            }
            let mut watched = watch && index.unique && !doubts.indexes.contains(&number);
            let mut is_noted = false;
            for first in ids.clone().step_by(place(SORTED)) {
                entries.fill(index, table, first..ids.end.min(first + SORTED), key)?;
                let mut last: &[u8] = &[];
                for (entry, counts) in entries.iter() {
                    let key = key_of(entry);
                    if watched && counts && (key == key_of(last) || index.holder(key)?.is_some()) {
                        let known =
                            doubts.keys.last().is_some_and(|(n, k)| (*n, &**k) == (number, key));
                        if !known {
                            doubts.keys.push((number, key.into()));
                            is_noted = true;
                        }
                    }
                    last = entry;
                }
                let index = index.make_mut();
                let mut keys = entries.iter().map(|(entry, _)| entry).peekable();
                while keys.peek().is_some() {
                    index.entries.merge_next(&mut keys, epoch)?;
                }
                // Notes of earlier calls count: one transaction may set its rows a few at a time.
                let noted = if is_noted { doubts.keys.len() } else { 0 };
                if noted > SUSPECTS && noted as u64 * 16 > table.rows.len() {
                    doubts.keys.retain(|(suspect, _)| *suspect != number);
                    doubts.indexes.push(number);
                    (watched, is_noted) = (false, false);
                }
            }
        }
        Ok(())
    }

    /// Adds the entries of rows, given the values of each column, in the order of the rows.
    pub(super) fn index_columns(
        &mut self,
        at: usize,
        first: RowId,
        count: u64,
        columns: &[Vec<ValueRef<'_>>],
    ) -> Result<()> {
        let Self { working, previous, owed, key, epoch, .. } = self;
        let View { tables, indexes, .. } = working;
        let Some(table) = tables.get(at) else { return Ok(()) };
        let may_owe = owed.begin_rows(count);
        for &number in &table.indexes {
            let Some(index) = indexes.get_mut(number) else { continue };
            let owes = may_owe && !index.unique;
            if !owes {
                index.make_mut_of(|| previous.index(number));
            }
            for row in 0..count {
                let value = |field: usize| {
                    let values = columns.get(field).and_then(|column| column.get(place(row)));
                    Ok(Fetched::Here(values.copied().unwrap_or(ValueRef::Null)))
                };
                index.key(table, value, key)?;
                key::encode_id(key, RowId(first.0 + row));
                if owes {
                    owed.push(number, key);
                } else {
                    index.make_mut().insert(key, epoch)?;
                }
            }
        }
        Ok(())
    }

    /// Removes the entries of rows from the indexes of their table, or from those on one field.
    pub(crate) fn unindex_run(
        &mut self,
        at: usize,
        ids: Range<u64>,
        field: Option<usize>,
    ) -> Result<()> {
        let mut entries = Entries::default();
        let Self { working, epoch, key, .. } = self;
        let View { tables, indexes, .. } = working;
        let Some(table) = tables.get(at) else { return Ok(()) };
        for &number in &table.indexes {
            let Some(index) = concerned(indexes.get_mut(number), field) else { continue };
            for first in ids.clone().step_by(place(SORTED)) {
                entries.fill(index, table, first..ids.end.min(first + SORTED), key)?;
                for (entry, _) in entries.iter() {
                    index.make_mut().remove(entry, epoch)?;
                }
            }
        }
        Ok(())
    }

    /// Fails if any two rows have the same key in a unique index. Walks over it.
    pub(crate) fn check_whole_index(&self, number: usize) -> Result<()> {
        let Some(index) = self.working.indexes.get(number) else { return Ok(()) };
        let Some(table) = self.working.tables.get(index.table) else { return Ok(()) };
        let mut key = Vec::new();
        let mut last: Vec<u8> = Vec::new();
        let mut entries = index.tree()?.range(&[], None)?;
        let mut next = |entry: &[u8], _: &[u8]| {
            // Every entry ends with an id, so that none is empty but the one before the first.
            let is_second = !last.is_empty() && key_of(&last) == key_of(entry);
            let pair = is_second.then(|| (key::id_of(&last), key::id_of(entry)));
            last.clear();
            last.extend_from_slice(entry);
            pair
        };
        while let Some(pair) = entries.next_with(&mut next)? {
            let Some((a, b)) = pair else { continue };
            let Some(slot) = table.rows.find(b.0)? else { continue };
            if index.key(table, |field| table.value(field, slot), &mut key)? {
                return Err(same_key(&self.working, number, a, b));
            }
        }
        Ok(())
    }
}

type Shared = crate::pages::unique::NoWeak<IndexTree>;

fn concerned(index: Option<&mut Shared>, field: Option<usize>) -> Option<&mut Shared> {
    index.filter(|index| field.is_none_or(|field| index.fields.contains(&field)))
}

#[cfg(test)]
mod tests;
