//! Types of generated code that a field is read as.

use annals_schema::FieldNumber;

use crate::row::{Cell, Row};

/// A type of generated code that is read as another one: the id of a row of one table, an `enum`. It is a trait of this
/// crate, so that the compiler knows which types are none.
#[doc(hidden)]
pub trait CellOf: Sized {
    /// The type that it is read as.
    type Plain;

    /// Makes it of that.
    fn of(plain: Self::Plain) -> Self;
}

impl<'r, T: CellOf<Plain: Cell<'r>>> Cell<'r> for T {
    #[inline]
    fn read(row: &'r Row<'_>, field: FieldNumber) -> Self {
        T::of(T::Plain::read(row, field))
    }
}

impl<'r, T: CellOf> Cell<'r> for Option<T>
where
    Option<T::Plain>: Cell<'r>,
{
    #[inline]
    fn read(row: &'r Row<'_>, field: FieldNumber) -> Self {
        Option::<T::Plain>::read(row, field).map(T::of)
    }
}
