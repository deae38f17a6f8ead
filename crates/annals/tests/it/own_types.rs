//! The types of a program that fields of `own.schema` have.

#![allow(unreachable_pub, reason = "generated code is public, and so are the types that it has")]

use annals::FieldValue;

macro_rules! own {
    ($($name:ident($inner:ty): $stored:ty, $text:ident => $made:expr, $value:ident => $back:expr;)+) => {$(
        /// A type of the program.
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name(pub $inner);

        impl FieldValue<$stored> for $name {
            fn from_stored($text: <$stored as annals::typed::Stored>::Ref<'_>) -> Self {
                Self($made)
            }

            fn to_stored(&self) -> <$stored as annals::typed::Stored>::Ref<'_> {
                let Self($value) = self;
                $back
            }
        }
    )+};
}

own! {
    Email(String): str, text => text.to_owned(), value => value;
    Key([u8; 4]): [u8; 4], bytes => *bytes, value => value;
    Raw(Vec<u8>): [u8], bytes => bytes.to_vec(), value => value;
    Ratio(f64): f64, number => number, value => *value;
}

/// A number that is kept with the other sign, so that a conversion that is left out shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number(pub i64);

impl FieldValue<i64> for Number {
    fn from_stored(stored: i64) -> Self {
        Self(-stored)
    }

    fn to_stored(&self) -> i64 {
        -self.0
    }
}
