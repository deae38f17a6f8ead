//! Changes: rows with their values before and after, by transaction and by row.

use annals_schema::{FieldNumber, RowId, TableNumber, Timestamp, Txid, Value, ValueRef};

/// The change of one row from one moment to a later one.
#[derive(Clone, Debug, PartialEq)]
pub struct RowChange {
    /// Its table.
    pub table: TableNumber,
    /// The row.
    pub id: RowId,
    /// Its values before, one for each field number of the present schema (null where a field is dropped);
    /// `None`: there was no such row.
    pub before: Option<Vec<Value>>,
    /// Its values after, in the same way; `None` if the row was deleted.
    pub after: Option<Vec<Value>>,
}

impl RowChange {
    /// Returns the fields whose values differ, bit by bit: 0.0 and -0.0 do. All of them if the row was inserted or
    /// deleted.
    pub fn fields(&self) -> impl Iterator<Item = FieldNumber> + '_ {
        let [before, after] =
            [&self.before, &self.after].map(|side| side.as_deref().unwrap_or_default());
        (0..before.len().max(after.len()))
            .filter(move |&field| match (before.get(field), after.get(field)) {
                (Some(before), Some(after)) => !is_same(before.as_ref(), after.as_ref()),
                _ => true,
            })
            .filter_map(|field| u32::try_from(field).ok().map(FieldNumber))
    }
}

/// True if two values are the same bit by bit: 0.0 and -0.0 are equal, but not the same.
pub fn is_same(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    match (a, b) {
        (ValueRef::Float32(a), ValueRef::Float32(b)) => a.to_bits() == b.to_bits(),
        (ValueRef::Float64(a), ValueRef::Float64(b)) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}

/// True if two rows have the same values, or neither exists.
pub(in crate::db) fn is_same_row(a: Option<&[Value]>, b: Option<&[Value]>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a.as_ref(), b.as_ref()))
        }
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// The changes of one transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// Its number.
    pub txid: Txid,
    /// Its time.
    pub time: Timestamp,
    /// Its comments, in order.
    pub comments: Vec<String>,
    /// The rows that differ afterwards, each once, in the order in which they were first touched.
    pub rows: Vec<RowChange>,
    /// How many further rows it touched for which there was no room; 0 unless [`Changes::within`](crate::Changes::within)
    /// bounds them.
    pub left_out: u64,
}

/// One version of a row: the change by one transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// The number of the transaction.
    pub txid: Txid,
    /// Its time.
    pub time: Timestamp,
    /// Its comments, in order.
    pub comments: Vec<String>,
    /// The change that it made to the row.
    pub change: RowChange,
    /// True if it is the state at the beginning of the kept history: the row may be older, but its earlier changes
    /// were forgotten.
    pub is_beginning: bool,
}

/// The kind of a version of a row: the effect of its transaction on the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VersionKind {
    /// The row was inserted.
    Insert,
    /// Fields of the row were changed.
    Update,
    /// The row was deleted.
    Delete,
    /// It is the state at the beginning of the kept history: earlier changes were forgotten.
    State,
}

impl VersionKind {
    /// Returns its name: `insert`, `update`, `delete` or `state`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::State => "state",
        }
    }
}

impl Version {
    /// Returns its kind.
    #[must_use]
    pub const fn kind(&self) -> VersionKind {
        match (&self.change.before, &self.change.after) {
            _ if self.is_beginning => VersionKind::State,
            (None, _) => VersionKind::Insert,
            (_, None) => VersionKind::Delete,
            _ => VersionKind::Update,
        }
    }
}

/// The origin of the present value of a field: the version of the row since which the field has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Blame {
    /// The field.
    pub field: FieldNumber,
    /// Its present value.
    pub value: Value,
    /// The number of the transaction that set it.
    pub txid: Txid,
    /// The time of that transaction.
    pub time: Timestamp,
    /// Its comments, in order.
    pub comments: Vec<String>,
    /// The kind of that version; [`VersionKind::State`]: the value is older than the kept history.
    pub kind: VersionKind,
}
