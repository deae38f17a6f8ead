//! Values of formats with fewer types, the summary of a column of them, and the type that holds them all without
//! loss.

use std::fmt;

#[cfg(any(feature = "sqlite", test))]
use annals::TableNumber;
#[cfg(any(feature = "sqlite", test))]
use annals::model::OnDelete;
use annals::model::{TypeClass, WideValue};
use annals::{RowId, Timestamp, Type, Value, ValueRef};

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

impl fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => fmt::Display::fmt(value, f),
            Self::Int(value) => fmt::Display::fmt(value, f),
            Self::Real(value) => fmt::Debug::fmt(value, f),
            Self::Text(value) => write!(f, "{value:?}"),
            Self::Bytes(value) => f.write_str(&crate::language::value_text(ValueRef::Bytes(value))),
        }
    }
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
    /// The declared type, if only the values themselves say whether they are of it.
    declared: Option<Type>,
    /// True if all values are of that type.
    held: bool,
    /// True if a value of that type was written in another way than the type writes it.
    rewritten: bool,
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
            declared: None,
            held: true,
            rewritten: false,
        }
    }
}

impl Seen {
    /// Begins the summary of a column with a declared type.
    #[cfg(any(feature = "sqlite", test))]
    pub(crate) fn declared(ty: Option<Type>) -> Self {
        Self { declared: ty.filter(|ty| is_narrow(*ty)), ..Self::default() }
    }

    /// Adds a value to the summary.
    pub(crate) fn see(&mut self, value: Scalar<'_>) {
        if let Some(ty) = self.declared.filter(|_| self.held) {
            let held = held(value, ty);
            self.held = held.is_some();
            self.rewritten |= matches!((value, held), (Scalar::Text(text), Some(value))
                if written(value.as_ref()).is_some_and(|written| written != text));
        }
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
            TypeClass::String | TypeClass::Written => {
                alone(self.texts) && self.longest <= LONGEST && self.holds(ty)
            }
            TypeClass::Bytes => alone(self.bytes) && self.longest <= LONGEST && self.holds(ty),
            TypeClass::Blob => alone(self.bytes),
        }
    }

    /// True if each value seen is of the type, where its kind alone doesn't say so.
    fn holds(&self, ty: Type) -> bool {
        !is_narrow(ty) || self.is_empty() || (self.declared == Some(ty) && self.held)
    }

    /// True if different texts may have become the same value.
    #[cfg(any(feature = "sqlite", test))]
    pub(crate) const fn is_rewritten(&self) -> bool {
        self.held && self.rewritten
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

/// True if a value of the kind that a type is stored as may still be none of the type.
fn is_narrow(ty: Type) -> bool {
    ty.class() == TypeClass::Written || matches!(ty, Type::Json | Type::FixedBytes(_))
}

/// Returns the value of a type that a value is; `None` if it is none.
pub(crate) fn held(value: Scalar<'_>, ty: Type) -> Option<Value> {
    match convert(value, ty)? {
        Converted::Value(value) => Some(value).filter(|value| ty.accepts(true, value.as_ref())),
        Converted::Blob(_) => None,
    }
}

/// True if a text is a value of a type, and the type writes it so.
pub(crate) fn is_written_so(text: &str, ty: Type) -> bool {
    let value = held(Scalar::Text(text), ty);
    value.and_then(|value| written(value.as_ref())).is_some_and(|written| written == text)
}

/// Returns the float that a number is, if it has all digits of the number: with as many as the number has, it is
/// written in the same way.
pub(crate) fn exact_float(text: &str) -> Option<f64> {
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite())?;
    let number = significant(text)?;
    let written = format!("{value:.*e}", number.0.len().saturating_sub(1));
    (significant(&written)? == number).then_some(value)
}

/// Returns the digits of a number without zeros at its ends, and the power of ten of the first.
fn significant(text: &str) -> Option<(String, i64)> {
    let unsigned = text.trim_start_matches(['+', '-']);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let begun = all.trim_start_matches('0');
    if begun.is_empty() {
        return Some((String::new(), 0));
    }
    let place = i64::try_from(whole.len()).ok()? - i64::try_from(all.len() - begun.len()).ok()?;
    let exponent = exponent.parse::<i64>().ok()?.checked_add(place - 1)?;
    Some((begun.trim_end_matches('0').to_owned(), exponent))
}

/// Returns the text that a value has in formats without its type.
fn written(value: ValueRef<'_>) -> Option<String> {
    match value.widen() {
        WideValue::Written(value) => Some(value.to_string()),
        _ => None,
    }
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

    #[test]
    fn a_float_has_all_digits_of_its_number() {
        for text in [
            "0",
            "-0.0",
            "0.1",
            "1.10",
            "1e5",
            "1E-05",
            "5e-324",
            "0.10000000000000001",
            "123456789e-3",
        ] {
            assert!(exact_float(text).is_some(), "{text}");
        }
        let long = "1.20000000000000000000000000005";
        for text in [
            long,
            "1000000000.000000001",
            "1e-400",
            "1e400",
            "9007199254740993.0",
            "1e99999999999999999999",
        ] {
            assert_eq!(exact_float(text), None, "{text}");
        }
    }

    #[test]
    fn a_declared_type_is_kept_if_each_value_is_one() {
        let cases: [(&str, &[&str], &[&str]); 6] = [
            ("date", &["2024-02-29", "0001-01-01"], &["", "2024-02-30", "20240229", "today"]),
            ("decimal(2)", &["12.50", "-3", "1.5"], &["12.505", "n/a", "", "1e3"]),
            ("uuid", &["67e55044-10b1-426f-9247-bb680e5fe0c8"], &["unknown", ""]),
            ("json", &["{}", "[1, 2]", "null"], &["", "{", "{} x"]),
            ("enum(a,b)", &["a", "b"], &["c", "", "A"]),
            ("string", &["", "x"], &[]),
        ];
        for (name, right, wrong) in cases {
            let ty = Type::named(name).unwrap();
            let summary = |values: &[&str]| {
                let mut seen = Seen::declared(Some(ty));
                values.iter().for_each(|value| seen.see(Scalar::Text(value)));
                seen
            };
            assert!(summary(right).fits(ty) && summary(&[]).fits(ty), "{name}");
            for value in wrong {
                let with_one = summary(&[right, &[value]].concat());
                assert!(!with_one.fits(ty), "{name}: {value:?}");
                assert_eq!(with_one.natural(false), Type::String, "{name}");
            }
        }
        let mut bytes = Seen::declared(Some(Type::FixedBytes(4)));
        bytes.see(Scalar::Bytes(&[1, 2, 3, 4]));
        assert!(bytes.fits(Type::FixedBytes(4)));
        bytes.see(Scalar::Bytes(&[1]));
        assert!(!bytes.fits(Type::FixedBytes(4)) && bytes.fits(Type::Bytes));
    }
}
