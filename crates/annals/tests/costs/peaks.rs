//! The memory of a long transaction is that of its pages, and no more the longer it is.

use crate::costs::{Database, keyed, plain};
use crate::counting::{alone, peak};
use crate::{STRINGS, names, open};

/// What a transaction may hold besides its pages, however long it is: the journal's buffer of 1 MiB, 1 MiB
/// of empty pages that a thread makes ahead, nodes of directories.
const BESIDES: i64 = 3 << 20;

/// Returns how many bytes the pages take that the last commit made visible.
fn pages(db: &Database) -> i64 {
    i64::try_from(db.read().as_dynamic().memory()).unwrap()
}

/// Lets a transaction do something so often, on a database that `prepare` filled; returns the most that it held
/// besides what the store has then.
fn besides(
    count: u64,
    prepare: impl FnOnce(&Database),
    work: impl FnOnce(&mut crate::costs::Transaction<'_>, u64) -> annals::Result<()>,
) -> i64 {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    prepare(&db);
    let before = pages(&db);
    let peak = peak(|| db.write(|tx| Ok(work(tx, count)?)).unwrap());
    peak - (pages(&db) - before)
}

#[test]
fn a_transaction_that_inserts_holds_its_pages() {
    let _turn = alone();
    for name in STRINGS {
        for rows in [50_000, 400_000] {
            let held = besides(
                rows,
                |_| {},
                |tx, rows| {
                    (0..rows.cast_signed())
                        .try_for_each(|value| tx.insert(plain::New { name, value }).map(drop))
                },
            );
            assert!(held < BESIDES, "{name}, {rows} rows: {held} bytes besides its pages");
        }
    }
}

#[test]
fn a_transaction_that_inserts_into_indexes_holds_its_pages() {
    let _turn = alone();
    let names = names(200_000);
    for rows in [25_000, 200_000] {
        let held = besides(
            rows,
            |_| {},
            |tx, rows| {
                let mut rows = names.iter().zip(0..rows.cast_signed());
                rows.try_for_each(|(name, value)| tx.insert(keyed::New { name, value }).map(drop))
            },
        );
        assert!(held < BESIDES, "{rows} rows: {held} bytes besides its pages");
    }
}

#[test]
fn a_transaction_that_inserts_vectors_holds_its_pages() {
    const RUN: i64 = 10_000;
    let _turn = alone();
    let values: Vec<_> = (0..RUN).collect();
    for name in STRINGS {
        let names = vec![name; values.len()];
        for runs in [5, 40] {
            let held = besides(
                runs,
                |_| {},
                |tx, runs| {
                    (0..runs).try_for_each(|_| {
                        let columns = plain::Columns { name: &names, value: &values };
                        tx.insert_vector(columns).map(drop)
                    })
                },
            );
            assert!(held < BESIDES, "{name}, {runs} runs: {held} bytes besides its pages");
        }
    }
}

#[test]
fn a_transaction_that_updates_the_same_rows_again_and_again_holds_their_pages() {
    const ROWS: u64 = 1000;
    let _turn = alone();
    let names = names(2 * ROWS);
    let prepare = |db: &Database| {
        db.write(|tx| {
            for (name, value) in names[..1000].iter().zip(0..) {
                tx.insert(plain::New { name: STRINGS[1], value })?;
                tx.insert(keyed::New { name, value })?;
            }
            Ok(())
        })
        .unwrap();
    };
    for updates in [20_000, 160_000] {
        let held = besides(updates, prepare, |tx, updates| {
            for number in 0..updates {
                let row = number % ROWS;
                // Each round gives each row a key that no row has then.
                let round = number / ROWS;
                let name = &names[usize::try_from((row + round * 1001) % (2 * ROWS)).unwrap()];
                tx.edit(plain::Id::from_u64(row))?
                    .set_value(number.cast_signed())?
                    .set_name(STRINGS[usize::from(!row.is_multiple_of(3))])?;
                tx.edit(keyed::Id::from_u64(row))?.set_value(-number.cast_signed())?;
                let name = format!("{name}{round}");
                tx.edit(keyed::Id::from_u64(row))?.set_name(&name)?;
            }
            Ok(())
        });
        assert!(held < BESIDES, "{updates} updates: {held} bytes besides the pages");
    }
}
