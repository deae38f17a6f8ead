//! The table of column types. Each layer derives its knowledge of the types from it: the schema types and values, the
//! codes and the codec of events, the cells and keys of the store, the Rust types of the typed API.
//!
//! Code for the formats of other programs matches on [`TypeClass`](crate::TypeClass) and
//! [`WideValue`](crate::WideValue), which have one variant for all integers.

/// Passes rows of the table of column types to a macro: `column_types!(group, derive)` expands to
/// `derive! { rows }`.
///
/// The table has a row for each type whose values are its own and need no parameter: variant of [`Type`](crate::Type),
/// [`Value`](crate::Value) and [`ValueRef`](crate::ValueRef); types of an owned and of a borrowed value;
/// word of the schema language; code of the type in the journal; and encoding of a value there. The
/// encodings are those of `docs/format.md`: `fixed` is little-endian, `signed` and `compact` are compact
/// numbers, `text` and `bytes` follow their length.
///
/// | group | rows |
/// |---|---|
/// | `all` | every row: `Variant: owned, borrowed, "word", code, encoding, "documentation";` |
/// | `integers` | `Variant: owned;` |
/// | `numbers` | integers and floats: `Variant: owned;`, or `Variant: owned, other;` if `owned` also reads `other` |
/// | `cells` | numbers, times and `uuid`, whose owned type has `to_le_bytes` and `from_le_bytes`: `Variant: owned;` |
///
/// Types beside the table: references and `decimal` have a parameter; the values of `json` are strings, those of
/// `bytes(N)` are bytes.
#[doc(hidden)]
#[macro_export]
macro_rules! column_types {
    ($group:ident, $derive:ident) => {
        $crate::column_types! { @$group $derive
            bool {
                Bool: bool, bool, "bool", 1, boolean, "`bool` (joedb's `boolean` is understood too).";
            }
            integers {
                Int8: i8, "int8", 2, fixed;
                Int16: i16, "int16", 3, signed;
                Int32: i32, "int32", 4, signed;
                Int64: i64, "int64", 5, signed, also Timestamp;
                UInt8: u8, "uint8", 6, fixed;
                UInt16: u16, "uint16", 7, compact;
                UInt32: u32, "uint32", 8, compact;
                UInt64: u64, "uint64", 9, compact;
            }
            floats {
                Float32: f32, "float32", 10, fixed;
                Float64: f64, "float64", 11, fixed;
            }
            others {
                String: String, &'a str, "string", 12, text, "`string`: UTF-8, at most 1 GiB, ordered by bytes.";
                Bytes: Vec<u8>, &'a [u8], "bytes", 13, bytes, "`bytes`: any bytes, at most 1 GiB.";
                Timestamp: i64, i64, "timestamp", 14, signed, "`timestamp`: microseconds since 1970-01-01T00:00:00Z.";
                Date: $crate::Date, $crate::Date, "date", 18, signed, "`date`: a day of the calendar.";
                Uuid: $crate::Uuid, $crate::Uuid, "uuid", 19, fixed, "`uuid`: 16 bytes.";
                Blob: $crate::Blob, $crate::Blob, "blob", 16, blob,
                    "`blob`: bytes of any length that stay in the journal and are read on demand, or null. It is always nullable.";
            }
        }
    };
    (@all $derive:ident
        bool { $($bool:tt)* }
        integers { $($int:ident: $int_rust:ty, $int_word:literal, $int_code:literal, $int_coding:ident $(, also $also:ident)?;)* }
        floats { $($float:ident: $float_rust:ty, $float_word:literal, $float_code:literal, $float_coding:ident;)* }
        others { $($others:tt)* }
    ) => {
        $derive! {
            $($bool)*
            $($int: $int_rust, $int_rust, $int_word, $int_code, $int_coding, concat!("`", $int_word, "`");)*
            $($float: $float_rust, $float_rust, $float_word, $float_code, $float_coding, concat!("`", $float_word, "`");)*
            $($others)*
        }
    };
    (@integers $derive:ident
        bool $bool:tt
        integers { $($int:ident: $rust:ty, $word:literal, $code:literal, $coding:ident $(, also $also:ident)?;)* }
        $($others:tt)*
    ) => {
        $derive! { $($int: $rust;)* }
    };
    (@numbers $derive:ident
        bool $bool:tt
        integers { $($int:ident: $int_rust:ty, $int_word:literal, $int_code:literal, $int_coding:ident $(, also $also:ident)?;)* }
        floats { $($float:ident: $float_rust:ty, $float_word:literal, $float_code:literal, $float_coding:ident;)* }
        others $others:tt
    ) => {
        $derive! { $($int: $int_rust $(, $also)?;)* $($float: $float_rust;)* }
    };
    (@cells $derive:ident
        bool $bool:tt
        integers { $($int:ident: $int_rust:ty, $int_word:literal, $int_code:literal, $int_coding:ident $(, also $also:ident)?;)* }
        floats { $($float:ident: $float_rust:ty, $float_word:literal, $float_code:literal, $float_coding:ident;)* }
        others $others:tt
    ) => {
        $derive! { $($int: $int_rust;)* $($float: $float_rust;)* Timestamp: i64; Date: $crate::Date; Uuid: $crate::Uuid; }
    };
}
