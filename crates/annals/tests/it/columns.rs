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
            let first = tx.insert(New::default())?;
            let second = tx.insert(New { colour: "blue", ..New::default() })?;
            tx.update_vector(item::NAME, first, &names)?;
            tx.update_vector(item::COLOUR, second, &["green"])?;
            tx.update_vector(item::PRICE, first, &vec![1.5, 2.5])?;
            tx.update_vector(item::STOCK, first, &[Some(3), None])?;
            tx.update_vector(item::STOCK, second, &[4])?;
            tx.update_vector(item::ON_SALE, first, [false, true].as_slice())?;
            tx.update_vector(item::RAW, first, &raw)?;
            tx.update_vector(item::MADE, first, &[Timestamp(5); 2])?;
            tx.update_vector(item::PARENT, first, &[None, Some(first)])?;
            tx.update_vector(item::PARENT, first, &[second])?;
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
    let second = item::Id::from_u64(first.as_u64() + 1);
    assert_eq!(parents, [Some(second), Some(first)], "references, plain and optional");
    let slices: Vec<f64> = table
        .slices_of(item::PRICE, first, 2)
        .unwrap()
        .flat_map(|slice| slice.unwrap().to_vec())
        .collect();
    assert_eq!(slices, [1.5, 2.5], "without a copy");
    assert_eq!(now.item().by_price().range(2.0..).count(), 1, "the index follows");
}

#[test]
fn references_of_new_rows_are_ids_or_null() {
    let folder = tempfile::tempdir().unwrap();
    let db = tutorial::Database::open(folder.path().join("tutorial.annals")).unwrap();
    let (lille, first) = db
        .write(|tx| {
            let lille = tx.insert_vector(tutorial::city::Columns { name: &["Lille", "Lyon"] })?;
            let (first_name, last_name) = (&["a", "b"][..], &["x", "y"][..]);
            let home = &[Some(lille); 2][..];
            let columns = tutorial::person::Columns { first_name, last_name, home };
            let first = tx.insert_vector(columns)?;
            let home = &[None, Some(lille)];
            tx.insert_vector(tutorial::person::Columns { home, ..columns })?;
            Ok((lille, first))
        })
        .unwrap();
    let now = db.read();
    let homes = now.person().vector_of(tutorial::person::HOME, first, 4).unwrap();
    assert_eq!(homes, [Some(lille), Some(lille), None, Some(lille)], "both kinds");
    let twice = db
        .write(|tx| Ok(tx.insert_vector(tutorial::city::Columns { name: &["Nice", "Lille"] })?))
        .unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::Unique, "looked at by the commit: {twice}");
    let beyond = db
        .write(|tx| Ok(tx.update_vector(tutorial::city::NAME, lille, &["a", "b", "c"])?))
        .unwrap_err();
    assert_eq!(beyond.kind(), ErrorKind::NotFound, "one of the rows isn't there: {beyond}");
    db.write(|tx| Ok(tx.delete_vector(first, 3)?)).unwrap();
    assert_eq!(db.read().person().len(), 1, "deleted at once");
}
