//! The codes of events and types in the journal; `docs/format.md` tells of each.

use annals_schema::{TableNumber, Type};

pub(crate) const CREATE_TABLE: u8 = 0x01;
pub(crate) const ADD_FIELD: u8 = 0x02;
pub(crate) const CREATE_INDEX: u8 = 0x03;
pub(crate) const TABLE: u8 = 0x10;
pub(crate) const INSERT: u8 = 0x11;
pub(crate) const APPEND: u8 = 0x12;
pub(crate) const UPDATE: u8 = 0x13;
pub(crate) const UPDATE_SAME: u8 = 0x14;
pub(crate) const UPDATE_NULL: u8 = 0x15;
pub(crate) const UPDATE_SAME_NULL: u8 = 0x16;
pub(crate) const DELETE: u8 = 0x17;
pub(crate) const COMMENT: u8 = 0x20;
pub(crate) const TIMESTAMP: u8 = 0x21;

/// Codes from here on carry a compact length: a reader that doesn't know one skips it.
pub(crate) const FIRST_IGNORABLE: u8 = 0x80;
/// Codes from here on carry a compact length too, but mean something that can't be ignored.
pub(crate) const FIRST_ESSENTIAL: u8 = 0xC0;

pub(crate) const FIELD_NULLABLE: u8 = 1;
pub(crate) const FIELD_DEFAULT: u8 = 2;
pub(crate) const FIELD_DEFAULT_NULL: u8 = 4;

const TYPES: [(u8, Type); 14] = [
    (1, Type::Bool),
    (2, Type::Int8),
    (3, Type::Int16),
    (4, Type::Int32),
    (5, Type::Int64),
    (6, Type::UInt8),
    (7, Type::UInt16),
    (8, Type::UInt32),
    (9, Type::UInt64),
    (10, Type::Float32),
    (11, Type::Float64),
    (12, Type::String),
    (13, Type::Bytes),
    (14, Type::Timestamp),
];

/// Code 16 is reserved for blobs, 17 and 18 for decimals.
pub(crate) const REFERENCE: u8 = 15;

/// Gives the code of a type.
pub(crate) fn of_type(ty: Type) -> u8 {
    TYPES.iter().find(|(_, known)| *known == ty).map_or(REFERENCE, |(code, _)| *code)
}

/// Gives the type of a code; `target` is the table of a reference.
pub(crate) fn to_type(code: u8, target: Option<TableNumber>) -> Option<Type> {
    match target {
        Some(table) => Some(Type::Reference(table)),
        None => TYPES.iter().find(|(known, _)| *known == code).map(|(_, ty)| *ty),
    }
}
