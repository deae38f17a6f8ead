//! Typed ids.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::str::FromStr;

use annals_schema::{RowId, ValueRef, shorten};
use annals_storage::TypedId;

use super::Record;
use crate::store::CellOf;

/// The id of a row of one table: 8 bytes. Another table's id has another type.
///
/// Its text is its number, in decimal digits, in both directions:
///
/// ```
/// annals::schema!("tutorial.schema");
/// use tutorial::city;
///
/// # fn main() -> Result<(), annals::typed::ParseIdError> {
/// let id: city::Id = "17".parse()?; // as in /cities/17
/// assert_eq!((id.as_u64(), id), (17, city::Id::from_u64(17)));
/// assert_eq!(format!("/cities/{id}"), "/cities/17");
/// assert!("-1".parse::<city::Id>().is_err());
/// # Ok(())
/// # }
/// ```
#[repr(transparent)] // so that a run of ids can be borrowed as a run of numbers
pub struct Id<R> {
    row: RowId,
    kind: PhantomData<fn() -> R>,
}

impl<R: Record> Id<R> {
    /// Makes the id with this number, whether or not there is such a row.
    #[must_use]
    pub const fn from_u64(number: u64) -> Self {
        Self { row: RowId(number), kind: PhantomData }
    }

    /// Returns the number.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.row.0
    }
}

impl<R: Record> TypedId for Id<R> {
    const TABLE: &'static str = R::NAME;
}

impl<R: Record> From<RowId> for Id<R> {
    fn from(row: RowId) -> Self {
        Self::from_u64(row.0)
    }
}

impl<R: Record> From<u64> for Id<R> {
    fn from(number: u64) -> Self {
        Self::from_u64(number)
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

impl<R: Record> CellOf for Id<R> {
    type Plain = RowId;

    fn of(row: RowId) -> Self {
        row.into()
    }
}

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

/// A text that is no id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseIdError {
    table: &'static str,
    text: String,
}

impl fmt::Display for ParseIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (table, text) = (self.table, shorten(&self.text));
        write!(f, "{text:?} is not the id of a row of {table}: write its number, in digits only")
    }
}

impl std::error::Error for ParseIdError {}

impl<R: Record> FromStr for Id<R> {
    type Err = ParseIdError;

    /// Understands decimal digits without a sign, up to the largest id that a row can have.
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = if is_number { text.parse().ok() } else { None };
        number
            .filter(|&number| number <= RowId::MAX.0)
            .map(Self::from_u64)
            .ok_or_else(|| ParseIdError { table: R::NAME, text: text.to_owned() })
    }
}
