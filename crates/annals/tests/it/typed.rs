//! The typed API, run: every call that generated code has.

use super::generated_for_tests::{items, tutorial};
use annals::advanced::Marks as _;
use annals::{Error, ErrorKind, Level, Options, Result, Timestamp, Txid};

/// A database in a directory of its own, which ends with it.
fn tutorial() -> (tempfile::TempDir, tutorial::Database) {
    let directory = tempfile::tempdir().unwrap();
    let database = tutorial::Database::open(directory.path().join("tutorial.annals")).unwrap();
    (directory, database)
}

fn items() -> (tempfile::TempDir, items::Database) {
    let directory = tempfile::tempdir().unwrap();
    let database = items::Database::open(directory.path().join("items.annals")).unwrap();
    (directory, database)
}

fn names<'a>(rows: impl Iterator<Item = Result<tutorial::person::Row<'a>>>) -> Vec<String> {
    rows.map(|row| row.unwrap().first_name().to_owned()).collect()
}

#[test]
fn the_tutorial_runs() {
    let (_directory, db) = tutorial();
    let (lille, remi) = db
        .write(|tx| {
            let lille = tx.insert(tutorial::city::New { name: "Lille" })?;
            let remi = tx.insert(tutorial::person::New {
                first_name: "Rémi",
                last_name: "Coulom",
                home: Some(lille),
            })?;
            tx.edit(remi)?.set_last_name("Coulom-Martin")?;
            tx.comment("first residents")?;
            Ok((lille, remi))
        })
        .unwrap();
    let now = db.read();
    let row = now.person().require(remi).unwrap();
    assert_eq!(
        (row.id(), row.first_name(), row.last_name(), row.home()),
        (remi, "Rémi", "Coulom-Martin", Some(lille)),
        "what was written"
    );
    assert_eq!(now.city().require(lille).unwrap().name(), "Lille", "the other table");
    let shown = "Row { id: person::Id(0), first_name: \"Rémi\", last_name: \"Coulom-Martin\", \
                 home: Some(city::Id(0)) }";
    assert_eq!(format!("{row:?}"), shown, "rows are shown with their fields' names");
    db.close().unwrap();
}

#[test]
fn a_table_is_read_by_id_and_from_both_ends() {
    let (_directory, db) = tutorial();
    let ids = db
        .write(|tx| {
            let cities = ["Lille", "Paris", "Lyon"].into_iter();
            let ids = cities.map(|name| tx.insert(tutorial::city::New { name }));
            Ok(ids.collect::<Result<Vec<_>>>()?)
        })
        .unwrap();
    let now = db.read();
    let absent = tutorial::city::Id::from_u64(77);
    assert_eq!(now.city().len(), 3, "three were inserted");
    assert!(!now.city().is_empty() && now.person().is_empty(), "only one table has rows");
    assert!(now.city().contains(ids[1]).unwrap() && !now.city().contains(absent).unwrap(), "by id");
    assert!(now.city().get(absent).unwrap().is_none(), "there is none");
    assert_eq!(
        now.city().require(absent).unwrap_err().kind(),
        ErrorKind::NotFound,
        "there is none"
    );
    let forward: Vec<_> = now.city().iter().map(|city| city.unwrap().id()).collect();
    assert_eq!(forward, ids, "in order of the ids");
    let mut backward = Vec::new();
    for city in now.city().into_iter().rev() {
        backward.push(city.unwrap().name().to_owned());
    }
    assert_eq!(backward, ["Lyon", "Paris", "Lille"], "from the other end");
}

