//! Typed ids.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use annals_schema::{RowId, ValueRef};
use annals_storage::TypedId;

use super::Record;
use crate::store::CellId;

/// The id of a row of one table: 8 bytes. Another table's id has another type.
#[repr(transparent)] // so that a run of ids can be borrowed as a run of numbers
pub struct Id<R> {
    row: RowId,
    kind: PhantomData<fn() -> R>,
}

impl<R: Record> Id<R> {
    /// Makes the id with this number, whether or not there is such a row.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self { row: RowId(number), kind: PhantomData }
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.row.0
    }
}

impl<R: Record> TypedId for Id<R> {
    const TABLE: &'static str = R::NAME;
}

impl<R: Record> From<RowId> for Id<R> {
    fn from(row: RowId) -> Self {
        Self::new(row.0)
    }
}

impl<R> From<Id<R>> for RowId {
    fn from(id: Id<R>) -> Self {
        id.row
    }
}

impl<R> From<Id<R>> for ValueRef<'_> {
    fn from(id: Id<R>) -> Self {
        Self::Reference(id.row)
    }
}

impl<R: Record> CellId for Id<R> {}

impl<R> Clone for Id<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Id<R> {}

impl<R> PartialEq for Id<R> {
    fn eq(&self, other: &Self) -> bool {
        self.row == other.row
    }
}

impl<R> Eq for Id<R> {}

impl<R> PartialOrd for Id<R> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<R> Ord for Id<R> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.row.cmp(&other.row)
    }
}

impl<R> Hash for Id<R> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.row.hash(state);
    }
}

impl<R> fmt::Display for Id<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.row.0, f)
    }
}

impl<R: Record> fmt::Debug for Id<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::Id({})", R::NAME, self.row.0)
    }
}
