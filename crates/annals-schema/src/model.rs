//! The model: a log of commands, and the tables and indexes that they build.
//!
//! Invariants
//! 1. A table's number is its place in [`Schema::tables`]; a field's number is its place in
//!    [`Table::fields`]; an index's number is its place in [`Schema::indexes`]. Numbers start at 0
//!    and are never used again.
//! 2. Names are unique among tables, among the fields of a table, and among indexes.
//! 3. Applying [`Schema::commands`] in order to an empty schema gives the same schema.

use std::fmt;

use crate::{Type, Value};

/// The number of a table: its place among all tables ever created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableNumber(pub u32);

/// The number of a field: its place among all fields its table ever had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldNumber(pub u32);

/// The number of an index: its place among all indexes ever created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexNumber(pub u32);

/// The id of a row in its table. Ids start at 0; the largest is [`RowId::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u64);

impl RowId {
    /// The largest id a row can have: so that an id plus one still fits in an `i64`.
    pub const MAX: Self = Self(Self::LARGEST);
    const LARGEST: u64 = i64::MAX as u64 - 1;
}

/// One command of the schema language: one change of the schema.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// `create_table NAME`
    CreateTable {
        /// The new table's name.
        name: String,
    },
    /// `add_field TABLE NAME TYPE [null] [default VALUE]`
    AddField {
        /// The table that gets the field.
        table: TableNumber,
        /// The new field's name.
        name: String,
        /// Its type.
        ty: Type,
        /// Whether it may be null. Always true for references.
        nullable: bool,
        /// What `insert` and existing rows get; `None`: null if nullable, else zero or empty.
        default: Option<Value>,
    },
    /// `create_index NAME TABLE FIELD,..` and `create_unique_index NAME TABLE FIELD,..`
    CreateIndex {
        /// The new index's name.
        name: String,
        /// The table it is on.
        table: TableNumber,
        /// Its fields, most significant first; at least one.
        fields: Vec<FieldNumber>,
        /// Whether two rows may not have the same key. Keys that contain null are never equal.
        unique: bool,
    },
}

/// A field of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its number.
    pub number: FieldNumber,
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Whether it may be null.
    pub nullable: bool,
    /// The default as it was declared, if it was.
    pub default: Option<Value>,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its number.
    pub number: TableNumber,
    /// Its name.
    pub name: String,
    /// Its fields, in order of their numbers.
    pub fields: Vec<Field>,
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
    /// Whether two rows may not have the same key.
    pub unique: bool,
}

/// A schema: tables and indexes, and the commands that built them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    commands: Vec<Command>,
    tables: Vec<Table>,
    indexes: Vec<Index>,
}

/// Why a command can't be applied to a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaError {
    /// The name is no identifier: a letter or `_`, then letters, digits, `_`; at most 255 bytes.
    BadName(String),
    /// There is a table, field or index of that name already.
    NameInUse(String),
    /// There is no table with that number.
    NoTable(TableNumber),
    /// The table has no field with that number.
    NoField(TableNumber, FieldNumber),
    /// The default isn't a value of the field's type, or is null where null isn't allowed.
    BadDefault(String),
    /// The index has no field, or names one twice.
    BadIndex(String),
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName(name) => write!(
                f,
                "{name:?} is not a name: use a letter or `_`, then letters, digits and `_`, at \
                 most 255 in all"
            ),
            Self::NameInUse(name) => write!(f, "the name {name:?} is in use already"),
            Self::NoTable(number) => write!(f, "there is no table number {}", number.0),
            Self::NoField(table, field) => {
                write!(f, "table number {} has no field number {}", table.0, field.0)
            }
            Self::BadDefault(name) => {
                write!(f, "the default of field {name:?} is not a value of its type")
            }
            Self::BadIndex(name) => {
                write!(f, "index {name:?} must name at least one field, and none twice")
            }
        }
    }
}

impl std::error::Error for SchemaError {}

impl Field {
    /// Gives the value that `insert` uses when none is given, and that existing rows get.
    #[must_use]
    pub fn default_value(&self) -> Value {
        self.default.clone().unwrap_or_else(|| self.zero_value())
    }

    /// Gives what a row has before anything is set: null if the field may be null, else zero,
    /// false, or empty.
    #[must_use]
    pub fn zero_value(&self) -> Value {
        if self.nullable {
            return Value::Null;
        }
        match self.ty {
            Type::Bool => Value::Bool(false),
            Type::Int8 => Value::Int8(0),
            Type::Int16 => Value::Int16(0),
            Type::Int32 => Value::Int32(0),
            Type::Int64 => Value::Int64(0),
            Type::UInt8 => Value::UInt8(0),
            Type::UInt16 => Value::UInt16(0),
            Type::UInt32 => Value::UInt32(0),
            Type::UInt64 => Value::UInt64(0),
            Type::Float32 => Value::Float32(0.0),
            Type::Float64 => Value::Float64(0.0),
            Type::String => Value::String(String::new()),
            Type::Bytes => Value::Bytes(Vec::new()),
            Type::Timestamp => Value::Timestamp(0),
            Type::Reference(_) => Value::Null,
        }
    }

