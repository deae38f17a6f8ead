//! What only a commit can check: enforced references, and unique keys.
//!
//! A committed enforced reference is never dangling. A transaction may leave one dangling for a while: it was set
//! before its row was inserted, or a row was deleted that `restrict` protects. That is noted in [`Doubts`], in
//! runs, and checked before the commit. So are the rows of a table that got a required reference, until it is set. Rows
//! that refer to one that is deleted are found by [`crate::deletion`].

use std::collections::HashMap;
use std::ops::Range;

use annals_schema::{Command, FieldNumber, OnDelete, Schema, TableNumber, Type, ValueRef};

use crate::Result;
use crate::columns::column::Column;
use crate::columns::fetched::Fetched;
use crate::row_runs::RowRuns;

/// An enforced reference to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Referrer {
    pub(super) table: TableNumber,
    pub(super) field: FieldNumber,
    pub(super) rule: OnDelete,
}

/// The changes of a transaction that may violate a constraint.
#[derive(Clone, Debug, Default)]
pub(super) struct Doubts {
    /// Numbers of unique indexes, and keys that a second row got.
    pub(super) keys: Vec<(usize, Box<[u8]>)>,
    /// Indexes with so many of them that all keys are doubtful.
    pub(super) indexes: Vec<usize>,
    /// References that were set to rows that weren't there, in the order in which that was noted.
    pub(super) set: RowRuns<(TableNumber, FieldNumber)>,
    /// Rows that were deleted and that `restrict` keeps if anything refers to them.
    pub(super) lost: RowRuns<TableNumber>,
    /// Required references that were added without a default.
    pub(super) unset: Vec<Unset>,
}

/// A new required reference, which has to be set in each row with an id before `end`.
#[derive(Clone, Debug)]
pub(super) struct Unset {
    pub(super) table: TableNumber,
    pub(super) field: FieldNumber,
    pub(super) end: u64,
    /// The rows in which it was set, or which were inserted with it.
    pub(super) filled: RowRuns<()>,
}

impl Doubts {
    /// True if there is nothing to check, as in most transactions.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.keys.is_empty()
            && self.indexes.is_empty()
            && self.set.runs().is_empty()
            && self.lost.runs().is_empty()
            && self.unset.is_empty()
    }

    /// Forgets all.
    #[inline]
    pub(super) fn clear(&mut self) {
        if !self.is_empty() {
            *self = Self::default();
        }
    }

    /// Records that rows have a field; `None`: all fields, since they are new.
    #[inline]
    pub(super) fn note_filled(
        &mut self,
        table: TableNumber,
        field: Option<FieldNumber>,
        ids: Range<u64>,
    ) {
        for unset in &mut self.unset {
            if unset.table == table && field.is_none_or(|field| unset.field == field) {
                unset.filled.add((), ids.clone());
            }
        }
    }
}

/// Returns the enforced references and their targets, in the order of their creation.
pub(super) fn referrers(schema: &Schema) -> Vec<(TableNumber, Referrer)> {
    let mut given: HashMap<TableNumber, u32> = HashMap::new();
    let mut referrers = Vec::new();
    for command in schema.commands() {
        let Command::AddField { table, ty, .. } = *command else { continue };
        let next = given.entry(table).or_default();
        let field = FieldNumber(*next);
        *next += 1;
        let is_there = schema.table(table).is_some_and(|table| table.field(field).is_some());
        if let Some((target, rule)) = target_of(ty).filter(|_| is_there) {
            referrers.push((target, Referrer { table, field, rule }));
        }
    }
    referrers
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
