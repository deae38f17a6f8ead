//! Values of formats with fewer types, the summary of a column of them, and the type that holds them all without
//! loss.

#[cfg(any(feature = "sqlite", test))]
use annals::{OnDelete, TableNumber};
use annals::{RowId, Timestamp, Type, TypeClass, Value};

/// The integers from minus this up to this are floats of 64 bits, too.
const EXACT: i128 = 1 << 53;
/// The same for floats of 32 bits.
const EXACT_SINGLE: i128 = 1 << 24;
/// The limit on the length of texts and bytes in a row.
const LONGEST: usize = 1 << 30;

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scalar<'a> {
    Null,
    Bool(bool),
    Int(i128),
    Real(f64),
    Text(&'a str),
    #[cfg_attr(
        not(any(feature = "sqlite", test)),
        expect(dead_code, reason = "only SQLite has such")
    )]
    Bytes(&'a [u8]),
}

/// The summary of a column.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// True if a row has nothing there.
    pub(crate) nulls: bool,
    bools: bool,
    /// The least and the largest integer.
    ints: Option<(i128, i128)>,
    reals: bool,
    /// True if all floats are some of 32 bits.
    singles: bool,
    texts: bool,
    /// True if all texts are times.
    times: bool,
    bytes: bool,
    longest: usize,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            nulls: false,
            bools: false,
            ints: None,
            reals: false,
            singles: true,
            texts: false,
            times: true,
            bytes: false,
            longest: 0,
        }
    }
}

impl Seen {
    /// Adds a value to the summary.
    pub(crate) fn see(&mut self, value: Scalar<'_>) {
        match value {
            Scalar::Null => self.nulls = true,
            Scalar::Bool(_) => self.bools = true,
            Scalar::Int(value) => {
                let (least, most) = self.ints.unwrap_or((value, value));
                self.ints = Some((least.min(value), most.max(value)));
            }
            Scalar::Real(value) => {
                self.reals = true;
                self.singles &= value.is_nan() || f64::from(single(value)) == value;
            }
            Scalar::Text(value) => {
                self.texts = true;
                self.times = self.times && is_time(value);
                self.longest = self.longest.max(value.len());
            }
            Scalar::Bytes(value) => {
                self.bytes = true;
                self.longest = self.longest.max(value.len());
            }
        }
    }

    /// True if only nulls were seen.
    pub(crate) const fn is_empty(&self) -> bool {
        self.kinds() == 0
    }

    /// True if values of several kinds were seen, which become texts or bytes.
    pub(crate) fn is_mixed(&self) -> bool {
        self.kinds() > 1 && !self.fits(Type::Float64)
    }

    const fn kinds(&self) -> u32 {
        self.bools as u32
            + self.ints.is_some() as u32
            + self.reals as u32
            + self.texts as u32
            + self.bytes as u32
    }

    fn has_only_numbers(&self) -> bool {
        !(self.bools || self.texts || self.bytes)
    }

    fn has_ints_within(&self, least: i128, most: i128) -> bool {
        self.ints.is_none_or(|(low, high)| least <= low && high <= most)
    }

    /// True if a field of this type holds all values seen, except nulls, without loss.
    pub(crate) fn fits(&self, ty: Type) -> bool {
        let ints = |least: i128, most: i128| {
            self.has_only_numbers() && !self.reals && self.has_ints_within(least, most)
        };
        let alone = |what: bool| self.kinds() == u32::from(what);
        match ty.class() {
            TypeClass::Bool => self.kinds() == 0 || alone(self.bools) || ints(0, 1),
            TypeClass::Integer { least, most } => ints(least, most),
            TypeClass::Timestamp => ints(i64::MIN.into(), i64::MAX.into()),
            TypeClass::Reference => ints(0, RowId::MAX.0.into()),
            TypeClass::Float32 => {
                let whole = self.has_ints_within(-EXACT_SINGLE, EXACT_SINGLE);
                self.has_only_numbers() && self.singles && whole
            }
            TypeClass::Float64 => self.has_only_numbers() && self.has_ints_within(-EXACT, EXACT),
            TypeClass::String | TypeClass::Written => alone(self.texts) && self.longest <= LONGEST,
            TypeClass::Bytes => alone(self.bytes) && self.longest <= LONGEST,
            TypeClass::Blob => alone(self.bytes),
        }
    }

    /// Returns the type that holds all values seen. Texts that are times become times if requested.
    pub(crate) fn natural(&self, times: bool) -> Type {
        let asked = |ty: &Type| *ty != Type::Timestamp || times;
        if times && self.texts && self.times && self.kinds() == 1 {
            return Type::Timestamp;
        }
        if self.is_empty() {
            return Type::String;
        }
        let narrow = [
            Type::Bool,
            Type::Int64,
            Type::UInt64,
            Type::Float64,
            Type::String,
            Type::Bytes,
            Type::Blob,
        ];
        let fitting = |ty: &Type| self.fits(*ty) && asked(ty) && (*ty != Type::Bool || self.bools);
        let mixture = match (self.bytes, self.longest <= LONGEST) {
            (false, true) => Type::String,
            (true, true) => Type::Bytes,
            (_, false) => Type::Blob,
        };
        narrow.into_iter().find(fitting).unwrap_or(mixture)
    }

    /// True if all that was seen can be ids of rows.
    #[cfg(any(feature = "sqlite", test))]
    pub(crate) fn are_ids(&self) -> bool {
        self.fits(Type::Reference(TableNumber(0), OnDelete::Dangle))
    }
}

