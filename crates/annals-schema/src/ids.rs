//! The numbers of tables, fields, indexes and rows.

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
