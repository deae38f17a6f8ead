//! Columns of many rows with the types of the schema: every type, from every kind of slice.

use super::generated_for_tests::{items, tutorial};
use annals::{ErrorKind, Timestamp};
use items::item::{self, New};

#[test]
fn every_type_is_written_from_slices_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let db = items::Database::open(folder.path().join("items.annals")).unwrap();
    let (names, raw) = (vec!["chair".to_owned(), "stool".to_owned()], [vec![1_u8], vec![]]);
    let first = db
        .write(|tx| {
            let first = tx.item().insert_row(New::default())?;
            let second = tx.item().insert_row(New { colour: "blue", ..New::default() })?;
            let mut table = tx.item();
            table.update_vector_of(item::NAME, first, &names)?;
            table.update_vector_of(item::COLOUR, second, &["green"])?;
            table.update_vector_of(item::PRICE, first, &vec![1.5, 2.5])?;
            table.update_vector_of(item::STOCK, first, &[Some(3), None])?;
            table.update_vector_of(item::STOCK, second, &[4])?;
            table.update_vector_of(item::ON_SALE, first, [false, true].as_slice())?;
            table.update_vector_of(item::RAW, first, &raw)?;
            table.update_vector_of(item::MADE, first, &[Timestamp(5); 2])?;
            table.update_vector_of(item::PARENT, first, &[None, Some(first)])?;
            table.update_vector_of(item::PARENT, first, &[second])?;
            Ok(first)
        })
        .unwrap();
    let now = db.read();
    let table = now.item();
    assert_eq!(table.vector_of(item::NAME, first, 2).unwrap(), names, "owned strings");
    assert_eq!(
        table.vector_of(item::COLOUR, first, 2).unwrap(),
        ["red", "green"],
        "from the second"
    );
    assert_eq!(table.vector_of(item::PRICE, first, 2).unwrap(), [1.5, 2.5], "floats");
    assert_eq!(
        table.vector_of(item::STOCK, first, 2).unwrap(),
        [Some(3), Some(4)],
        "plain for null"
    );
    assert_eq!(table.vector_of(item::ON_SALE, first, 2).unwrap(), [false, true], "bools");
    assert_eq!(table.vector_of(item::RAW, first, 2).unwrap(), raw, "bytes");
    assert_eq!(table.vector_of(item::MADE, first, 2).unwrap(), [Timestamp(5); 2], "times");
    let parents = table.vector_of(item::PARENT, first, 2).unwrap();
    let second = item::Id::new(first.get() + 1);
    assert_eq!(parents, [Some(second), Some(first)], "references, plain and optional");
    let slices: Vec<f64> = table
        .slices_of(item::PRICE, first, 2)
        .unwrap()
        .flat_map(|slice| slice.unwrap().to_vec())
        .collect();
    assert_eq!(slices, [1.5, 2.5], "without a copy");
    assert_eq!(now.item_by_price().range(2.0..).count(), 1, "the index follows");
}

#[test]
fn references_of_new_rows_are_plain_or_optional() {
    let folder = tempfile::tempdir().unwrap();
    let db = tutorial::Database::open(folder.path().join("tutorial.annals")).unwrap();
    let (lille, first) = db
        .write(|tx| {
            let lille = tx.city().insert_vector(&["Lille", "Lyon"])?;
            let (names, homes) = (vec!["a", "b"], vec![lille; 2]);
            let first = tx.person().insert_vector(&names, &["x", "y"], &homes)?;
            tx.person().insert_vector(&names, &["x", "y"], &[None, Some(lille)])?;
            Ok((lille, first))
        })
        .unwrap();
    let now = db.read();
    let homes = now.person().vector_of(tutorial::person::HOME, first, 4).unwrap();
    assert_eq!(homes, [Some(lille), Some(lille), None, Some(lille)], "both kinds");
    let twice = db.write(|tx| tx.city().insert_vector(&["Nice", "Lille"])).unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::Unique, "looked at by the commit: {twice}");
    let beyond = db
        .write(|tx| tx.city().update_vector_of(tutorial::city::NAME, lille, &["a", "b", "c"]))
        .unwrap_err();
    assert_eq!(beyond.kind(), ErrorKind::NotFound, "one of the rows isn't there: {beyond}");
    db.write(|tx| tx.person().delete_vector(first, 3)).unwrap();
    assert_eq!(db.read().person().len(), 1, "deleted at once");
}
