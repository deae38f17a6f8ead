//! The rows: shapes of tables, names and values.
//!
//! A value encodes its row, and the version of its update. With an index, the name of a row is made from its id, and
//! scattered so that the index has another order than the table.

use std::ops::Range;

/// The form of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A name and a value; the name is the same in all rows.
    Small,
    /// A name and a value, and an index on the name.
    Named,
}

impl Shape {
    /// Returns the names of rows.
    pub(crate) fn names(self, ids: Range<u64>) -> Names {
        match self {
            Self::Small => Names::SHORT,
            Self::Named => Names::Each(ids.map(name).collect()),
        }
    }
}

/// The names of rows that are inserted: there before the clock starts.
pub(crate) enum Names {
    /// All rows have the same.
    Same(&'static str),
    /// One for each row.
    Each(Vec<String>),
}

impl Names {
    /// The name in all rows of a small table.
    pub(crate) const SHORT: Self = Self::Same("TOTO");

    /// Returns the ids of rows, of which the first has the first name, with their names.
    pub(crate) fn of(&self, ids: Range<u64>) -> impl Iterator<Item = (u64, &str)> {
        ids.enumerate().map(|(place, id)| match self {
            Self::Same(name) => (id, *name),
            Self::Each(names) => (id, &*names[place]),
        })
    }
}

/// Returns the name of a row: ten letters, which no other row has.
pub(crate) fn name(id: u64) -> String {
    // An odd factor maps the numbers of 40 bits one to one.
    format!("{:010x}", id.wrapping_mul(0x9E_3779_B97F) & ((1 << 40) - 1))
}

/// Returns the value that a row has in a version; in version 0 its id.
pub(crate) const fn value(id: u64, version: u32) -> i64 {
    (id | (version as u64) << 32).cast_signed()
}

/// True if a row could have this value.
pub(crate) const fn is_value_of(id: u64, value: i64) -> bool {
    value.cast_unsigned() & 0xFFFF_FFFF == id
}

/// Returns a sum that another order of its values would make another one.
pub(crate) const fn in_order(sum: i64, value: i64) -> i64 {
    sum.rotate_left(1).wrapping_add(value)
}
