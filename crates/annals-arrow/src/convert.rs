//! Values of Arrow, and the values of a field that they are.

use std::fmt;

use annals::model::AnyDecimal;
use annals::{Date, Error, RowId, Timestamp, Type, Uuid, ValueRef};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrowPrimitiveType, downcast_dictionary_array};
use arrow_buffer::i256;
use arrow_schema::{DataType, TimeUnit};

/// A value, as wide as its kind has them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wide<'a> {
    Null,
    Bool(bool),
    Integer(i128),
    Float32(f32),
    Float64(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
    Days(i32),
    Microseconds(i64),
    Decimal(i128, i8),
    /// A time that microseconds don't hold.
    Finer,
    /// A number with more digits than any field has.
    Longer,
}

impl fmt::Display for Wide<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = match *self {
            Self::Null => ValueRef::Null,
            Self::Bool(v) => ValueRef::Bool(v),
            Self::Integer(v) => return write!(f, "{v}"),
            Self::Float32(v) => ValueRef::Float32(v),
            Self::Float64(v) => ValueRef::Float64(v),
            Self::Text(v) => return write!(f, "{:?}", annals_schema::shorten(v)),
            Self::Bytes(v) => ValueRef::Bytes(v.get(..SHOWN).unwrap_or(v)),
            Self::Days(v) => ValueRef::Date(Date(v)),
            Self::Microseconds(v) => ValueRef::Timestamp(v),
            Self::Decimal(units, scale) => match u8::try_from(scale) {
                Ok(scale) => ValueRef::Decimal(AnyDecimal::new(units, scale)),
                Err(_) => return write!(f, "{units}e{}", scale.unsigned_abs()),
            },
            Self::Finer => return f.write_str("a time that isn't a whole number of microseconds"),
            Self::Longer => return f.write_str("a number with more digits than 128 bits hold"),
        };
        annals_schema::write_value(f, value)?;
        f.write_str(if matches!(self, Self::Bytes(v) if v.len() > SHOWN) { ".." } else { "" })
    }
}

/// How many bytes of a value are shown.
const SHOWN: usize = 32;

/// Reads one value of a column.
pub(crate) type Read<'a> = Box<dyn Fn(usize) -> Wide<'a> + 'a>;

/// A float of 16 bits.
type Half = <Float16Type as ArrowPrimitiveType>::Native;

const DAY: i64 = 86_400_000_000;

/// Returns what reads the values of an array; `None`: no field takes values of its type.
pub(crate) fn reader<'a>(array: &'a dyn Array) -> Option<Read<'a>> {
    macro_rules! numbers {
        ($type:ty, $wide:expr) => {{
            let array = array.as_primitive::<$type>();
            let wide = $wide;
            Box::new(move |row: usize| wide(array.value(row))) as Read<'a>
        }};
    }
    macro_rules! others {
        ($array:expr, $wide:path) => {{
            let array = $array;
            Box::new(move |row: usize| $wide(array.value(row))) as Read<'a>
        }};
    }
    let read = match array.data_type() {
        DataType::Null => Box::new(|_: usize| Wide::Null) as Read<'a>,
        DataType::Boolean => others!(array.as_boolean(), Wide::Bool),
        DataType::Int8 => numbers!(Int8Type, |v: i8| Wide::Integer(v.into())),
        DataType::Int16 => numbers!(Int16Type, |v: i16| Wide::Integer(v.into())),
        DataType::Int32 => numbers!(Int32Type, |v: i32| Wide::Integer(v.into())),
        DataType::Int64 => numbers!(Int64Type, |v: i64| Wide::Integer(v.into())),
        DataType::UInt8 => numbers!(UInt8Type, |v: u8| Wide::Integer(v.into())),
        DataType::UInt16 => numbers!(UInt16Type, |v: u16| Wide::Integer(v.into())),
        DataType::UInt32 => numbers!(UInt32Type, |v: u32| Wide::Integer(v.into())),
        DataType::UInt64 => numbers!(UInt64Type, |v: u64| Wide::Integer(v.into())),
        DataType::Float16 => numbers!(Float16Type, |v: Half| Wide::Float32(v.to_f32())),
        DataType::Float32 => numbers!(Float32Type, Wide::Float32),
        DataType::Float64 => numbers!(Float64Type, Wide::Float64),
        DataType::Date32 => numbers!(Date32Type, Wide::Days),
        DataType::Date64 => numbers!(Date64Type, |v: i64| scaled(v, 1000)),
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => numbers!(TimestampSecondType, |v: i64| scaled(v, 1_000_000)),
            TimeUnit::Millisecond => numbers!(TimestampMillisecondType, |v: i64| scaled(v, 1000)),
            TimeUnit::Microsecond => numbers!(TimestampMicrosecondType, Wide::Microseconds),
            TimeUnit::Nanosecond => numbers!(TimestampNanosecondType, |v: i64| match v % 1000 {
                0 => Wide::Microseconds(v / 1000),
                _ => Wide::Finer,
            }),
        },
        &DataType::Decimal32(_, scale) => {
            numbers!(Decimal32Type, move |v: i32| Wide::Decimal(v.into(), scale))
        }
        &DataType::Decimal64(_, scale) => {
            numbers!(Decimal64Type, move |v: i64| Wide::Decimal(v.into(), scale))
        }
        &DataType::Decimal128(_, scale) => {
            numbers!(Decimal128Type, move |v: i128| Wide::Decimal(v, scale))
        }
        &DataType::Decimal256(_, scale) => {
            let wide = move |v: i128| Wide::Decimal(v, scale);
            numbers!(Decimal256Type, move |v: i256| v.to_i128().map_or(Wide::Longer, wide))
        }
        DataType::Utf8 => others!(array.as_string::<i32>(), Wide::Text),
        DataType::LargeUtf8 => others!(array.as_string::<i64>(), Wide::Text),
        DataType::Utf8View => others!(array.as_string_view(), Wide::Text),
        DataType::Binary => others!(array.as_binary::<i32>(), Wide::Bytes),
        DataType::LargeBinary => others!(array.as_binary::<i64>(), Wide::Bytes),
        DataType::BinaryView => others!(array.as_binary_view(), Wide::Bytes),
        DataType::FixedSizeBinary(_) => others!(array.as_fixed_size_binary(), Wide::Bytes),
        DataType::Dictionary(..) => dictionary(array)?,
        _ => return None,
    };
    let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
    Some(match nulls {
        None => read,
        Some(nulls) => Box::new(move |row| if nulls.is_null(row) { Wide::Null } else { read(row) }),
    })
}

