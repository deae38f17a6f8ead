//! The events of [Annals](https://docs.rs/annals): the one description of a change, which every consumer of a journal
//! takes, with its codec and its text. Programs use the crate `annals`, which re-exports the parts that they need.
//!
//! One [`Event`] type, one encoder, one decoder, one text form. It knows nothing of files.
#![deny(clippy::indexing_slicing)]
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the text above the code is for those who work there, and names its private parts"
)]

mod cell;
mod cells;
pub mod compact;
#[cfg(feature = "testing")]
mod counted;
mod decode;
mod encode;
mod erased;
mod input;
pub mod opcode;
mod part;
pub mod piece;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
#[cfg(test)]
mod tests;
mod text;
mod value;
mod vector;

pub use cell::{from_cell, to_cell, width};
pub use decode::{Context, Sink, decode, decode_from, decode_to};
pub use encode::{Encoder, pad};
pub use part::{VectorPart, part_value, parts};
pub use text::{ERASED, Script, write_field_value};
pub use value::{has_erased, is_erased};
pub use vector::Vector;

use annals_schema::{Blob, Command, FieldNumber, RowId, TableNumber, ValueRef};
use annals_storage::{Error, ErrorKind, Result};

/// The most rows of one vector event.
pub const MAX_VECTOR: u64 = 1 << 20;

/// How many rows of zero values a few bytes may insert.
pub const BARE_ROWS: u64 = 64;

/// The number of rows of zero values for each byte of filling, if there are more of them.
pub const ROWS_PER_BYTE: u64 = 16;

/// Returns the bytes of filling after an insertion of `count` rows of zero values: so the rows of a journal, and
/// their memory, are proportional to its bytes.
#[inline]
pub fn filling(count: u64) -> u64 {
    if count <= BARE_ROWS { 0 } else { count / ROWS_PER_BYTE }
}

/// The most bytes of one piece of a blob. A piece is the unit of reading and verifying.
pub const MAX_PIECE: usize = 1 << 16;

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
        /// One value for each field. Null, where the field may not be null, says that the value was erased; so
        /// it does in updates.
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
    /// New rows of zero values, with consecutive ids.
    InsertVector {
        /// The rows' table.
        table: TableNumber,
        /// The first id; no row has any of them now.
        id: RowId,
        /// How many rows: 1 to [`MAX_VECTOR`].
        count: u64,
    },
    /// New values of one field of rows with consecutive ids.
    UpdateVector {
        /// The rows' table.
        table: TableNumber,
        /// The first row.
        id: RowId,
        /// The field.
        field: FieldNumber,
        /// A value for each row.
        values: Vector<'a>,
    },
    /// The deletion of rows with consecutive ids, the last one first.
    DeleteVector {
        /// The rows' table.
        table: TableNumber,
        /// The first row.
        id: RowId,
        /// How many rows: 1 to [`MAX_VECTOR`].
        count: u64,
    },
    /// A piece of a blob. The pieces of a blob follow one another in one transaction.
    Blob {
        /// The blob: a new number in its first piece.
        blob: Blob,
        /// Where the piece is in the blob, in bytes: 0 in the first piece.
        offset: u64,
        /// Its bytes, at most [`MAX_PIECE`].
        bytes: &'a [u8],
        /// Where its bytes are in the journal file (of no account when it is encoded).
        position: u64,
    },
    /// A mark: the data is coherent here.
    ValidData,
    /// A comment.
    Comment(&'a str),
    /// A time that the program noted, in seconds since 1970-01-01T00:00:00Z (as in joedb).
    Timestamp(i64),
}

impl Event<'_> {
    /// True if it adds rows.
    #[inline]
    #[must_use]
    pub const fn is_insertion(&self) -> bool {
        matches!(self, Self::Insert { .. } | Self::InsertVector { .. })
    }
}
