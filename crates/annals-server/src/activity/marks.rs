//! What stands out in a history: a bounded number of marks.

use std::collections::{BTreeMap, BTreeSet};

use annals::{FieldNumber, RowId, TableNumber, Timestamp, Txid};
use serde::Serialize;
use utoipa::ToSchema;

/// The most marks. When there would be more, some are left out: comments first, and erasures last.
const MOST: usize = 2048;
/// The most characters of a text.
const LONGEST: usize = 200;

/// What a mark is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Comment,
    Schema,
    Erasure,
    ValidData,
}

/// Something that stands out.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) txid: Txid,
    pub(crate) time: Timestamp,
    pub(crate) kind: Kind,
    pub(crate) text: String,
    /// Whose values were erased.
    pub(crate) erased: Option<Erased>,
}

/// The row, and the field if only one, whose values were erased.
#[derive(Clone, Debug)]
pub(crate) struct Erased {
    pub(crate) table: TableNumber,
    pub(crate) row: RowId,
    pub(crate) field: Option<FieldNumber>,
    /// The fields that were set since, `None` for all of them, each with the first transaction that did: null isn't an erased
    /// value there any more.
    pub(crate) set: BTreeMap<Option<FieldNumber>, Txid>,
}

impl Erased {
    const fn key(&self) -> Row {
        (self.table, self.row)
    }
}

/// A row of a table.
pub(super) type Row = (TableNumber, RowId);

/// Marks in the order of their transactions.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    list: Vec<Mark>,
    /// Of so many comments one is kept.
    every: u64,
    comments: u64,
}

impl Marks {
    pub(crate) fn add(&mut self, mut mark: Mark) {
        self.every = self.every.max(1);
        if mark.kind == Kind::Comment {
            self.comments += 1;
            if !(self.comments - 1).is_multiple_of(self.every) {
                return;
            }
        }
        if let Some((end, _)) = mark.text.char_indices().nth(LONGEST) {
            mark.text.truncate(end);
        }
        self.list.push(mark);
        if self.list.len() > MOST {
            self.thin_out();
        }
    }

    /// Leaves out every second comment; where comments are the smaller part, the older half of the erasures; where they are,
    /// too, every second mark of the rest.
    fn thin_out(&mut self) {
        let count = |kind| self.list.iter().filter(|mark| mark.kind == kind).count();
        let has_many = count(Kind::Comment) > MOST / 2;
        let erasures = count(Kind::Erasure);
        if has_many {
            self.every *= 2;
        }
        let of_erasures = !has_many && erasures > MOST / 2;
        let mut seen = 0;
        self.list.retain(|mark| {
            let is_kept = match mark.kind {
                Kind::Comment => of_erasures,
                Kind::Erasure => !of_erasures,
                Kind::Schema | Kind::ValidData => of_erasures || has_many,
            };
            if is_kept {
                return true;
            }
            seen += 1;
            if of_erasures { seen > erasures / 2 } else { seen % 2 == 1 }
        });
    }

    /// Returns the rows whose values were erased.
    pub(super) fn erased(&self) -> BTreeSet<Row> {
        self.list.iter().filter_map(|mark| mark.erased.as_ref()).map(Erased::key).collect()
    }

    /// Notes that a transaction set a field, or all of them, of a row whose values were erased.
    pub(super) fn set(&mut self, row: Row, field: Option<FieldNumber>, txid: Txid) {
        let erased = self.list.iter_mut().filter_map(|mark| mark.erased.as_mut());
        for erased in erased.filter(|erased| erased.key() == row) {
            erased.set.entry(field).or_insert(txid);
        }
    }

    pub(crate) fn list(&self) -> impl Iterator<Item = &Mark> {
        self.list.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(txid: u64, kind: Kind, text: String) -> Mark {
        Mark { txid: Txid(txid), time: Timestamp(0), kind, text, erased: None }
    }

    #[test]
    fn marks_are_few_and_others_than_comments_stay() {
        let mut marks = Marks::default();
        for txid in 1..=100_000 {
            let kind = match txid {
                500 | 50_000 => Kind::Erasure,
                _ if txid % 1000 == 0 => Kind::Schema,
                _ => Kind::Comment,
            };
            marks.add(mark(txid, kind, "é".repeat(300)));
        }
        let count = |marks: &Marks, kind| marks.list().filter(|mark| mark.kind == kind).count();
        assert!(marks.list.len() <= MOST && marks.list.len() > MOST / 4);
        assert_eq!((count(&marks, Kind::Schema), count(&marks, Kind::Erasure)), (99, 2));
        assert!(marks.list().all(|mark| mark.text.chars().count() == LONGEST));
        for txid in 100_001..=110_000 {
            marks.add(mark(txid, Kind::Schema, String::new()));
        }
        assert_eq!(count(&marks, Kind::Erasure), 2, "what was erased is still said to be");
        for txid in 110_001..=120_000 {
            marks.add(mark(txid, Kind::Erasure, String::new()));
        }
        assert!(marks.list.len() <= MOST, "whatever they are");
        let erasures = marks.list().filter(|mark| mark.kind == Kind::Erasure);
        let newest: Vec<_> = erasures.map(|mark| mark.txid.0).collect();
        assert!(
            newest.len() >= MOST / 4
                && newest.iter().copied().eq(120_001 - newest.len() as u64..=120_000)
        );
    }
}