/// Returns the error for a column that can't be imported.
pub(crate) fn no_field(column: impl fmt::Display, ty: &DataType) -> Error {
    Error::invalid(format!(
        "{column}: no field takes values of Arrow's type {ty}; leave the column out, or make texts or numbers of it \
         before"
    ))
}

/// Returns the type of fields that hold the values of a type of Arrow; `None` if no field takes such values.
pub(crate) fn field_type(ty: &DataType) -> Option<Type> {
    Some(match ty {
        DataType::Boolean => Type::Bool,
        DataType::Int8 => Type::Int8,
        DataType::Int16 => Type::Int16,
        DataType::Int32 => Type::Int32,
        DataType::Int64 => Type::Int64,
        DataType::UInt8 => Type::UInt8,
        DataType::UInt16 => Type::UInt16,
        DataType::UInt32 => Type::UInt32,
        DataType::UInt64 => Type::UInt64,
        DataType::Float16 | DataType::Float32 => Type::Float32,
        DataType::Float64 => Type::Float64,
        DataType::Date32 => Type::Date,
        DataType::Date64 | DataType::Timestamp(..) => Type::Timestamp,
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Type::named(&format!("decimal({})", (*scale).max(0)))?,
        // Nothing is known of a column of nulls.
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Type::String,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Type::Bytes,
        DataType::FixedSizeBinary(len) => {
            Type::named(&format!("bytes({len})")).unwrap_or(Type::Bytes)
        }
        DataType::Dictionary(_, values) => field_type(values)?,
        _ => return None,
    })
}

fn dictionary<'a>(array: &'a dyn Array) -> Option<Read<'a>> {
    downcast_dictionary_array!(
        array => {
            let read = reader(array.values().as_ref())?;
            Some(Box::new(move |row| array.key(row).map_or(Wide::Null, &read)))
        },
        _ => None
    )
}

fn scaled(value: i64, by: i64) -> Wide<'static> {
    value.checked_mul(by).map_or(Wide::Finer, Wide::Microseconds)
}

