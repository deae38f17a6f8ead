//! Further changes by a deletion: rows and fields that refer to deleted rows.
//!
//! All of them are found before anything is changed, and then passed to the transaction, which writes a separate
//! event for each. So the journal has all changes, and replay needs no rules. Taken as statements, in that order,
//! these changes make the same: when a row is deleted, nothing refers to it any more that a rule would change. So a
//! log can be run as a script.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use annals_schema::{FieldNumber, OnDelete, RowId, TableNumber, ValueRef};

use crate::Result;
use crate::btree;
use crate::change::single_row;
use crate::columns::column::Column;
use crate::enforcement::Reference;
use crate::index::key;
use crate::index::tree::IndexTree;
use crate::reference::{Doubts, Referrer, number_in, target_of};
use crate::{Store, View};

/// The changes of a deletion besides the requested rows.
#[derive(Debug, Default)]
pub struct Deletion {
    /// References that become null: of rows that stay, and of rows that are deleted after their target. Of the latter
    /// required ones refer to no row instead.
    pub nulls: Vec<(TableNumber, RowId, FieldNumber)>,
    /// Rows that are deleted too, before the requested ones, in this order.
    pub rows: Vec<(TableNumber, RowId)>,
}

/// A lookup in an index costs about as much as reading this many rows.
const LOOKUP: u64 = 16;

impl IndexTree {
    /// Returns the first row whose first field, the reference of a column, refers to a row.
    pub(super) fn first_referring(&self, column: &Column, to: u64) -> Result<Option<RowId>> {
        self.referring(column, to)?.next_with(|entry, _| key::id_of(entry))
    }

    /// Returns the entries of the rows whose first field, the reference of a column, refers to a row.
    fn referring(&self, column: &Column, to: u64) -> Result<btree::Range<'_>> {
        let mut low = Vec::new();
        self.encode(0, column.is_nullable(), ValueRef::Reference(RowId(to)), &mut low);
        let high = key::successor(low.clone());
        self.tree()?.range(&low, high.as_deref())
    }
}

/// Finds the rows that refer to others, in one statement.
#[derive(Debug, Default)]
struct Finder {
    /// For a field that was scanned: all its references, sorted, if they were needed again.
    /// A deep cascade would else scan the table for each step.
    known: HashMap<(TableNumber, FieldNumber), Option<Vec<Reference>>>,
}

impl Finder {
    /// Returns the rows that refer to some rows; `to` is sorted.
    fn referring(&mut self, view: &View, referrer: Referrer, to: &[u64]) -> Result<Vec<u64>> {
        let of = (referrer.table, referrer.field);
        let mut rows = Vec::new();
        let Some(from) = view.referring_column(of.0, of.1) else { return Ok(rows) };
        let few = to.len() as u64 <= from.table.rows.len() / LOOKUP + 1;
        if let Some(index) = from.index.filter(|_| few) {
            for &to in to {
                let mut entries = index.referring(from.column, to)?;
                while let Some(id) = entries.next_with(|entry, _| key::id_of(entry))? {
                    rows.push(id.0);
                }
            }
            return Ok(rows);
        }
        let all = from.table.references(from.column, 0..u64::MAX);
        let known = match self.known.entry(of) {
            Entry::Vacant(unknown) => {
                unknown.insert(None);
                let leads = |it: &Reference| to.binary_search(&it.to).is_ok();
                let rows = all.filter(|it| it.as_ref().map_or(true, leads));
                return rows.map(|it| Ok(it?.row)).collect();
            }
            Entry::Occupied(known) => known.into_mut(),
        };
        if known.is_none() {
            let mut all = all.collect::<Result<Vec<_>>>()?;
            all.sort_unstable();
            *known = Some(all);
        }
        let known = known.as_deref().unwrap_or_default();
        for &to in to {
            let from = known.partition_point(|it| it.to < to);
            let rest = known.get(from..).unwrap_or_default();
            rows.extend(rest.iter().take_while(|it| it.to == to).map(|it| it.row));
        }
        Ok(rows)
    }
}

impl View {
    /// Notes those of some rows that a commit must check once they are deleted, because other rows may refer to them:
    /// all if only a scan could decide that.
    fn keep(
        &self,
        doubts: &mut Doubts,
        referrer: Referrer,
        target: TableNumber,
        ids: &[u64],
    ) -> Result<()> {
        let from = self.referring_column(referrer.table, referrer.field);
        let index = from.and_then(|from| Some((from.index?, from.column)));
        for &id in ids {
            let may_lead = match index {
                Some((index, column)) => index.first_referring(column, id)?.is_some(),
                None => true,
            };
            if may_lead {
                doubts.lost.add(target, id..id + 1);
            }
        }
        Ok(())
    }

