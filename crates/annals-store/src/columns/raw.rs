//! The kinds of values that columns keep.

use annals_schema::{Type, ValueRef, column_types};

/// Defines the kinds of values, and what tells the kind of a value and of a type.
macro_rules! define_kinds {
    ($($variant:ident: $owned:ty, $borrowed:ty, $word:literal, $code:literal, $coding:ident, $doc:expr;)*) => {
        /// The kinds of values, in the order of [`ValueRef`]'s: so finding one costs a load.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum ValueKind {
            Null,
            $($variant,)*
            Decimal,
            Enum,
            Reference,
        }

        /// Returns the kind of a value.
        #[inline]
        pub(super) const fn kind_of(value: &ValueRef<'_>) -> ValueKind {
            match value {
                ValueRef::Null => ValueKind::Null,
                $(ValueRef::$variant(_) => ValueKind::$variant,)*
                ValueRef::Decimal(_) => ValueKind::Decimal,
                ValueRef::Enum(_) => ValueKind::Enum,
                ValueRef::Reference(_) => ValueKind::Reference,
            }
        }

        /// Returns the kind of a type's values.
        pub(super) const fn kind_of_type(ty: Type) -> ValueKind {
            match ty {
                $(Type::$variant => ValueKind::$variant,)*
                Type::Json => ValueKind::String,
                Type::FixedBytes(_) => ValueKind::Bytes,
                Type::Decimal(_) => ValueKind::Decimal,
                Type::Enum(_) => ValueKind::Enum,
                Type::Reference(..) => ValueKind::Reference,
            }
        }
    };
}

column_types!(all, define_kinds);

/// Returns the bytes of a value of variable size; `None` for all others.
#[inline]
pub(super) const fn variable(value: ValueRef<'_>) -> Option<&[u8]> {
    match value {
        ValueRef::String(v) => Some(v.as_bytes()),
        ValueRef::Bytes(v) => Some(v),
        _ => None,
    }
}
