//! The codes of events and types in the journal; `docs/format.md` describes each.

#![allow(
    missing_docs,
    reason = "the names are those of docs/format.md, which says what each means"
)]

use annals_schema::{OnDelete, TableNumber, Type, column_types};

pub const CREATE_TABLE: u8 = 0x01;
pub const ADD_FIELD: u8 = 0x02;
pub const CREATE_INDEX: u8 = 0x03;
pub const DROP_TABLE: u8 = 0x04;
pub const RENAME_TABLE: u8 = 0x05;
pub const DROP_FIELD: u8 = 0x06;
pub const RENAME_FIELD: u8 = 0x07;
pub const DROP_INDEX: u8 = 0x08;
pub const SET_SINGLE_ROW: u8 = 0x09;
pub const SET_HISTORY_INDEX: u8 = 0x0A;
pub const ADD_VARIANT: u8 = 0x0B;
pub const RENAME_VARIANT: u8 = 0x0C;
pub const DROP_VARIANT: u8 = 0x0D;
pub const TABLE: u8 = 0x10;
pub const INSERT: u8 = 0x11;
pub const APPEND: u8 = 0x12;
pub const UPDATE: u8 = 0x13;
pub const UPDATE_SAME: u8 = 0x14;
pub const UPDATE_NULL: u8 = 0x15;
pub const UPDATE_SAME_NULL: u8 = 0x16;
pub const DELETE: u8 = 0x17;
pub const INSERT_VECTOR: u8 = 0x18;
pub const UPDATE_VECTOR: u8 = 0x19;
pub const DELETE_VECTOR: u8 = 0x1A;
pub const COMMENT: u8 = 0x20;
pub const TIMESTAMP: u8 = 0x21;
pub const VALID_DATA: u8 = 0x22;
pub const CUSTOM: u8 = 0x23;
pub const BLOB: u8 = 0x24;

/// The values of a vector are cells of one width, none of them null.
pub const VECTOR_CELLS: u8 = 0;
/// The values of a vector are written one by one, after a null bitmap if the field has one.
pub const VECTOR_VALUES: u8 = 1;

/// Codes from here on carry a compact length: a reader that doesn't know one skips it.
pub const FIRST_IGNORABLE: u8 = 0x80;
/// An event that says nothing, of any length: a frame that is to end at a certain place is filled with it.
pub const PAD: u8 = FIRST_IGNORABLE;
/// Codes from here on carry a compact length too, but mean something that can't be ignored.
pub const FIRST_ESSENTIAL: u8 = 0xC0;

/// As `INSERT`, with an erased value; these carry a length.
pub const ERASED_INSERT: u8 = 0xE0;
pub const ERASED_UPDATE: u8 = 0xE1;
pub const ERASED_VECTOR: u8 = 0xE2;

pub const FIELD_NULLABLE: u8 = 1;
pub const FIELD_DEFAULT: u8 = 2;
pub const FIELD_DEFAULT_NULL: u8 = 4;
/// The column of an index is in descending order.
pub const COLUMN_DESCENDING: u8 = 1;
/// The column of an index is sorted by a collation: its locale and its version follow.
pub const COLUMN_COLLATED: u8 = 2;
/// Two bits with the rule of a reference for the deletion of its row.
pub const FIELD_ON_DELETE: u8 = 0x18;
const ON_DELETE_SHIFT: u32 = 3;
const RULES: [OnDelete; 4] =
    [OnDelete::Dangle, OnDelete::Restrict, OnDelete::Cascade, OnDelete::SetNull];

pub const REFERENCE: u8 = 15;

pub const DECIMAL: u8 = 17;
pub const JSON: u8 = 20;
pub const FIXED_BYTES: u8 = 21;
pub const ENUM: u8 = 22;

/// Returns the code of a type.
pub const fn of_type(ty: Type) -> u8 {
    macro_rules! code {
        ($($variant:ident: $owned:ty, $borrowed:ty, $word:literal, $code:literal, $coding:ident, $doc:expr;)*) => {
            match ty {
                $(Type::$variant => $code,)*
                Type::Json => JSON,
                Type::FixedBytes(_) => FIXED_BYTES,
                Type::Decimal(_) => DECIMAL,
                Type::Enum(_) => ENUM,
                Type::Reference(..) => REFERENCE,
            }
        };
    }
    column_types!(all, code)
}

/// True if the type of a code has a parameter.
pub const fn has_parameter(code: u8) -> bool {
    matches!(code, REFERENCE | DECIMAL | FIXED_BYTES)
}

/// Returns the type of a code, with its parameter if it has one: of a reference the number of the table.
pub(crate) fn to_type(code: u8, parameter: u64) -> Option<Type> {
    match code {
        REFERENCE => {
            let table = TableNumber(parameter.try_into().ok()?);
            Some(Type::Reference(table, OnDelete::Dangle))
        }
        DECIMAL => Type::Decimal(0).with(parameter),
        FIXED_BYTES => Type::FixedBytes(1).with(parameter),
        _ => Type::PLAIN.into_iter().find(|&ty| of_type(ty) == code),
    }
}

/// Returns the flags of a reference's rule.
pub(crate) fn of_rule(ty: Type) -> u8 {
    let Type::Reference(_, rule) = ty else { return 0 };
    let code = RULES.iter().zip(0_u8..).find(|(known, _)| **known == rule);
    code.map_or(0, |(_, code)| code << ON_DELETE_SHIFT)
}

/// Returns a type with the rule in flags; `None` if it is no reference, and they have one.
pub(crate) fn with_rule(ty: Type, flags: u8) -> Option<Type> {
    let code = (flags & FIELD_ON_DELETE) >> ON_DELETE_SHIFT;
    match ty {
        Type::Reference(table, _) => Some(Type::Reference(table, *RULES.get(usize::from(code))?)),
        _ => (code == 0).then_some(ty),
    }
}
