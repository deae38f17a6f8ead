//! The differences of two moments that a statement has asked for: a join asks for the same ones for each row of the other
//! table, and each time the journal would be read again.

use std::sync::Arc;

use annals::{Differing, RowChange, Snapshot, TableNumber, Txid};

use crate::host::Fault;

/// So many of them are kept.
const KEPT: usize = 2;

/// The moments of a difference, and its table.
pub(crate) type Of = (TableNumber, [Txid; 2]);

/// Differences of a statement, the last one last.
#[derive(Debug, Default)]
pub(crate) struct Differences(Vec<(Of, Arc<[RowChange]>)>);

/// The rows that differ, in the order of their ids.
pub(crate) enum Found {
    /// All of them.
    All(Arc<[RowChange]>),
    /// The first ones, and the rest: all take more memory than there is, and aren't kept.
    Many(Vec<RowChange>, Box<Differing>),
}

impl Differences {
    /// Returns a difference that takes at most so many bytes, or begins to read a larger one.
    pub(crate) fn find(
        &mut self,
        snapshot: &Snapshot,
        of: Of,
        most: usize,
    ) -> Result<Found, Fault> {
        if let Some((_, rows)) = self.0.iter().find(|(it, _)| *it == of) {
            return Ok(Found::All(Arc::clone(rows)));
        }
        let (table, [from, to]) = of;
        let mut rest = snapshot.differing(from, to, most)?.of(table);
        let mut rows = Vec::new();
        while let Some(row) = rest.next() {
            rows.push(row?);
            if rest.at_hand() == 0 {
                break;
            }
        }
        if rest.place().is_some() {
            return Ok(Found::Many(rows, Box::new(rest)));
        }
        let rows: Arc<[RowChange]> = rows.into();
        if self.0.len() == KEPT {
            self.0.remove(0);
        }
        self.0.push((of, Arc::clone(&rows)));
        Ok(Found::All(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_kept_if_there_is_room() {
        let db = annals::Database::in_memory().unwrap();
        let table = TableNumber(0);
        db.write(|tx| tx.apply_command(&annals::Command::CreateTable { name: "t".to_owned() }))
            .unwrap();
        db.write(|tx| (0..100).try_for_each(|_| tx.insert(table, &[]).map(drop))).unwrap();
        let now = db.read();
        let of = (table, [Txid(1), Txid(2)]);
        let mut kept = Differences::default();
        let Found::Many(first, rest) = kept.find(&now, of, 1).unwrap() else {
            panic!("it is kept")
        };
        assert!(first.len() < 100);
        let many: Vec<_> =
            first.into_iter().chain(rest.map(Result::unwrap)).map(|it| it.id.0).collect();
        assert_eq!(many, (0..100).collect::<Vec<_>>());
        let mut all = || match kept.find(&now, of, 1 << 20).unwrap() {
            Found::All(rows) => rows,
            Found::Many(..) => panic!("there is room"),
        };
        let (first, again) = (all(), all());
        assert!(first.len() == 100 && Arc::ptr_eq(&first, &again));
    }
}
