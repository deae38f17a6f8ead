//! Applying commands to a schema: everything is checked, then everything is changed.

use std::sync::Arc;

use crate::names::{Names, is_name};
use crate::{
    Collated, Command, Field, FieldNumber, Index, IndexNumber, Schema, SchemaError, Table,
    TableNumber, Type, Value, Variants, canonical_locale, variants,
};

impl Schema {
    /// Applies one command; on error the schema is unchanged.
    ///
    /// # Errors
    /// Those of [`check`](Self::check).
    pub fn apply(&mut self, command: Command) -> Result<(), SchemaError> {
        self.check(&command)?;
        match &command {
            Command::CreateTable { name } => self.push_table(name.clone()),
            Command::DropTable { table } => self.drop_table(*table),
            Command::RenameTable { table, name } => {
                self.table_names.remove(&self.tables, table.0);
                self.change(*table, |table| table.name.clone_from(name));
                self.table_names.insert(&self.tables, table.0);
            }
            Command::AddField { table, .. } => self.push_field(*table, &command),
            Command::DropField { table, field } => self.drop_field(*table, *field),
            Command::RenameField { table, field, name } => self.change(*table, |table| {
                table.names.remove(&table.fields, field.0);
                if let Some(field) = table.place_of(*field).and_then(|at| table.fields.get_mut(at))
                {
                    field.name.clone_from(name);
                }
                table.names.insert(&table.fields, field.0);
            }),
            Command::AddVariant { table, field, .. }
            | Command::RenameVariant { table, field, .. }
            | Command::DropVariant { table, field, .. } => self.change(*table, |table| {
                let at = table.place_of(*field);
                if let Some(field) = at.and_then(|at| table.fields.get_mut(at)) {
                    field.ty = changed_type(field.ty, &command);
                    field.default = field.default.take().map(|value| field.shown(value));
                }
            }),
            Command::SetSingleRow { table, single } => {
                self.change(*table, |table| table.single_row = *single);
            }
            Command::SetHistoryIndex { table, indexed } => {
                self.change(*table, |table| table.history_index = *indexed);
            }
            Command::CreateIndex { name, table, fields, descending, collated, unique } => {
                let number = IndexNumber(self.next_index);
                let (name, fields) = (name.clone(), fields.clone());
                self.next_index += 1;
                self.indexes.push(Arc::new(Index {
                    number,
                    name,
                    table: *table,
                    descending: descending.clone(),
                    collated: collated.clone(),
                    fields,
                    unique: *unique,
                }));
                self.index_names.insert(&self.indexes, number.0);
                self.change(*table, |table| table.indexes.push(number));
            }
            Command::DropIndex { index } => {
                let table = self.index(*index).map(|index| index.table);
                self.remove_index(*index);
                if let Some(table) = table {
                    self.change(table, |table| table.indexes.retain(|kept| kept != index));
                }
            }
            Command::Custom { .. } => {}
        }
        self.commands.push(command);
        Ok(())
    }

    fn push_table(&mut self, name: String) {
        let number = TableNumber(self.next_table);
        self.next_table += 1;
        self.tables.push(Arc::new(Table {
            number,
            name,
            fields: Vec::new(),
            single_row: false,
            history_index: true,
            next_field: 0,
            names: Names::default(),
            indexes: Vec::new(),
            referrers: Vec::new(),
        }));
        self.table_names.insert(&self.tables, number.0);
    }

    fn drop_table(&mut self, number: TableNumber) {
        let Some(at) = self.place_of(number) else { return };
        self.table_names.remove(&self.tables, number.0);
        let table = self.tables.remove(at);
        table.indexes.iter().for_each(|&index| self.remove_index(index));
        for field in &table.fields {
            self.forget_referrer(number, field);
        }
    }

    fn remove_index(&mut self, number: IndexNumber) {
        let Ok(at) = self.indexes.binary_search_by_key(&number, |index| index.number) else {
            return;
        };
        self.index_names.remove(&self.indexes, number.0);
        self.indexes.remove(at);
    }

    fn push_field(&mut self, number: TableNumber, command: &Command) {
        let Some(field) = self.table(number).and_then(|table| new_field(table, command)) else {
            return;
        };
        if let Some(target) = field.enforced_target() {
            let referrer = (number, field.number);
            self.change(target, |target| {
                variants::insert(&mut target.referrers, referrer);
            });
        }
        self.change(number, |table| {
            let number = table.next_field;
            table.next_field += 1;
            table.fields.push(field);
            table.names.insert(&table.fields, number);
        });
    }

    fn drop_field(&mut self, number: TableNumber, field: FieldNumber) {
        let Some(going) = self.table(number).and_then(|table| table.field(field)).cloned() else {
            return;
        };
        self.forget_referrer(number, &going);
        self.change(number, |table| {
            table.names.remove(&table.fields, field.0);
            table.fields.retain(|kept| kept.number != field);
        });
    }

    /// Removes an enforced reference, which is being dropped, from the referrers of its table.
    fn forget_referrer(&mut self, table: TableNumber, field: &Field) {
        if let Some(target) = field.enforced_target() {
            self.change(target, |target| {
                target.referrers.retain(|referrer| *referrer != (table, field.number));
            });
        }
    }

