//! The types a field can have.

use std::fmt;

use crate::decimal::LARGEST_SCALE;
use crate::{AnyDecimal, Blob, RowId, TableNumber, Value, ValueRef, Variants, column_types, json};

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

    /// Returns the words after the table's name, each after a blank. A required reference restricts, unless it says
    /// something else.
    #[must_use]
    pub const fn words(self, required: bool) -> &'static str {
        match (self, required) {
            (Self::Dangle, false) => "",
            (Self::Dangle | Self::Restrict, true) => " required",
            (Self::Restrict, false) => " restrict",
            (Self::Cascade, false) => " cascade",
            (Self::Cascade, true) => " cascade required",
            (Self::SetNull, _) => " set_null",
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
            /// `json`: a string that is a JSON text.
            Json,
            /// `bytes(N)`: exactly `N` bytes, 1 to 4096.
            FixedBytes(u16),
            /// `decimal(scale)`: a number of 128 bits with 0 to 38 digits after the point.
            Decimal(u8),
            /// `enum(a,b,c)`: one of the variants, which are compared by their numbers.
            Enum(Variants),
            /// `references T [restrict|cascade|set_null] [required]`: the id of a row of `T`; or null, if it isn't
            /// required. A required one has the rule `restrict` or `cascade`.
            Reference(TableNumber, OnDelete),
        }

        impl Type {
            /// All types without a parameter.
            pub const PLAIN: [Self; [$($code),*].len() + 1] = [$(Self::$variant,)* Self::Json];

            /// Returns the word that the schema language has for the type, without its parameter.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Json => "json",
                    Self::FixedBytes(_) => Self::Bytes.name(),
                    Self::Decimal(_) => "decimal",
                    Self::Enum(_) => "enum",
                    Self::Reference(..) => "references",
                }
            }

            /// True if a value is valid for a field of this type.
            #[must_use]
            pub fn accepts(self, nullable: bool, value: ValueRef<'_>) -> bool {
                match (self, value) {
                    (_, ValueRef::Null) => nullable,
                    (Self::Blob, ValueRef::Blob(blob)) if blob > Blob::MAX => false,
                    $((Self::$variant, ValueRef::$variant(_)) => true,)*
                    (Self::Json, ValueRef::String(text)) => json::first_mistake(text).is_none(),
                    (Self::FixedBytes(len), ValueRef::Bytes(bytes)) => bytes.len() == len.into(),
                    (Self::Decimal(scale), ValueRef::Decimal(number)) => number.scale() == scale,
                    (Self::Enum(variants), ValueRef::Enum(variant)) => variants.has(variant.number()),
                    (Self::Reference(..), ValueRef::Reference(id)) => id <= RowId::MAX,
                    _ => false,
                }
            }
        }
    };
}

column_types!(all, define_type);

/// As many zeros as the longest `bytes(N)` has.
static ZEROS: [u8; Type::LONGEST_FIXED as usize] = [0; Type::LONGEST_FIXED as usize];

impl Type {
    const LONGEST_FIXED: u16 = 4096;

    /// Finds a type other than a reference by its text, as [`Display`](fmt::Display) writes it; `boolean` is `bool`, as
    /// in joedb.
    #[must_use]
    pub fn named(text: &str) -> Option<Self> {
        if let Some((word, parameter)) =
            text.strip_suffix(')').and_then(|text| text.split_once('('))
        {
            return match word {
                "enum" => Variants::of(parameter.split(',')).map(Self::Enum),
                _ => Self::with_parameter(word, parameter.parse().ok()?),
            };
        }
        let word = if text == "boolean" { "bool" } else { text };
        Self::PLAIN.into_iter().find(|ty| ty.name() == word)
    }

    fn with_parameter(word: &str, parameter: u16) -> Option<Self> {
        match (word, parameter) {
            ("bytes", 1..=Self::LONGEST_FIXED) => Some(Self::FixedBytes(parameter)),
            ("decimal", _) => Self::decimal(parameter),
            _ => None,
        }
    }

    fn decimal(scale: u16) -> Option<Self> {
        u8::try_from(scale).ok().filter(|scale| *scale <= LARGEST_SCALE).map(Self::Decimal)
    }

    /// Returns the type with the parameter of another value; `None` if that is out of range, or there is none.
    #[doc(hidden)]
    #[must_use]
    pub fn with(self, parameter: u64) -> Option<Self> {
        Self::with_parameter(self.name(), parameter.try_into().ok()?)
    }

    /// Returns the parameter: the length of `bytes(N)`, the scale of a decimal.
    #[must_use]
    pub const fn parameter(self) -> Option<u16> {
        match self {
            Self::FixedBytes(len) => Some(len),
            Self::Decimal(scale) => Some(scale as u16),
            _ => None,
        }
    }

    /// True if a field of this type holds text or bytes that have no cell.
    #[must_use]
    pub const fn is_variable(self) -> bool {
        self.is_text() || matches!(self, Self::Bytes | Self::FixedBytes(_))
    }

    /// True if the values are strings.
    #[must_use]
    pub const fn is_text(self) -> bool {
        matches!(self, Self::String | Self::Json)
    }

    /// True if some values of the kind that the type has are not valid for it.
    #[must_use]
    pub const fn is_narrow(self) -> bool {
        let has_parameter = self.parameter().is_some() || self.carries_null();
        has_parameter || matches!(self, Self::Json | Self::Enum(_))
    }

    /// True if every field of this type may be null: of a blob, and of a reference that nothing enforces or that becomes
    /// null.
    #[must_use]
    pub const fn is_always_nullable(self) -> bool {
        let may_be_required =
            matches!(self, Self::Reference(_, OnDelete::Restrict | OnDelete::Cascade));
        self.carries_null() && !may_be_required
    }

    /// True if null of this type needs no separate bit in a row's event: of a blob, and of a reference.
    #[must_use]
    pub const fn carries_null(self) -> bool {
        matches!(self, Self::Blob | Self::Reference(..))
    }

    /// Returns zero, false or nothing: the value that a null is read as where the type read has none.
    #[doc(hidden)]
    #[must_use]
    pub fn zero(self) -> ValueRef<'static> {
        macro_rules! zero {
            ($($variant:ident: $rust:ty;)*) => {
                match self {
                    $(Self::$variant => ValueRef::$variant(<$rust>::default()),)*
                    Self::Bool => ValueRef::Bool(false),
                    Self::String => ValueRef::String(""),
                    Self::Json => ValueRef::String("null"),
                    Self::Bytes => ValueRef::Bytes(&[]),
                    Self::FixedBytes(len) => ValueRef::Bytes(ZEROS.get(..len.into()).unwrap_or_default()),
                    Self::Decimal(scale) => ValueRef::Decimal(AnyDecimal::new(0, scale)),
                    Self::Enum(variants) => ValueRef::Enum(variants.first()),
                    Self::Blob => ValueRef::Blob(Blob(0)),
                    Self::Reference(..) => ValueRef::Reference(RowId(0)),
                }
            };
        }
        column_types!(cells, zero)
    }

    /// Returns zero, false or nothing as a value of this type; null for blobs.
    pub(crate) fn zero_value(self) -> Value {
        if self == Self::Blob { Value::Null } else { self.zero().to_value() }
    }
}

impl fmt::Display for Type {
    /// Writes the type as the schema language does; of a reference only its first word.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let Self::Enum(variants) = self {
            return write!(f, "({variants})");
        }
        self.parameter().map_or(Ok(()), |parameter| write!(f, "({parameter})"))
    }
}
