//! The text form of values, in both directions.

use std::fmt::{self, Write};
use std::str::FromStr;

use crate::date::HOW_TO_WRITE_DATES;
use crate::diagnostics::suggest;
use crate::time::HOW_TO_WRITE_TIMESTAMPS;
use crate::uuid::HOW_TO_WRITE_UUIDS;
use crate::{
    Blob, RowId, Timestamp, Token, Type, TypeClass, Uuid, Value, ValueRef, Variant, WideValue,
    decimal, json, shorten,
};

/// The word for a new UUID of version 7.
const NEW_UUID: &str = "v7";

/// Reads a value of a type from a token. The word `null` is [`Value::Null`] for every type: whether
/// a field may be null is for [`Field::accepts`](crate::Field::accepts) to say.
///
/// # Errors
/// A sentence that says why the token is wrong, and what to write instead.
pub fn parse_value(ty: Type, token: &Token<'_>) -> Result<Value, String> {
    let text = token.text.as_ref();
    if token.is("null") {
        return Ok(Value::Null);
    }
    if ty == Type::Uuid && token.is(NEW_UUID) {
        return Ok(Value::Uuid(Uuid::NEW_V7));
    }
    if token.quoted && !ty.is_text() {
        return Err(format!("a string is not {}: {}", article(ty), expectation(ty, text)));
    }
    let value = match ty.class() {
        TypeClass::Integer { .. } => ty.parse_integer(text),
        TypeClass::Bool => parse_bool(text).map(Value::Bool),
        TypeClass::Float32 => parse_float::<f32>(text, f32::is_finite).map(Value::Float32),
        TypeClass::Float64 => parse_float::<f64>(text, f64::is_finite).map(Value::Float64),
        TypeClass::String => Some(Value::String(text.to_owned())),
        TypeClass::Bytes => parse_bytes(text).map(Value::Bytes),
        TypeClass::Timestamp => text.parse().ok().map(|Timestamp(time)| Value::Timestamp(time)),
        TypeClass::Written => ty.parse_written(text),
        TypeClass::Blob => match joedb_blob(text) {
            Some(("0", "0")) => Some(Value::Null),
            Some(_) => {
                return Err(format!(
                    "`{text}` is a place in a joedb file: import that file, or use blob: and the number that \
                     write_blob prints, like blob:7"
                ));
            }
            None => parse_blob(text).map(Value::Blob),
        },
        TypeClass::Reference => parse_reference(text),
    };
    let value = value.filter(|value| ty.accepts(true, value.as_ref()));
    value.ok_or_else(|| {
        format!("`{}` is not {}: {}", shorten(text), article(ty), expectation(ty, text))
    })
}

fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

fn parse_float<F: FromStr + Copy>(text: &str, is_finite: fn(F) -> bool) -> Option<F> {
    if matches!(text, "inf" | "-inf" | "nan") {
        return text.parse().ok();
    }
    // The standard parser knows other words, and takes 1e999 for infinity.
    let number = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    let value = if number { text.parse().ok()? } else { return None };
    is_finite(value).then_some(value)
}

pub(crate) fn parse_bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x")?.as_bytes();
    let (pairs, []) = digits.as_chunks::<2>() else {
        return None;
    };
    let digit = |c: u8| char::from(c).to_digit(16);
    let byte = |&[high, low]: &[u8; 2]| u8::try_from(digit(high)? * 16 + digit(low)?).ok();
    pairs.iter().map(byte).collect()
}

fn parse_blob(text: &str) -> Option<Blob> {
    let digits = text.strip_prefix("blob:")?;
    let number =
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())??;
    (1..=Blob::MAX.0).contains(&number).then_some(Blob(number))
}

/// Splits joedb's text for a blob: the position of its bytes and their number.
fn joedb_blob(text: &str) -> Option<(&str, &str)> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.split_once(',').filter(|(position, size)| is_number(position) && is_number(size))
}

fn parse_reference(text: &str) -> Option<Value> {
    if text == "-1" {
        return Some(Value::Null);
    }
    let id = RowId(text.parse().ok()?);
    (id <= RowId::MAX).then_some(Value::Reference(id))
}

/// Returns the type's name with its article.
fn article(ty: Type) -> String {
    match ty {
        Type::Bytes | Type::FixedBytes(_) => ty.to_string(),
        Type::Json => "JSON".to_owned(),
        Type::Reference(..) => "a reference".to_owned(),
        Type::Enum(_) => "a variant".to_owned(),
        _ if ty.name().starts_with('i') => format!("an {ty}"),
        _ => format!("a {ty}"),
    }
}

