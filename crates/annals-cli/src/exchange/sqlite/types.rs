//! The meaning of a column's declared type, and the values of such a column.

use annals::Type;
use rusqlite::types::ValueRef;

use crate::dump::sql::{Dialect, type_word};
use crate::exchange::scalar::Scalar;

/// Returns the type that the words declare; `None` if they leave it open, or declare decimals or times, whose type
/// follows from the values.
pub(super) fn declared(words: &str) -> Option<Type> {
    let variants = words.strip_prefix("TEXT \"ENUM(").and_then(|rest| rest.strip_suffix(")\""));
    if let Some(ty) = variants.and_then(|variants| Type::named(&format!("enum({variants})"))) {
        return Some(ty);
    }
    let upper = words.to_ascii_uppercase();
    let ours = upper.strip_prefix("TEXT ").or_else(|| upper.strip_prefix("BLOB "));
    if let Some(ty) = ours.and_then(|ours| Type::named(&ours.to_ascii_lowercase())) {
        return Some(ty);
    }
    let word = upper.split('(').next().unwrap_or_default().trim();
    let own = |ty: &Type| type_word(*ty, Dialect::Sqlite) == word;
    if let Some(ty) = Type::PLAIN.into_iter().find(own) {
        return Some(ty);
    }
    let ty = match word {
        "BOOL" => Type::Bool,
        "TINYINT" => Type::Int8,
        "SMALLINT" | "INT2" => Type::Int16,
        // The rules by which SQLite itself reads the words.
        word if word.contains("INT") => Type::Int64,
        word if ["CHAR", "CLOB", "TEXT"].iter().any(|text| word.contains(text)) => Type::String,
        word if word.contains("BLOB") || word == "BYTEA" => Type::Bytes,
        word if ["REAL", "FLOA", "DOUB"].iter().any(|real| word.contains(real)) => Type::Float64,
        _ => return None,
    };
    Some(ty)
}

/// Returns a value of a column of which the type was declared so. Values without a number in SQLite are stored as
/// `write` does.
pub(super) fn scalar(value: ValueRef<'_>, declared: Option<Type>) -> Scalar<'_> {
    let is_float = matches!(declared, Some(Type::Float32 | Type::Float64));
    match value {
        ValueRef::Null => Scalar::Null,
        ValueRef::Integer(value) => Scalar::Int(value.into()),
        ValueRef::Real(value) => Scalar::Real(value),
        ValueRef::Text(b"NaN") if is_float => Scalar::Real(f64::NAN),
        // SQLite doesn't look whether texts are ones.
        ValueRef::Text(value) => {
            std::str::from_utf8(value).map_or(Scalar::Bytes(value), Scalar::Text)
        }
        ValueRef::Blob(value) => match (bits(value), declared) {
            (Some(bits), Some(Type::UInt64)) => Scalar::Int(bits.into()),
            (Some(bits), Some(_)) if is_float && bits == (-0.0_f64).to_bits() => Scalar::Real(-0.0),
            _ => Scalar::Bytes(value),
        },
    }
}

/// Reads eight bytes of which the first has its first bit.
#[expect(clippy::big_endian_bytes, reason = "SQLite compares bytes from the first on")]
fn bits(value: &[u8]) -> Option<u64> {
    let bits = u64::from_be_bytes(value.try_into().ok()?);
    (bits >> 63 == 1).then_some(bits)
}
