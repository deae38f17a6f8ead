//! Values as SQL.

use std::fmt::Write;

use annals::model::{WideValue, Written};
use annals::{Date, ValueRef};

use super::Dialect;

/// The least integer that both dialects have.
const LEAST: i128 = i64::MIN as i128;

/// Appends a value; a blob only its name, since its bytes are not at hand.
pub(super) fn push(text: &mut String, value: ValueRef<'_>, dialect: Dialect) {
    // Writing to a string can't fail.
    let _ = match value.widen() {
        WideValue::Null | WideValue::Blob(_) => text.write_str("NULL"),
        WideValue::Bool(value) => text.write_str(if value { "TRUE" } else { "FALSE" }),
        WideValue::Integer(value) if value > i64::MAX.into() => {
            let bytes = format!("X'{value:016X}'");
            text.write_str(&dialect.choose(&bytes, &value.to_string()))
        }
        // Both take this number for one that is too large, and then for another.
        WideValue::Integer(LEAST) | WideValue::Timestamp(i64::MIN) => {
            write!(text, "(-{}-1)", i64::MAX)
        }
        WideValue::Integer(value) => write!(text, "{value}"),
        WideValue::Timestamp(value) => write!(text, "{value}"),
        WideValue::Written(Written::Date(date)) => push_date(text, date, dialect),
        WideValue::Written(value) => write!(text, "'{value}'"),
        WideValue::Reference(id) => write!(text, "{}", id.0),
        // SQLite has floats of 64 bits only: all digits of the equal one are written.
        WideValue::Float32(value) if dialect == Dialect::Sqlite => {
            let value = f64::from(value);
            push_float(text, value, &format!("{value:?}"), dialect)
        }
        WideValue::Float32(value) => {
            push_float(text, f64::from(value), &format!("{value:?}"), dialect)
        }
        WideValue::Float64(value) => push_float(text, value, &format!("{value:?}"), dialect),
        WideValue::String(value) => push_string(text, value, dialect),
        WideValue::Bytes(value) => text.write_str(&bytes(value, dialect)),
    };
}

/// Appends a date. PostgreSQL has no year 0, and no signs.
fn push_date(text: &mut String, date: Date, dialect: Dialect) -> std::fmt::Result {
    let (year, month, day) = (date.year(), date.month(), date.day());
    let postgres = match year {
        1.. => format!("'{year:04}-{month:02}-{day:02}'"),
        _ => format!("'{:04}-{month:02}-{day:02} BC'", 1 - year),
    };
    text.write_str(&dialect.choose(&format!("'{date}'"), &postgres))
}

/// Appends a float, of which these are the digits.
fn push_float(text: &mut String, value: f64, digits: &str, dialect: Dialect) -> std::fmt::Result {
    let is_negative = value.is_sign_negative();
    text.write_str(&match (value, is_negative) {
        (value, _) if value.is_nan() => "'NaN'".to_owned(),
        (f64::INFINITY, _) => dialect.choose("9e999", "'Infinity'"),
        (f64::NEG_INFINITY, _) => dialect.choose("-9e999", "'-Infinity'"),
        (0.0, true) => dialect.choose("X'8000000000000000'", "'-0'"),
        _ => digits.to_owned(),
    })
}

/// Appends a string. SQLite's text of a statement ends at a zero, and a terminal may obey control
/// characters: a string with such characters is written as its bytes. PostgreSQL then refuses one
/// with a zero, which it can't hold.
fn push_string(text: &mut String, value: &str, dialect: Dialect) -> std::fmt::Result {
    if value.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
        let mut digits = String::new();
        push_digits(&mut digits, value.as_bytes());
        let sqlite = format!("CAST(X'{digits}' AS TEXT)");
        let postgres = format!("convert_from('\\x{digits}','UTF8')");
        return text.write_str(&dialect.choose(&sqlite, &postgres));
    }
    text.push('\'');
    text.push_str(&value.replace('\'', "''"));
    text.write_char('\'')
}

fn bytes(value: &[u8], dialect: Dialect) -> String {
    let mut digits = String::new();
    push_digits(&mut digits, value);
    dialect.choose(&format!("X'{digits}'"), &format!("'\\x{digits}'"))
}

/// Appends bytes as hexadecimal digits.
pub(super) fn push_digits(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02X}");
    }
}