/// A value of ours, or the bytes of a blob that is still to be written.
pub(crate) enum Converted {
    Value(Value),
    Blob(Vec<u8>),
}

/// Converts to a value of a type; `None` if the type can't hold it without loss.
pub(crate) fn convert(value: Scalar<'_>, ty: Type) -> Option<Converted> {
    let converted = match (ty, value) {
        (_, Scalar::Null) => Value::Null,
        (Type::Bool, Scalar::Bool(value)) => Value::Bool(value),
        (Type::Bool, Scalar::Int(value @ (0 | 1))) => Value::Bool(value == 1),
        (Type::Timestamp, Scalar::Int(value)) => Value::Timestamp(value.try_into().ok()?),
        (Type::Timestamp, Scalar::Text(value)) => {
            Value::Timestamp(value.parse::<Timestamp>().ok()?.0)
        }
        (Type::Reference(..), Scalar::Int(value)) => {
            let id = RowId(value.try_into().ok()?);
            Value::Reference(Some(id).filter(|id| *id <= RowId::MAX)?)
        }
        (Type::Float32, Scalar::Real(value)) => Value::Float32(single(value)),
        (Type::Float64, Scalar::Real(value)) => Value::Float64(value),
        (Type::Float32, Scalar::Int(value)) => Value::Float32(single(whole(value))),
        (Type::Float64, Scalar::Int(value)) => Value::Float64(whole(value)),
        (ty, value) if ty.is_text() => Value::String(text_of(value)?),
        (ty, value) if ty.is_variable() => Value::Bytes(bytes_of(value)),
        (Type::Blob, value) => return Some(Converted::Blob(bytes_of(value))),
        (ty, Scalar::Int(value)) => {
            ty.integer(value).or_else(|| ty.parse_written(&value.to_string()))?
        }
        (ty, Scalar::Text(value)) => ty.parse_written(value)?,
        _ => return None,
    };
    Some(Converted::Value(converted))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "whether something is lost was looked at before"
)]
const fn single(value: f64) -> f32 {
    value as f32
}

const fn whole(value: i128) -> f64 {
    value as f64
}

/// Returns a value as text, as in a column of several kinds.
fn text_of(value: Scalar<'_>) -> Option<String> {
    match value {
        Scalar::Text(value) => Some(value.to_owned()),
        Scalar::Bool(value) => Some(value.to_string()),
        Scalar::Int(value) => Some(value.to_string()),
        Scalar::Real(value) => Some(format!("{value:?}")),
        Scalar::Null | Scalar::Bytes(_) => None,
    }
}

fn bytes_of(value: Scalar<'_>) -> Vec<u8> {
    match value {
        Scalar::Bytes(value) => value.to_vec(),
        value => text_of(value).unwrap_or_default().into_bytes(),
    }
}

/// True if a text is a time that a timestamp holds exactly. A date alone, or a finer time, stays a text unless the
/// schema says otherwise.
fn is_time(text: &str) -> bool {
    let fraction = text.split_once('.').map_or("", |(_, rest)| rest);
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    let is_date = text.len() == "2021-11-02".len() && !text.starts_with('@');
    digits <= 6 && !is_date && text.parse::<Timestamp>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(values: &[Scalar<'_>]) -> Seen {
        let mut seen = Seen::default();
        values.iter().for_each(|&value| seen.see(value));
        seen
    }

    #[test]
    fn a_column_gets_the_type_that_loses_nothing() {
        use Scalar as S;
        let cases: [(&[S<'_>], Type); 13] = [
            (&[], Type::String),
            (&[S::Null], Type::String),
            (&[S::Bool(true), S::Null], Type::Bool),
            (&[S::Int(0), S::Int(1)], Type::Int64),
            (&[S::Int(i64::MIN.into())], Type::Int64),
            (&[S::Int(u64::MAX.into())], Type::UInt64),
            (&[S::Int(u64::MAX.into()), S::Int(-1)], Type::String),
            (&[S::Int(1), S::Real(0.5)], Type::Float64),
            (&[S::Int((1 << 53) + 1), S::Real(0.5)], Type::String),
            (&[S::Text("2020-01-01T00:00:00Z")], Type::String),
            (&[S::Text("a"), S::Bool(true)], Type::String),
            (&[S::Bytes(b"a")], Type::Bytes),
            (&[S::Bytes(b"a"), S::Text("a"), S::Int(1)], Type::Bytes),
        ];
        for (values, ty) in cases {
            assert_eq!(seen(values).natural(false), ty, "{values:?}");
            for &value in values {
                assert!(convert(value, ty).is_some(), "{value:?}");
            }
        }
        assert_eq!(seen(&[S::Text("2020-01-01T00:00:00Z")]).natural(true), Type::Timestamp);
        assert_eq!(
            seen(&[S::Text("2020-01-01T00:00:00Z"), S::Text("")]).natural(true),
            Type::String
        );
    }

    #[test]
    fn what_fits_is_kept_exactly() {
        use Scalar as S;
        assert!(seen(&[S::Int(1), S::Int(0)]).fits(Type::Bool));
        assert!(!seen(&[S::Int(2)]).fits(Type::Bool));
        assert!(seen(&[S::Real(0.5), S::Real(f64::NAN)]).fits(Type::Float32));
        assert!(!seen(&[S::Real(0.1)]).fits(Type::Float32));
        assert!(!seen(&[S::Int(128)]).fits(Type::Int8));
        assert!(!seen(&[S::Real(1.0)]).fits(Type::Int64));
        assert!(seen(&[]).fits(Type::Bytes));
        assert!(!seen(&[S::Int(-1)]).are_ids());
    }
}
