//! The model: a log of commands, and the tables and indexes that they build.
//!
//! Invariants
//! 1. A table's number is its position among all tables ever created, and so is an index's. A field's is that among
//!    all that its table ever had. Numbers start at 0 and are never used again.
//! 2. [`Schema::tables`], [`Table::fields`] and [`Schema::indexes`] hold the items that weren't dropped, in order of
//!    the numbers; their names are unique.
//! 3. The table and fields of an index exist; so does the table of an enforced reference.
//! 4. Applying [`Schema::commands`] in order to an empty schema builds the same schema.
//! 5. A command costs O(log n) comparisons, whatever the number of tables, fields and indexes; but a
//!    table's drop costs as much as its own fields and indexes. A clone shares tables, indexes and
//!    commands.

use std::sync::Arc;

use crate::log::Commands;
use crate::names::{Listed, Names, by_number};
use crate::{Collated, Command, FieldNumber, IndexNumber, TableNumber, Type, Uuid, Value};

/// A field of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its number.
    pub number: FieldNumber,
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// True if it may be null.
    pub nullable: bool,
    /// The declared default, if there is one.
    pub default: Option<Value>,
}

/// A table. Two are equal if they have the same number, name, fields and kind.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its number.
    pub number: TableNumber,
    /// Its name.
    pub name: String,
    /// Its fields that weren't dropped, in order of their numbers.
    pub fields: Vec<Field>,
    /// True if it always has exactly one row.
    pub single_row: bool,
    /// True if the history index leads to the changes of its rows.
    pub history_index: bool,
    /// The number that its next field gets.
    pub(crate) next_field: u32,
    /// Its fields by their names.
    pub(crate) names: Names,
    /// The indexes that are on it, in order of their numbers.
    pub(crate) indexes: Vec<IndexNumber>,
    /// The enforced references to it.
    pub(crate) referrers: Vec<(TableNumber, FieldNumber)>,
}

/// An index.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// Its number.
    pub number: IndexNumber,
    /// Its name.
    pub name: String,
    /// The table it is on.
    pub table: TableNumber,
    /// Its fields, most significant first.
    pub fields: Vec<FieldNumber>,
    /// Those of them whose values it has in descending order, in the order of the fields.
    pub descending: Vec<FieldNumber>,
    /// The collations of those that have one, in the order of the fields.
    pub collated: Vec<Collated>,
    /// True if two rows may not have the same key.
    pub unique: bool,
}

/// A schema: tables and indexes, and the commands that built them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    pub(crate) commands: Commands,
    pub(crate) tables: Vec<Arc<Table>>,
    pub(crate) indexes: Vec<Arc<Index>>,
    /// The tables by their names.
    pub(crate) table_names: Names,
    /// The indexes by their names.
    pub(crate) index_names: Names,
    pub(crate) next_table: u32,
    pub(crate) next_index: u32,
}

impl Index {
    /// Returns the command that makes the index.
    #[must_use]
    pub fn creating(&self) -> Command {
        let Self { name, table, fields, descending, collated, unique, .. } = self.clone();
        Command::CreateIndex { name, table, fields, descending, collated, unique }
    }

    /// Returns each field with the words after it: ` collate LOCALE`, ` desc`, both or nothing.
    pub fn columns(&self) -> impl Iterator<Item = (FieldNumber, String)> {
        columns(&self.fields, &self.descending, &self.collated)
    }

    /// Returns the collation of a field, if it has one.
    #[must_use]
    pub fn collation(&self, field: FieldNumber) -> Option<&Collated> {
        self.collated.iter().find(|collated| collated.field == field)
    }
}

/// Returns each field of an index with the words after it.
pub(crate) fn columns(
    fields: &[FieldNumber],
    descending: &[FieldNumber],
    collated: &[Collated],
) -> impl Iterator<Item = (FieldNumber, String)> {
    fields.iter().map(|field| {
        let of_field = collated.iter().find(|collated| collated.field == *field);
        let mut words = of_field.map_or(String::new(), |of| format!(" collate {}", of.locale));
        if descending.contains(field) {
            words += " desc";
        }
        (*field, words)
    })
}

impl Field {
    /// True if rows get a new UUID: `default v7`.
    #[must_use]
    pub fn has_new_uuids(&self) -> bool {
        self.default == Some(Value::Uuid(Uuid::NEW_V7))
    }

    /// Returns the value of rows that are older than the field: the default, or the zero of a field with `default v7`.
    #[must_use]
    pub fn existing_value(&self) -> Value {
        if self.has_new_uuids() { self.zero_value() } else { self.default_value() }
    }

    /// Returns the value that `insert` uses when none is given; of a field with `default v7` it is [`Uuid::NEW_V7`].
    #[must_use]
    pub fn default_value(&self) -> Value {
        self.default.clone().unwrap_or_else(|| self.zero_value())
    }

    /// Returns the value of a row before anything is set: null if the field may be null, else zero, false, or empty.
    #[must_use]
    pub fn zero_value(&self) -> Value {
        if self.nullable {
            return Value::Null;
        }
        self.ty.zero_value()
    }

