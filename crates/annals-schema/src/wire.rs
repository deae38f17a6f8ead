//! serde: the form of values in formats such as JSON.
//!
//! Numbers of rows and blobs are numbers, points in time their texts. Bytes, and floats that aren't finite, have no
//! form in formats that people read: there they are texts, as in `annals dump --format json`. [`AsText`] writes them so;
//! [`Plain`] leaves a value to its own implementation.

use std::fmt;
use std::marker::PhantomData;

use serde_core::de::{Error, Visitor};
use serde_core::{Deserialize, Deserializer, Serialize, Serializer};

use crate::literal::{parse_bytes, write_value};
use crate::{Blob, Date, Decimal, RowId, Timestamp, Txid, Uuid, Value, ValueRef, WideValue};

impl Serialize for Txid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Txid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Self)
    }
}

/// A value in the form of its own implementation.
#[derive(Clone, Copy, Debug)]
pub struct Plain<T>(pub T);

impl<T: Serialize> Serialize for Plain<&T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Plain<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self)
    }
}

/// A value that is a text in formats that people read, at least where they have no other form for it.
#[derive(Clone, Copy, Debug)]
pub struct AsText<T>(pub T);

impl<T: WithText> Serialize for AsText<&T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(serializer)
    }
}

impl<'de, T: FromText<'de>> Deserialize<'de> for AsText<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::read(deserializer).map(Self)
    }
}

/// A value that [`AsText`] writes.
pub trait WithText {
    /// Writes it.
    ///
    /// # Errors
    /// Those of the format.
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
}

/// A value that [`AsText`] reads.
pub trait FromText<'de>: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// It isn't there, or those of the format.
    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

impl<T: WithText> WithText for Option<T> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Some(value) => serializer.serialize_some(&AsText(value)),
            None => serializer.serialize_none(),
        }
    }
}

impl<'de, T: FromText<'de>> FromText<'de> for Option<T> {
    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::<AsText<T>>::deserialize(deserializer).map(|value| value.map(|AsText(value)| value))
    }
}

/// Writes a value by the rules of its type.
fn write<S: Serializer>(value: ValueRef<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    let is_text = serializer.is_human_readable();
    match value.widen() {
        WideValue::Null => serializer.serialize_none(),
        WideValue::Bool(value) => serializer.serialize_bool(value),
        WideValue::Integer(value) => match (i64::try_from(value), u64::try_from(value)) {
            (Ok(value), _) => serializer.serialize_i64(value),
            (_, Ok(value)) => serializer.serialize_u64(value),
            _ => serializer.serialize_i128(value),
        },
        WideValue::Float32(value) if !is_text || value.is_finite() => {
            serializer.serialize_f32(value)
        }
        WideValue::Float64(value) if !is_text || value.is_finite() => {
            serializer.serialize_f64(value)
        }
        WideValue::Float32(value) => serializer.serialize_str(not_finite(value.into())),
        WideValue::Float64(value) => serializer.serialize_str(not_finite(value)),
        WideValue::String(value) => serializer.serialize_str(value),
        WideValue::Bytes(value) if !is_text => serializer.serialize_bytes(value),
        WideValue::Bytes(_) => {
            let mut text = String::new();
            // Writing to a string can't fail.
            let _infallible = write_value(&mut text, value);
            serializer.serialize_str(&text)
        }
        WideValue::Timestamp(value) => Timestamp(value).serialize(serializer),
        WideValue::Written(value) => serializer.collect_str(&value),
        WideValue::Blob(value) => value.serialize(serializer),
        WideValue::Reference(value) => value.serialize(serializer),
    }
}

const NAN: &str = "NaN";
const INFINITY: &str = "Infinity";
const NEGATIVE_INFINITY: &str = "-Infinity";

const fn not_finite(value: f64) -> &'static str {
    if value.is_nan() {
        NAN
    } else if value < 0.0 {
        NEGATIVE_INFINITY
    } else {
        INFINITY
    }
}

impl Serialize for ValueRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write(*self, serializer)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write(self.as_ref(), serializer)
    }
}

/// Implements serde for a number with a name of its own, the largest of which is `MAX`.
macro_rules! as_number {
    ($($ty:ident, $what:literal;)*) => {$(
        impl Serialize for $ty {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u64(self.0)
            }
        }

        impl<'de> Deserialize<'de> for $ty {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let number = u64::deserialize(deserializer)?;
                if number > Self::MAX.0 {
                    let most = Self::MAX.0;
                    return Err(Error::custom(format_args!("{number} is not {}: the largest is {most}", $what)));
                }
                Ok(Self(number))
            }
        }
    )*};
}

as_number! {
    RowId, "the id of a row";
    Blob, "the number of a blob";
}