/// Describes the form of values of the type, for someone who wrote a wrong text.
fn expectation(ty: Type, text: &str) -> String {
    match ty {
        Type::Json => {
            let place = json::first_mistake(text).unwrap_or_default();
            let before = text.get(..place).unwrap_or_default().chars().count();
            return format!("correct it from character {} on", before + 1);
        }
        Type::FixedBytes(len) => {
            return format!("use 0x and {} hexadecimal digits", u32::from(len) * 2);
        }
        Type::Date => return HOW_TO_WRITE_DATES.to_owned(),
        Type::Uuid => return HOW_TO_WRITE_UUIDS.to_owned(),
        Type::Decimal(scale) => return decimal::how_to_write(scale),
        Type::Enum(variants) => {
            let names = variants.iter().map(Variant::name);
            return suggest(text, "variant", names);
        }
        _ => {}
    }
    match ty.class() {
        TypeClass::Integer { least, most } => format!("use {least} to {most}"),
        TypeClass::Bool => "use true or false".to_owned(),
        TypeClass::Float32 => {
            "use a number like 1.5 or 1e-9, at most 3.4e38, or inf, -inf, nan".into()
        }
        TypeClass::Float64 => {
            "use a number like 1.5 or 1e-9, at most 1.7e308, or inf, -inf, nan".into()
        }
        TypeClass::String | TypeClass::Written => "use quotes".to_owned(),
        TypeClass::Bytes => "use 0x and pairs of hexadecimal digits, like 0x00ff".to_owned(),
        TypeClass::Timestamp => HOW_TO_WRITE_TIMESTAMPS.to_owned(),
        TypeClass::Blob => "use blob: and its number, from 1 on, like blob:7, or null".to_owned(),
        TypeClass::Reference => {
            format!("use the id of a row, 0 to {}, or null", RowId::MAX.0)
        }
    }
}

/// Writes the default of a field as [`parse_value`] reads it: as [`write_value`], and `v7` for a new UUID.
///
/// # Errors
/// Only those of `out`.
pub fn write_default(out: &mut impl Write, default: &Value) -> fmt::Result {
    match default {
        Value::Uuid(Uuid::NEW_V7) => out.write_str(NEW_UUID),
        default => write_value(out, default.as_ref()),
    }
}

/// Writes a value as [`parse_value`] reads it, always on one line.
///
/// # Errors
/// Only those of `out`.
pub fn write_value(out: &mut impl Write, value: ValueRef<'_>) -> fmt::Result {
    match value.widen() {
        WideValue::Null => out.write_str("null"),
        WideValue::Bool(v) => write!(out, "{v}"),
        WideValue::Integer(v) => write!(out, "{v}"),
        WideValue::Float32(v) if v.is_nan() => out.write_str("nan"),
        WideValue::Float32(v) if is_plain(f64::from(v)) => write!(out, "{v}"),
        WideValue::Float32(v) => write!(out, "{v:e}"),
        WideValue::Float64(v) if v.is_nan() => out.write_str("nan"),
        WideValue::Float64(v) if is_plain(v) => write!(out, "{v}"),
        WideValue::Float64(v) => write!(out, "{v:e}"),
        WideValue::String(v) => write_string(out, v),
        WideValue::Bytes(v) => {
            out.write_str("0x")?;
            v.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
        }
        WideValue::Timestamp(v) => write!(out, "{}", Timestamp(v)),
        WideValue::Written(v) => write!(out, "{v}"),
        WideValue::Blob(v) => write!(out, "blob:{}", v.0),
        WideValue::Reference(v) => write!(out, "{}", v.0),
    }
}

/// True if a float is written without an exponent.
fn is_plain(v: f64) -> bool {
    v == 0.0 || (1e-7..1e21).contains(&v.abs()) || v.is_infinite()
}

/// Writes a string in quotes. Whatever could move the rest of the line is escaped.
fn write_string(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\t' => out.write_str("\\t")?,
            '\r' => out.write_str("\\r")?,
            '\0'..='\x1f' | '\x7f' => write!(out, "\\{:03o}", u32::from(c))?,
            '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
                write!(out, "\\u{{{:x}}}", u32::from(c))?
            }
            _ => out.write_char(c)?,
        }
    }
    out.write_char('"')
}

impl fmt::Display for ValueRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_value(f, *self)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_value(f, self.as_ref())
    }
}
