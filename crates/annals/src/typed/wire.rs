//! serde for generated code: rows are maps from the names of their fields to values.
//!
//! Generated code calls the macro `__serde` for each type; without the feature `serde` it expands to nothing. It
//! implements [`FromFields`], and the rest is here, once.

use std::fmt;
use std::marker::PhantomData;

pub use annals_schema::wire::{AsText, Plain};
pub use serde_core;

use serde_core::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_core::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Enum, Id, Record, parse_variant};
use crate::RowId;

/// Values with the names of fields, which are read field by field.
pub trait FromFields<'de>: Sized {
    /// The table's name.
    const NAME: &'static str;
    /// The names of the fields, in the order of the schema.
    const FIELDS: &'static [&'static str];

    /// Reads the fields.
    ///
    /// # Errors
    /// A field is missing, twice there, or of another type; those of the format.
    fn from_fields<S: Source<'de>>(source: &mut S) -> Result<Self, S::Error>;
}

/// Values that a format has, in some order.
pub trait Source<'de> {
    /// The format's error.
    type Error: de::Error;

    /// Returns the name of the next field; `None` after the last one.
    ///
    /// # Errors
    /// Those of the format.
    fn next_name(
        &mut self,
        names: &'static [&'static str],
    ) -> Result<Option<&'static str>, Self::Error>;

    /// Reads the value of that field, unless there are no more values.
    ///
    /// # Errors
    /// It isn't of this type; those of the format.
    fn next_value<T: Deserialize<'de>>(&mut self) -> Result<Option<T>, Self::Error>;
}

/// Reads the value of a field into its place.
///
/// # Errors
/// There was one before; it isn't of this type; those of the format.
pub fn put<'de, S: Source<'de>, T: Deserialize<'de>>(
    source: &mut S,
    name: &'static str,
    place: &mut Option<T>,
) -> Result<(), S::Error> {
    if place.is_some() {
        return Err(de::Error::duplicate_field(name));
    }
    *place = source.next_value()?;
    Ok(())
}

/// Reads values with the names of fields.
///
/// # Errors
/// Those of [`FromFields::from_fields`].
pub fn read<'de, T: FromFields<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_struct(T::NAME, T::FIELDS, Fields(PhantomData))
}

struct Fields<T>(PhantomData<T>);

impl<'de, T: FromFields<'de>> Visitor<'de> for Fields<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the fields of a row of {}", T::NAME)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::from_fields(&mut Map(map))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<T, A::Error> {
        T::from_fields(&mut Sequence { values, next: 0 })
    }
}

/// Values with names. Unknown names are skipped.
struct Map<A>(A);

impl<'de, A: MapAccess<'de>> Source<'de> for Map<A> {
    type Error = A::Error;

    fn next_name(
        &mut self,
        names: &'static [&'static str],
    ) -> Result<Option<&'static str>, A::Error> {
        while let Some(name) = self.0.next_key_seed(Name(names))? {
            if name.is_some() {
                return Ok(name);
            }
            self.0.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }

    fn next_value<T: Deserialize<'de>>(&mut self) -> Result<Option<T>, A::Error> {
        self.0.next_value().map(Some)
    }
}

/// Values in the order of the schema, as formats without names have them.
struct Sequence<A> {
    values: A,
    next: usize,
}

impl<'de, A: SeqAccess<'de>> Source<'de> for Sequence<A> {
    type Error = A::Error;

    fn next_name(
        &mut self,
        names: &'static [&'static str],
    ) -> Result<Option<&'static str>, A::Error> {
        self.next += 1;
        Ok(names.get(self.next - 1).copied())
    }

    fn next_value<T: Deserialize<'de>>(&mut self) -> Result<Option<T>, A::Error> {
        self.values.next_element()
    }
}

/// Reads a name; returns it if it is one of these.
struct Name(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Option<&'static str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Option<&'static str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().copied().find(|name| *name == text))
    }

    fn visit_bytes<E: de::Error>(self, text: &[u8]) -> Result<Self::Value, E> {
        Ok(self.0.iter().copied().find(|name| name.as_bytes() == text))
    }

    fn visit_u64<E: de::Error>(self, place: u64) -> Result<Self::Value, E> {
        Ok(usize::try_from(place).ok().and_then(|place| self.0.get(place)).copied())
    }
}

impl<R> Serialize for Id<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RowId::from(*self).serialize(serializer)
    }
}

