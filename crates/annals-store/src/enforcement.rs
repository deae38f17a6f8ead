//! Enforcing references: checking those that a transaction may have left dangling.

use std::ops::Range;

use annals_schema::{Command, FieldNumber, OnDelete, RowId, TableNumber, Type, Uuid, Value};

use crate::columns::column::Column;
use crate::index::tree::IndexTree;
use crate::reference::{Referrer, Unset, number_in, target_of};
use crate::row_runs::RowRuns;
use crate::table::Table;
use crate::{Error, Result, Store, View, Violation};

/// How a reference came to be dangling.
#[derive(Clone, Copy)]
enum Cause {
    Set,
    /// Its row was deleted.
    Lost,
}

/// A column of references, and an index whose first field it is, if there is one.
#[derive(Clone, Copy)]
pub(super) struct Referring<'v> {
    pub(super) table: &'v Table,
    pub(super) column: &'v Column,
    pub(super) index: Option<&'v IndexTree>,
}

/// A row that refers to another. Those that refer to the same one are sorted side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reference {
    pub(super) to: u64,
    pub(super) row: u64,
}

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
    ) -> Option<Referring<'_>> {
        let table = self.tables.get(table.0 as usize)?;
        let place = table.place_of(field)?;
        let mut indexes = table.indexes.iter().filter_map(|&number| self.indexes.get(number));
        let index = indexes.find(|index| index.fields.first() == Some(&place));
        Some(Referring { table, column: table.columns.get(place)?, index: index.map(|it| &**it) })
    }

    /// Returns the dangling references in a column of rows with ids in a range.
    pub(super) fn dangling<'v>(
        &'v self,
        table: &'v Table,
        column: &'v Column,
        ids: Range<u64>,
    ) -> impl Iterator<Item = Result<Reference>> + use<'v> {
        let target = match column.ty() {
            Type::Reference(target, _) => Some(target),
            _ => None,
        };
        let rows = target.map(|target| (target, table.references(column, ids)));
        rows.into_iter().flat_map(move |(target, rows)| {
            let dangles = move |it: Reference| Ok((!self.has_row(target, it.to)?).then_some(it));
            rows.filter_map(move |row| row.and_then(dangles).transpose())
        })
    }
}

impl Table {
    /// Returns the references in a column of rows with ids in a range.
    pub(super) fn references<'t>(
        &'t self,
        column: &'t Column,
        ids: Range<u64>,
    ) -> impl Iterator<Item = Result<Reference>> + use<'t> {
        let reference = |(id, slot): (RowId, usize)| {
            Ok(number_in(column, slot)?.map(|to| Reference { to, row: id.0 }))
        };
        self.rows.range(ids).filter_map(move |row| row.and_then(reference).transpose())
    }
}

/// Makes the error of a dangling reference.
#[cold]
fn dangling(
    view: &View,
    from: Referrer,
    target: TableNumber,
    row: Reference,
    cause: Cause,
) -> Error {
    let Reference { row, to } = row;
    let (table, target) = (view.table_name(from.table), view.table_name(target));
    let field = view.field_name(from.table, from.field);
    let message = match cause {
        Cause::Set => format!(
            "table `{table}`, row {row}: field `{field}` would lead to row {to} of `{target}`, which isn't \
             there; insert that row, or change or delete this one"
        ),
        Cause::Lost => format!(
            "cannot delete row {to} of `{target}`: row {row} of `{table}` refers to it (restrict); delete \
             that row first"
        ),
    };
    let [table, field, target] = [table, field, target].map(str::to_owned);
    let (row, target_row) = (Some(RowId(row)), RowId(to));
    Error::violating(Violation::Reference { table, row, field, target, target_row }, message)
}

impl Store {
    /// Records, for the commit to check, the enforced references of rows that were set: in the column at a place, or
    /// in all of them. If `looks`, it is one row, and only its references that are dangling now are recorded. New rows
    /// of zero values have none where a field may be null.
    pub(super) fn note_references(
        &mut self,
        number: TableNumber,
        place: Option<usize>,
        ids: Range<u64>,
        looks: bool,
    ) -> Result<()> {
        let Self { working, doubts, .. } = self;
        let table = working.tables.get(number.0 as usize).filter(|table| table.refers);
        let Some(table) = table else { return Ok(()) };
        let slot = if looks { table.rows.find(ids.start)? } else { None };
        let columns = place.map_or(&table.columns[..], |place| {
            table.columns.get(place..=place).unwrap_or_default()
        });
        for column in columns {
            let Some((target, _)) = target_of(column.ty()) else { continue };
            let to = slot.map_or(Ok(None), |slot| number_in(column, slot))?;
            let is_meant = match to {
                Some(to) => !working.has_row(target, to)?,
                None => !looks && (place.is_some() || !column.takes_null()),
            };
            if is_meant {
                doubts.set.push((number, column.field()), ids.clone());
            }
        }
        Ok(())
    }

