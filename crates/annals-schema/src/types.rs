//! The types a field can have.

use crate::{Blob, RowId, TableNumber, Value, ValueRef, column_types};

/// The rule of a reference for the deletion of its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnDelete {
    /// `references T`: nothing. The reference dangles, and reads as absent.
    #[default]
    Dangle,
    /// `references T restrict`: the commit fails.
    Restrict,
    /// `references T cascade`: the row with the reference is deleted too.
    Cascade,
    /// `references T set_null`: the reference becomes null.
    SetNull,
}

impl OnDelete {
    /// True if a committed reference is never dangling.
    #[must_use]
    pub const fn is_enforced(self) -> bool {
        !matches!(self, Self::Dangle)
    }

    /// Returns the word after the table's name; `None` if nothing is enforced.
    #[must_use]
    pub const fn word(self) -> Option<&'static str> {
        match self {
            Self::Dangle => None,
            Self::Restrict => Some("restrict"),
            Self::Cascade => Some("cascade"),
            Self::SetNull => Some("set_null"),
        }
    }

    /// Finds the meaning of a word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        [Self::Restrict, Self::Cascade, Self::SetNull]
            .into_iter()
            .find(|rule| rule.word() == Some(word))
    }
}

/// Defines [`Type`], its words, and the list of the types without parameters.
macro_rules! define_type {
    ($($variant:ident: $owned:ty, $borrowed:ty, $word:literal, $code:literal, $coding:ident, $doc:expr;)*) => {
        /// The type of a field.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Type {
            $(
                #[doc = $doc]
                $variant,
            )*
            /// `references T [restrict|cascade|set_null]`: the id of a row of `T`, or null. It is always
            /// nullable.
            Reference(TableNumber, OnDelete),
        }

        impl Type {
            /// All types but references.
            pub const PLAIN: [Self; [$($code),*].len()] = [$(Self::$variant),*];

            /// Returns the word that the schema language has for the type; for references `references`, which
            /// the table's name follows.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Reference(..) => "references",
                }
            }

            /// Returns the type of Rust that an owned value has.
            pub(crate) const fn rust_word(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($owned),)*
                    Self::Reference(..) => stringify!(RowId),
                }
            }

            /// True if a value is valid for a field of this type.
            #[must_use]
            pub fn accepts(self, nullable: bool, value: ValueRef<'_>) -> bool {
                match (self, value) {
                    (_, ValueRef::Null) => nullable,
                    (Self::Blob, ValueRef::Blob(blob)) if blob > Blob::MAX => false,
                    $((Self::$variant, ValueRef::$variant(_)) => true,)*
                    (Self::Reference(..), ValueRef::Reference(id)) => id <= RowId::MAX,
                    _ => false,
                }
            }
        }
    };
}

column_types!(all, define_type);

impl Type {
    /// Finds a type other than a reference by its name; `boolean` is `bool`, as in joedb.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        let word = if word == "boolean" { "bool" } else { word };
        Self::PLAIN.into_iter().find(|ty| ty.name() == word)
    }

    /// True if a field of this type holds text or bytes of any length.
    #[must_use]
    pub const fn is_variable(self) -> bool {
        matches!(self, Self::String | Self::Bytes)
    }

    /// True if every field of this type may be null, and its null needs no separate bit.
    #[must_use]
    pub const fn is_always_nullable(self) -> bool {
        matches!(self, Self::Blob | Self::Reference(..))
    }

    /// Returns zero, false or nothing as a value of this type; null for references and blobs.
    pub(crate) fn zero_value(self) -> Value {
        macro_rules! zero {
            ($($variant:ident: $rust:ty;)*) => {
                match self {
                    $(Self::$variant => Value::$variant(<$rust>::default()),)*
                    Self::Bool => Value::Bool(false),
                    Self::String => Value::String(String::new()),
                    Self::Bytes => Value::Bytes(Vec::new()),
                    Self::Blob | Self::Reference(..) => Value::Null,
                }
            };
        }
        column_types!(cells, zero)
    }

    /// Returns the initial value of a field of this type, as text; null if it may be null.
    #[must_use]
    pub(crate) const fn zero_word(self) -> &'static str {
        match self {
            Self::Bool => "false",
            Self::String => "\"\"",
            Self::Bytes => "0x",
            Self::Timestamp => "1970-01-01T00:00:00Z",
            Self::Blob | Self::Reference(..) => "null",
            _ => "0",
        }
    }
}