/// Returns the value of a type that is the same; `None`: there is none. Bytes of a blob are left to the caller.
pub(crate) fn value(ty: Type, wide: Wide<'_>) -> Option<ValueRef<'_>> {
    Some(match (ty, wide) {
        (_, Wide::Null) => ValueRef::Null,
        (_, Wide::Finer | Wide::Longer) => return None,
        (Type::Bool, Wide::Bool(v)) => ValueRef::Bool(v),
        (Type::Float32, Wide::Float32(v)) => ValueRef::Float32(v),
        (Type::Float32, Wide::Float64(v)) => narrow(v).map(ValueRef::Float32)?,
        (Type::Float32, Wide::Integer(v)) => {
            let float = narrow(float(v)?)?;
            ValueRef::Float32(Some(float).filter(|float| f64::from(*float) == v as f64)?)
        }
        (Type::Float64, Wide::Float64(v)) => ValueRef::Float64(v),
        (Type::Float64, Wide::Float32(v)) => ValueRef::Float64(v.into()),
        (Type::Float64, Wide::Integer(v)) => ValueRef::Float64(float(v)?),
        (Type::String | Type::Json, Wide::Text(v)) => ValueRef::String(v),
        (Type::Bytes | Type::FixedBytes(_) | Type::Blob, Wide::Bytes(v)) => ValueRef::Bytes(v),
        (Type::Uuid, Wide::Bytes(v)) => ValueRef::Uuid(Uuid(v.try_into().ok()?)),
        (Type::Uuid, Wide::Text(v)) => ValueRef::Uuid(v.parse().ok()?),
        (Type::Timestamp, Wide::Microseconds(v)) => ValueRef::Timestamp(v),
        (Type::Timestamp, Wide::Days(v)) => ValueRef::Timestamp(i64::from(v).checked_mul(DAY)?),
        (Type::Timestamp, Wide::Text(v)) => ValueRef::Timestamp(v.parse::<Timestamp>().ok()?.0),
        (Type::Date, Wide::Days(v)) => ValueRef::Date(Date(v)),
        (Type::Date, Wide::Microseconds(v)) if v % DAY == 0 => {
            ValueRef::Date(Date(i32::try_from(v / DAY).ok()?))
        }
        (Type::Date, Wide::Text(v)) => ValueRef::Date(v.parse().ok()?),
        (Type::Decimal(scale), wide) => ValueRef::Decimal(decimal(scale, wide)?),
        (Type::Enum(variants), Wide::Text(v)) => ValueRef::Enum(variants.named(v)?),
        (Type::Reference(..), Wide::Integer(v)) => {
            let id = u64::try_from(v).ok().map(RowId).filter(|id| *id <= RowId::MAX)?;
            ValueRef::Reference(id)
        }
        (ty, Wide::Integer(v)) => integer(ty, v)?,
        #[expect(clippy::cast_possible_truncation, reason = "it is a whole number below EXACT")]
        (ty, Wide::Float64(v)) if v.fract() == 0.0 && v.abs() < EXACT => integer(ty, v as i128)?,
        (ty, Wide::Decimal(v, 0)) => integer(ty, v)?,
        _ => return None,
    })
}

/// Integers below it are exact in a double.
const EXACT: f64 = 9_007_199_254_740_992.0;

fn integer(ty: Type, number: i128) -> Option<ValueRef<'static>> {
    macro_rules! integer {
        ($($variant:ident: $rust:ty;)*) => {
            match ty {
                $(Type::$variant => number.try_into().ok().map(ValueRef::$variant),)*
                _ => None,
            }
        };
    }
    annals_schema::column_types!(integers, integer)
}

#[expect(clippy::cast_possible_truncation, reason = "only what is the same afterwards is taken")]
fn float(number: i128) -> Option<f64> {
    let float = number as f64;
    (float as i128 == number).then_some(float)
}

/// Rounds a float to one of 32 bits, as one of a text is; but doesn't make it infinite.
#[expect(clippy::cast_possible_truncation, reason = "who has a field of 32 bits wants it rounded")]
fn narrow(float: f64) -> Option<f32> {
    let narrow = float as f32;
    (narrow.is_finite() || !float.is_finite()).then_some(narrow)
}

fn decimal(scale: u8, wide: Wide<'_>) -> Option<AnyDecimal> {
    let (units, of) = match wide {
        Wide::Decimal(units, of) => (units, i32::from(of)),
        Wide::Integer(number) => (number, 0),
        Wide::Text(text) => return AnyDecimal::parse(text, scale).ok(),
        _ => return None,
    };
    let more = i32::from(scale) - of;
    let factor = 10_i128.checked_pow(more.unsigned_abs())?;
    let units = match more {
        0.. => units.checked_mul(factor)?,
        _ if units % factor == 0 => units / factor,
        _ => return None,
    };
    Some(AnyDecimal::new(units, scale))
}
