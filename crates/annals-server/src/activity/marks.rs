//! What stands out in a history: a bounded number of marks.

use annals::{FieldNumber, RowId, TableNumber, Txid};
use serde::Serialize;
use utoipa::ToSchema;

/// The most marks. When there would be more, every second comment is left out.
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
    pub(crate) kind: Kind,
    pub(crate) text: String,
    /// Whose values were erased.
    pub(crate) erased: Option<Erased>,
}

/// The row, and the field if only one, whose values were erased.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Erased {
    pub(crate) table: TableNumber,
    pub(crate) row: RowId,
    pub(crate) field: Option<FieldNumber>,
}

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

    /// Leaves out every second comment; where comments are the smaller part, every second mark.
    fn thin_out(&mut self) {
        let is_comment = |mark: &Mark| mark.kind == Kind::Comment;
        let has_many = self.list.iter().filter(|mark| is_comment(mark)).count() > MOST / 2;
        if has_many {
            self.every *= 2;
        }
        let mut seen = 0_u64;
        self.list.retain(|mark| {
            seen += u64::from(!has_many || is_comment(mark));
            (has_many && !is_comment(mark)) || !seen.is_multiple_of(2)
        });
    }

    pub(crate) fn list(&self) -> impl Iterator<Item = &Mark> {
        self.list.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_few_and_others_than_comments_stay() {
        let mut marks = Marks::default();
        for txid in 1..=100_000 {
            let kind = if txid % 1000 == 0 { Kind::Schema } else { Kind::Comment };
            marks.add(Mark { txid: Txid(txid), kind, text: "é".repeat(300), erased: None });
        }
        assert!(marks.list.len() <= MOST && marks.list.len() > MOST / 4);
        assert_eq!(marks.list().filter(|mark| mark.kind == Kind::Schema).count(), 100);
        assert!(marks.list().all(|mark| mark.text.chars().count() == LONGEST));
        for _ in 0..10_000 {
            marks.add(Mark {
                txid: Txid(1),
                kind: Kind::Erasure,
                text: String::new(),
                erased: None,
            });
        }
        assert!(marks.list.len() <= MOST, "whatever they are");
    }
}
