//! What changed: rows with both their sides, by transaction and by row.

use annals_schema::{FieldNumber, RowId, TableNumber, Timestamp, Value};

/// What became of one row from one moment to a later one.
#[derive(Clone, Debug, PartialEq)]
pub struct RowChange {
    /// Its table.
    pub table: TableNumber,
    /// The row.
    pub id: RowId,
    /// Its values before, one for each field number of the present schema (null where a field is dropped);
    /// `None`: there was no such row.
    pub before: Option<Vec<Value>>,
    /// Its values afterwards, in the same way; `None`: the row is gone.
    pub after: Option<Vec<Value>>,
}

impl RowChange {
    /// Gives the fields whose values differ, as keys of indexes do (one NaN is like another); all of them where the row
    /// came or went.
    pub fn fields(&self) -> impl Iterator<Item = FieldNumber> + '_ {
        let side = |values: &Option<Vec<Value>>| values.as_ref().map_or(0, Vec::len);
        let count = side(&self.before).max(side(&self.after));
        (0..count)
            .filter(move |&field| {
                let value = |side: &'_ Option<Vec<Value>>| side.as_ref()?.get(field).cloned();
                match (value(&self.before), value(&self.after)) {
                    (Some(one), Some(other)) => one.as_ref().total_cmp(&other.as_ref()).is_ne(),
                    (one, other) => one.is_some() != other.is_some(),
                }
            })
            .filter_map(|field| u32::try_from(field).ok().map(FieldNumber))
    }
}

/// What one transaction did.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// Its number.
    pub txid: u64,
    /// Its time.
    pub time: Timestamp,
    /// Its comments, in order.
    pub comments: Vec<String>,
    /// The rows that differ afterwards, each once, in the order in which they were first touched.
    pub rows: Vec<RowChange>,
}

/// One version of a row: what one transaction made of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// The number of the transaction.
    pub txid: u64,
    /// Its time.
    pub time: Timestamp,
    /// Its comments, in order.
    pub comments: Vec<String>,
    /// What it did to the row.
    pub change: RowChange,
    /// Whether it is the state with which the history begins that is left: the row may be older, but what made it so
    /// was forgotten.
    pub is_beginning: bool,
}