    /// Records the rows that a new required reference without a default must be set in, for the commit to check.
    pub(super) fn note_unset(&mut self, command: &Command) {
        let Command::AddField { table, ty, nullable: false, default: None, .. } = *command else {
            return;
        };
        let Some(data) = self.working.tables.get(table.0 as usize) else { return };
        if let Some(column) = data.columns.last()
            && target_of(ty).is_some()
            && !column.takes_null()
            && data.rows.len() > 0
        {
            let (field, end) = (column.field(), data.rows.next_id());
            self.doubts.unset.push(Unset { table, field, end, filled: RowRuns::default() });
        }
    }

    /// Fails (kind `Reference`) if an enforced reference that this transaction set, or whose row it deleted, is
    /// dangling.
    pub fn check_references(&self) -> Result<()> {
        for ((table, field), ids) in self.doubts.set.runs() {
            self.check_rows(*table, *field, ids.clone(), Cause::Set)?;
        }
        self.doubts.unset.iter().try_for_each(|unset| self.check_filled(unset))?;
        let mut lost = self.doubts.lost.clone();
        lost.merge();
        for lost in lost.runs().chunk_by(|a, b| a.0 == b.0) {
            let Some(&(target, _)) = lost.first() else { continue };
            let Some(table) = self.working.tables.get(target.0 as usize) else { continue };
            for referrer in table.referrers.iter().filter(|it| it.rule == OnDelete::Restrict) {
                self.check_lost(lost, referrer)?;
            }
        }
        Ok(())
    }

    /// Checks the references of rows that may be deleted meanwhile.
    fn check_rows(
        &self,
        table: TableNumber,
        field: FieldNumber,
        ids: Range<u64>,
        cause: Cause,
    ) -> Result<()> {
        let view = &self.working;
        let Some(from) = view.referring_column(table, field) else { return Ok(()) };
        let Some((target, rule)) = target_of(from.column.ty()) else { return Ok(()) };
        match view.dangling(from.table, from.column, ids).next().transpose()? {
            Some(it) => Err(dangling(view, Referrer { table, field, rule }, target, it, cause)),
            None => Ok(()),
        }
    }

    /// Checks that a new required reference was set in all rows that are still there.
    fn check_filled(&self, unset: &Unset) -> Result<()> {
        let (view, &Unset { table, field, end, .. }) = (&self.working, unset);
        let Some(from) = view.referring_column(table, field) else { return Ok(()) };
        let mut filled = unset.filled.clone();
        filled.push((), end..end);
        filled.merge();
        let mut first = 0;
        for (_, ids) in filled.runs() {
            let missing =
                from.table.rows.range(first..ids.start.min(end).max(first)).next().transpose()?;
            if let Some((id, _)) = missing {
                return Err(Error::invalid(format!(
                    "row {} of `{}` has no `{}`, which is required: set it in each row, by a `custom` below the \
                     line that adds it, or give it a default",
                    id.0,
                    view.table_name(table),
                    view.field_name(table, field)
                )));
            }
            first = ids.end;
        }
        Ok(())
    }

    /// Finds references to rows of a table that were deleted.
    fn check_lost(&self, lost: &[(TableNumber, Range<u64>)], referrer: &Referrer) -> Result<()> {
        let Referrer { table, field, .. } = *referrer;
        let Some(from) = self.view().referring_column(table, field) else { return Ok(()) };
        let Some(index) = from.index else {
            // If the reference itself isn't in doubt, only a row that this transaction deleted can be missing, and
            // that was checked before.
            return self.check_rows(table, field, 0..u64::MAX, Cause::Lost);
        };
        for id in lost.iter().flat_map(|(_, ids)| ids.clone()) {
            if let Some(RowId(row)) = index.first_referring(from.column, id)? {
                self.check_rows(table, field, row..row + 1, Cause::Lost)?;
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
        let goes = |it: &Referrer| {
            it.table.0 as usize == table && field.is_none_or(|field| it.field == field)
        };
        for number in 0..self.working.tables.next() {
            let target = self.working.tables.get_mut(number);
            if let Some(target) = target.filter(|target| target.referrers.iter().any(goes)) {
                target.make_mut().referrers.retain(|referrer| !goes(referrer));
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
