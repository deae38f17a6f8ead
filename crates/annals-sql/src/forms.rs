//! Values of columns as values of SQLite, each type in one form that compares and sorts as the type does.

use std::borrow::Cow;

use annals::{Result, Snapshot, Type, TypeClass, ValueRef, WideValue};

use crate::collations;
use crate::host::Form;

/// SQLite's own limit for a value, in bytes.
const LONGEST: usize = 1_000_000_000;

/// Returns the type that a column is declared with, and its collation if it has one.
pub(crate) fn declared(ty: Type) -> (String, Option<String>) {
    let words = match ty.class() {
        TypeClass::Bool => "BOOLEAN".to_owned(),
        TypeClass::Integer { .. } | TypeClass::Float32 | TypeClass::Float64 => {
            ty.to_string().to_uppercase()
        }
        TypeClass::String if ty == Type::Json => "TEXT JSON".to_owned(),
        TypeClass::String => "TEXT".to_owned(),
        // A variant's name may hold INT, which would make numbers of texts.
        TypeClass::Written if matches!(ty, Type::Enum(_)) => "TEXT".to_owned(),
        TypeClass::Written => format!("TEXT {}", ty.to_string().to_uppercase()),
        TypeClass::Bytes if ty == Type::Bytes => "BLOB".to_owned(),
        TypeClass::Bytes => format!("BLOB {}", ty.to_string().to_uppercase()),
        TypeClass::Blob => "LONGBLOB".to_owned(),
        TypeClass::Timestamp => "TIMESTAMP_MICROSECONDS".to_owned(),
        TypeClass::Reference => "INTEGER".to_owned(),
    };
    (words, collations::of(ty))
}

/// Returns the form of a value. The bytes of a blob are read now.
///
/// # Errors
/// A blob can't be read, or has more than 10^9 bytes.
pub(crate) fn form<'v>(value: ValueRef<'v>, snapshot: &Snapshot) -> Result<Form<'v>> {
    Ok(match value.widen() {
        WideValue::Null => Form::Null,
        WideValue::Bool(value) => Form::Integer(value.into()),
        WideValue::Integer(value) => match (i64::try_from(value), u64::try_from(value)) {
            (Ok(value), _) => Form::Integer(value),
            (_, Ok(value)) => Form::Blob(Cow::Owned(large(value))),
            _ => Form::Null,
        },
        WideValue::Timestamp(value) => Form::Integer(value),
        WideValue::Written(value) => Form::Text(Cow::Owned(value.to_string())),
        WideValue::Float32(value) => real(value.into()),
        WideValue::Float64(value) => real(value),
        WideValue::String(value) => Form::Text(Cow::Borrowed(value)),
        WideValue::Bytes(value) => Form::Blob(Cow::Borrowed(value)),
        WideValue::Reference(id) => Form::Integer(id.0.cast_signed()),
        WideValue::Blob(blob) => Form::Blob(Cow::Owned(snapshot.blob(blob)?.to_vec(LONGEST)?)),
    })
}

fn real(value: f64) -> Form<'static> {
    match value.is_nan() {
        // SQLite makes null of it. A text sorts after all numbers, as NaN does.
        true => Form::Text(Cow::Borrowed("NaN")),
        false => Form::Real(value),
    }
}

/// What follows the eight bytes of a large number, so that it is known as one wherever it gets to: in an expression, in
/// a column of any values.
const LARGE: &[u8; 8] = b"\0uint64\0";

/// Returns the bytes of a number that SQLite's integers don't reach, in the order in which it sorts them right.
#[expect(clippy::big_endian_bytes, reason = "SQLite compares bytes from the first on")]
#[must_use]
pub fn large(value: u64) -> Vec<u8> {
    [value.to_be_bytes(), *LARGE].concat()
}

/// Reads a number that [`large`] wrote; `None` if it didn't.
#[expect(clippy::big_endian_bytes, reason = "SQLite compares bytes from the first on")]
#[must_use]
pub fn read_large(bytes: &[u8]) -> Option<u64> {
    let value = u64::from_be_bytes(bytes.strip_suffix(LARGE)?.try_into().ok()?);
    i64::try_from(value).is_err().then_some(value)
}