#[test]
fn a_unique_index_gives_one_row() {
    let (_directory, db) = tutorial();
    let write = db.write(|tx| {
        tx.insert(tutorial::city::New { name: "Paris" })?;
        Ok(tx.insert(tutorial::city::New { name: "Lille" })?)
    });
    let lille = write.unwrap_or_else(|error: Error| panic!("{error}"));
    let now = db.read();
    let found = now.city().by_name().get("Lille").unwrap().unwrap();
    assert_eq!(found.id(), lille, "by its key");
    assert!(now.city().by_name().get("Lyon").unwrap().is_none(), "there is none");
    let mut sorted = Vec::new();
    for city in now.city().by_name() {
        sorted.push(city.unwrap().name().to_owned());
    }
    assert_eq!(sorted, ["Lille", "Paris"], "in order of the name");
    let last = now.city().by_name().iter().next_back().unwrap().unwrap();
    assert_eq!(last.name(), "Paris", "from the other end");
    let again = db.write(|tx| Ok(tx.insert(tutorial::city::New { name: "Lille" })?)).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Unique, "the name is taken");
    assert_eq!(db.read().city().len(), 2, "and nothing changed");
}

#[test]
fn a_composite_index_is_searched_by_its_leading_fields() {
    let (_directory, db) = tutorial();
    db.write(|tx| {
        for (first, last) in
            [("Rémi", "Coulom"), ("Anne", "Coulom"), ("Zoé", "Couture"), ("Al", "Dupont")]
        {
            tx.insert(tutorial::person::New { first_name: first, last_name: last, home: None })?;
        }
        Ok(())
    })
    .unwrap();
    let now = db.read();
    let index = now.person().by_name();
    assert_eq!(
        names(index.with_last_name_and_first_name("Coulom", "Rémi")),
        ["Rémi"],
        "the whole key"
    );
    assert_eq!(names(index.with_last_name("Coulom")), ["Anne", "Rémi"], "the leading field");
    assert_eq!(names(index.prefix("Cou").rev()), ["Zoé", "Rémi", "Anne"], "a prefix, backward");
    assert_eq!(names(index.range("Couture"..)), ["Zoé", "Al"], "a range");
    assert_eq!(names(index.range("A".."Couture").rev()), ["Rémi", "Anne"], "backward");
    assert_eq!(names(index.iter()), ["Anne", "Rémi", "Zoé", "Al"], "everything");
}

#[test]
fn wide_rows_are_inserted_by_name_of_the_field() {
    let (_directory, db) = items();
    let (with, at) = db
        .write(|tx| {
            let made = items::item::New { name: "chair", price: 12.5, ..Default::default() };
            let with = tx.insert(made)?;
            let at = items::item::Id::from_u64(40);
            tx.insert_at(at, items::item::New { stock: Some(3), ..made })?;
            Ok((with, at))
        })
        .unwrap();
    let now = db.read();
    let chair = now.item().require(with).unwrap();
    assert_eq!((chair.name(), chair.price(), chair.stock()), ("chair", 12.5, None), "given");
    assert_eq!(
        (chair.colour(), chair.on_sale(), chair.raw()),
        ("red", true, &[1_u8, 2][..]),
        "defaults"
    );
    assert_eq!(chair.made(), Timestamp(0), "zero without a default");
    assert_eq!(now.item().require(at).unwrap().stock(), Some(3), "at its id");
    let next = db.write(|tx| Ok(tx.insert(items::item::New::default())?));
    assert_eq!(
        next.unwrap_or_else(|error: Error| panic!("{error}")).as_u64(),
        41,
        "larger than any id"
    );
}

#[test]
fn every_setter_writes_its_field() {
    let (_directory, db) = items();
    let id = db
        .write(|tx| {
            let id = tx.insert(items::item::New::default())?;
            let mut item = tx.edit(id)?;
            item.set_name("table")?.set_price(-1.0)?.set_stock(9)?.set_on_sale(false)?;
            item.set_raw(b"\xff")?.set_made(Timestamp(5))?.set_parent(id)?;
            Ok(id)
        })
        .unwrap();
    let now = db.read();
    let row = now.item().require(id).unwrap();
    assert_eq!((row.name(), row.price(), row.stock()), ("table", -1.0, Some(9)), "set");
    assert_eq!((row.on_sale(), row.raw(), row.made()), (false, &b"\xff"[..], Timestamp(5)), "set");
    assert_eq!(row.parent(), Some(id), "a reference takes an id");
    db.write(|tx| {
        tx.edit(id)?.set_parent(None)?.set_stock(None)?;
        Ok(())
    })
    .unwrap();
    assert_eq!(row.parent(), Some(id), "the snapshot stays as it was");
    let now = db.read();
    let row = now.item().require(id).unwrap();
    assert_eq!((row.parent(), row.stock()), (None, None), "set to null");
}

