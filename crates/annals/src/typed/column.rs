//! Columns: a field of consecutive rows, read and written at once.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use annals_schema::{Blob, Date, Decimal, FieldNumber, RowId, Timestamp, Uuid};

use super::{Element, Id, Number, Owned, Record, Table, Vector};
use crate::Result;
use crate::store::Primitive;

/// A field of a table, with the type of its values: generated code has a constant for each.
///
/// ```
/// annals::schema!("../../examples/vectors.schema");
/// use vectors::sample;
///
/// # fn main() -> annals::Result<()> {
/// let db = vectors::Database::in_memory()?;
/// let first = db.write(|tx| {
///     let (name, level, error) = (&["a", "b", "c"][..], &[1.0, 2.0, 3.0][..], &[None; 3][..]);
///     let first = tx.insert_vector(sample::Columns { name, level, error })?;
///     tx.update_vector(sample::LEVEL, first, &[10.0, 20.0])?;
///     Ok(first)
/// })?;
///
/// let now = db.read();
/// assert_eq!(now.sample().vector_of(vectors::sample::LEVEL, first, 3)?, [10.0, 20.0, 3.0]);
/// assert_eq!(now.sample().vector_of(vectors::sample::NAME, first, 2)?, ["a", "b"]);
/// # Ok(())
/// # }
/// ```
pub struct Column<R, T> {
    field: FieldNumber,
    kind: PhantomData<fn() -> (R, T)>,
}

impl<R: Record, T> Column<R, T> {
    /// Names the field with this number, whose values are of type `T`.
    #[must_use]
    pub const fn new(field: FieldNumber) -> Self {
        Self { field, kind: PhantomData }
    }

    /// Returns the field's number.
    #[must_use]
    pub const fn field(self) -> FieldNumber {
        self.field
    }
}

impl<R, T> Clone for Column<R, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, T> Copy for Column<R, T> {}

impl<R: Record, T> fmt::Debug for Column<R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::Column({})", R::NAME, self.field.0)
    }
}

/// The type of a column's values, which is the getter's type, with strings and bytes that live as long as the program.
pub trait ColumnType: 'static {
    /// The same type, with strings and bytes that are borrowed from a view which has them in memory, or
    /// else copied.
    type In<'a>: Element<'a>;

    /// The same type, with strings and bytes that are owned.
    type Value: Owned;
}

/// The values to write to a column of type `T`: a slice, a `Vec` or an array. Where the column may be null, the
/// values may be plain ones or `Option`s; strings and bytes may be owned.
#[diagnostic::on_unimplemented(
    message = "this column takes a slice of `{T}`",
    label = "`{Self}` is no slice of this column's values",
    note = "where null is allowed, a slice of plain values or of `Option`s"
)]
pub trait Slice<'v, T> {
    /// Turns into the untyped values.
    fn vector(self) -> Vector<'v>;
}

/// Accepts values of type `$item` for a column of type `$column`, in a slice, a `Vec` and an array.
macro_rules! slices {
    ([$($generics:tt)*] $item:ty => $column:ty, $from:expr) => {
        impl<'v, $($generics)*> Slice<'v, $column> for &'v [$item] {
            fn vector(self) -> Vector<'v> {
                $from(self)
            }
        }
        impl<'v, $($generics)*> Slice<'v, $column> for &'v Vec<$item> {
            fn vector(self) -> Vector<'v> {
                $from(self.as_slice())
            }
        }
        impl<'v, const N: usize, $($generics)*> Slice<'v, $column> for &'v [$item; N] {
            fn vector(self) -> Vector<'v> {
                $from(self.as_slice())
            }
        }
    };
}

