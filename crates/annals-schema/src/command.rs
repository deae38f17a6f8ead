//! The commands of the schema language, and why one can't be applied.

use std::fmt;

use crate::{Collated, FieldNumber, IndexNumber, TableNumber, Type, Value, shorten};

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
        /// True if it may be null. Blobs, and references that aren't `restrict` or `cascade`, may be null whatever it
        /// says.
        nullable: bool,
        /// The value for `insert` without one and for existing rows; `None`: null if nullable, else zero or empty.
        default: Option<Value>,
    },
    /// `create_index NAME TABLE FIELD [collate LOCALE] [desc],..`, and `create_unique_index` in the same way
    CreateIndex {
        /// The new index's name.
        name: String,
        /// The table it is on.
        table: TableNumber,
        /// Its fields, most significant first; at least one.
        fields: Vec<FieldNumber>,
        /// Those of them whose values it has in descending order, in the order of the fields.
        descending: Vec<FieldNumber>,
        /// The collations of those that have one, in the order of the fields.
        collated: Vec<Collated>,
        /// True if two rows may not have the same key. Keys that contain null are never equal.
        unique: bool,
    },
    /// `drop_table TABLE`: its rows and indexes go with it.
    DropTable {
        /// The table.
        table: TableNumber,
    },
    /// `rename_table TABLE NAME`
    RenameTable {
        /// The table.
        table: TableNumber,
        /// Its new name.
        name: String,
    },
    /// `drop_field TABLE FIELD`
    DropField {
        /// The field's table.
        table: TableNumber,
        /// The field, which no index may be on.
        field: FieldNumber,
    },
    /// `rename_field TABLE FIELD NAME`
    RenameField {
        /// The field's table.
        table: TableNumber,
        /// The field.
        field: FieldNumber,
        /// Its new name.
        name: String,
    },
    /// `add_variant TABLE FIELD NAME`
    AddVariant {
        /// The field's table.
        table: TableNumber,
        /// The field, of type `enum`.
        field: FieldNumber,
        /// The name of the new variant, which gets the next number.
        name: String,
    },
    /// `rename_variant TABLE FIELD VARIANT NAME`
    RenameVariant {
        /// The field's table.
        table: TableNumber,
        /// The field.
        field: FieldNumber,
        /// The number of the variant.
        variant: u16,
        /// Its new name.
        name: String,
    },
    /// `drop_variant TABLE FIELD VARIANT`: a variant that no row has. Rows of the past keep it.
    DropVariant {
        /// The field's table.
        table: TableNumber,
        /// The field.
        field: FieldNumber,
        /// The number of the variant, which isn't 0, the field's zero.
        variant: u16,
    },
    /// `drop_index NAME`
    DropIndex {
        /// The index.
        index: IndexNumber,
    },
    /// `set_single_row TABLE true|false`: whether the table always has exactly one row.
    SetSingleRow {
        /// The table.
        table: TableNumber,
        /// True if it has.
        single: bool,
    },
    /// `no_history_index TABLE`, and back `history_index TABLE`: whether the history index leads to the changes of
    /// the table's rows. No answer depends on it.
    SetHistoryIndex {
        /// The table.
        table: TableNumber,
        /// True if it does.
        indexed: bool,
    },
    /// `custom NAME`: here an upgrade runs the program's function of that name. It changes nothing
    /// in the schema.
    Custom {
        /// The function's name.
        name: String,
    },
}

impl Command {
    /// True if two schemas are compared by this command in its place. Indexes, single rows
    /// and the tables of the history index are not part of the order: only their outcome is compared.
    #[must_use]
    pub const fn is_ordered(&self) -> bool {
        !matches!(
            self,
            Self::CreateIndex { .. }
                | Self::DropIndex { .. }
                | Self::SetSingleRow { .. }
                | Self::SetHistoryIndex { .. }
        )
    }
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
    /// The index has no field, names one twice, or has a descending or collated field that isn't one of them in their
    /// order.
    BadIndex(String),
    /// The index of that name has a collation that can't be one, for this reason.
    BadCollation(String, String),
    /// There is no index with that number.
    NoIndex(IndexNumber),
    /// The field of that name is no `enum`.
    NoEnum(String),
    /// The field of that name has no variant of that number.
    NoVariant(String, u16),
    /// The variant can't be dropped, because it is the first one of the field of that name, or its default.
    NeededVariant(String, String),
    /// The field can't be dropped, because this index is on it.
    Indexed(String),
    /// The table can't be dropped, because this field of this table refers to it and is enforced.
    Referenced {
        /// The table with the field.
        table: String,
        /// The field.
        field: String,
    },
    /// No more tables, fields of a table, or indexes can be numbered.
    TooMany,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName(name) => write!(
                f,
                "{:?} is not a name: use a letter or `_`, then letters, digits and `_`, at \
                 most 255 in all",
                shorten(name)
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
                write!(
                    f,
                    "index {name:?} must name at least one field, and none twice; the descending \
                     and collated ones are some of them, in the same order"
                )
            }
            Self::BadCollation(name, why) => write!(f, "collation of index {name:?}: {why}"),
            Self::NoIndex(number) => write!(f, "there is no index number {}", number.0),
            Self::NoEnum(field) => {
                write!(f, "field {field:?} is no enum: only an enum has variants")
            }
            Self::NoVariant(field, number) => {
                write!(f, "field {field:?} has no variant number {number}")
            }
            Self::NeededVariant(field, variant) => write!(
                f,
                "field {field:?} needs its variant {variant:?}, the first one or the default: rename it, \
                 `rename_variant TABLE {field} {variant} NAME`"
            ),
            Self::Indexed(index) => {
                write!(f, "index {index:?} is on the field: write `drop_index {index}` first")
            }
            Self::Referenced { table, field } => write!(
                f,
                "field {field:?} of table {table:?} refers to the table, and is enforced: drop that \
                 field first"
            ),
            Self::TooMany => f.write_str("a schema can't have more than 2^32 of one kind"),
        }
    }
}

impl std::error::Error for SchemaError {}
