//! Enforcing references: checking those that a transaction may have left dangling.

use std::ops::Range;

use annals_schema::{Command, FieldNumber, OnDelete, RowId, TableNumber, Uuid, Value, ValueRef};

use crate::columns::column::Column;
use crate::pages::cells::place;
use crate::reference::{IdRun, Referrer, Unset, number_in, target_of};
use crate::table::Table;
use crate::{Error, Result, Store, View, Violation};

impl View {
    pub(super) fn has_row(&self, table: TableNumber, id: u64) -> Result<bool> {
        match self.tables.get(table.0 as usize) {
            Some(table) => Ok(table.rows.find(id)?.is_some()),
            None => Ok(false),
        }
    }

    pub(super) fn referring_column(
        &self,
        table: TableNumber,
        field: FieldNumber,
    ) -> Option<(&Table, &Column)> {
        let table = self.tables.get(table.0 as usize)?;
        Some((table, table.column(field)?))
    }
}

/// A dangling reference.
#[derive(Clone, Copy, Debug)]
struct Loose {
    table: TableNumber,
    field: FieldNumber,
    row: Option<u64>,
    target: TableNumber,
    target_row: u64,
}

impl Loose {
    fn field_name(self, view: &View) -> &str {
        let field = view.schema.table(self.table).and_then(|table| table.field(self.field));
        field.map_or("?", |field| &field.name)
    }

    fn violation(self, view: &View) -> Violation {
        let name = |table| view.table_name(table).to_owned();
        Violation::Reference {
            table: name(self.table),
            row: self.row.map(RowId),
            field: self.field_name(view).to_owned(),
            target: name(self.target),
            target_row: RowId(self.target_row),
        }
    }

    /// Makes the error of a reference that was set.
    #[cold]
    fn set(self, view: &View) -> Error {
        let (table, target) = (view.table_name(self.table), view.table_name(self.target));
        let field = self.field_name(view);
        let (row, id) = (self.row.unwrap_or_default(), self.target_row);
        let message = format!(
            "table `{table}`, row {row}: field `{field}` would lead to row {id} of `{target}`, which isn't \
             there; insert that row, or change or delete this one"
        );
        Error::violating(self.violation(view), message)
    }

    /// Makes the error of deleting the target of a reference.
    #[cold]
    fn lost(self, view: &View) -> Error {
        let (table, target) = (view.table_name(self.table), view.table_name(self.target));
        let (row, id) = (self.row.unwrap_or_default(), self.target_row);
        let message = format!(
            "cannot delete row {id} of `{target}`: row {row} of `{table}` refers to it (restrict); delete \
             that row first"
        );
        Error::violating(self.violation(view), message)
    }
}

impl Store {
    /// Records, for the commit to check, the references of an inserted row to rows that don't exist.
    pub(super) fn note_references_of(&mut self, number: TableNumber, id: RowId) -> Result<()> {
        let Self { working, doubts, .. } = self;
        let Some(table) = working.tables.get(number.0 as usize) else { return Ok(()) };
        let Some(slot) = table.rows.find(id.0)? else { return Ok(()) };
        for column in &table.columns {
            if let Some((target, _)) = target_of(column.ty())
                && let Some(to) = number_in(column, slot)?
                && !working.has_row(target, to)?
            {
                doubts.note_set(number, column.field(), id.0..id.0 + 1);
            }
        }
        Ok(())
    }

    /// Records, for the commit to check, a reference that was set, if it is enforced and its row doesn't exist.
    #[inline]
    pub(super) fn note_reference(
        &mut self,
        table: TableNumber,
        field: FieldNumber,
        place: usize,
        ids: Range<u64>,
        value: ValueRef<'_>,
    ) -> Result<()> {
        if let ValueRef::Reference(to) = value
            && let Some(target) = self.target_at(table, place)
            && !self.working.has_row(target, to.0)?
        {
            self.doubts.note_set(table, field, ids);
        }
        Ok(())
    }

    /// Records a run of references that was set, if they are enforced: the commit checks each.
    pub(super) fn note_run(
        &mut self,
        table: TableNumber,
        field: FieldNumber,
        place: usize,
        ids: Range<u64>,
    ) {
        if self.target_at(table, place).is_some() {
            self.doubts.note_set(table, field, ids);
        }
    }