impl<'de, R: Record> Deserialize<'de> for Id<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RowId::deserialize(deserializer).map(Self::from)
    }
}

/// Reads a variant of an enum from its name.
///
/// # Errors
/// It is no variant; those of the format.
pub fn read_variant<'de, E: Enum, D: Deserializer<'de>>(deserializer: D) -> Result<E, D::Error> {
    deserializer.deserialize_str(VariantName(PhantomData))
}

struct VariantName<E>(PhantomData<E>);

impl<E: Enum> Visitor<'_> for VariantName<E> {
    type Value = E;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of {}", E::NAMES.join(", "))
    }

    fn visit_str<F: de::Error>(self, text: &str) -> Result<E, F> {
        parse_variant(text).map_err(F::custom)
    }
}

/// Implements serde for a type of generated code, if the feature `serde` is on.
#[doc(hidden)]
#[macro_export]
macro_rules! __serde {
    (owned $name:ident {
        $($text:literal $field:ident: $ty:ty as $form:ident $(via $own:ident)? $(= $absent:expr)?,)*
    }) => {
        impl $crate::__wire::serde_core::Serialize for $name {
            fn serialize<S: $crate::__wire::serde_core::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                use $crate::__wire::serde_core::ser::SerializeStruct as _;
                let fields: &[&str] = &[$($text),*];
                let mut row = serializer.serialize_struct(::core::stringify!($name), fields.len())?;
                $(row.serialize_field(
                    $text,
                    &$crate::__wire::$form(&$crate::__serde!(@stored self.$field $(, $own)?)),
                )?;)*
                row.end()
            }
        }
        impl $crate::__wire::serde_core::Serialize for Row<'_> {
            fn serialize<S: $crate::__wire::serde_core::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                $crate::__wire::serde_core::Serialize::serialize(&self.to_owned(), serializer)
            }
        }
        $crate::__serde! {
            @read [] $name { $($text $field: $ty as $form $(via $own)? $(= $absent)?,)* }
        }
    };
    (enum $name:ident) => {
        impl $crate::__wire::serde_core::Serialize for $name {
            fn serialize<S: $crate::__wire::serde_core::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> $crate::__wire::serde_core::Deserialize<'de> for $name {
            fn deserialize<D: $crate::__wire::serde_core::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                $crate::__wire::read_variant(deserializer)
            }
        }
    };
    (new $name:ident $(<$life:lifetime>)? { $($fields:tt)* }) => {
        $crate::__serde! { @read [$($life)?] $name { $($fields)* } }
    };
    (@read [$($life:lifetime)?] $name:ident {
        $($text:literal $field:ident: $ty:ty as $form:ident $(via $own:ident)? $(= $absent:expr)?,)*
    }) => {
        impl<'de $(: $life, $life)?> $crate::__wire::FromFields<'de> for $name $(<$life>)? {
            const NAME: &'static str = ::core::stringify!($name);
            const FIELDS: &'static [&'static str] = &[$($text),*];
            fn from_fields<S: $crate::__wire::Source<'de>>(
                source: &mut S,
            ) -> ::core::result::Result<Self, S::Error> {
                $(let mut $field: ::core::option::Option<$crate::__wire::$form<$ty>> = None;)*
                while let Some(name) = source.next_name(Self::FIELDS)? {
                    match name {
                        $($text => $crate::__wire::put(source, $text, &mut $field)?,)*
                        _ => {}
                    }
                }
                Ok(Self { $($field: match $field {
                    Some(value) => $crate::__serde!(@value value.0 $(, $own)?),
                    None => $crate::__serde!(@absent $text $(, $absent)?),
                },)* })
            }
        }
        impl<'de $(: $life, $life)?> $crate::__wire::serde_core::Deserialize<'de> for $name $(<$life>)? {
            fn deserialize<D: $crate::__wire::serde_core::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                $crate::__wire::read(deserializer)
            }
        }
    };
    (@stored $value:expr) => {
        $value
    };
    (@stored $value:expr, $own:ident) => {
        $own::stored(&$value)
    };
    (@value $value:expr) => {
        $value
    };
    (@value $value:expr, $own:ident) => {
        $own::kept($value)
    };
    (@absent $text:literal) => {
        return Err($crate::__wire::serde_core::de::Error::missing_field($text))
    };
    (@absent $text:literal, $absent:expr) => {
        $absent
    };
}
