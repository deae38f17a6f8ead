//! The generic part of the typed API: the types that the code of [`schema!`](crate::schema) uses.
//!
//! Generated code has the parts that differ between schemas and tables: names, types and numbers. All that is the
//! same is here, once, so that a program with many tables compiles quickly.
//!
//! In reading order: a [`TypedSchema`] represents a schema at compile time. [`Database`], [`Reader`], [`Snapshot`]
//! and [`Transaction`] are generic over it, and [`CompiledSchema`] parses its text. A [`Record`] represents a table,
//! and [`Id`] is the id of a row of it. [`Table`] reads it, [`Index`] looks it up and a [`Cursor`] moves through it;
//! a [`Query`] filters, joins and groups, and a [`Selection`] says which columns are read. A transaction inserts a [`NewRow`], and changes a row with an [`Editor`]. A [`Vector`] is a whole column of a run
//! of rows, and a [`Column`] says which. A [`Change`] is one change of a row, whose values are [`Versioned`], and
//! a [`History`] all of them. [`OnlyRow`] is for a table of one row. A [`FieldValue`] is a type of the program for a
//! field.

mod abort;
mod change;
mod check;
mod column;
mod cursor;
mod database;
mod history;
mod id;
mod index;
mod misplaced;
mod nullable;
mod own;
mod query;
mod read_only;
#[cfg(feature = "tokio")]
mod runtime;
mod schema;
mod select;
mod single;
mod snapshot;
mod summand;
mod table;
mod transaction;
mod variants;
mod vector;
#[cfg(feature = "serde")]
#[doc(hidden)]
pub mod wire;
mod writer;

use annals_schema::TableNumber;

pub use abort::Abort;
#[doc(hidden)]
pub use abort::Cause;
pub use annals_storage::TypedId;
#[doc(hidden)]
pub use annals_store::{CellOf, VariantNumber};
pub use change::{
    AnyChange, Change, Changed, ChangedRow, Changes, Owned, RowValues, Subscription, Versioned,
    any_change,
};
pub use check::Proposed;
pub use column::{Column, ColumnType, Slice, Sliced};
pub use cursor::Cursor;
pub use database::{Database, Reader};
pub use history::{History, Version};
pub use id::{Id, ParseIdError};
pub use index::{Index, IndexRows};
#[doc(hidden)]
pub use misplaced::Writes;
pub use nullable::{OrNull, nullable};
pub use own::{FieldValue, Given, GivenOrNull, Stored};
#[doc(hidden)]
pub use own::{Own, OwnOrNull};
pub use query::{Grouped, Query};
#[cfg(feature = "tokio")]
pub use runtime::SubscriptionStream;
pub use schema::{
    CompiledSchema, CustomSchema, PlainSchema, TypedSchema, Viewed, WithCustoms, unknown_custom,
};
pub use select::{Selected, Selection};
pub use single::{OnlyRow, only_row};
pub use snapshot::Snapshot;
pub use summand::Summand;
pub use table::{Rows, Table};
pub use transaction::{CustomTransaction, Transaction};
pub use variants::{Enum, EnumError};
#[doc(hidden)]
pub use variants::{check_variant, parse_variant, variant, variant_of, variants};
#[doc(hidden)]
pub use vector::Number;
pub use vector::{Element, Vector};
pub use writer::{Editor, NewRow, NewRows, RowToEdit};

/// A kind of rows that is known when compiling; generated code has one for each table.
pub trait Record: Sized + 'static {
    /// The number of the table that holds these rows.
    const TABLE: TableNumber;
    /// The table's name.
    const NAME: &'static str;
    /// The schema that it is of; `()`: one that a `custom` sees.
    type Schema;
    /// A row, with a getter for each field.
    type Row<'a>: From<crate::Row<'a>>;
    /// A row that a transaction changes, with a setter for each field.
    type Edit<'t, 'db: 't>: From<Editor<'t, 'db, Self>>;

    /// Adds the types to a row that was read.
    ///
    /// # Errors
    /// `SchemaMismatch`: a newer program gave it a variant of an `enum` that this one doesn't know.
    #[doc(hidden)]
    #[inline(always)]
    fn row(row: crate::Row<'_>) -> crate::Result<Self::Row<'_>> {
        Ok(row.into())
    }
}