    /// Tells whether `value` may stand in this field: of its type, or null where that is allowed.
    #[must_use]
    pub fn accepts(&self, value: crate::ValueRef<'_>) -> bool {
        use crate::ValueRef as V;
        matches!(
            (self.ty, value),
            (Type::Bool, V::Bool(_))
                | (Type::Int8, V::Int8(_))
                | (Type::Int16, V::Int16(_))
                | (Type::Int32, V::Int32(_))
                | (Type::Int64, V::Int64(_))
                | (Type::UInt8, V::UInt8(_))
                | (Type::UInt16, V::UInt16(_))
                | (Type::UInt32, V::UInt32(_))
                | (Type::UInt64, V::UInt64(_))
                | (Type::Float32, V::Float32(_))
                | (Type::Float64, V::Float64(_))
                | (Type::String, V::String(_))
                | (Type::Bytes, V::Bytes(_))
                | (Type::Timestamp, V::Timestamp(_))
                | (Type::Reference(_), V::Reference(RowId(0..=RowId::LARGEST)))
        ) || (self.nullable && matches!(value, V::Null))
    }
}

impl Schema {
    /// Gives the commands that built this schema, in order.
    #[must_use]
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Gives all tables, in order of their numbers.
    #[must_use]
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Gives all indexes, in order of their numbers.
    #[must_use]
    pub fn indexes(&self) -> &[Index] {
        &self.indexes
    }

    /// Finds a table by its number.
    #[must_use]
    pub fn table(&self, number: TableNumber) -> Option<&Table> {
        self.tables.get(number.0 as usize)
    }

    /// Finds a table by its name.
    #[must_use]
    pub fn table_named(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// Finds an index by its number.
    #[must_use]
    pub fn index(&self, number: IndexNumber) -> Option<&Index> {
        self.indexes.get(number.0 as usize)
    }

    /// Finds an index by its name.
    #[must_use]
    pub fn index_named(&self, name: &str) -> Option<&Index> {
        self.indexes.iter().find(|index| index.name == name)
    }

    /// Applies one command; on error the schema is as it was.
    ///
    /// # Errors
    /// Those of [`check`](Self::check).
    pub fn apply(&mut self, command: Command) -> Result<(), SchemaError> {
        self.check(&command)?;
        match command.clone() {
            Command::CreateTable { name } => {
                let number = TableNumber(next_number(self.tables.len()));
                self.tables.push(Table { number, name, fields: Vec::new() });
            }
            Command::AddField { table: number, name, ty, nullable, default } => {
                if let Some(table) = self.tables.get_mut(number.0 as usize) {
                    table.fields.push(new_field(table, name, ty, nullable, default));
                }
            }
            Command::CreateIndex { name, table, fields, unique } => {
                let number = IndexNumber(next_number(self.indexes.len()));
                self.indexes.push(Index { number, name, table, fields, unique });
            }
        }
        self.commands.push(command);
        Ok(())
    }

    /// Tells whether a command can be applied.
    ///
    /// # Errors
    /// A name that is none, or in use; a table or field that isn't there; a default that the field
    /// can't hold; an index of no field, or of one field twice.
    pub fn check(&self, command: &Command) -> Result<(), SchemaError> {
        match command {
            Command::CreateTable { name } => {
                check_name(name)?;
                check_unused(name, self.table_named(name).is_some())
            }
            Command::AddField { table, name, ty, nullable, default } => {
                check_name(name)?;
                if let Type::Reference(target) = ty {
                    self.table(*target).ok_or(SchemaError::NoTable(*target))?;
                }
                let owner = self.table(*table).ok_or(SchemaError::NoTable(*table))?;
                check_unused(name, owner.field_named(name).is_some())?;
                let field = new_field(owner, name.clone(), *ty, *nullable, default.clone());
                match default {
                    Some(value) if !field.accepts(value.as_ref()) => {
                        Err(SchemaError::BadDefault(name.clone()))
                    }
                    _ => Ok(()),
                }
            }
            Command::CreateIndex { name, table, fields, .. } => {
                self.check_index(name, *table, fields)
            }
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
        let owner = self.table(table).ok_or(SchemaError::NoTable(table))?;
        for (place, &field) in fields.iter().enumerate() {
            owner.field(field).ok_or(SchemaError::NoField(table, field))?;
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

impl Table {
    /// Finds a field by its number.
    #[must_use]
    pub fn field(&self, number: FieldNumber) -> Option<&Field> {
        self.fields.get(number.0 as usize)
    }

    /// Finds a field by its name.
    #[must_use]
    pub fn field_named(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

fn next_number(len: usize) -> u32 {
    u32::try_from(len).expect("a schema has fewer than 2^32 tables, fields and indexes")
}

fn new_field(
    table: &Table,
    name: String,
    ty: Type,
    nullable: bool,
    default: Option<Value>,
) -> Field {
    let number = FieldNumber(next_number(table.fields.len()));
    let nullable = nullable || matches!(ty, Type::Reference(_));
    Field { number, name, ty, nullable, default }
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
