//! Indexes in the order of a language: lookups, other versions of the data, and programs without it.

use std::path::Path;

use super::generated_for_tests::collation as people;
use annals::collation_testing::{Provided, provide, version};
use annals::{
    BackfillMode, Database, ErrorKind, IndexNumber, Options, Reader, Schema, TableNumber, Value,
    ValueRef, View,
};
use people::person::New;

const TABLE: TableNumber = TableNumber(0);

fn person<'a>(last_name: &'a str, first_name: &'a str, handle: &'a str) -> New<'a> {
    New { last_name, first_name: Some(first_name), handle }
}

#[test]
fn people_are_found_whatever_their_case() {
    let db = people::Database::in_memory().unwrap();
    db.write(|tx| {
        for (last, first, handle) in [
            ("Müller", "Zoe", "zoe"),
            ("MUELLER", "côte", "x"),
            ("Mueller", "coté", "y"),
            ("Muller", "Ann", "ann"),
            ("Zorn", "Bob", "bob"),
        ] {
            tx.insert(person(last, first, handle))?;
        }
        tx.insert(New { last_name: "mÜLLER", first_name: None, handle: "" })?;
        Ok(())
    })
    .unwrap();
    let now = db.read();
    let by_handle = now.person().by_handle();
    assert_eq!(by_handle.require("ZOE").unwrap().last_name(), "Müller");
    assert!(by_handle.get("zoé").unwrap().is_none());
    let error = by_handle.require("Zoé").unwrap_err();
    assert!(error.to_string().contains("\"Zoé\""), "{error}");
    let names = now.person().by_name();
    let first = |rows: Vec<people::person::Row<'_>>| {
        rows.iter().map(|row| row.first_name().unwrap_or("-").to_owned()).collect::<Vec<_>>()
    };
    let all = |rows: Vec<annals::Result<people::person::Row<'_>>>| {
        first(rows.into_iter().map(Result::unwrap).collect())
    };
    // In a phone book `ü` is `ue`; in Canada the last accent counts first; nulls are last, since it is descending.
    let mullers = ["Zoe", "coté", "côte", "-"];
    assert_eq!(all(names.with_last_name("mueller").collect()), mullers);
    assert_eq!(
        all(names.range("mueller"..="MÜLLER").rev().collect()),
        ["-", "côte", "coté", "Zoe"]
    );
    assert_eq!(all(names.range("n"..).collect()), ["Bob"]);
    assert_eq!(all(names.nulls_with_last_name("MUELLER").collect()), ["-"]);
    assert_eq!(names.with_last_name("müller").count(), 4);
    let after = names.iter().after(now.person().by_handle().require("Y").unwrap().id());
    assert_eq!(all(after.collect()), ["côte", "-", "Ann", "Bob"]);
    let mut cursor = names.cursor_at_last_name("MULLER").unwrap();
    assert_eq!(cursor.next().unwrap().unwrap().first_name(), Some("Ann"));
    let groups = now.as_dynamic().index(IndexNumber(1)).unwrap().groups(1);
    assert_eq!(groups.map(|group| group.unwrap().1).collect::<Vec<_>>(), [4, 1, 1]);

    let error = db.write(|tx| Ok(tx.insert(person("A", "B", "BoB"))?)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unique);
    let upserted = db.write(|tx| Ok(tx.upsert(person("Storm", "Bob", "BOB"))?)).unwrap();
    assert_eq!(annals::RowId::from(upserted).0, 4);
    assert_eq!(db.read().person().by_handle().require("bob").unwrap().handle(), "BOB");
}

#[test]
fn a_prefix_is_refused() {
    let db = people::Database::in_memory().unwrap();
    db.write(|tx| Ok(tx.insert(person("Müller", "Zoe", "zoe"))?)).unwrap();
    let now = db.read();
    let index = now.as_dynamic().index(IndexNumber(0)).unwrap();
    let error = index.prefix(&[], b"z").next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("which has a collation"), "{error}");
}

/// A table of names with an index in the order of a private language.
fn schema(locale: &str, unique: &str) -> Schema {
    let text = format!(
        "create_table t\nadd_field t name string\ncreate_{unique}index by_name t name collate {locale}\n"
    );
    annals_schema::parse(&text).unwrap().schema
}

