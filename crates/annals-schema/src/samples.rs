//! Types, values and changes of schemas of all kinds, for tests and fuzzing.

use crate::{AnyDecimal, Blob, Date, RowId, Type, Uuid, Value, Variants};

/// A schema, and a line that the next version of the program adds to it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Evolution {
    /// The last lines of the older schema.
    pub before: &'static str,
    /// The line, whose first word is a command.
    pub line: &'static str,
    /// True if the newer file has all that the older program needs.
    pub is_readable: bool,
}

impl Evolution {
    /// The beginning of each older schema.
    const BEGINNING: &'static str = "create_table t\nadd_field t a string\n\
        add_field t e enum(x,y)\ncreate_table s\nadd_field s v int8\n";

    /// One for each command that changes a schema; of a command whose effect depends on its words, one for each.
    pub const ALL: [Self; 18] = [
        Self::new("", "create_table more", true),
        Self::new("", "drop_table s", false),
        Self::new("", "rename_table s settings", true),
        Self::new("", "add_field t n int32", true),
        Self::new("", "drop_field s v", false),
        Self::new("", "rename_field s v volume", true),
        Self::new("", "add_variant t e z", true),
        Self::new("", "rename_variant t e y why", true),
        Self::new("", "drop_variant t e y", true),
        Self::new("", "create_index t_by_a t a", true),
        Self::new("", "create_unique_index t_by_a t a", true),
        Self::new("create_index t_by_a t a\n", "drop_index t_by_a", false),
        Self::new("create_unique_index t_by_a t a\n", "drop_index t_by_a", false),
        Self::new("", "set_single_row s true", true),
        Self::new("set_single_row s true\n", "set_single_row s false", false),
        Self::new("", "no_history_index t", true),
        Self::new("no_history_index t\n", "history_index t", true),
        Self::new("", "custom fix", true),
    ];

    const fn new(before: &'static str, line: &'static str, is_readable: bool) -> Self {
        Self { before, line, is_readable }
    }

    /// Returns the older schema.
    #[must_use]
    pub fn older(&self) -> String {
        format!("{}{}", Self::BEGINNING, self.before)
    }

    /// Returns the newer schema.
    #[must_use]
    pub fn newer(&self) -> String {
        format!("{}{}\n", self.older(), self.line)
    }
}

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