    /// Returns the enforced references to some rows of a table, whose ids are sorted: the table, row and field of
    /// each.
    ///
    /// Cost: as [`Store::plan_deletion`].
    #[doc(hidden)]
    pub fn referring(
        &self,
        target: TableNumber,
        ids: &[u64],
    ) -> Result<Vec<(TableNumber, RowId, FieldNumber)>> {
        let (mut finder, mut found) = (Finder::default(), Vec::new());
        let referrers =
            self.tables.get(target.0 as usize).map_or(&[][..], |table| &table.referrers);
        for referrer in referrers {
            let rows = finder.referring(self, *referrer, ids)?;
            found.extend(rows.into_iter().map(|row| (referrer.table, RowId(row), referrer.field)));
        }
        Ok(found)
    }
}

impl Store {
    /// True if an enforced reference may refer to rows of a table.
    #[doc(hidden)]
    #[inline]
    pub fn is_referred(&self, table: TableNumber) -> bool {
        let table = self.working.tables.get(table.0 as usize);
        table.is_some_and(|table| !table.referrers.is_empty())
    }

    /// Finds the further changes when rows with ids from `id` on are deleted, and notes the checks of the commit.
    /// Changes nothing.
    ///
    /// Cost: for each enforced reference to a table with deleted rows, a lookup for each of these rows in an index
    /// that begins with the reference. Without such an index it is a scan of the referring table, at most two in one
    /// statement.
    #[doc(hidden)]
    pub fn plan_deletion(&mut self, table: TableNumber, id: RowId, count: u64) -> Result<Deletion> {
        self.settle()?;
        self.check_there(table, id, count)?;
        let asked = id.0..id.0 + count;
        let mut gone = HashSet::new();
        let mut plan = Deletion::default();
        let mut finder = Finder::default();
        let mut steps = vec![(table, asked.clone().collect::<Vec<_>>())];
        while let Some((target, ids)) = steps.pop() {
            let Some(data) = self.working.tables.get(target.0 as usize) else { continue };
            if data.single {
                return Err(single_row(&self.working, target));
            }
            for referrer in &data.referrers {
                if referrer.rule == OnDelete::Restrict {
                    self.working.keep(&mut self.doubts, *referrer, target, &ids)?;
                    continue;
                }
                let rows = finder.referring(&self.working, *referrer, &ids)?;
                if referrer.rule == OnDelete::SetNull {
                    let null = |row| (referrer.table, RowId(row), referrer.field);
                    plan.nulls.extend(rows.into_iter().map(null));
                    continue;
                }
                let is_asked = |row| referrer.table == table && asked.contains(&row);
                let new = |&row: &u64| !is_asked(row) && gone.insert((referrer.table, row));
                let mut next: Vec<_> = rows.into_iter().filter(new).collect();
                next.sort_unstable();
                plan.rows.extend(next.iter().map(|&row| (referrer.table, RowId(row))));
                if !next.is_empty() {
                    steps.push((referrer.table, next));
                }
            }
        }
        plan.rows.reverse();
        let goes = |of, row| (of == table && asked.contains(&row)) || gone.contains(&(of, row));
        plan.nulls.retain(|&(of, row, _)| !goes(of, row.0));
        self.untangle(&mut plan, table, asked)?;
        Ok(plan)
    }

    /// Returns the value of a reference that leads nowhere: null, or of a required one, whose row is about to go, an id
    /// that its table hasn't given yet.
    #[doc(hidden)]
    #[must_use]
    pub fn reference_to_nothing(
        &self,
        table: TableNumber,
        field: FieldNumber,
    ) -> ValueRef<'static> {
        let column = self.working.referring_column(table, field).map(|from| from.column);
        let required = column.filter(|column| !column.takes_null());
        let target = required.and_then(|column| target_of(column.ty()));
        let target = target.and_then(|(target, _)| self.working.tables.get(target.0 as usize));
        target.map_or(ValueRef::Null, |target| {
            ValueRef::Reference(RowId(target.rows.next_id().min(RowId::MAX.0)))
        })
    }

    /// Makes null the references of rows that go to rows that go before them: as where rows refer to
    /// one another in a ring.
    fn untangle(&self, plan: &mut Deletion, table: TableNumber, asked: Range<u64>) -> Result<()> {
        let gone = plan.rows.iter().copied().zip(0_usize..);
        let places: HashMap<_, _> = gone.clone().collect();
        if places.is_empty() {
            return Ok(());
        }
        let asked = asked.map(|id| ((table, RowId(id)), usize::MAX));
        let mut nulls = Vec::new();
        for ((table, id), place) in gone.chain(asked) {
            let Some(data) = self.working.tables.get(table.0 as usize) else { continue };
            let Some(slot) = data.rows.find(id.0)? else { continue };
            for column in &data.columns {
                let Some((target, OnDelete::Cascade | OnDelete::SetNull)) = target_of(column.ty())
                else {
                    continue;
                };
                let to = number_in(column, slot)?;
                let before = to.and_then(|to| places.get(&(target, RowId(to))));
                if before.is_some_and(|&before| before < place) {
                    nulls.push((table, id, column.field()));
                }
            }
        }
        plan.nulls.extend(nulls);
        Ok(())
    }
}