fn insert(db: &Database, names: &[&str]) {
    db.write(|tx| {
        for name in names {
            tx.insert(TABLE, &[ValueRef::String(name)])?;
        }
        Ok(())
    })
    .unwrap();
}

fn named(view: &View) -> annals::Result<Vec<String>> {
    let number = view.schema().index_named("by_name").unwrap().number;
    let name = |row: annals::Result<annals::Row<'_>>| match row?
        .value(annals::FieldNumber(0))
        .to_value()
    {
        Value::String(name) => Ok(name),
        _ => panic!(),
    };
    view.index(number)?.rows().map(name).collect()
}

/// Checks that a reader has the rows and not the index, which its error names.
fn assert_unavailable(reader: &Reader, rows: u64, reason: &str) {
    let now = reader.read();
    now.check().unwrap();
    assert_eq!(now.table(TABLE).unwrap().rows().count() as u64, rows);
    let unavailable: Vec<_> = now.unavailable_indexes().collect();
    assert_eq!(unavailable.len(), 1);
    assert!(unavailable[0].1.contains("`by_name`") && unavailable[0].1.contains(reason));
    let index = now.index(unavailable[0].0).unwrap();
    let key = [ValueRef::String("a")];
    let errors = [
        named(&now).map(drop),
        index.first(&key).map(drop),
        index.equal(&key).next().unwrap().map(drop),
        index.rank(&key).map(drop),
        index.nth(0).map(drop),
        index.first_of_each([key]).next().unwrap().map(drop),
        index.groups(1).next().unwrap().map(drop),
        index.rows().left().map(drop),
        index.cursor().next().unwrap().map(drop),
    ];
    for (number, error) in errors.into_iter().enumerate() {
        let error = error.expect_err(&number.to_string());
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{number}");
        assert!(error.to_string().contains(reason), "{number}: {error}");
    }
}

fn files(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    files.sort();
    files
}