slices!([T: Number + Into<annals_schema::ValueRef<'v>>] T => T, T::vector);
slices!([T: Number + Into<annals_schema::ValueRef<'v>>] T => Option<T>, T::vector);
slices!([T: Number + Into<annals_schema::ValueRef<'v>>] Option<T> => Option<T>, Vector::from);
slices!([] bool => bool, Vector::from);
slices!([] bool => Option<bool>, Vector::from);
slices!([] Option<bool> => Option<bool>, Vector::from);
slices!([S: AsRef<str>] S => &'static str, Vector::strings);
slices!([] &'v str => Option<&'static str>, Vector::strings);
slices!([] String => Option<&'static str>, Vector::strings);
slices!([] Option<&'v str> => Option<&'static str>, Vector::from);
slices!([S: AsRef<[u8]>] S => &'static [u8], Vector::bytes);
slices!([] &'v [u8] => Option<&'static [u8]>, Vector::bytes);
slices!([] Vec<u8> => Option<&'static [u8]>, Vector::bytes);
slices!([] Option<&'v [u8]> => Option<&'static [u8]>, Vector::from);
slices!([B: AsRef<[u8]>, const LEN: usize] B => &'static [u8; LEN], Vector::bytes);
slices!([const LEN: usize] [u8; LEN] => Option<&'static [u8; LEN]>, Vector::bytes);
slices!([const LEN: usize] Option<&'v [u8; LEN]> => Option<&'static [u8; LEN]>, Vector::from);

/// The type of a column that can be read as slices: numbers and enums.
#[diagnostic::on_unimplemented(
    message = "a column of `{Self}` can't be read as slices",
    note = "`vector_of` reads any column"
)]
pub trait Sliced: Clone + 'static {
    /// The cells of a page.
    #[doc(hidden)]
    type Cell: Primitive;

    /// Returns the values of cells.
    ///
    /// # Errors
    /// A newer program has added a variant that this one doesn't know.
    #[doc(hidden)]
    fn of_cells(cells: Cow<'_, [Self::Cell]>) -> Result<Cow<'_, [Self]>>;
}

macro_rules! sliced {
    ($([$($generics:tt)*] $ty:ty),+) => {$(
        impl<$($generics)*> Sliced for $ty {
            type Cell = Self;
            #[inline]
            fn of_cells(cells: Cow<'_, [Self]>) -> Result<Cow<'_, [Self]>> {
                Ok(cells)
            }
        }
    )+};
}

sliced!(
    [] i8, [] i16, [] i32, [] i64, [] u8, [] u16, [] u32, [] u64, [] f32, [] f64, [] Timestamp, [] Date, [] Uuid,
    [] Blob, [] RowId, [const SCALE: u8] Decimal<SCALE>, [R: Record] Id<R>
);

macro_rules! column_types {
    ($($plain:ty),+) => {$(
        impl ColumnType for $plain {
            type In<'a> = Self;
            type Value = Self;
        }
        impl ColumnType for Option<$plain> {
            type In<'a> = Self;
            type Value = Self;
        }
    )+};
}

column_types!(
    bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, Timestamp, Date, Uuid, Blob, RowId
);

impl<const SCALE: u8> ColumnType for Decimal<SCALE> {
    type In<'a> = Self;
    type Value = Self;
}

impl<const SCALE: u8> ColumnType for Option<Decimal<SCALE>> {
    type In<'a> = Self;
    type Value = Self;
}

impl<const LEN: usize> ColumnType for &'static [u8; LEN] {
    type In<'a> = [u8; LEN];
    type Value = [u8; LEN];
}

impl<const LEN: usize> ColumnType for Option<&'static [u8; LEN]> {
    type In<'a> = Option<[u8; LEN]>;
    type Value = Option<[u8; LEN]>;
}

impl ColumnType for &'static str {
    type In<'a> = Cow<'a, str>;
    type Value = String;
}

impl ColumnType for Option<&'static str> {
    type In<'a> = Option<Cow<'a, str>>;
    type Value = Option<String>;
}

impl ColumnType for &'static [u8] {
    type In<'a> = Cow<'a, [u8]>;
    type Value = Vec<u8>;
}

impl ColumnType for Option<&'static [u8]> {
    type In<'a> = Option<Cow<'a, [u8]>>;
    type Value = Option<Vec<u8>>;
}

impl<R: Record> ColumnType for Id<R> {
    type In<'a> = Self;
    type Value = Self;
}

impl<R: Record> ColumnType for Option<Id<R>> {
    type In<'a> = Self;
    type Value = Self;
}

impl<'a, R: Record> Table<'a, R> {
    /// Reads a column of `count` rows from `first` on.
    ///
    /// Cost: for numbers a copy for each page.
    ///
    /// # Errors
    /// `NotFound`: a row of the run doesn't exist.
    pub fn vector_of<T: ColumnType>(
        &self,
        column: Column<R, T>,
        first: Id<R>,
        count: u64,
    ) -> Result<Vec<T::In<'a>>> {
        self.get_vector(first, column.field, count)
    }

    /// Returns a column of numbers, or of an enum, in `count` rows from `first` on, as slices: one for each page,
    /// without a copy where they are numbers and the view has the page in memory.
    ///
    /// # Errors
    /// `NotFound`: a row of the run doesn't exist. The last item is an error if a page can't be loaded.
    pub fn slices_of<T: Sliced>(
        &self,
        column: Column<R, T>,
        first: Id<R>,
        count: u64,
    ) -> Result<impl Iterator<Item = Result<Cow<'a, [T]>>> + use<'a, R, T>> {
        let pages = self.vector(first, column.field, count)?.chunks::<T::Cell>()?;
        Ok(pages.map(|page| T::of_cells(page?)))
    }
}
