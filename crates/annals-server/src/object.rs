//! JSON objects of requests. What serde derives takes lists, too, and their members by place: a list that was sent by mistake
//! would be a transaction.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// What is read from an object, and from nothing else.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members)).map(Object)
            }
        }
        from.deserialize_map(Members(PhantomData))
    }
}

/// Reads a body that is an object.
pub(crate) fn read<'t, T: Deserialize<'t>>(text: &'t str) -> serde_json::Result<T> {
    serde_json::from_str(text).map(|Object(value)| value)
}

/// Reads a list of objects, or null.
pub(crate) fn list<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Vec<T>>, D::Error> {
    let list = Option::<Vec<Object<T>>>::deserialize(from)?;
    Ok(list.map(|list| list.into_iter().map(|Object(value)| value).collect()))
}

/// Reads an object whose members have any names, each once: serde takes the last one of a name.
pub(crate) fn members<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, &'de RawValue>, D::Error> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = BTreeMap<String, &'de RawValue>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
            let mut all = BTreeMap::new();
            while let Some((name, value)) = members.next_entry::<String, &'de RawValue>()? {
                if all.contains_key(&name) {
                    return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
                }
                all.insert(name, value);
            }
            Ok(all)
        }
    }
    from.deserialize_map(Members)
}
