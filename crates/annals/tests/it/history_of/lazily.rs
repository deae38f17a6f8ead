//! What is read of a past state before it is made is what the whole state has.

use std::ops::Range;

use annals::{Database, ErrorKind, Row, RowId, Rows, Snapshot, TableView, Txid};

use crate::store_model::Random;

/// Asks the same of some past states, and of others of the same moments that are whole.
pub(super) fn compare_lazily(database: &Database, random: &mut Random) {
    let first = database.segments().unwrap()[0].first_txid.0;
    let last = database.read().txid().0;
    for _ in 0..8 {
        let moment = Txid(first + random.below(last + 1 - first));
        let at = || -> Snapshot { database.at(moment).unwrap() };
        let whole = at();
        let schema = whole.schema().clone();
        for number in schema.tables().iter().map(|table| table.number) {
            // The number of rows is that of the whole state.
            let len = whole.table(number).unwrap().len();
            let (whole, lazy) = (whole.table(number).unwrap(), at());
            let lazy = lazy.table(number).unwrap();
            for _ in 0..1 + random.below(5) {
                ask(&whole, &lazy, random);
            }
            assert_eq!(lazy.len(), len);
            assert_eq!(lazy.next_id(), whole.next_id());
        }
    }
}

fn ask(whole: &TableView<'_>, lazy: &TableView<'_>, random: &mut Random) {
    let ids = ids(whole, random);
    let (id, steps) = (RowId(ids.start), random.below(6));
    match random.below(6) {
        0 => assert_eq!(shown(lazy.find(id).unwrap()), shown(whole.find(id).unwrap())),
        1 => assert_eq!(lazy.contains(id).unwrap(), whole.contains(id).unwrap()),
        2 => {
            let of = |table: &TableView<'_>| match table.get(id) {
                Ok(row) => shown(Some(row)),
                Err(error) => Err((error.kind(), error.to_string())),
            };
            assert_eq!(of(lazy), of(whole));
        }
        3 => walk(whole.rows(), lazy.rows(), steps, random),
        _ => {
            let of = |table: &TableView<'_>| -> usize {
                table.range(RowId(ids.start)..RowId(ids.end)).count()
            };
            assert_eq!(of(lazy), of(whole));
            let all = RowId(ids.start)..RowId(ids.end);
            walk(whole.range(all.clone()), lazy.range(all), steps, random);
        }
    }
}

fn ids(table: &TableView<'_>, random: &mut Random) -> Range<u64> {
    let from = random.below(table.next_id() + 2);
    from..from + random.below(12)
}

/// Steps from both ends, and counts the rest.
fn walk(mut whole: Rows<'_>, mut lazy: Rows<'_>, steps: u64, random: &mut Random) {
    let of = |row: Option<annals::Result<Row<'_>>>| shown(row.map(Result::unwrap));
    for _ in 0..steps {
        match random.chance(15) {
            true => assert_eq!(of(lazy.next_back()), of(whole.next_back())),
            false => assert_eq!(of(lazy.next()), of(whole.next())),
        }
    }
    let (least, most) = lazy.size_hint();
    let rest = whole.count();
    assert!(least <= rest && most.is_none_or(|most| most >= rest));
    assert_eq!(lazy.count(), rest);
}

fn shown(row: Option<Row<'_>>) -> Result<Option<String>, (ErrorKind, String)> {
    Ok(row.map(|row| format!("{row:?}")))
}
