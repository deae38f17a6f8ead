//! Values of columns as values of SQLite, each type in one form that compares and sorts as the type does.

use std::borrow::Cow;

use annals::model::{TypeClass, WideValue};
use annals::{Result, Snapshot, Type, ValueRef};

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

/// What follows the digits of a large number, so that it is known as one wherever it gets to: in an expression, in a
/// column of any values.
const LARGE: &[u8; 8] = b"\0uint64\0";
/// The places of such digits.
const DIGITS: usize = 20;

/// Returns the bytes of a number that SQLite's integers don't reach: its digits, with a space before 19 of them, so that
/// SQLite sorts the bytes right. Where it makes a number of bytes, in `sum` or with `+`, it reads such digits as a float.
#[must_use]
pub fn large(value: u64) -> Vec<u8> {
    let mut bytes = format!("{value:>DIGITS$}").into_bytes();
    bytes.extend(LARGE);
    bytes
}

/// Reads a number that [`large`] wrote; `None` if it didn't.
#[must_use]
pub fn read_large(bytes: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(bytes.strip_suffix(LARGE)?).ok()?;
    let value = digits.trim_start_matches(' ').parse().ok()?;
    (i64::try_from(value).is_err() && large(value) == bytes).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_bytes_of_a_large_number_are_read_as_one() {
        let first = 1 << 63;
        for value in [first, first + 1, 9_999_999_999_999_999_999, 10_u64.pow(19), u64::MAX] {
            assert_eq!(read_large(&large(value)), Some(value));
        }
        assert!(large(9_999_999_999_999_999_999) < large(10_u64.pow(19)));
        for other in [
            &b" 9223372036854775807\0uint64\0"[..],
            b"9223372036854775808\0uint64\0",
            b"09223372036854775808\0uint64\0",
            b"+9223372036854775808\0uint64\0",
            b"18446744073709551616\0uint64\0",
            b" 9223372036854775808",
            b"\0uint64\0",
        ] {
            assert_eq!(read_large(other), None, "{other:?}");
        }
    }
}
