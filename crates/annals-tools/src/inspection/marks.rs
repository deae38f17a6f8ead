//! The marks of erasures, and whether the chains in them are those of the journal.

use std::collections::BTreeMap;

use annals::Committed;
use annals::journal::Erasure;
use annals_journal::Frame;

/// The marks read so far, frame by frame.
#[derive(Debug, Default)]
pub(super) struct Marks {
    pub(super) erasures: Vec<Erasure>,
    /// Chains at the borders of segments and before marks, by their transactions. Where a segment repeats the
    /// state, its transaction has two.
    known: BTreeMap<u64, Vec<u64>>,
    last: Option<(u64, u64)>,
    /// True if a segment has just begun.
    begins: bool,
}

impl Marks {
    /// Begins a segment.
    pub(super) fn begin(&mut self) {
        self.note_last();
        self.begins = true;
    }

    pub(super) fn frame(&mut self, frame: &Frame<'_>) {
        if let Some(erasure) = Erasure::of(frame) {
            self.note_last();
            self.erasures.push(erasure);
        }
        if let Some(committed) = Committed::of(frame) {
            self.last = Some((committed.txid.0, committed.chain));
            if std::mem::take(&mut self.begins) {
                self.note_last();
            }
        }
    }

    fn note_last(&mut self) {
        if let Some((txid, chain)) = self.last {
            let known = self.known.entry(txid).or_default();
            if !known.contains(&chain) {
                known.push(chain);
            }
        }
    }

    /// Returns an error for a mark with a chain that the journal doesn't have, if there is one.
    pub(super) fn problem(&self) -> Option<String> {
        let &first = self.known.keys().next()?;
        for (place, erasure) in self.erasures.iter().enumerate() {
            for told in erasure.chains.iter().filter(|told| told.txid.0 >= first) {
                let mut later = self.erasures.iter().skip(place + 1);
                let today = later.try_fold(told.after, |chain, by| by.carry(told.txid, chain));
                let known = self.known.get(&told.txid.0).map_or(&[][..], Vec::as_slice);
                // The first kept one may have only the state.
                let is_known = today.is_some_and(|chain| known.contains(&chain));
                if !is_known && told.txid.0 > first {
                    return Some(format!(
                        "the mark of the erasure in transaction {} tells of a chain of transaction {} that the \
                         journal doesn't have: the history isn't the one that was written then",
                        erasure.txid, told.txid
                    ));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use annals::journal::Carried;
    use annals::{RowId, TableNumber, Txid};

    use super::*;

    fn mark(txid: u64, chains: &[(u64, u64, u64)]) -> Erasure {
        let carried = |&(txid, before, after)| Carried { txid: Txid(txid), before, after };
        let chains = chains.iter().map(carried).collect();
        let (table, row, field) = (TableNumber(0), RowId(0), None);
        Erasure { txid: Txid(txid), table, row, field, first_txid: Txid(1), chains }
    }

    #[test]
    fn a_mark_of_another_history_is_found() {
        let problem = |second: u64, today: u64| {
            let erasures = vec![mark(8, &[(7, 10, 20)]), mark(9, &[(7, second, 30), (8, 5, 6)])];
            let known = BTreeMap::from_iter([(1, vec![1]), (7, vec![today]), (8, vec![6])]);
            Marks { erasures, known, ..Marks::default() }.problem()
        };
        assert_eq!(problem(20, 30), None);
        assert!(problem(20, 31).unwrap().contains("in transaction 8"));
        assert!(problem(21, 30).unwrap().contains("in transaction 8"), "it isn't carried over");
        let forgotten = BTreeMap::from_iter([(8, vec![1])]);
        let erasures = vec![mark(8, &[(7, 10, 20)])];
        assert_eq!(Marks { erasures, known: forgotten, ..Marks::default() }.problem(), None);
    }

    #[test]
    fn a_cursor_before_what_was_written_anew_stays() {
        let mark = Erasure { first_txid: Txid(5), ..mark(8, &[(7, 10, 20)]) };
        assert_eq!((mark.carry(Txid(4), 1), mark.carry(Txid(7), 10)), (Some(1), Some(20)));
        assert_eq!((mark.carry(Txid(7), 11), mark.carry(Txid(6), 10)), (None, None));
    }
}