#[test]
fn ranges_over_numbers_leave_null_out() {
    let (_directory, db) = items();
    db.write(|tx| {
        for (price, stock) in [(118.0, None), (119.0, Some(-4)), (117.9, Some(7)), (120.0, Some(0))]
        {
            tx.insert(items::item::New { price, stock, ..Default::default() })?;
        }
        Ok(())
    })
    .unwrap();
    let now = db.read();
    let prices: Vec<_> =
        now.item().by_price().range(118.0..=119.0).map(|row| row.unwrap().price()).collect();
    assert_eq!(prices, [118.0, 119.0], "both ends are in");
    let stocks: Vec<_> = now.item().by_stock().range(..).map(|row| row.unwrap().stock()).collect();
    assert_eq!(stocks, [Some(-4), Some(0), Some(7)], "null is in no bounds");
    let few: Vec<_> =
        now.item().by_stock().range(..7).rev().map(|row| row.unwrap().stock()).collect();
    assert_eq!(few, [Some(0), Some(-4)], "backward, without the end");
    assert_eq!(now.item().by_stock().with_stock(None).count(), 1, "null is found when asked for");
    assert_eq!(now.item().by_stock().with_stock(7).count(), 1, "a value needs no Some");
}

#[test]
fn a_transaction_sees_its_own_changes() {
    let (_directory, db) = tutorial();
    let before = db.read();
    let mut tx = db.begin().unwrap();
    let lille = tx.insert(tutorial::city::New { name: "Lille" }).unwrap();
    tx.insert_at(tutorial::city::Id::from_u64(9), tutorial::city::New { name: "Lyon" }).unwrap();
    let in_use = tx.insert_at(lille, tutorial::city::New { name: "Nice" }).unwrap_err();
    assert_eq!(in_use.kind(), ErrorKind::InUse, "the id has a row");
    assert_eq!(tx.city().require(lille).unwrap().name(), "Lille", "by id");
    assert!(tx.city().get(tutorial::city::Id::from_u64(5)).unwrap().is_none(), "there is none");
    assert_eq!(
        tx.city().iter().rev().map(|city| city.unwrap().id().as_u64()).next(),
        Some(9),
        "last"
    );
    assert_eq!((tx.city().len(), tx.city().contains(lille).unwrap()), (2, true), "counted");
    assert_eq!(tx.city().by_name().get("Lyon").unwrap().unwrap().id().as_u64(), 9, "by index");
    let (one, other) = (tx.city().require(lille).unwrap(), tx.city().by_name().iter().next_back());
    assert_eq!((one.name(), other.unwrap().unwrap().name()), ("Lille", "Lyon"), "two rows at once");
    tx.delete(lille).unwrap();
    let gone = tx.edit(lille).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound, "a deleted row");
    let commit = tx.commit().unwrap();
    assert!(before.city().is_empty(), "a snapshot doesn't see later commits");
    let now = db.read();
    assert_eq!((now.txid(), now.city().len()), (commit.txid, 1), "the commit is seen");
    assert_eq!(now.clone().city().len(), 1, "a clone sees the same");
}

#[test]
fn what_fails_is_rolled_back() {
    let (_directory, db) = tutorial();
    let failed: Result<(), Error> = db.write(|tx| {
        tx.insert(tutorial::city::New { name: "Lille" })?;
        Err(Error::invalid("changed my mind").into())
    });
    assert_eq!(failed.unwrap_err().to_string(), "changed my mind", "the closure's own error");
    let mut tx = db.begin().unwrap();
    tx.insert(tutorial::city::New { name: "Lyon" }).unwrap();
    tx.rollback().unwrap();
    {
        let _dropped = db.begin().unwrap();
    }
    assert!(db.read().city().is_empty(), "nothing is left");
}

