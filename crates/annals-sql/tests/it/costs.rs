//! Questions about the past use the history index: a few events are decoded, whatever the length of the history.

use annals::{BackfillMode, Options, RowId};
use annals_event::testing::decoded_events;
use annals_sql::{Connection, Parameters, Value};

use crate::shop::{city, shop};

/// How many transactions there are: a scan decodes at least one event for each.
const COMMITS: u64 = 4000;
/// The most events of an answer from the index: those of the frames of the row, and what is after the last backfill.
const FEW: u64 = 400;

fn build(path: &std::path::Path) -> u64 {
    let db = shop::Database::open(path).unwrap();
    db.write(|tx| {
        for number in 0..500 {
            let name = &*format!("city {number}");
            tx.insert(city::New { name, size: None, people: Some(0), area: None, founded: None })?;
        }
        Ok(())
    })
    .unwrap();
    let first = db.read().txid().0;
    for number in 0..COMMITS {
        let id = city::Id::from_u64(number % 500);
        db.write(|tx| {
            tx.set_level(annals::Level::Soft);
            tx.edit(id)?.set_people(Some(number as i64))?;
            Ok(())
        })
        .unwrap();
    }
    db.backfill(BackfillMode::Full).unwrap();
    db.close().unwrap();
    first
}

#[test]
fn questions_about_the_past_decode_few_events() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.annals");
    let first = build(&path);
    let half = first + COMMITS / 2;
    for (query, rows, most) in [
        ("SELECT txid, kind, new_people FROM city_history(77)".to_owned(), 9, FEW),
        ("SELECT txid FROM city_history WHERE id = 77 AND txid > 5".to_owned(), 8, FEW),
        (format!("SELECT people FROM city_at({half}) WHERE id = 77"), 1, FEW),
        (
            format!("SELECT id, old_people, new_people FROM city_changes({half}, {})", half + 1),
            1,
            FEW,
        ),
        ("SELECT field, txid FROM city_blame(77)".to_owned(), 5, FEW),
        // The rows of each of some transactions, before it.
        ("SELECT * FROM annals_log ORDER BY txid DESC LIMIT 5".to_owned(), 5, COMMITS / 2),
    ] {
        let reader = Options::new().open_read_only(&path).unwrap();
        let mut sql = Connection::open(reader).unwrap();
        let before = decoded_events();
        let answer = sql.rows(&query, &Parameters::None).unwrap();
        let decoded = decoded_events() - before;
        assert_eq!(answer.len(), rows, "{query}: {answer:?}");
        assert!(decoded < most, "{query}: {decoded} events were decoded");
    }
    let reader = Options::new().open_read_only(&path).unwrap();
    let now = reader.read();
    let people = now.history_of(annals::TableNumber(0), RowId(77)).unwrap().count();
    assert_eq!(people, 9);
    // The count sees a scan.
    let mut sql = Connection::open(reader).unwrap();
    let before = decoded_events();
    let all = sql.rows("SELECT count(*) FROM city_history", &Parameters::None).unwrap();
    assert_eq!(all, [[Value::Integer(i64::try_from(COMMITS).unwrap() + 499)]]);
    assert!(decoded_events() - before > COMMITS);
}
