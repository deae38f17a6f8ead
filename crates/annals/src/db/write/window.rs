//! The rows whose changes are collected: the first ones by table and id, as many as there is room for.

use std::ops::Range;

use annals_schema::{RowId, TableNumber};

use crate::db::write::touched::Touched;

/// A row of a table.
pub(in crate::db) type Key = (TableNumber, RowId);

/// So many runs of rows that are left out are known apart: 24 MiB of them.
const MOST_RUNS: usize = 1 << 20;

/// Rows of a table, or of all, from one on.
#[derive(Debug)]
pub(in crate::db) struct Window {
    only: Option<TableNumber>,
    from: Key,
    /// The first row that there was no room for.
    bound: Option<Key>,
    /// How many bytes the changes may take, about.
    room: usize,
    /// The touched rows that there was no room for, if they are to be counted.
    left_out: Option<LeftOut>,
}

impl Window {
    /// Has all rows, however many.
    pub(in crate::db) const fn all() -> Self {
        Self::from((TableNumber(0), RowId(0)), None, usize::MAX)
    }

    /// Has the rows of a table, or of all, from one on, as far as there is room.
    pub(in crate::db) const fn from(from: Key, only: Option<TableNumber>, room: usize) -> Self {
        Self { only, from, bound: None, room, left_out: None }
    }

    /// Has the rows that there is room for, and counts the others.
    pub(in crate::db) fn of(room: usize) -> Self {
        Self { room, left_out: Some(LeftOut::default()), ..Self::all() }
    }

    pub(in crate::db) const fn room(&self) -> usize {
        self.room
    }

    /// Returns the first row that there was no room for.
    pub(in crate::db) const fn bound(&self) -> Option<Key> {
        self.bound
    }

    /// Returns how many touched rows there was no room for.
    pub(in crate::db) fn left_out(&mut self) -> u64 {
        self.left_out.as_mut().map_or(0, LeftOut::count)
    }

    /// Has all rows again that there is room for.
    pub(in crate::db) fn widen(&mut self) {
        self.bound = None;
        self.left_out = self.left_out.take().map(|_| LeftOut::default());
    }

    /// Ends before a row; those from there on that were touched are left out.
    pub(in crate::db) fn narrow(&mut self, bound: Key, touched: impl Iterator<Item = Key>) {
        self.bound = Some(bound);
        if let Some(left_out) = &mut self.left_out {
            touched.filter(|key| *key >= bound).for_each(|(table, id)| left_out.add(table, id, 1));
        }
    }

    /// True if a touched row is in it.
    pub(in crate::db) fn take(&mut self, (table, id): Key) -> bool {
        !self.clip(table, id, 1).is_empty()
    }

    /// Returns the ids of a run of touched rows that are in it.
    pub(in crate::db) fn clip(&mut self, table: TableNumber, id: RowId, count: u64) -> Range<u64> {
        let (mut first, end) = (id.0, id.0.saturating_add(count));
        if self.only.is_some_and(|only| only != table) || (table, RowId(end)) <= self.from {
            return end..end;
        }
        if table == self.from.0 {
            first = first.max(self.from.1.0);
        }
        let within = match self.bound {
            Some((last, bound)) if table == last => end.min(bound.0).max(first),
            Some((last, _)) if table > last => first,
            _ => end,
        };
        if let Some(left_out) = self.left_out.as_mut().filter(|_| within < end) {
            left_out.add(table, RowId(within), end - within);
        }
        first..within
    }
}

/// Touched rows that are only counted.
#[derive(Debug, Default)]
pub(in crate::db) struct LeftOut {
    runs: Touched,
    /// How many there were when they became too many to be known apart: one that is touched later is counted again.
    more: u64,
}

impl LeftOut {
    pub(in crate::db) fn add(&mut self, table: TableNumber, first: RowId, count: u64) {
        self.runs.add(table, first, count);
        if self.runs.len() > MOST_RUNS {
            self.more += std::mem::take(&mut self.runs).count();
        }
    }

    pub(in crate::db) fn count(&mut self) -> u64 {
        self.more + self.runs.count()
    }
}