#[test]
fn commits_carry_comment_level_and_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tutorial.annals");
    let options = Options::new().level(Level::Checksummed);
    let db = tutorial::Database::open_with(&path, &options).unwrap();
    let mut tx = db.begin().unwrap();
    tx.comment("why").unwrap();
    tx.mark_time(Timestamp(1_635_891_025_999_999)).unwrap();
    tx.mark_valid_data().unwrap();
    tx.set_time("2021-11-02T22:10:25Z".parse().unwrap());
    tx.set_level(Level::Soft);
    let commit = tx.commit().unwrap();
    assert_eq!(commit.level, Level::Soft, "the transaction's own");
    assert_eq!((*db).read().txid(), commit.txid, "seen without types too");
    assert_eq!(db.recovered().findings, Vec::<String>::new(), "nothing to recover");
    db.close().unwrap();
}

#[test]
fn another_schema_is_refused_with_the_first_difference() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.annals");
    tutorial::Database::open(&path).unwrap().close().unwrap();
    let error = items::Database::open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch, "{error}");
    let message = error.to_string();
    assert!(message.contains("create_table city"), "{message}");
    assert!(message.contains("create_table item"), "{message}");
    tutorial::Database::open(&path).unwrap().close().unwrap();
}

#[test]
fn changes_have_the_types_of_their_tables() {
    use tutorial::{Change, city, person};
    let (directory, db) = tutorial();
    let mut feed = db.subscribe();
    // The first transaction made the tables.
    let lille = db.write(|tx| Ok(tx.insert(tutorial::city::New { name: "Lile" })?)).unwrap();
    let remi = db
        .write(|tx| {
            tx.comment("moves in")?;
            tx.edit(lille)?.set_name("Lille")?;
            Ok(tx.insert(tutorial::person::New {
                first_name: "Rémi",
                last_name: "Coulom",
                home: Some(lille),
            })?)
        })
        .unwrap();
    db.write(|tx| Ok(tx.delete(remi)?)).unwrap();

    let all: Vec<_> = db.changes(Txid(2)..).unwrap().collect::<Result<_>>().unwrap();
    let heard: Vec<_> = (0..3).map(|_| feed.try_next().unwrap().unwrap()).collect();
    assert_eq!(heard, all);
    assert!(feed.try_next().unwrap().is_none());
    let [Change::City(renamed), Change::Person(moved)] = &all[1].changes[..] else {
        panic!("{:?}", all[1]);
    };
    assert_eq!((renamed.id, all[1].comments.as_slice()), (lille, &["moves in".to_owned()][..]));
    assert!(renamed.is_update() && renamed.changed(city::NAME));
    assert_eq!(renamed.before.as_ref().unwrap().name, "Lile");
    let after = person::Person {
        first_name: "Rémi".to_owned(),
        last_name: "Coulom".to_owned(),
        home: Some(lille),
    };
    assert_eq!((moved.before.clone(), moved.after.clone()), (None, Some(after)));
    let [Change::Person(left)] = &all[2].changes[..] else { panic!("{:?}", all[2]) };
    assert!(left.is_delete() && left.id == remi);
    let then = db.at(annals::Txid(2)).unwrap();
    assert_eq!(then.city().require(lille).unwrap().name(), "Lile");
    assert_eq!(db.subscribe_from(annals::Txid(4)).unwrap().try_next().unwrap().unwrap(), all[2]);

    let reader = tutorial::Database::open_read_only(directory.path().join("tutorial.annals"));
    let reader = reader.unwrap();
    assert_eq!(reader.changes(Txid(3)..Txid(4)).unwrap().next().unwrap().unwrap(), all[1]);
    assert_eq!(reader.at(annals::Txid(3)).unwrap().person().len(), 1);
}

