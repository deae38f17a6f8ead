//! Enforced references: the checks of a commit.
//!
//! A committed enforced reference is never dangling. A transaction may leave one dangling for a while: it was set
//! before its row was inserted, or a row was deleted that `restrict` protects. That is noted as a [`Doubts`], in
//! runs, and checked before the commit. So are the rows of a table that got a required reference, until it is set. Rows
//! that refer to one that is deleted are found by [`crate::deletion`].

use std::collections::BTreeMap;
use std::ops::Range;

use annals_schema::{FieldNumber, OnDelete, TableNumber, Type, ValueRef};

use crate::Result;
use crate::columns::column::Column;
use crate::columns::fetched::Fetched;

/// An enforced reference to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Referrer {
    pub(super) table: TableNumber,
    pub(super) field: FieldNumber,
    pub(super) rule: OnDelete,
}

/// Consecutive ids of rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdRun {
    pub(super) first: u64,
    pub(super) end: u64,
}

/// The actions of a transaction that may leave an enforced reference dangling.
#[derive(Clone, Debug, Default)]
pub(super) struct Doubts {
    /// References that were set to rows that weren't there.
    pub(super) set: Vec<(TableNumber, FieldNumber, IdRun)>,
    /// Rows that were deleted and that `restrict` keeps if anything refers to them.
    pub(super) lost: Vec<(TableNumber, IdRun)>,
    /// Required references that were added without a default, and the rows in which they aren't set yet.
    pub(super) unset: Vec<Unset>,
}

/// A new required reference, and the runs of rows in which it isn't set yet: their ends, by their beginnings.
#[derive(Clone, Debug)]
pub(super) struct Unset {
    pub(super) table: TableNumber,
    pub(super) field: FieldNumber,
    pub(super) runs: BTreeMap<u64, u64>,
}

/// How many of the last notes are searched for one that has the row or ends before it: more than a table usually has
/// references.
const OPEN_RUNS: usize = 4;

impl Doubts {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn note_set(&mut self, table: TableNumber, field: FieldNumber, ids: Range<u64>) {
        for (of, on, run) in self.set.iter_mut().rev().take(OPEN_RUNS) {
            // A run that was set twice, or a part of it, is checked once.
            let touches = run.first <= ids.start && ids.start <= run.end;
            if (*of, *on) == (table, field) && touches {
                run.end = run.end.max(ids.end);
                return;
            }
        }
        self.set.push((table, field, IdRun { first: ids.start, end: ids.end }));
    }

    /// Records that rows have a field; `None`: all fields, since they are new.
    #[inline]
    pub(super) fn note_filled(
        &mut self,
        table: TableNumber,
        field: Option<FieldNumber>,
        ids: Range<u64>,
    ) {
        if !self.unset.is_empty() {
            let is_meant =
                |it: &&mut Unset| it.table == table && field.is_none_or(|field| it.field == field);
            self.unset.iter_mut().filter(is_meant).for_each(|unset| unset.fill(&ids));
        }
    }

    /// Records that rows were deleted.
    pub(super) fn note_lost(&mut self, table: TableNumber, first: u64, count: u64) {
        match self.lost.last_mut() {
            Some((of, run)) if *of == table && run.end == first => run.end += count,
            Some((of, run)) if *of == table && run.first == first + count => run.first = first,
            _ => self.lost.push((table, IdRun { first, end: first + count })),
        }
    }
}

impl Unset {
    fn fill(&mut self, ids: &Range<u64>) {
        while let Some((&first, &end)) = self.runs.range(..ids.end).next_back() {
            if end <= ids.start {
                return;
            }
            self.runs.remove(&first);
            for (first, end) in [(first, ids.start), (ids.end, end)] {
                if first < end {
                    self.runs.insert(first, end);
                }
            }
        }
    }
}

/// Returns the target of an enforced reference, and its rule.
pub(super) const fn target_of(ty: Type) -> Option<(TableNumber, OnDelete)> {
    match ty {
        Type::Reference(target, rule) if rule.is_enforced() => Some((target, rule)),
        _ => None,
    }
}

/// Returns the number of a reference's target.
#[inline]
pub(super) fn number_in(column: &Column, slot: usize) -> Result<Option<u64>> {
    match column.get(slot)? {
        Fetched::Here(ValueRef::Reference(id)) => Ok(Some(id.0)),
        _ => Ok(None),
    }
}