/// Implements serde for a type that is written as its text in all formats.
macro_rules! as_its_text {
    ($([$($generics:tt)*] $ty:ty, $what:literal;)*) => {$(
        impl<$($generics)*> Serialize for $ty {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de, $($generics)*> Deserialize<'de> for $ty {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let parse = |text: &str| text.parse::<Self>().map_err(|error| error.to_string());
                deserializer.deserialize_str(Text { what: $what, parse })
            }
        }
    )*};
}

as_its_text! {
    [] Timestamp, "a timestamp as text, such as \"2021-11-02T22:10:25Z\"";
    [] Date, "a date as text, such as \"2021-11-02\"";
    [] Uuid, "a uuid as text";
    [const SCALE: u8] Decimal<SCALE>, "a decimal as text, such as \"12.50\"";
}

/// Reads a value from a text.
struct Text<F> {
    what: &'static str,
    parse: F,
}

impl<T, F: FnOnce(&str) -> Result<T, String>> Visitor<'_> for Text<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(E::custom)
    }
}

/// What bytes are written as in formats that people read.
const HEX: &str = "bytes as text, such as \"0x00ff\"";
const BORROWED: &str = "bytes can't be borrowed from a text: read the owned row instead of `New`, \
     which `insert` takes as well";

/// Implements [`AsText`] for bytes: the owned type, the borrowed one, and what makes it of a vector.
macro_rules! bytes {
    ($([$($generics:tt)*] $owned:ty;)*) => {$(
        impl<$($generics)*> WithText for $owned {
            fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                write(ValueRef::Bytes(self), serializer)
            }
        }

        impl<'de, $($generics)*> FromText<'de> for $owned {
            fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let bytes = read_bytes(deserializer)?;
                let len = bytes.len();
                bytes.try_into().map_err(|_| Error::invalid_length(len, &"bytes of the field's length"))
            }
        }

        impl<'de: 'a, 'a, $($generics)*> FromText<'de> for &'a $owned where Self: TryFrom<&'a [u8]> {
            fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let bytes = borrow_bytes(deserializer)?;
                bytes.try_into().map_err(|_| Error::invalid_length(bytes.len(), &"bytes of the field's length"))
            }
        }
    )*};
}

bytes! {
    [] Vec<u8>;
    [const LEN: usize] [u8; LEN];
}

impl<'de: 'a, 'a> FromText<'de> for &'a [u8] {
    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        borrow_bytes(deserializer)
    }
}

fn borrow_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'de [u8], D::Error> {
    if deserializer.is_human_readable() {
        return Err(Error::custom(BORROWED));
    }
    <&[u8]>::deserialize(deserializer)
}

fn read_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    if deserializer.is_human_readable() {
        let parse = |text: &str| parse_bytes(text).ok_or_else(|| format!("this is not {HEX}"));
        return deserializer.deserialize_str(Text { what: HEX, parse });
    }
    deserializer.deserialize_byte_buf(Bytes)
}

/// Reads bytes from a format that has some.
struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
        Ok(bytes)
    }
}

/// Implements [`AsText`] for a float.
macro_rules! float {
    ($($ty:ident, $variant:ident;)*) => {$(
        impl WithText for $ty {
            fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                write(ValueRef::$variant(*self), serializer)
            }
        }

        impl<'de> FromText<'de> for $ty {
            fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    return deserializer.deserialize_any(Float(PhantomData::<Self>));
                }
                Self::deserialize(deserializer)
            }
        }

        impl Visitor<'_> for Float<$ty> {
            type Value = $ty;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, \"NaN\", \"Infinity\" or \"-Infinity\"")
            }

            #[allow(clippy::cast_possible_truncation, reason = "rounds to the nearest, as serde does")]
            fn visit_f64<E: Error>(self, value: f64) -> Result<$ty, E> {
                Ok(value as $ty)
            }

            #[allow(clippy::cast_precision_loss, reason = "rounds to the nearest, as serde does")]
            fn visit_i64<E: Error>(self, value: i64) -> Result<$ty, E> {
                Ok(value as $ty)
            }

            #[allow(clippy::cast_precision_loss, reason = "rounds to the nearest, as serde does")]
            fn visit_u64<E: Error>(self, value: u64) -> Result<$ty, E> {
                Ok(value as $ty)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<$ty, E> {
                match text {
                    NAN => Ok($ty::NAN),
                    INFINITY => Ok($ty::INFINITY),
                    NEGATIVE_INFINITY => Ok($ty::NEG_INFINITY),
                    _ => Err(E::invalid_value(serde_core::de::Unexpected::Str(text), &self)),
                }
            }
        }
    )*};
}

/// Reads a float, or the text of one that isn't finite.
struct Float<T>(PhantomData<T>);

float! {
    f32, Float32;
    f64, Float64;
}
