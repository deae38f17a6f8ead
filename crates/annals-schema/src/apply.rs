//! Applying commands to a schema: everything is checked, then everything is changed.

use crate::{
    Command, Field, FieldNumber, Index, IndexNumber, Schema, SchemaError, Table, TableNumber, Type,
    Value,
};

impl Schema {
    /// Applies one command; on error the schema is as it was.
    ///
    /// # Errors
    /// Those of [`check`](Self::check).
    pub fn apply(&mut self, command: Command) -> Result<(), SchemaError> {
        self.check(&command)?;
        match &command {
            Command::CreateTable { name } => self.push_table(name.clone()),
            Command::DropTable { table } => {
                self.tables.retain(|kept| kept.number != *table);
                self.indexes.retain(|index| index.table != *table);
            }
            Command::RenameTable { table, name } => self.change(*table, |table| {
                table.name.clone_from(name);
            }),
            Command::AddField { table, .. } => self.change(*table, |table| {
                if let Some(field) = new_field(table, &command) {
                    table.next_field += 1;
                    table.fields.push(field);
                }
            }),
            Command::DropField { table, field } => self.change(*table, |table| {
                table.fields.retain(|kept| kept.number != *field);
            }),
            Command::RenameField { table, field, name } => self.change(*table, |table| {
                if let Some(field) = table.fields.iter_mut().find(|kept| kept.number == *field) {
                    field.name.clone_from(name);
                }
            }),
            Command::SetSingleRow { table, single } => {
                self.change(*table, |table| table.single_row = *single);
            }
            Command::CreateIndex { name, table, fields, unique } => {
                let number = IndexNumber(self.next_index);
                let (name, fields) = (name.clone(), fields.clone());
                self.next_index += 1;
                self.indexes.push(Index { number, name, table: *table, fields, unique: *unique });
            }
            Command::DropIndex { index } => self.indexes.retain(|kept| kept.number != *index),
            Command::Custom { .. } => {}
        }
        self.commands.push(command);
        Ok(())
    }

    fn push_table(&mut self, name: String) {
        let number = TableNumber(self.next_table);
        self.next_table += 1;
        self.tables.push(Table {
            number,
            name,
            fields: Vec::new(),
            single_row: false,
            next_field: 0,
        });
    }

    fn change(&mut self, number: TableNumber, change: impl FnOnce(&mut Table)) {
        if let Some(table) = self.tables.iter_mut().find(|table| table.number == number) {
            change(table);
        }
    }

    /// Tells whether a command can be applied.
    ///
    /// # Errors
    /// A name that is none, or in use; a table, field or index that isn't there; a default that the
    /// field can't hold; an index of no field, or of one field twice; a field to be dropped that an
    /// index is on; a table to be dropped that an enforced reference leads to.
    pub fn check(&self, command: &Command) -> Result<(), SchemaError> {
        match command {
            Command::CreateTable { name } => {
                check_name(name)?;
                check_unused(name, self.table_named(name).is_some())?;
                check_count(self.next_table)
            }
            Command::DropTable { table } => self.check_unreferenced(self.find(*table)?.number),
            Command::RenameTable { table, name } => {
                let table = self.find(*table)?;
                check_name(name)?;
                let holder = self.table_named(name);
                check_unused(name, holder.is_some_and(|holder| holder.number != table.number))
            }
            Command::AddField { .. } => self.check_field(command),
            Command::DropField { table, field } => {
                find_field(self.find(*table)?, *field)?;
                let on_it = |index: &&Index| index.table == *table && index.fields.contains(field);
                match self.indexes.iter().find(on_it) {
                    Some(index) => Err(SchemaError::Indexed(index.name.clone())),
                    None => Ok(()),
                }
            }
            Command::RenameField { table, field, name } => {
                let table = self.find(*table)?;
                find_field(table, *field)?;
                check_name(name)?;
                let holder = table.field_named(name);
                check_unused(name, holder.is_some_and(|holder| holder.number != *field))
            }
            Command::SetSingleRow { table, .. } => self.find(*table).map(drop),
            Command::CreateIndex { name, table, fields, .. } => {
                self.check_index(name, *table, fields)
            }
            Command::DropIndex { index } => {
                self.index(*index).map(drop).ok_or(SchemaError::NoIndex(*index))
            }
            Command::Custom { name } => check_name(name),
        }
    }

