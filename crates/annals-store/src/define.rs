//! Changing the schema: creating and dropping tables, fields and indexes.

use std::sync::Arc;

use annals_schema::{Command, FieldNumber, TableNumber, ValueRef};

use crate::change::same_key;
use crate::columns::strings::MAX_LEN;
use crate::index::tree::IndexTree;
use crate::table::Table;
use crate::{Error, Result};
use crate::{Store, View};

impl Store {
    /// Applies a schema command (`add_field` sets the default for existing rows, without touching them;
    /// `create_index` sorts all rows). On error nothing has changed, unless it is one of loading; it is of kind
    /// `Unique` if rows have the same key in a new unique index.
    pub fn apply_command(&mut self, command: &Command) -> Result<()> {
        if let Command::AddField { name, default: Some(value), .. } = command {
            let len = match value {
                annals_schema::Value::String(text) => text.len(),
                annals_schema::Value::Bytes(bytes) => bytes.len(),
                _ => 0,
            };
            if len > MAX_LEN {
                return Err(Error::invalid(format!(
                    "the default of field `{name}` is longer than 1 GiB"
                )));
            }
        }
        self.check_default_reference(command)?;
        self.check_single_row(command)?;
        self.check_variant_unused(command)?;
        self.apply_to_past(command)?;
        self.note_unset(command);
        Ok(())
    }

    /// Applies a command that the rows may contradict, if they do only by having a dropped variant.
    #[doc(hidden)]
    pub fn apply_to_past(&mut self, command: &Command) -> Result<()> {
        self.settle()?;
        // A copy is made only for commands that may fail after it: one for each of many commands would have quadratic
        // cost.
        let may_fail = matches!(command, Command::CreateIndex { unique: true, .. });
        let before = may_fail.then(|| Arc::clone(&self.working.schema));
        Arc::make_mut(&mut self.working.schema).apply(command.clone())?;
        self.changed = true;
        match command {
            Command::CreateTable { .. } => self.working.tables.push(Table::new()),
            Command::AddField { table, .. } => self.add_column(*table),
            Command::CreateIndex { .. } => {
                if let Err(error) = self.build_index() {
                    if let Some(before) = before {
                        self.working.schema = before;
                    }
                    return Err(error);
                }
            }
            Command::DropTable { table } => self.drop_table(table.0 as usize),
            Command::DropField { table, field } => self.drop_field(table.0 as usize, *field),
            Command::DropIndex { index } => self.drop_index(index.0 as usize),
            Command::SetSingleRow { table, single } => {
                if let Some(table) = self.working.tables.get_mut(table.0 as usize) {
                    table.make_mut().single = *single;
                }
            }
            Command::AddVariant { table, field, .. }
            | Command::RenameVariant { table, field, .. }
            | Command::DropVariant { table, field, .. } => self.set_variants(*table, *field),
            Command::RenameTable { .. }
            | Command::RenameField { .. }
            | Command::SetHistoryIndex { .. }
            | Command::Custom { .. } => {}
        }
        Ok(())
    }

