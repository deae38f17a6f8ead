//! Fields whose types are the program's: `as PATH` in a schema file.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use annals_schema::{Date, Decimal, FieldNumber, Timestamp, Uuid, ValueRef, column_types};

use super::change::{Owned, RowValues};
use crate::Result;

/// A type of the program for a field: `add_field person email string as crate::Email` in the schema file.
///
/// `S` is the stored type: `str` for `string` and `json`, `[u8]`, `[u8; N]`, a number, `bool`, [`Timestamp`], [`Date`],
/// [`Uuid`] or [`Decimal`]. Getters, `New`, owned rows, setters and lookups of indexes then have the program's type. The
/// file has no trace of it: with and without `as` a schema is the same one.
///
/// [`from_stored`](Self::from_stored) can't fail, since getters can't. So the type must be able to hold every value that
/// the field may have: that of an existing row, of another program, and the zero of `New::default()`. Check new values
/// in a constructor of the type, or all that is committed with [`check_commits`](super::Database::check_commits).
///
/// Indexes and bounds are in the order of the stored values, whatever `Ord` of the type says. Columns of many rows
/// ([`Column`](super::Column), `Columns`) have the stored values, so that they need no conversion one by one.
///
/// ```
/// #[derive(Clone, Debug, PartialEq)]
/// pub struct Email(String);
///
/// impl annals::FieldValue<str> for Email {
///     fn from_stored(text: &str) -> Self {
///         Self(text.to_owned())
///     }
///
///     fn to_stored(&self) -> &str {
///         &self.0
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be the type of a field whose stored values are `{S}`",
    label = "the schema has a field `as` this type",
    note = "implement `annals::FieldValue<{S}>` for it, or write another type after `as` in the schema"
)]
pub trait FieldValue<S: Stored + ?Sized>: Clone + Debug + PartialEq + 'static {
    /// Makes the program's value of a stored one: any that the field may have.
    fn from_stored(stored: S::Ref<'_>) -> Self;

    /// Returns the value to store. Reading it again must make an equal one.
    fn to_stored(&self) -> S::Ref<'_>;
}

/// A type of stored values that a [`FieldValue`] can stand for.
#[diagnostic::on_unimplemented(
    message = "no field has stored values of type `{Self}`",
    note = "write `str`, `[u8]`, `[u8; N]`, a number, `bool`, or a type of values of `annals`"
)]
pub trait Stored: 'static {
    /// A value as a row has it: borrowed, if it is text or bytes.
    type Ref<'a>: Copy + Into<ValueRef<'a>>;

    /// A value by itself.
    #[doc(hidden)]
    type Owned: Owned;

    /// Borrows a value.
    #[doc(hidden)]
    fn borrowed(owned: &Self::Owned) -> Self::Ref<'_>;

    /// Copies a value.
    #[doc(hidden)]
    fn copied(borrowed: Self::Ref<'_>) -> Self::Owned;
}

macro_rules! borrowed {
    ($([$($generics:tt)*] $stored:ty, $owned:ty;)+) => {$(
        impl<$($generics)*> Stored for $stored {
            type Ref<'a> = &'a $stored;
            type Owned = $owned;

            fn borrowed(owned: &$owned) -> &$stored {
                owned
            }

            fn copied(borrowed: &$stored) -> $owned {
                borrowed.to_owned()
            }
        }
    )+};
}

borrowed! {
    [] str, String;
    [] [u8], Vec<u8>;
    [const LEN: usize] [u8; LEN], [u8; LEN];
}

macro_rules! copied {
    ($([$($generics:tt)*] $stored:ty;)+) => {$(
        impl<$($generics)*> Stored for $stored {
            type Ref<'a> = Self;
            type Owned = Self;

            fn borrowed(owned: &Self) -> Self {
                *owned
            }

            fn copied(borrowed: Self) -> Self {
                borrowed
            }
        }
    )+};
}

macro_rules! copied_numbers {
    ($($variant:ident: $rust:ty $(, $also:ident)?;)*) => {
        copied! { $([] $rust;)* }
    };
}

column_types!(numbers, copied_numbers);

copied! {
    [] bool;
    [] Timestamp;
    [] Date;
    [] Uuid;
    [const SCALE: u8] Decimal<SCALE>;
}

/// An argument of the program's own type: a value or a reference to one.
#[diagnostic::on_unimplemented(
    message = "this takes `{T}` or `&{T}`, and not `{Self}`",
    note = "the schema has the field `as` that type"
)]
pub trait Given<T> {
    /// Borrows the value.
    fn given(&self) -> &T;
}

impl<T> Given<T> for T {
    #[inline]
    fn given(&self) -> &T {
        self
    }
}

impl<T> Given<T> for &T {
    #[inline]
    fn given(&self) -> &T {
        self
    }
}

