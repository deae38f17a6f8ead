//! The numbers of tables, fields, indexes, rows and transactions.

use std::fmt;
use std::ops::{Add, Sub};

/// The number of a table: its place among all tables ever created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableNumber(pub u32);

/// The number of a field: its place among all fields its table ever had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldNumber(pub u32);

/// The number of an index: its place among all indexes ever created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexNumber(pub u32);

/// The id of a row in its table. Ids start at 0; the largest is [`RowId::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)] // so that a run of ids can be borrowed as a run of numbers
pub struct RowId(pub u64);

impl RowId {
    /// The largest id a row can have: so that an id plus one still fits in an `i64`.
    pub const MAX: Self = Self(Self::LARGEST);
    pub(crate) const LARGEST: u64 = i64::MAX as u64 - 1;
}

/// The number of a transaction: the first one is 1, and it grows by one. 0 is the time before it.
///
/// Adding and subtracting stops at the largest number and at 0.
///
/// ```
/// use annals_schema::Txid;
///
/// assert_eq!(Txid(17) - 1, Txid(16));
/// assert_eq!(Txid(17).to_string(), "17");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Txid(pub u64);

impl fmt::Display for Txid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Add<u64> for Txid {
    type Output = Self;

    #[inline]
    fn add(self, number: u64) -> Self {
        Self(self.0.saturating_add(number))
    }
}

impl Sub<u64> for Txid {
    type Output = Self;

    #[inline]
    fn sub(self, number: u64) -> Self {
        Self(self.0.saturating_sub(number))
    }
}

/// A blob: its number, which names bytes in the journal. Numbers start at 1, and are never used
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)] // as a row's id
pub struct Blob(pub u64);

impl Blob {
    /// The largest number a blob can have.
    pub const MAX: Self = Self(Self::LARGEST);
    pub(crate) const LARGEST: u64 = i64::MAX as u64 - 1;
}