    /// Records the rows that a new required reference without a default must be set in, for the commit to check.
    pub(super) fn note_unset(&mut self, command: &Command) {
        let Command::AddField { table: number, ty, nullable: false, default: None, .. } = *command
        else {
            return;
        };
        let Some(table) = self.working.tables.get(number.0 as usize) else { return };
        if let Some(column) = table.columns.last()
            && target_of(ty).is_some()
            && !column.takes_null()
            && table.rows.len() > 0
        {
            let (field, runs) = (column.field(), [(0, table.rows.next_id())].into());
            self.doubts.unset.push(Unset { table: number, field, runs });
        }
    }

    /// Records the required references of new rows of zero values, if they are enforced: the commit checks each.
    pub(super) fn note_zeros(&mut self, number: TableNumber, ids: &Range<u64>) {
        let Self { working, doubts, .. } = self;
        let Some(table) = working.tables.get(number.0 as usize).filter(|table| table.refers) else {
            return;
        };
        for column in table.columns.iter().filter(|column| !column.takes_null()) {
            if target_of(column.ty()).is_some() {
                doubts.note_set(number, column.field(), ids.clone());
            }
        }
    }

    fn target_at(&self, table: TableNumber, place: usize) -> Option<TableNumber> {
        let table = self.working.tables.get(table.0 as usize)?;
        target_of(table.columns.get(place)?.ty()).map(|(target, _)| target)
    }

    /// Fails (kind `Reference`) if an enforced reference that this transaction set, or whose row it deleted, is
    /// dangling. To call before commit. Costs a lookup for each doubtful one. For rows that `restrict` protects it is
    /// one in an index that begins with the reference; without one, a scan of the referring table.
    pub fn check_references(&self) -> Result<()> {
        for &(table, field, run) in &self.doubts.set {
            self.check_set(table, field, run)?;
        }
        for unset in &self.doubts.unset {
            self.check_filled(unset)?;
        }
        let mut lost = self.doubts.lost.clone();
        lost.sort_unstable_by_key(|(table, run)| (*table, run.first));
        for of_table in lost.chunk_by(|a, b| a.0 == b.0) {
            let Some(&(number, _)) = of_table.first() else { continue };
            let Some(table) = self.working.tables.get(number.0 as usize) else { continue };
            let restricting = table.referrers.iter().filter(|r| r.rule == OnDelete::Restrict);
            for referrer in restricting {
                self.check_lost(number, of_table, *referrer)?;
            }
        }
        Ok(())
    }

    /// Checks references of rows that may be deleted meanwhile.
    fn check_set(&self, table: TableNumber, field: FieldNumber, run: IdRun) -> Result<()> {
        let view = &self.working;
        let Some((data, column)) = view.referring_column(table, field) else { return Ok(()) };
        let Some((target, _)) = target_of(column.ty()) else { return Ok(()) };
        let mut id = run.first;
        while let Some(first) = data.rows.first_in(id, run.end - id)? {
            let Some((slot, len)) = data.rows.run_at(first, run.end - first)? else { break };
            for (row, slot) in (first..).zip(slot..slot + place(len)) {
                if let Some(to) = number_in(column, slot)?
                    && !view.has_row(target, to)?
                {
                    let loose = Loose { table, field, row: Some(row), target, target_row: to };
                    return Err(loose.set(view));
                }
            }
            id = first + len;
        }
        Ok(())
    }

    /// Checks that a new required reference was set in all rows that are still there.
    fn check_filled(&self, Unset { table, field, runs }: &Unset) -> Result<()> {
        let view = &self.working;
        let Some((data, _)) = view.referring_column(*table, *field) else { return Ok(()) };
        for (&first, &end) in runs {
            if let Some(id) = data.rows.first_in(first, end - first)? {
                let of_table = view.schema.table(*table);
                let name =
                    of_table.and_then(|table| table.field(*field)).map_or("?", |it| &it.name);
                return Err(Error::invalid(format!(
                    "row {id} of `{}` has no `{name}`, which is required: set it in each row, by a `custom` below \
                     the line that adds it, or give it a default",
                    view.table_name(*table)
                )));
            }
        }
        Ok(())
    }