    /// Checks that a table has one row after a command that declares so.
    fn check_single_row(&self, command: &Command) -> Result<()> {
        let Command::SetSingleRow { table: number, single: true } = command else { return Ok(()) };
        let Some(table) = self.working.tables.get(number.0 as usize) else { return Ok(()) };
        let (name, rows) = (self.working.table_name(*number), table.rows.len());
        if rows == 1 {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "table `{name}` has {rows} rows: it must have exactly one before it is made a table of \
             a single row"
        )))
    }

    /// Checks that no row has a variant that a command drops.
    fn check_variant_unused(&self, command: &Command) -> Result<()> {
        let Command::DropVariant { table: number, field, variant } = *command else {
            return Ok(());
        };
        self.working.schema.check(command)?;
        let Some(table) = self.working.tables.get(number.0 as usize) else { return Ok(()) };
        let Some(column) = table.column(field) else { return Ok(()) };
        for row in table.rows.iter() {
            let (row, slot) = row?;
            let fetched = column.get(slot)?;
            let ValueRef::Enum(value) = fetched.as_ref() else { continue };
            if value.number() == variant {
                return Err(Error::invalid(format!(
                    "cannot drop variant `{value}`: row {} of `{}` has it in `{}`; give that row another one \
                     first",
                    row.0,
                    self.working.table_name(number),
                    self.working.field_name(number, field),
                )));
            }
        }
        Ok(())
    }

    /// Sets the variants of a column to those that its field has in the schema.
    fn set_variants(&mut self, number: TableNumber, field: FieldNumber) {
        let ty = self.working.field(number, field).map(|field| field.ty);
        if let (Some(ty), Some(table)) = (ty, self.working.tables.get_mut(number.0 as usize)) {
            let table = table.make_mut();
            let column = table.columns.iter_mut().find(|column| column.field() == field);
            column.into_iter().for_each(|column| column.set_variants(ty));
        }
    }

    /// Drops a table and its indexes.
    fn drop_table(&mut self, number: usize) {
        self.forget_referrers(number, None);
        let mut indexes = match self.working.tables.get(number) {
            Some(table) => table.indexes.clone(),
            None => Vec::new(),
        };
        if self.working.unavailable > 0 {
            let is_lost =
                |index: &IndexTree| index.table == number && index.unavailable().is_some();
            let all = 0..self.working.indexes.next();
            let found =
                |&index: &usize| self.working.indexes.get(index).is_some_and(|it| is_lost(it));
            indexes.extend(all.filter(found));
        }
        indexes.into_iter().for_each(|index| self.drop_index(index));
        self.working.tables.remove(number);
    }

    /// Drops a column, which no index is on.
    fn drop_field(&mut self, number: usize, field: FieldNumber) {
        self.forget_referrers(number, Some(field));
        let View { tables, indexes, .. } = &mut self.working;
        let Some(table) = tables.get_mut(number) else { return };
        let Some(place) = table.place_of(field) else { return };
        let table = table.make_mut();
        table.drop_field(place);
        for &index in &table.indexes {
            if let Some(index) = indexes.get_mut(index) {
                index.make_mut().forget_column(place);
            }
        }
    }

    fn drop_index(&mut self, number: usize) {
        let Some(index) = self.working.indexes.get(number) else { return };
        self.working.unavailable -= usize::from(index.unavailable().is_some());
        if let Some(table) = self.working.tables.get_mut(index.table) {
            table.make_mut().indexes.retain(|&kept| kept != number);
        }
        self.working.indexes.remove(number);
        // Keys that were twice in it don't matter any more.
        self.doubts.keys.retain(|(index, _)| *index != number);
        self.doubts.indexes.retain(|index| *index != number);
    }

    /// Adds the column of the last field of a table.
    fn add_column(&mut self, number: TableNumber) {
        let field = self.working.schema.table(number).and_then(|table| table.fields.last());
        let table = self.working.tables.get_mut(number.0 as usize);
        if let (Some(field), Some(table)) = (field, table) {
            let table = table.make_mut();
            table.begin(&self.epoch);
            table.add_field(field);
        }
        self.note_referrer(number);
    }

    /// Builds the last index of the schema.
    fn build_index(&mut self) -> Result<()> {
        let Some(index) = self.working.schema.indexes().last() else { return Ok(()) };
        let Some(owner) = self.working.schema.table(index.table) else { return Ok(()) };
        let mut built = IndexTree::new(index, owner);
        if built.unavailable().is_some() {
            self.working.unavailable += 1;
            self.working.indexes.push(built);
            return Ok(());
        }
        let at = built.table;
        let number = self.working.indexes.next();
        let twice = match self.working.tables.get(at) {
            Some(table) => built.build(table, &self.epoch)?.err(),
            None => None,
        };
        self.working.indexes.push(built);
        if let Some((a, b)) = twice {
            let error = same_key(&self.working, number, a, b);
            self.working.indexes.pop();
            return Err(error);
        }
        if let Some(table) = self.working.tables.get_mut(at) {
            table.make_mut().indexes.push(number);
        }
        Ok(())
    }
}