    fn place_of(&self, number: TableNumber) -> Option<usize> {
        self.tables.binary_search_by_key(&number, |table| table.number).ok()
    }

    fn change(&mut self, number: TableNumber, change: impl FnOnce(&mut Table)) {
        if let Some(table) = self.place_of(number).and_then(|at| self.tables.get_mut(at)) {
            change(Arc::make_mut(table));
        }
    }

    /// Returns whether a command can be applied.
    ///
    /// # Errors
    /// An invalid or used name; a missing table, field or index; a default that the field can't
    /// hold. An index of no field, or of one field twice; dropping a field of an index, or a table
    /// that an enforced reference refers to.
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
                let table = self.find(*table)?;
                find_field(table, *field)?;
                match self.indexes_of(table).find(|index| index.fields.contains(field)) {
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
            Command::AddVariant { table, field, .. }
            | Command::RenameVariant { table, field, .. }
            | Command::DropVariant { table, field, .. } => {
                check_variant(find_field(self.find(*table)?, *field)?, command)
            }
            Command::SetSingleRow { table, .. } | Command::SetHistoryIndex { table, .. } => {
                self.find(*table).map(drop)
            }
            Command::CreateIndex { name, table, fields, descending, collated, .. } => {
                self.check_index(name, *table, fields)?;
                // In the order of the fields, so that equal indexes are the same.
                let (mut rest, mut others) = (fields.iter(), fields.iter());
                let in_order = descending.iter().all(|field| rest.any(|known| known == field))
                    && collated.iter().all(|of| others.any(|known| *known == of.field));
                if !in_order {
                    return Err(SchemaError::BadIndex(name.clone()));
                }
                collated.iter().try_for_each(|of| self.check_collation(name, *table, of))
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

    /// Checks that no enforced reference of another table refers to a table.
    fn check_unreferenced(&self, target: TableNumber) -> Result<(), SchemaError> {
        let referrers = &self.find(target)?.referrers;
        let Some(&(table, field)) = referrers.iter().find(|(table, _)| *table != target) else {
            return Ok(());
        };
        let table = self.find(table)?;
        let field = find_field(table, field)?.name.clone();
        Err(SchemaError::Referenced { table: table.name.clone(), field })
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

    fn check_collation(
        &self,
        name: &str,
        table: TableNumber,
        collated: &Collated,
    ) -> Result<(), SchemaError> {
        let bad = |why| SchemaError::BadCollation(name.to_owned(), why);
        let field = find_field(self.find(table)?, collated.field)?;
        if field.ty != Type::String {
            return Err(bad(format!("field {:?} is no string", field.name)));
        }
        let canonical = canonical_locale(&collated.locale).map_err(bad)?;
        if canonical == collated.locale { Ok(()) } else { Err(bad(format!("write `{canonical}`"))) }
    }
}

fn find_field(table: &Table, number: FieldNumber) -> Result<&Field, SchemaError> {
    table.field(number).ok_or(SchemaError::NoField(table.number, number))
}

/// Checks a command about a variant of a field.
fn check_variant(field: &Field, command: &Command) -> Result<(), SchemaError> {
    let name = || field.name.clone();
    let Type::Enum(variants) = field.ty else { return Err(SchemaError::NoEnum(name())) };
    let new_name = |new: &str, own: Option<u16>| {
        if !variants::is_name(new) {
            return Err(SchemaError::BadName(new.to_owned()));
        }
        let holder = variants.named(new);
        check_unused(new, holder.is_some_and(|holder| Some(holder.number()) != own))
    };
    let there = |number: u16| match variants.get(number).filter(|_| variants.has(number)) {
        Some(variant) => Ok(variant),
        None => Err(SchemaError::NoVariant(name(), number)),
    };
    match command {
        Command::AddVariant { name, .. } => {
            new_name(name, None)?;
            if variants.count() < Variants::MOST { Ok(()) } else { Err(SchemaError::TooMany) }
        }
        Command::RenameVariant { variant, name, .. } => {
            there(*variant)?;
            new_name(name, Some(*variant))
        }
        Command::DropVariant { variant, .. } => {
            let variant = there(*variant)?;
            let default = Value::Enum(variant);
            match variant.number() == 0 || field.default.as_ref() == Some(&default) {
                true => Err(SchemaError::NeededVariant(name(), variant.name().to_owned())),
                false => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Returns the type of a field after a command about its variants.
fn changed_type(ty: Type, command: &Command) -> Type {
    let Type::Enum(variants) = ty else { return ty };
    Type::Enum(match command {
        Command::AddVariant { name, .. } => variants.with(name),
        Command::RenameVariant { variant, name, .. } => variants.renamed(*variant, name),
        Command::DropVariant { variant, .. } => variants.without(*variant),
        _ => variants,
    })
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

impl Field {
    /// Returns the table that the field refers to, if it is an enforced reference.
    fn enforced_target(&self) -> Option<TableNumber> {
        match self.ty {
            Type::Reference(target, rule) if rule.is_enforced() => Some(target),
            _ => None,
        }
    }
}

/// True if the field's default, if it has one, has its type. A blob can't be a default, since its number is valid in
/// one journal only.
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
    if is_name(name) { Ok(()) } else { Err(SchemaError::BadName(name.to_owned())) }
}
