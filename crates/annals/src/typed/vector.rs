//! Runs of rows: whole columns of them at once.
//!
//! A vector is the values of one field in rows with consecutive ids. Reading and writing one costs a copy for each
//! page if the field is a number, without a loop over the rows.

use std::borrow::Cow;

use annals_schema::{
    Blob, Date, Decimal, FieldNumber, RowId, Timestamp, Type, Uuid, ValueRef, column_types,
};

use super::{Id, Record, Table};
use crate::Result;
use crate::store::{Fetched, Primitive, VectorView, sealed};

/// The values of one field in consecutive rows. Make it with `From` of a slice of the field's type: `&[i64]`,
/// `&[bool]`, `&[&str]`, `&[String]`, `&[Id]`, `&[Timestamp]`, .. Or use a slice of `Option`s of it, where `None` is
/// null; [`strings`](crate::store::Values::strings) and [`bytes`](crate::store::Values::bytes) take whatever can be
/// borrowed as such.
pub type Vector<'a> = crate::store::Values<'a>;

impl<R> sealed::Sealed for Id<R> {}

#[allow(unsafe_code, reason = "the trait says what a type must be")]
// SAFETY: an id is a transparent struct of a `RowId`.
unsafe impl<R: Record> Primitive for Id<R> {
    fn fits(ty: Type) -> bool {
        RowId::fits(ty)
    }
}

/// A Rust type that a run of values of a field can be read as.
///
/// These are the types of a row's getters: `bool`, the integers and floats, `Timestamp`, `Blob`, and ids. Also `Cow`
/// of `str` and of `[u8]`, borrowed if the view has the value in memory. `Option` of each is for fields that may be
/// null.
pub trait Element<'a>: Sized {
    /// Reads a run.
    ///
    /// # Errors
    /// `Invalid` if the field is of another type, or holds null and the type doesn't; a value can't be
    /// loaded.
    fn read(vector: &VectorView<'a>) -> Result<Vec<Self>>;
}

/// A type of which columns are written from slices. It is a trait of this crate, so that the compiler knows which types
/// are none.
#[doc(hidden)]
pub trait Number: Copy + 'static {
    /// Returns the values as they are written.
    fn vector(values: &[Self]) -> Vector<'_>;
}

impl<R: Record> Number for Id<R> {
    #[inline]
    fn vector(values: &[Self]) -> Vector<'_> {
        values.into()
    }
}

// Functions that read and write a column are `#[inline]`: a program compiles those that it calls, and this crate none.

macro_rules! numbers {
    ($($variant:ident: $rust:ty $(, $also:ident)?;)*) => {$(
        number!($rust: ValueRef::$variant(v) $(| ValueRef::$also(v))? => v);
    )*};
}

macro_rules! number {
    ($({const $parameter:ident: $of:ty})? $rust:ty: $pattern:pat => $value:expr) => {
        impl<$(const $parameter: $of)?> Number for $rust {
            #[inline]
            fn vector(values: &[Self]) -> Vector<'_> {
                values.into()
            }
        }
        impl<$(const $parameter: $of)?> Element<'_> for $rust {
            #[inline]
            fn read(vector: &VectorView<'_>) -> Result<Vec<Self>> {
                vector.to_vec()
            }
        }
        any!($({const $parameter: $of})? Option<$rust>: $pattern => Some($value), ValueRef::Null => None);
    };
}

macro_rules! any {
    ($({const $parameter:ident: $of:ty})? $rust:ty: $($pattern:pat => $value:expr),+) => {
        impl<'a, $(const $parameter: $of)?> Element<'a> for $rust {
            #[inline]
            fn read(vector: &VectorView<'a>) -> Result<Vec<Self>> {
                let values = vector.values().map(|value| match value?.as_ref() {
                    $($pattern => Ok($value),)+
                    _ => Err(vector.unfit(stringify!($rust))),
                });
                values.collect()
            }
        }
    };
}