#[test]
fn a_program_without_the_collation_reads_all_else() {
    let locale = "qtb-u-ks-level2";
    provide("qtb", Provided::As("und-u-ks-level2"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.annals");
    let schema = schema(locale, "unique_");
    let db = Options::new().open_schema(&path, &schema).unwrap();
    insert(&db, &["b", "A", "c"]);
    db.backfill(BackfillMode::Restart).unwrap();
    insert(&db, &["D", "aa"]);
    let stored = db.read().schema().indexes()[0].collated[0].version.clone();
    assert!(stored.starts_with("cldr-"), "{stored}");
    drop(db);

    provide("qtb", Provided::Nothing);
    let before = files(folder.path());
    let reason = "feature `collation`";
    let options = Options::new();
    assert_unavailable(&options.open_read_only(&path).unwrap(), 5, reason);
    assert_unavailable(&options.open_schema_read_only(&path, &schema).unwrap(), 5, reason);
    for error in
        [options.open(&path).unwrap_err(), options.open_schema(&path, &schema).unwrap_err()]
    {
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        for part in ["t.annals", "can only be read", "`by_name`", locale, reason] {
            assert!(error.to_string().contains(part), "{part}: {error}");
        }
    }
    let new = options.open_schema(folder.path().join("new.annals"), &schema).unwrap_err();
    assert!(new.to_string().contains(reason), "{new}");
    std::fs::remove_file(folder.path().join("new.annals")).unwrap();
    let kept = |(path, bytes): &(std::path::PathBuf, Vec<u8>)| {
        before.iter().any(|known| known == &(path.clone(), bytes.clone()))
    };
    assert!(files(folder.path()).iter().filter(|(path, _)| path.ends_with("t.annals")).all(kept));

    // A program without that collation drops the index by a line, and then writes.
    let without = format!(
        "create_table t\nadd_field t name string\ncreate_unique_index by_name t name collate {locale}\ndrop_index by_name\n"
    );
    let without = annals_schema::parse(&without).unwrap().schema;
    let db = options.open_schema(&path, &without).unwrap();
    insert(&db, &["B"]);
    assert_eq!(db.read().table(TABLE).unwrap().len(), 6);
}

#[test]
fn another_version_sorts_the_index_again() {
    let locale = "qtc";
    provide(locale, Provided::As("de"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.annals");
    let schema = schema(locale, "");
    let db = Options::new().open_schema(&path, &schema).unwrap();
    insert(&db, &["z", "ä", "b"]);
    db.backfill(BackfillMode::Restart).unwrap();
    insert(&db, &["a"]);
    assert_eq!(named(&db.read()).unwrap(), ["a", "ä", "b", "z"]);
    let then = db.read().txid();
    drop(db);

    provide(locale, Provided::As("sv"));
    let reader = Options::new().open_schema_read_only(&path, &schema).unwrap();
    assert_unavailable(&reader, 4, &format!("this program has version `{}`", version(locale)));
    drop(reader);
    for is_typed in [false, true, true] {
        let db = match is_typed {
            true => Options::new().open_schema(&path, &schema),
            false => Options::new().open(&path),
        };
        let db = db.unwrap();
        assert_eq!(db.read().txid().0, then.0 + 1, "it is sorted once");
        assert_eq!(named(&db.read()).unwrap(), ["a", "b", "z", "ä"]);
        let indexes = db.read().schema().indexes().to_vec();
        assert_eq!((indexes.len(), &indexes[0].collated[0].version), (1, &version(locale)));
        assert_eq!(named(&db.at(then).unwrap()).unwrap(), ["a", "b", "z", "ä"]);
        let error = named(&db.as_it_was(then).unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        db.read().check().unwrap();
        db.backfill(BackfillMode::Restart).unwrap();
    }
    std::fs::remove_file(folder.path().join("t.annals-image")).unwrap();
    let db = Options::new().open(&path).unwrap();
    assert_eq!(named(&db.read()).unwrap(), ["a", "b", "z", "ä"]);
}

#[test]
fn rows_that_become_equal_are_mended_by_the_program() {
    let locale = "qtd";
    provide(locale, Provided::As("und"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.annals");
    let old = schema(locale, "unique_");
    let db = Options::new().open_schema(&path, &old).unwrap();
    insert(&db, &["Lille", "lille"]);
    drop(db);

    provide(locale, Provided::As("und-u-ks-level2"));
    let before = files(folder.path());
    for error in [
        Options::new().open(&path).unwrap_err(),
        Options::new().open_schema(&path, &old).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Unique);
        assert!(error.to_string().contains("\"Lille\" is the key of rows 0 and 1"), "{error}");
    }
    let journal = |files: Vec<(std::path::PathBuf, Vec<u8>)>| {
        files.into_iter().find(|(path, _)| path.ends_with("t.annals")).unwrap()
    };
    assert!(journal(files(folder.path())) == journal(before), "the file is unchanged");
    let text = format!(
        "create_table t\nadd_field t name string\ncreate_unique_index by_name t name collate {locale}\ncustom mend\n"
    );
    let new = annals_schema::parse(&text).unwrap().schema;
    let mut mend = |_: annals::Custom<'_>, tx: &mut annals::Transaction<'_>| {
        tx.delete(TABLE, annals::RowId(1))
    };
    let db = Options::new().open_schema_with(&path, &new, &mut mend).unwrap();
    assert_eq!(named(&db.read()).unwrap(), ["Lille"]);
}

#[test]
fn a_commit_never_leaves_an_index_behind() {
    let locale = "qte";
    provide(locale, Provided::As("und"));
    let db = Database::in_memory().unwrap();
    db.upgrade(&schema(locale, ""), &mut |_, _| Ok(())).unwrap();
    insert(&db, &["b", "a"]);
    let drop_index = annals::Command::DropIndex { index: IndexNumber(0) };
    provide(locale, Provided::Nothing);
    let again = schema(locale, "").indexes()[0].creating();
    let error = db.write(|tx| {
        tx.apply_command(&drop_index)?;
        tx.apply_command(&again)
    });
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(named(&db.read()).unwrap(), ["a", "b"], "what is sorted stays");
}
