//! Types and values of all kinds, for tests and fuzzing.

use crate::{AnyDecimal, Blob, Date, RowId, Type, Uuid, Value, Variants};

impl Type {
    /// Returns types of all kinds but references.
    #[doc(hidden)]
    #[must_use]
    pub fn samples() -> Vec<Self> {
        let others =
            [Self::FixedBytes(1), Self::FixedBytes(16), Self::Decimal(0), Self::Decimal(4)];
        let variants = Variants::of(["red", "green", "blue", "none"]).map(Self::Enum);
        Self::PLAIN.into_iter().chain(others).chain(variants).collect()
    }

    /// Returns a value of the type: of integers and most others the one nearest to a number.
    #[doc(hidden)]
    #[must_use]
    pub fn sample(self, number: i64) -> Value {
        let natural = number.unsigned_abs();
        match self {
            Self::Bool => Value::Bool(number > 0),
            Self::Float32 => Value::Float32(number as f32),
            Self::Float64 => Value::Float64(number as f64),
            Self::String => Value::String(number.to_string()),
            Self::Json => Value::String(format!("{{\"n\": [{number}]}}")),
            Self::Bytes => Value::Bytes(number.to_string().into_bytes()),
            Self::FixedBytes(len) => {
                let bytes = natural.to_le_bytes().into_iter().cycle();
                Value::Bytes(bytes.take(len.into()).collect())
            }
            Self::Decimal(scale) => {
                let far = i128::from(number) << 64;
                let units = if number % 5 == 0 { far } else { number.into() };
                Value::Decimal(AnyDecimal::new(units, scale))
            }
            Self::Enum(variants) => {
                let place = usize::try_from(natural).unwrap_or(0) % variants.iter().count();
                variants.iter().nth(place).map_or(Value::Null, Value::Enum)
            }
            Self::Timestamp => Value::Timestamp(number),
            Self::Date => Value::Date(Date(number.try_into().unwrap_or(i32::MIN))),
            Self::Uuid => Value::Uuid(Uuid(u128::from(natural).to_le_bytes())),
            Self::Blob => Value::Blob(Blob(natural.clamp(1, Blob::MAX.0))),
            Self::Reference(..) => Value::Reference(RowId(natural.min(RowId::MAX.0))),
            _ => {
                let mut halves =
                    std::iter::successors(Some(i128::from(number)), |half| Some(half / 2));
                halves.find_map(|half| self.integer(half)).unwrap_or(Value::Null)
            }
        }
    }
}