/// Values that are borrowed where that can be.
macro_rules! borrowed {
    ($rust:ty: $into:ident) => {
        impl<'a> Element<'a> for Cow<'a, $rust> {
            #[inline]
            fn read(vector: &VectorView<'a>) -> Result<Vec<Self>> {
                let unfit = || vector.unfit(stringify!($rust));
                vector.values().map(|value| value?.$into().ok_or_else(unfit)).collect()
            }
        }

        impl<'a> Element<'a> for Option<Cow<'a, $rust>> {
            #[inline]
            fn read(vector: &VectorView<'a>) -> Result<Vec<Self>> {
                let unfit = || vector.unfit(stringify!(Option<$rust>));
                let values = vector.values().map(|value| match value? {
                    Fetched::Here(ValueRef::Null) => Ok(None),
                    value => value.$into().map(Some).ok_or_else(unfit),
                });
                values.collect()
            }
        }
    };
}

column_types!(numbers, numbers);
number!(Timestamp: ValueRef::Timestamp(v) => Timestamp(v));
number!(Date: ValueRef::Date(v) => v);
number!(Uuid: ValueRef::Uuid(v) => v);
number!({const SCALE: u8} Decimal<SCALE>: ValueRef::Decimal(v) => Decimal::from_units(v.units()));
any!({const LEN: usize} [u8; LEN]: ValueRef::Bytes(v) => of_length(v));
any!({const LEN: usize} Option<[u8; LEN]>: ValueRef::Bytes(v) => Some(of_length(v)), ValueRef::Null => None);
number!(Blob: ValueRef::Blob(v) => v);
number!(RowId: ValueRef::Reference(v) => v);
any!(bool: ValueRef::Bool(v) => v);
any!(Option<bool>: ValueRef::Bool(v) => Some(v), ValueRef::Null => None);
borrowed!(str: into_text);
borrowed!([u8]: into_bytes);

/// Returns bytes of a column whose values have this length; zeros if they haven't.
fn of_length<const LEN: usize>(bytes: &[u8]) -> [u8; LEN] {
    bytes.try_into().unwrap_or([0; LEN])
}

impl<R: Record> Element<'_> for Id<R> {
    #[inline]
    fn read(vector: &VectorView<'_>) -> Result<Vec<Self>> {
        vector.to_vec()
    }
}

impl<'a, R: Record> Element<'a> for Option<Id<R>> {
    #[inline]
    fn read(vector: &VectorView<'a>) -> Result<Vec<Self>> {
        let ids = Option::<RowId>::read(vector)?;
        Ok(ids.into_iter().map(|id| id.map(Into::into)).collect())
    }
}

impl<'a, R: Record> Table<'a, R> {
    /// Returns one field of `count` rows from `first` on, to be read page by page.
    ///
    /// # Errors
    /// `NotFound`: a row of the run doesn't exist.
    pub fn vector(&self, first: Id<R>, field: FieldNumber, count: u64) -> Result<VectorView<'a>> {
        self.as_dynamic().vector(field, first.into(), count)
    }

    /// Reads one field of `count` rows from `first` on; generated code calls it for `get_vector_of_name(first,
    /// count)`.
    ///
    /// # Errors
    /// `NotFound`: a row of the run doesn't exist; `Invalid`: the field isn't of that type, or holds null and the
    /// type doesn't.
    pub fn get_vector<T: Element<'a>>(
        &self,
        first: Id<R>,
        field: FieldNumber,
        count: u64,
    ) -> Result<Vec<T>> {
        T::read(&self.vector(first, field, count)?)
    }
}

#[cfg(test)]
mod tests {
    use annals_schema::TableNumber;

    use super::*;
    use crate::store::{from_cells, to_cells};

    struct Kind;

    impl Record for Kind {
        const TABLE: TableNumber = TableNumber(0);
        const NAME: &'static str = "kind";
        type Schema = ();
        type Row<'a> = crate::Row<'a>;
        type Edit<'t, 'db: 't> = crate::typed::Editor<'t, 'db, Self>;
    }

    #[test]
    fn ids_are_cells_and_back_wherever_they_lie() {
        let ids = [3, u64::MAX, 0].map(Id::<Kind>::from_u64);
        let cells = to_cells(&ids);
        assert_eq!(cells[..8], 3_u64.to_le_bytes());
        for shift in 0..8 {
            let moved = [&vec![0; shift], &cells[..]].concat();
            assert_eq!(from_cells::<Id<Kind>>(&moved[shift..])[..], ids);
        }
    }
}
