//! The typed API of a schema that has gone through everything: custom functions, drops, renames,
//! single rows, blobs, and rows by the names of their fields.

use std::io::Read;
use std::path::Path;

use super::generated::evolved::{self, Customs};
use super::generated::wide;
use annals::{Error, ErrorKind, Options, Result, RowId, Value};

/// Opens with functions that do nothing, and must not be called.
fn open(path: &Path) -> Result<evolved::Database> {
    let unexpected = |name: &str| Err(Error::invalid(format!("{name} was called")));
    evolved::Database::open(
        path,
        Customs {
            set_default_language: &mut |_| unexpected("the first"),
            r#type: &mut |_| unexpected("the second"),
            set_default_language_2: &mut |_| unexpected("the third"),
        },
    )
}

fn new(path: &Path) -> evolved::Database {
    let customs = Customs {
        set_default_language: &mut |_| Ok(()),
        r#type: &mut |_| Ok(()),
        set_default_language_2: &mut |_| Ok(()),
    };
    evolved::Database::open(path, customs).unwrap()
}

/// Makes a file with the schema up to a line, and one person in it.
fn older(path: &Path, line: &str) {
    let (before, _) = evolved::SCHEMA.split_once(line).unwrap();
    let schema = annals_schema::parse(before).unwrap().schema;
    // The functions before that line run too, on the empty tables of a new file.
    let db = Options::new().open_schema_with(path, &schema, &mut |_, _| Ok(())).unwrap();
    db.write(|tx| {
        let person = schema.table_named("person").unwrap();
        let values: Vec<Value> = person.fields.iter().map(|field| field.zero_value()).collect();
        let mut values: Vec<_> = values.iter().map(Value::as_ref).collect();
        values[0] = "Rémi".into();
        tx.insert(person.number, &values)
    })
    .unwrap_or_else(|error: Error| panic!("{error}"));
    db.close().unwrap();
}

#[test]
fn functions_see_the_tables_of_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("evolved.annals");
    older(&path, "custom set_default_language");
    let (mut first, mut second, mut third) = (0, 0, 0);
    let customs = Customs {
        // Here the table is called `language`, the field `name`, and `old` and `gone` are there.
        set_default_language: &mut |tx| {
            first += 1;
            let french =
                tx.insert(evolved::custom::set_default_language::language::New { code: "fr" })?;
            let lost =
                tx.insert(evolved::custom::set_default_language::gone::New { text: "soon" })?;
            for id in tx.person().ids()? {
                assert_eq!(tx.person().require(id)?.name(), "Rémi", "its name of then");
                tx.edit(id)?.set_spoken(french)?.set_lost(lost)?.set_old(Some(40))?;
            }
            assert_eq!(tx.language().len(), 1, "the function sees it");
            Ok(())
        },
        r#type: &mut |tx| {
            second += 1;
            let person = tx.person().iter().next().unwrap()?;
            assert_eq!(person.full_name(), "Rémi", "renamed by now");
            assert_eq!(person.lost(), Some(RowId(0)), "a row of a table that was dropped");
            let id = person.id();
            let content = tx.write_blob(&b"content"[..])?;
            let owner = id.into();
            tx.insert(evolved::custom::r#type::file::New {
                name: "a",
                content: Some(content),
                owner,
            })?;
            Ok(())
        },
        set_default_language_2: &mut |tx| {
            third += 1;
            tx.comment("upgraded")?;
            assert_eq!(tx.tongue().len(), 1, "renamed by now");
            Ok(())
        },
    };
    let db = evolved::Database::open(&path, customs).unwrap();
    assert_eq!((first, second, third), (1, 1, 1), "each once");
    let now = db.read();
    let remi = now.person().by_full_name().with_full_name("Rémi").next().unwrap().unwrap();
    let spoken = remi.spoken().map(|id| now.tongue().require(id).unwrap().code().to_owned());
    assert_eq!(spoken.as_deref(), Some("fr"), "the reference of the first function");
    assert_eq!(now.file().len(), 1, "the row of the second");
    db.close().unwrap();
    open(&path).unwrap().close().unwrap(); // nothing is left to run
}