    fn find(&self, number: TableNumber) -> Result<&Table, SchemaError> {
        self.table(number).ok_or(SchemaError::NoTable(number))
    }

    /// Checks that no enforced reference of another table leads to a table.
    fn check_unreferenced(&self, target: TableNumber) -> Result<(), SchemaError> {
        let others = self.tables.iter().filter(|table| table.number != target);
        for table in others {
            let leads_there = |field: &&Field| match field.ty {
                Type::Reference(to, on_delete) => to == target && on_delete.is_enforced(),
                _ => false,
            };
            if let Some(field) = table.fields.iter().find(leads_there) {
                let (table, field) = (table.name.clone(), field.name.clone());
                return Err(SchemaError::Referenced { table, field });
            }
        }
        Ok(())
    }

    /// Checks an `add_field`.
    fn check_field(&self, command: &Command) -> Result<(), SchemaError> {
        let Command::AddField { table, name, ty, .. } = command else { return Ok(()) };
        check_name(name)?;
        if let Type::Reference(target, _) = ty {
            self.find(*target)?;
        }
        let owner = self.find(*table)?;
        check_unused(name, owner.field_named(name).is_some())?;
        check_count(owner.next_field)?;
        match new_field(owner, command) {
            Some(field) if !has_good_default(&field) => Err(SchemaError::BadDefault(name.clone())),
            _ => Ok(()),
        }
    }

    fn check_index(
        &self,
        name: &str,
        table: TableNumber,
        fields: &[FieldNumber],
    ) -> Result<(), SchemaError> {
        check_name(name)?;
        check_unused(name, self.index_named(name).is_some())?;
        check_count(self.next_index)?;
        let owner = self.find(table)?;
        for (place, &field) in fields.iter().enumerate() {
            find_field(owner, field)?;
            if fields.iter().take(place).any(|&earlier| earlier == field) {
                return Err(SchemaError::BadIndex(name.to_owned()));
            }
        }
        if fields.is_empty() {
            return Err(SchemaError::BadIndex(name.to_owned()));
        }
        Ok(())
    }
}

fn find_field(table: &Table, number: FieldNumber) -> Result<&Field, SchemaError> {
    table.field(number).ok_or(SchemaError::NoField(table.number, number))
}

/// Makes the field of an `add_field`; `None` for other commands.
fn new_field(table: &Table, command: &Command) -> Option<Field> {
    let Command::AddField { name, ty, nullable, default, .. } = command else { return None };
    Some(Field {
        number: FieldNumber(table.next_field),
        name: name.clone(),
        ty: *ty,
        nullable: *nullable || ty.is_always_nullable(),
        default: default.clone(),
    })
}

/// A blob is named by a number that only one journal knows, so it can't be a default.
fn has_good_default(field: &Field) -> bool {
    match &field.default {
        None | Some(Value::Null) if field.nullable => true,
        Some(Value::Blob(_)) => false,
        Some(value) => field.accepts(value.as_ref()),
        None => true,
    }
}

fn check_count(next: u32) -> Result<(), SchemaError> {
    if next == u32::MAX { Err(SchemaError::TooMany) } else { Ok(()) }
}

fn check_unused(name: &str, used: bool) -> Result<(), SchemaError> {
    if used { Err(SchemaError::NameInUse(name.to_owned())) } else { Ok(()) }
}

fn check_name(name: &str) -> Result<(), SchemaError> {
    let mut characters = name.chars();
    let starts = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let goes_on = characters.all(|c| c.is_ascii_alphanumeric() || c == '_');
    if starts && goes_on && name.len() <= 255 {
        Ok(())
    } else {
        Err(SchemaError::BadName(name.to_owned()))
    }
}