#[test]
fn the_history_of_a_row_has_the_types_of_its_table() {
    use tutorial::{city, person};
    let (directory, db) = tutorial();
    let lille = db.write(|tx| Ok(tx.insert(tutorial::city::New { name: "Lile" })?)).unwrap();
    let remi = db
        .write(|tx| {
            tx.comment("a typo")?;
            tx.set_time(Timestamp(-5));
            tx.edit(lille)?.set_name("Lille")?;
            Ok(tx.insert(tutorial::person::New {
                first_name: "Rémi",
                last_name: "Coulom",
                home: Some(lille),
            })?)
        })
        .unwrap();
    db.write(|tx| {
        tx.edit(remi)?.set_home(None)?;
        Ok(())
    })
    .unwrap();
    db.write(|tx| Ok(tx.delete(lille)?)).unwrap();

    let city = |name: &str| Some(city::City { name: name.to_owned() });
    let all: Vec<_> = db.history_of(lille).unwrap().collect::<Result<_>>().unwrap();
    let sides: Vec<_> =
        all.iter().map(|v| (v.txid.0, v.change.before.clone(), v.change.after.clone())).collect();
    assert_eq!(
        sides,
        [(2, None, city("Lile")), (3, city("Lile"), city("Lille")), (5, city("Lille"), None)]
    );
    assert_eq!(
        (all[1].time, all[1].comments.as_slice()),
        (Timestamp(-5), &["a typo".to_owned()][..])
    );
    assert!(all[1].change.id == lille && all[1].change.changed(city::NAME) && !all[0].is_beginning);

    let path = directory.path().join("tutorial.annals");
    let reader = tutorial::Database::open_read_only(&path).unwrap();
    let homes = reader.history_of(remi).unwrap().map(|version| version.unwrap().change);
    let homes: Vec<_> =
        homes.map(|change| (change.changed(person::HOME), change.after.unwrap().home)).collect();
    assert_eq!(homes, [(true, Some(lille)), (true, None)]);
    let newest = reader.history_of(lille).unwrap().newest(2).unwrap();
    assert!(newest.iter().eq(all.iter().rev().take(2)));
    let never = reader.history_of(city::Id::from_u64(77)).unwrap();
    assert_eq!(never.as_dynamic().index_problem(), None);
    assert_eq!(never.count(), 0);
}

/// What was erased is as a getter gives it: zero or empty where the field may not be null.
#[test]
fn erased_values_have_no_type_to_complain_of() {
    let (directory, db) = tutorial();
    let remi = db
        .write(|tx| {
            Ok(tx.insert(tutorial::person::New {
                first_name: "Rémi",
                last_name: "Coulom",
                home: None,
            })?)
        })
        .unwrap();
    db.close().unwrap();
    let path = directory.path().join("tutorial.annals");
    let (table, row) = ("person".to_owned(), remi.into());
    let field = Some("last_name".to_owned());
    let what = annals_tools::Erase { field, ..annals_tools::Erase::new(table, row) };
    annals_tools::erase(&Options::new(), &path, &what).unwrap();
    let db = tutorial::Database::open(&path).unwrap();
    let version = db.history_of(remi).unwrap().next().unwrap().unwrap();
    let after = version.change.after.unwrap();
    assert_eq!((after.first_name.as_str(), after.last_name.as_str()), ("Rémi", ""));
    assert_eq!(db.read().person().require(remi).unwrap().last_name(), "", "as the getter");
    let first = db.changes(Txid(2)..).unwrap().next().unwrap().unwrap();
    let [tutorial::Change::Person(inserted)] = &first.changes[..] else { panic!("{first:?}") };
    assert_eq!(inserted.after.as_ref(), Some(&after), "of all that changed, too");
}

#[test]
fn a_row_has_its_last_change_in_each_state() {
    let (_directory, db) = tutorial();
    let lille = db.write(|tx| Ok(tx.insert(tutorial::city::New { name: "Lille" })?)).unwrap();
    let first = db.read();
    db.write(|tx| Ok(tx.insert(tutorial::city::New { name: "Paris" })?)).unwrap();
    db.write(|tx| Ok(tx.edit(lille)?.set_name("Lille-Centre").map(drop)?)).unwrap();
    let edited = db.read();
    db.write(|tx| Ok(tx.delete(lille)?)).unwrap();
    for then in [&first, &edited, &db.read()] {
        let last = then.last_change(lille).unwrap().expect("it existed");
        assert_eq!(last.txid, then.txid(), "of a deleted row it is the deletion");
    }
    assert!(db.read().last_change(tutorial::city::Id::from_u64(77)).unwrap().is_none());
}