#[test]
fn a_function_that_fails_leaves_the_file_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("evolved.annals");
    older(&path, "custom type");
    let before = std::fs::metadata(&path).unwrap().len();
    let error = open(&path).unwrap_err();
    assert!(error.to_string().contains("the second was called"), "{error}");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), before, "nothing was written");
    let read_only = evolved::Database::open_read_only(&path).unwrap_err();
    assert_eq!(read_only.kind(), ErrorKind::SchemaMismatch, "an older schema: {read_only}");
    let db = new(&path);
    assert_eq!(db.read().person().len(), 1, "and then it works");
}

#[test]
fn a_single_row_needs_no_id() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("evolved.annals");
    let db = new(&path);
    assert_eq!(db.read().settings().unwrap().volume(), 5, "the default");
    db.write(|tx| {
        tx.edit(evolved::settings::ROW)?.set_volume(11)?.set_motto(Some("louder"))?;
        assert_eq!(tx.settings()?.volume(), 11, "the transaction sees it");
        assert_eq!(tx.settings()?.motto(), Some("louder"), "in every field");
        Ok(())
    })
    .unwrap();
    let now = db.read();
    let row = now.settings().unwrap();
    assert_eq!((row.volume(), row.motto()), (11, Some("louder")), "kept");
    db.close().unwrap();
    let reader = evolved::Database::open_read_only(&path).unwrap();
    assert_eq!(reader.read().settings().unwrap().volume(), 11, "for reading only");
    assert_eq!((*reader).read().txid(), reader.read().txid(), "the same without types");
}

#[test]
fn blobs_are_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let db = new(&folder.path().join("evolved.annals"));
    let (with, without) = db
        .write(|tx| {
            let content = tx.write_blob(&b"hello"[..])?;
            assert_eq!(tx.append_blob(b", world")?, content, "still the same");
            let with = tx.insert(evolved::file::New {
                name: "with",
                content: content.into(),
                owner: None,
            })?;
            assert_eq!(tx.read_blob(content)?.len(), 12, "read in its transaction");
            tx.as_dynamic().valid_data()?;
            let without = evolved::file::New { name: "without", ..Default::default() };
            Ok((with, tx.insert(without)?))
        })
        .unwrap();
    let now = db.read();
    let content = now.file().require(with).unwrap().content().unwrap();
    let mut text = String::new();
    let read = now.read_blob(content).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!((read, text.as_str()), (12, "hello, world"), "all of it");
    assert_eq!(now.file().require(without).unwrap().content(), None, "null");
    db.soft_checkpoint().unwrap();
    let hard = db.hard_checkpoint().unwrap();
    assert_eq!(hard.txid, now.txid(), "up to the last commit");
}

#[test]
fn rows_are_given_by_names_and_copied() {
    use evolved::person;
    let folder = tempfile::tempdir().unwrap();
    let db = new(&folder.path().join("evolved.annals"));
    let (first, tongue) = db
        .write(|tx| {
            let tongue = tx.insert(evolved::tongue::New { code: "fr" })?;
            let row =
                person::New { full_name: "Rémi", spoken: Some(tongue), ..Default::default() };
            Ok((tx.insert(row)?, tongue))
        })
        .unwrap();
    let now = db.read();
    let row = now.person().require(first).unwrap();
    let copy = db
        .write(|tx| Ok(tx.insert(person::New { full_name: "Anne", ..person::New::from(&row) })?))
        .unwrap();
    let now = db.read();
    let copy = now.person().require(copy).unwrap();
    assert_eq!((copy.full_name(), copy.spoken()), ("Anne", Some(tongue)), "one field differs");
}

