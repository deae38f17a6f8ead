//! Events: the one description of a change, which every consumer of the journal takes.
//!
//! One [`Event`] type, one encoder, one decoder, one text form. This room knows nothing of files.
#![deny(clippy::indexing_slicing)]

pub(crate) mod compact;
mod decode;
mod encode;
pub(crate) mod opcode;
#[cfg(test)]
pub(crate) mod round_trip;
mod text;

pub(crate) use decode::decode;
pub(crate) use encode::Encoder;
pub use text::Script;

use annals_schema::{Command, FieldNumber, RowId, TableNumber, ValueRef};

/// One logical change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// A command of the schema language.
    Schema(&'a Command),
    /// A new row, with all its fields in the order of the schema.
    Insert {
        /// The row's table.
        table: TableNumber,
        /// Its id, which no row has now.
        id: RowId,
        /// One value for each field.
        values: &'a [ValueRef<'a>],
    },
    /// A new value of one field of one row.
    Update {
        /// The row's table.
        table: TableNumber,
        /// The row.
        id: RowId,
        /// The field.
        field: FieldNumber,
        /// Its new value.
        value: ValueRef<'a>,
    },
    /// The end of a row.
    Delete {
        /// The row's table.
        table: TableNumber,
        /// The row.
        id: RowId,
    },
    /// A comment.
    Comment(&'a str),
    /// A time that the program noted, in seconds since 1970-01-01T00:00:00Z (as in joedb).
    Timestamp(i64),
}