    /// Returns a value that this field had, maybe long ago: a variant by its present name.
    #[must_use]
    pub fn shown(&self, value: Value) -> Value {
        match (self.ty, &value) {
            (Type::Enum(variants), Value::Enum(then)) => {
                variants.get(then.number()).map_or(value, Value::Enum)
            }
            _ => value,
        }
    }

    /// True if `value` is valid for this field: of its type, or null where that is allowed.
    #[must_use]
    pub fn accepts(&self, value: crate::ValueRef<'_>) -> bool {
        self.ty.accepts(self.nullable, value)
    }
}

impl Schema {
    /// Returns the commands that built this schema, in order.
    #[must_use]
    pub const fn commands(&self) -> &Commands {
        &self.commands
    }

    /// Returns the tables that weren't dropped, in order of their numbers.
    #[must_use]
    pub fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    /// Returns the indexes that weren't dropped, in order of their numbers.
    #[must_use]
    pub fn indexes(&self) -> &[Arc<Index>] {
        &self.indexes
    }

    /// Finds a table by its number.
    #[must_use]
    pub fn table(&self, number: TableNumber) -> Option<&Table> {
        by_number(&self.tables, number.0, Listed::number).map(|table| &**table)
    }

    /// Finds a table by its name.
    #[must_use]
    pub fn table_named(&self, name: &str) -> Option<&Table> {
        self.table_names.find(&self.tables, name).map(|table| &**table)
    }

    /// Finds an index by its number.
    #[must_use]
    pub fn index(&self, number: IndexNumber) -> Option<&Index> {
        by_number(&self.indexes, number.0, Listed::number).map(|index| &**index)
    }

    /// Finds an index by its name.
    #[must_use]
    pub fn index_named(&self, name: &str) -> Option<&Index> {
        self.index_names.find(&self.indexes, name).map(|index| &**index)
    }

    /// Returns the schema with other versions of the collations of its indexes, to compare it with that of a file. Its
    /// commands stay.
    ///
    /// # Errors
    /// Those of `version`.
    pub fn with_collations<E>(
        &self,
        version: impl Fn(&Index, &Collated) -> Result<String, E>,
    ) -> Result<Self, E> {
        let mut schema = self.clone();
        for index in schema.indexes.iter_mut().filter(|index| !index.collated.is_empty()) {
            let mut collated = index.collated.clone();
            for of_field in &mut collated {
                of_field.version = version(index, of_field)?;
            }
            Arc::make_mut(index).collated = collated;
        }
        Ok(schema)
    }

    /// Returns the indexes that are on a table, in order of their numbers.
    pub fn indexes_of<'s>(&'s self, table: &'s Table) -> impl Iterator<Item = &'s Index> {
        table.indexes.iter().filter_map(|&number| self.index(number))
    }
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        let kind =
            |table: &Self| (table.number, table.single_row, table.history_index, table.next_field);
        kind(self) == kind(other) && self.name == other.name && self.fields == other.fields
    }
}

impl Table {
    /// Finds a field by its number.
    #[inline]
    #[must_use]
    pub fn field(&self, number: FieldNumber) -> Option<&Field> {
        by_number(&self.fields, number.0, Listed::number)
    }

    /// Finds a field by its name.
    #[must_use]
    pub fn field_named(&self, name: &str) -> Option<&Field> {
        self.names.find(&self.fields, name)
    }

    /// Returns the table with some of its fields alone, in their order here: what a question that needs no others asks
    /// for. The indexes are those of the whole table.
    ///
    /// # Errors
    /// What to say to who asked: there is no field of a name, or it is named twice.
    pub fn only<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Self, String> {
        let mut numbers = Vec::new();
        for name in names {
            let Some(field) = self.field_named(name) else {
                let fields: Vec<&str> = self.fields.iter().map(|field| &*field.name).collect();
                let (table, fields) = (&self.name, fields.join(", "));
                return Err(format!("table `{table}` has no field {name:?}; its fields: {fields}"));
            };
            if numbers.contains(&field.number) {
                return Err(format!("field `{name}` is named twice"));
            }
            numbers.push(field.number);
        }
        let mut only = self.clone();
        only.fields.retain(|field| numbers.contains(&field.number));
        only.names.retain(&only.fields);
        Ok(only)
    }

    /// Returns the place of a field among the table's fields.
    #[must_use]
    pub fn place_of(&self, number: FieldNumber) -> Option<usize> {
        self.fields.binary_search_by_key(&number, |field| field.number).ok()
    }
}

/// Builds items from a list of those that have a number and a name.
macro_rules! listed {
    ($($item:ty),+) => {$(
        impl Listed for $item {
            #[inline]
            fn number(&self) -> u32 {
                self.number.0
            }

            fn name(&self) -> &str {
                &self.name
            }
        }
    )+};
}

listed!(Field, Arc<Table>, Arc<Index>);

/// Makes numbers of the types that name them.
macro_rules! numbers {
    ($($name:ident),+) => {$(
        impl From<$name> for u32 {
            fn from(number: $name) -> Self {
                number.0
            }
        }
    )+};
}

numbers!(TableNumber, FieldNumber, IndexNumber);