#[test]
fn errors_may_be_of_the_programs_own_type() {
    #[derive(Debug, PartialEq)]
    struct Mine(u8);
    impl std::fmt::Display for Mine {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("not today")
        }
    }
    impl std::error::Error for Mine {}
    let folder = tempfile::tempdir().unwrap();
    let db = new(&folder.path().join("evolved.annals"));
    let french = evolved::tongue::New { code: "fr" };
    let refused = |nested: bool| {
        let refused = db.write(|tx| {
            tx.insert(french)?;
            if nested {
                tx.savepoint(|_| Err::<(), _>(Mine(7).into()))?;
            }
            Err::<(), _>(Mine(7))?;
            Ok(())
        });
        refused.unwrap_err()
    };
    let error = refused(false);
    assert_eq!(error.kind(), ErrorKind::Aborted, "{error:?}");
    assert_eq!(error.to_string(), "rolled back by the program: not today");
    let error = error.into_program::<std::fmt::Error>().unwrap_err();
    assert_eq!(error.to_string(), "rolled back by the program: not today", "of another type");
    assert_eq!(error.into_program().ok(), Some(Mine(7)), "its own comes back");
    assert_eq!(refused(true).into_program().ok(), Some(Mine(7)), "also from a savepoint");
    let text = db.write(|_| Err::<(), _>(annals::Abort::new("a text"))).unwrap_err();
    assert_eq!(text.to_string(), "rolled back by the program: a text");
    let failed = db.write(|tx| Ok(tx.tongue().require(evolved::tongue::Id::from_u64(5))?.id()));
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::NotFound, "the database's own stay");
    assert!(db.read().tongue().is_empty(), "rolled back");
    let kept = db.write(|tx| {
        tx.savepoint(|_| Err::<(), _>(Mine(7).into())).unwrap_err();
        Ok(tx.insert(french)?)
    });
    assert!(kept.is_ok() && db.read().tongue().len() == 1, "a savepoint's error ends only that");
}

#[test]
fn wide_tables_take_their_columns_by_name() {
    use wide::runways::{self, Columns};
    let folder = tempfile::tempdir().unwrap();
    let db = wide::Database::open(folder.path().join("wide.annals")).unwrap();
    let (idents, nothing) = (["LFQQ", "LFQQ"], [None; 2]);
    let (texts, truths, numbers) = (["", ""], [false, true], [None; 2]);
    let first = db
        .write(|tx| {
            Ok(tx.insert_vector(Columns {
                airport_ref: &[1, 2],
                airport_ident: &idents,
                length_ft: &[Some(9268), None],
                width_ft: &nothing,
                surface: &texts,
                lighted: &truths,
                closed: &truths,
                le_ident: &texts,
                le_latitude_deg: &numbers,
                le_longitude_deg: &numbers,
                le_elevation_ft: &nothing,
                le_heading_degT: &numbers,
                le_displaced_threshold_ft: &nothing,
                he_ident: &texts,
                he_latitude_deg: &numbers,
                he_longitude_deg: &numbers,
                he_elevation_ft: &nothing,
                he_heading_degT: &numbers,
                he_displaced_threshold_ft: &nothing,
            })?)
        })
        .unwrap();
    let now = db.read();
    let table = now.runways();
    assert_eq!(table.vector_of(runways::LENGTH_FT, first, 2).unwrap(), [Some(9268), None], "given");
    assert_eq!(table.vector_of(runways::LIGHTED, first, 2).unwrap(), truths, "bits");
    assert_eq!(table.vector_of(runways::AIRPORT_IDENT, first, 2).unwrap(), idents, "text");
    assert_eq!(now.runways().by_airport().with_airport_ref(2).count(), 1, "in the index too");
    let missing = table.vector_of(runways::LENGTH_FT, first, 3).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound, "{missing}");
    let uneven = db.write(|tx| {
        Ok(tx.insert_vector(wide::countries::Columns {
            code: &["a", "b"],
            name: &["a"],
            continent: &[""; 2],
            wikipedia_link: &[""; 2],
            keywords: &[""; 2],
        })?)
    });
    assert_eq!(uneven.unwrap_err().kind(), ErrorKind::Invalid, "of different lengths");
}
