//! Rows, changes and events as JSON, and rows as CSV, for the program `annals` and for the server.
//!
//! Objects are text that is appended to a string, so that a row costs no tree of values. `id` is a row's id; other keys
//! are the names of fields.

use std::fmt::Write;

use annals::model::WideValue;
use annals::{Field, Table, Timestamp, ValueRef};

mod events;
mod rows;
mod values;
mod versions;

pub use events::push_event;
pub use rows::{push_change, push_csv_row, push_fields, push_row, push_values};
pub use values::{Scalar, parse_value};
pub use versions::{changes, push_blame, push_version};

/// Appends a value. Bytes are strings of the form `0x..`, blobs `blob:N`, timestamps RFC 3339 strings,
/// references the id or `null`; a float that JSON has no number for is one of the strings `NaN`,
/// `Infinity` and `-Infinity`.
pub fn push_value(text: &mut String, value: ValueRef<'_>) {
    match value.widen() {
        WideValue::Null => text.push_str("null"),
        WideValue::Bool(value) => push_display(text, value),
        WideValue::Integer(value) => push_display(text, value),
        // The shortest digits that restore this float differ from those of the nearest double.
        WideValue::Float32(value) if value.is_finite() => push_debug(text, value),
        WideValue::Float64(value) if value.is_finite() => push_debug(text, value),
        WideValue::Float32(value) => push_not_finite(text, f64::from(value)),
        WideValue::Float64(value) => push_not_finite(text, value),
        WideValue::String(value) => push_string(text, value),
        WideValue::Bytes(_) | WideValue::Blob(_) => {
            let mut hex = String::new();
            // Writing to a string doesn't fail.
            let _infallible = annals_schema::write_value(&mut hex, value);
            push_string(text, &hex);
        }
        WideValue::Timestamp(value) => push_string(text, &Timestamp(value).to_string()),
        WideValue::Written(value) => push_string(text, &value.to_string()),
        WideValue::Reference(id) => push_display(text, id.0),
    }
}

/// Appends a string in quotes. Control characters are escaped, those too that JSON would allow:
/// a terminal may obey them.
pub fn push_string(text: &mut String, value: &str) {
    let quoted = serde_json::Value::from(value).to_string();
    if !quoted.contains(char::is_control) {
        return text.push_str(&quoted);
    }
    for c in quoted.chars() {
        if c.is_control() {
            // Writing to a string doesn't fail.
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
}

/// Appends a text of CSV, in quotes if it needs them. An empty one has them: null has none.
pub fn push_csv(text: &mut String, value: &str) {
    let is_plain = !value.is_empty()
        && !value.contains(['"', ',', '\n', '\r'])
        && value.trim().len() == value.len();
    if is_plain {
        return text.push_str(value);
    }
    text.push('"');
    text.push_str(&value.replace('"', "\"\""));
    text.push('"');
}

/// Returns the key of a field. `id` is the row's id, so a field of that name gets its full name, which can't be
/// another field's because names have no dot.
#[must_use]
pub fn key(table: &Table, field: &Field) -> String {
    if field.name == "id" { format!("{}.id", table.name) } else { field.name.clone() }
}

fn push_display(text: &mut String, value: impl std::fmt::Display) {
    // Writing to a string doesn't fail.
    let _ = write!(text, "{value}");
}

fn push_debug(text: &mut String, value: impl std::fmt::Debug) {
    let _ = write!(text, "{value:?}");
}

fn push_not_finite(text: &mut String, value: f64) {
    text.push_str(match value {
        value if value.is_nan() => "\"NaN\"",
        value if value > 0.0 => "\"Infinity\"",
        _ => "\"-Infinity\"",
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: ValueRef<'_>) -> String {
        let mut text = String::new();
        push_value(&mut text, value);
        text
    }

    #[test]
    fn floats_are_json_numbers_or_named_strings() {
        assert_eq!(json(ValueRef::Float32(0.1)), "0.1");
        assert_eq!(json(ValueRef::Float64(1e300)), "1e300");
        assert_eq!(json(ValueRef::Float64(-0.0)), "-0.0");
        assert_eq!(json(ValueRef::Float64(f64::NAN)), "\"NaN\"");
        assert_eq!(json(ValueRef::Float32(f32::NEG_INFINITY)), "\"-Infinity\"");
        for value in [1e16, 1.5e-9, 123_456_789.125, f64::MAX, f64::MIN_POSITIVE] {
            let back: f64 = serde_json::from_str(&json(ValueRef::Float64(value))).unwrap();
            assert_eq!(back.to_bits(), value.to_bits());
        }
    }

    #[test]
    fn strings_are_escaped() {
        assert_eq!(json(ValueRef::String("a\"\\\n\u{1}é")), r#""a\"\\\n\u0001é""#);
        assert_eq!(json(ValueRef::String("\u{7f}\u{9b}")), r#""\u007f\u009b""#);
        assert_eq!(json(ValueRef::UInt64(u64::MAX)), "18446744073709551615");
    }
}