    /// Finds references to rows of a table that were deleted.
    fn check_lost(
        &self,
        target: TableNumber,
        lost: &[(TableNumber, IdRun)],
        referrer: Referrer,
    ) -> Result<()> {
        let view = &self.working;
        let Referrer { table, field, .. } = referrer;
        let Some((data, column)) = view.referring_column(table, field) else { return Ok(()) };
        if let Some(index) = view.index_by(table, field) {
            for id in lost.iter().flat_map(|(_, run)| run.first..run.end) {
                if !view.has_row(target, id)?
                    && let Some(row) = index.first_referring(column, id)?
                {
                    let row = Some(row.0);
                    return Err(Loose { table, field, row, target, target_row: id }.lost(view));
                }
            }
            return Ok(());
        }
        for row in data.rows.iter() {
            let (row, slot) = row?;
            let Some(to) = number_in(column, slot)? else { continue };
            // If the reference itself isn't in doubt, only a row that this transaction deleted can be missing, and
            // that was checked before.
            if !view.has_row(target, to)? {
                let row = Some(row.0);
                return Err(Loose { table, field, row, target, target_row: to }.lost(view));
            }
        }
        Ok(())
    }

    /// Adds the last field of a table to the referrers of its target.
    pub(super) fn note_referrer(&mut self, table: TableNumber) {
        let owner = self.working.tables.get(table.0 as usize);
        let Some(column) = owner.and_then(|owner| owner.columns.last()) else { return };
        let Some((target, rule)) = target_of(column.ty()) else { return };
        let referrer = Referrer { table, field: column.field(), rule };
        if let Some(target) = self.working.tables.get_mut(target.0 as usize) {
            target.make_mut().referrers.push(referrer);
        }
    }

    /// Forgets the enforced references of a table, or of one field of it, which is about to go.
    pub(super) fn forget_referrers(&mut self, table: usize, field: Option<FieldNumber>) {
        let Some(owner) = self.working.tables.get(table).filter(|owner| owner.refers) else {
            return;
        };
        let going = owner.columns.iter().filter(|c| field.is_none_or(|field| c.field() == field));
        let targets: Vec<_> = going.filter_map(|column| target_of(column.ty())).collect();
        for (target, _) in targets {
            if let Some(target) = self.working.tables.get_mut(target.0 as usize) {
                target.make_mut().referrers.retain(|referrer| {
                    referrer.table.0 as usize != table
                        || field.is_some_and(|field| referrer.field != field)
                });
            }
        }
    }

    /// Checks that the default of a new enforced reference is a row, if existing rows get it now.
    pub(super) fn check_default_reference(&self, command: &Command) -> Result<()> {
        let Command::AddField { table, name, ty, nullable, default } = command else {
            return Ok(());
        };
        let owner = self.working.tables.get(table.0 as usize);
        if owner.is_none_or(|owner| owner.rows.len() == 0) {
            return Ok(());
        }
        if !nullable && *default == Some(Value::Uuid(Uuid::NEW_V7)) {
            self.working.schema.check(command)?;
            return Err(Error::invalid(format!(
                "`{0}` has rows, and `default v7` makes a new `{name}` for new rows only: write `null` before \
                 `default v7`, and the rows have null; a `custom` below can set theirs to `Uuid::NEW_V7`",
                self.working.table_name(*table)
            )));
        }
        let Some((target, _)) = target_of(*ty) else { return Ok(()) };
        let Some(Value::Reference(to)) = default else { return Ok(()) };
        if self.working.has_row(target, to.0)? {
            return Ok(());
        }
        // A row can't help a command that no schema could take.
        self.working.schema.check(command)?;
        let (from, to_table) = (self.working.table_name(*table), self.working.table_name(target));
        let message = format!(
            "the rows of `{from}` would get the default of `{name}`, row {} of `{to_table}`, which isn't \
             there; insert that row first",
            to.0
        );
        let (table, field) = (from.to_owned(), name.clone());
        let (target, target_row) = (to_table.to_owned(), *to);
        let violation = Violation::Reference { table, row: None, field, target, target_row };
        Err(Error::violating(violation, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::Doubts;

    #[test]
    fn what_is_set_again_is_looked_at_once() {
        let mut doubts = Doubts::default();
        let mut note = |field, first, count| {
            doubts.note_set(TableNumber(0), FieldNumber(field), first..first + count);
        };
        for _ in 0..3 {
            (0..4).for_each(|field| note(field, 10, 5));
        }
        note(0, 12, 5); // overlaps
        note(0, 17, 1); // goes on
        note(0, 11, 2); // within
        note(1, 16, 1); // after a gap
        note(1, 9, 1); // in front
        let runs: Vec<_> =
            doubts.set.iter().map(|(_, field, run)| (field.0, run.first, run.end)).collect();
        let first = [(0, 10, 18), (1, 10, 15), (2, 10, 15), (3, 10, 15)];
        assert_eq!(runs, [&first[..], &[(1, 16, 17), (1, 9, 10)]].concat());
    }
}