/// An argument of the program's own type that may be left out: a value, an `Option` of it, `None`, or a reference to one of
/// these. No `Option` of a reference: then `None` would be of either type.
#[diagnostic::on_unimplemented(
    message = "this takes `{T}`, an `Option` of it, or a reference to either, and not `{Self}`",
    note = "the schema has the field `as` that type, and it may be null"
)]
pub trait GivenOrNull<T> {
    /// Borrows the value, if there is one.
    fn given(&self) -> Option<&T>;
}

impl<T> GivenOrNull<T> for T {
    #[inline]
    fn given(&self) -> Option<&T> {
        Some(self)
    }
}

impl<T> GivenOrNull<T> for &T {
    #[inline]
    fn given(&self) -> Option<&T> {
        Some(self)
    }
}

impl<T> GivenOrNull<T> for Option<T> {
    #[inline]
    fn given(&self) -> Option<&T> {
        self.as_ref()
    }
}

impl<T> GivenOrNull<T> for &Option<T> {
    #[inline]
    fn given(&self) -> Option<&T> {
        self.as_ref()
    }
}

/// The conversions of a field that is never null; generated code calls them.
#[doc(hidden)]
#[derive(Debug)]
pub struct Own<S: ?Sized, T>(PhantomData<(T, S)>);

// The bound stands at the methods, not at the `impl`: only so the compiler says what `FieldValue` advises.
impl<S: Stored + ?Sized, T> Own<S, T> {
    /// Converts a stored value.
    #[inline]
    #[must_use]
    pub fn read(stored: S::Ref<'_>) -> T
    where
        T: FieldValue<S>,
    {
        T::from_stored(stored)
    }

    /// Converts a stored value that is by itself.
    #[must_use]
    pub fn kept(stored: S::Owned) -> T
    where
        T: FieldValue<S>,
    {
        T::from_stored(S::borrowed(&stored))
    }

    /// Takes a value of a change.
    ///
    /// # Errors
    /// There is none of that type.
    pub fn take(row: &mut RowValues, field: FieldNumber) -> Result<T>
    where
        T: FieldValue<S>,
    {
        row.take(field).map(Self::kept)
    }

    /// Copies the stored value.
    pub fn stored(value: &T) -> S::Owned
    where
        T: FieldValue<S>,
    {
        S::copied(value.to_stored())
    }

    /// Returns the stored value, untyped.
    #[inline]
    pub fn value(value: &T) -> ValueRef<'_>
    where
        T: FieldValue<S>,
    {
        value.to_stored().into()
    }

    /// Returns the stored value of an argument.
    #[inline]
    pub fn given(value: &impl Given<T>) -> ValueRef<'_>
    where
        T: FieldValue<S>,
    {
        Self::value(value.given())
    }

    /// Returns the bounds of stored values.
    pub fn bounds(bounds: &impl RangeBounds<T>) -> (Bound<ValueRef<'_>>, Bound<ValueRef<'_>>)
    where
        T: FieldValue<S>,
    {
        (bounds.start_bound().map(Self::value), bounds.end_bound().map(Self::value))
    }
}

/// The conversions of a field that may be null; generated code calls them.
#[doc(hidden)]
#[derive(Debug)]
pub struct OwnOrNull<S: ?Sized, T>(PhantomData<(T, S)>);

impl<S: Stored + ?Sized, T> OwnOrNull<S, T> {
    /// Converts a stored value.
    #[inline]
    #[must_use]
    pub fn read(stored: Option<S::Ref<'_>>) -> Option<T>
    where
        T: FieldValue<S>,
    {
        stored.map(T::from_stored)
    }

    /// Converts a stored value that is by itself.
    #[must_use]
    pub fn kept(stored: Option<S::Owned>) -> Option<T>
    where
        T: FieldValue<S>,
    {
        stored.map(Own::<S, T>::kept)
    }

    /// Takes a value of a change.
    ///
    /// # Errors
    /// There is none of that type.
    pub fn take(row: &mut RowValues, field: FieldNumber) -> Result<Option<T>>
    where
        T: FieldValue<S>,
    {
        row.take(field).map(Self::kept)
    }

    /// Copies the stored value.
    pub fn stored(value: &Option<T>) -> Option<S::Owned>
    where
        T: FieldValue<S>,
    {
        value.as_ref().map(Own::<S, T>::stored)
    }

    /// Returns the stored value, untyped.
    #[inline]
    pub fn value(value: &Option<T>) -> ValueRef<'_>
    where
        T: FieldValue<S>,
    {
        value.as_ref().map_or(ValueRef::Null, Own::<S, T>::value)
    }

    /// Returns the stored value of an argument.
    #[inline]
    pub fn given(value: &impl GivenOrNull<T>) -> ValueRef<'_>
    where
        T: FieldValue<S>,
    {
        value.given().map_or(ValueRef::Null, Own::<S, T>::value)
    }

    /// Returns the bounds of stored values.
    pub fn bounds(bounds: &impl RangeBounds<T>) -> (Bound<ValueRef<'_>>, Bound<ValueRef<'_>>)
    where
        T: FieldValue<S>,
    {
        Own::<S, T>::bounds(bounds)
    }
}
