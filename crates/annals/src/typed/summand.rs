//! Adding up values without losing anything.

use annals_schema::Decimal;

use crate::{Error, Result};

/// What a [`Query`](super::Query) can add up: numbers, and decimals of one scale.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be added up",
    note = "a number or a `Decimal` can; a value that may be null can't: `value.unwrap_or_default()`"
)]
pub trait Summand: Default {
    /// Returns the sum.
    ///
    /// # Errors
    /// `Invalid`: it doesn't fit the type.
    fn plus(self, other: Self) -> Result<Self>;

    /// Returns the nearest float.
    fn to_f64(&self) -> f64;
}

fn too_large(ty: &str) -> Error {
    Error::invalid(format!("the sum is too large for {ty}: add up values of a larger type"))
}

macro_rules! integers {
    ($($ty:ty)*) => {$(
        impl Summand for $ty {
            #[inline]
            fn plus(self, other: Self) -> Result<Self> {
                self.checked_add(other).ok_or_else(|| too_large(stringify!($ty)))
            }

            #[inline]
            fn to_f64(&self) -> f64 {
                *self as f64
            }
        }
    )*};
}

integers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

macro_rules! floats {
    ($($ty:ty)*) => {$(
        impl Summand for $ty {
            #[inline]
            fn plus(self, other: Self) -> Result<Self> {
                Ok(self + other)
            }

            #[inline]
            fn to_f64(&self) -> f64 {
                f64::from(*self)
            }
        }
    )*};
}

floats!(f32 f64);

impl<const SCALE: u8> Summand for Decimal<SCALE> {
    #[inline]
    fn plus(self, other: Self) -> Result<Self> {
        self.checked_add(other).ok_or_else(|| too_large("128 bits"))
    }

    fn to_f64(&self) -> f64 {
        self.units() as f64 / 10_f64.powi(i32::from(SCALE))
    }
}
