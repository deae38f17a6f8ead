//! What past snapshots of earlier segments tell of history, beside the same history in one segment.

use annals::{Database, RowId, Txid};

use super::{NOW, TABLE, Text, open, split, write};

/// Writes down what a past snapshot tells of history.
fn told(database: &Database, txid: u64) -> String {
    use std::fmt::Write as _;
    let past = database.at(Txid(txid)).unwrap();
    assert_eq!(past.txid(), Txid(txid));
    let mut text = String::new();
    for row in (0..12).map(RowId) {
        for version in past.history_of(TABLE, row).unwrap() {
            let version = version.unwrap();
            writeln!(text, "{row:?} {} {:?}", version.txid, version.change).unwrap();
        }
        match past.blame(TABLE, row) {
            Ok(blame) => blame.iter().for_each(|it| {
                writeln!(text, "{row:?} {:?} {:?} {}", it.field, it.value, it.txid).unwrap();
            }),
            Err(error) => writeln!(text, "{row:?} {:?}", error.kind()).unwrap(),
        }
    }
    for change in past.changes(..).unwrap() {
        writeln!(text, "{:?}", change.unwrap().txid).unwrap();
    }
    let mut events = Text::default();
    past.read_events(Txid(0), past.txid(), &mut events).unwrap();
    text + &events.1
}

#[test]
fn a_past_snapshot_knows_the_history_up_to_it_whatever_segment_it_is_in() {
    let (_many, parted, one) = split(3);
    let whole = open(&one);
    for database in [&parted, &whole] {
        write(database, 12..14);
    }
    let last = whole.read().txid().0;
    assert_eq!(parted.read().txid().0, last);
    for backfilled in [false, true] {
        for txid in 1..=last {
            let is_same = told(&parted, txid) == told(&whole, txid);
            assert!(is_same, "after transaction {txid}, backfilled: {backfilled}");
        }
        for database in [&parted, &whole] {
            database.backfill(annals::BackfillMode::Passive).unwrap();
        }
    }
    // What a snapshot could read it can read when the segments are gone.
    let past = parted.at(Txid(6)).unwrap();
    let content = super::content(&past);
    parted.restart(annals::reports::Older::Forgotten, NOW).unwrap();
    assert_eq!(super::content(&past), content);
}
