//! Values that are read from JSON.

use annals::{RowId, Timestamp, Type, Value};

/// A value of JSON that is no array and no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar<'t> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, with the digits as they were written.
    Number(&'t str),
    /// A string, without quotes and escapes.
    String(&'t str),
}

/// Returns the value of a type for what [`push_value`](crate::push_value) writes, and for a number where a string
/// stands there; `None` if the type has no such value, or could hold it only with a loss. Blobs are refused.
#[must_use]
pub fn parse_value(ty: Type, scalar: Scalar<'_>) -> Option<Value> {
    let is_named = |text| matches!(text, "NaN" | "Infinity" | "-Infinity" | "nan" | "inf" | "-inf");
    let value = match (ty, scalar) {
        (_, Scalar::Null) => Value::Null,
        (Type::Bool, Scalar::Bool(value)) => Value::Bool(value),
        (Type::Float32, Scalar::Number(text)) => {
            Value::Float32(text.parse().ok().filter(|v: &f32| v.is_finite())?)
        }
        (Type::Float64, Scalar::Number(text)) => {
            Value::Float64(text.parse().ok().filter(|v: &f64| v.is_finite())?)
        }
        (Type::Float32, Scalar::String(text)) if is_named(text) => {
            Value::Float32(text.parse().ok()?)
        }
        (Type::Float64, Scalar::String(text)) if is_named(text) => {
            Value::Float64(text.parse().ok()?)
        }
        (ty, Scalar::String(text)) if ty.is_text() => Value::String(text.to_owned()),
        (ty, Scalar::String(text)) if ty.is_variable() => {
            let tokens = annals_schema::tokenize(text).ok().filter(|_| text.starts_with("0x"))?;
            annals_schema::parse_value(ty, tokens.first().filter(|_| tokens.len() == 1)?).ok()?
        }
        (Type::Timestamp, Scalar::String(text)) => {
            Value::Timestamp(text.parse::<Timestamp>().ok()?.0)
        }
        (Type::Reference(..), Scalar::Number(text)) => {
            Value::Reference(Some(RowId(text.parse().ok()?)).filter(|id| *id <= RowId::MAX)?)
        }
        (ty, Scalar::Number(text)) => ty.parse_integer(text).or_else(|| ty.parse_written(text))?,
        (ty, Scalar::String(text)) => ty.parse_written(text)?,
        _ => return None,
    };
    Some(value)
}
