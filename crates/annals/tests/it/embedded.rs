//! Databases whose bytes the program holds.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use annals::reports::Older;
use annals::{BackfillMode, Embedded, ErrorKind, Options};

use crate::generated::tutorial::{self, city, person};

/// The folder of a database with three transactions that change rows.
struct Filled {
    _folder: tempfile::TempDir,
    path: PathBuf,
    lille: city::Id,
    remi: person::Id,
}

fn filled(finish: impl FnOnce(&tutorial::Database)) -> Filled {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tutorial.annals");
    let db = tutorial::Database::open_with(&path, &Options::new().background(false)).unwrap();
    let lille = db.write(|tx| Ok(tx.insert(city::New { name: "Lile" })?)).unwrap();
    let remi = person::New { first_name: "Rémi", last_name: "Coulom", home: Some(lille) };
    let remi = db.write(|tx| Ok(tx.insert(remi)?)).unwrap();
    finish(&db);
    db.write(|tx| Ok(tx.edit(lille)?.set_name("Lille").map(drop)?)).unwrap();
    db.close().unwrap();
    Filled { _folder: folder, path, lille, remi }
}

fn bytes(path: &Path, suffix: &str) -> Vec<u8> {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    fs::read(name).unwrap()
}

/// Reads everything that the typed API has for reading.
fn assert_readable(reader: &tutorial::Reader, Filled { lille, remi, .. }: &Filled) {
    let now = reader.read();
    assert_eq!(now.city().require(*lille).unwrap().name(), "Lille");
    assert!(now.city().by_name().get("Lille").unwrap().is_some());
    assert_eq!(now.person().require(*remi).unwrap().home(), Some(*lille));
    now.as_dynamic().check().unwrap();
    let last = now.txid();
    let past = reader.at(last - 1).unwrap();
    assert_eq!(past.city().require(*lille).unwrap().name(), "Lile");
    let names = reader.history_of(*lille).unwrap();
    let names: Vec<_> = names.map(|version| version.unwrap().change.after.unwrap().name).collect();
    assert_eq!(names, ["Lile", "Lille"]);
    assert_eq!(reader.blame(*lille).unwrap()[0].txid, last);
    let txids: Vec<_> = reader.changes(..).unwrap().map(|change| change.unwrap().txid).collect();
    assert_eq!(txids.last(), Some(&last));
    assert_eq!(reader.pull().unwrap().txid(), last, "nothing follows");
    assert!(reader.subscribe().try_next().unwrap().is_none());
}

#[test]
fn a_journal_suffices() {
    let filled = filled(|_| {});
    let leaked: &'static [u8] = bytes(&filled.path, "").leak();
    for embedded in [Embedded::from(leaked), bytes(&filled.path, "").into()] {
        let reader = tutorial::Database::from_bytes(embedded).unwrap();
        assert_readable(&reader, &filled);
        assert!(reader.findings().is_empty(), "{:?}", reader.findings());
    }
}

#[test]
fn the_image_is_read_and_its_damage_is_reported() {
    let filled = filled(|db| {
        db.backfill(BackfillMode::Full).unwrap();
    });
    let (journal, image) = (bytes(&filled.path, ""), bytes(&filled.path, "-image"));
    let open = |image: Vec<u8>| {
        let embedded = Embedded::new(journal.clone()).image(image);
        tutorial::Database::from_bytes(embedded).unwrap()
    };
    let reader = open(image.clone());
    assert_readable(&reader, &filled);
    assert!(reader.findings().is_empty(), "{:?}", reader.findings());
    // The journal has the same answers.
    let mut damaged = image.clone();
    damaged.fill(0xff);
    for image in [damaged, image[..image.len() / 2].to_vec()] {
        let reader = open(image);
        assert_readable(&reader, &filled);
        let dynamic = &*reader;
        let found = dynamic.findings().len() + dynamic.image_damage().len();
        assert!(found > 0, "the damage is reported");
    }
}

#[test]
fn earlier_segments_have_the_history_before() {
    let filled = filled(|db| {
        db.restart(Older::Kept, Duration::MAX).unwrap();
    });
    let (journal, segment) = (bytes(&filled.path, ""), bytes(&filled.path, "-segment-000000"));
    let reader = tutorial::Database::from_bytes(Embedded::new(journal.clone()).segment(0, segment));
    assert_readable(&reader.unwrap(), &filled);
    let error = tutorial::Database::from_bytes(journal).unwrap_err();
    assert!(error.to_string().contains("the database-segment-000000 in the program"), "{error}");
}

#[test]
fn what_is_no_database_is_refused() {
    let filled = filled(|_| {});
    let journal = bytes(&filled.path, "");
    for (bytes, kind) in [
        (Vec::new(), ErrorKind::NotAJournal),
        (b"<html>".to_vec(), ErrorKind::NotAJournal),
        (vec![0; 20_000], ErrorKind::NotAJournal),
        (journal[..journal.len() - 40].to_vec(), ErrorKind::Corrupt),
    ] {
        let error = tutorial::Database::from_bytes(bytes).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains("the database in the program"), "{error}");
    }
    let other = annals_schema::parse("create_table other").unwrap().schema;
    let error = Options::new().open_schema_bytes(journal, &other).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
}

#[test]
fn a_flipped_bit_is_an_error_or_changes_nothing() {
    let filled = filled(|_| {});
    let journal = bytes(&filled.path, "");
    let whole = tutorial::Database::from_bytes(journal.clone()).unwrap().read();
    let expected = format!("{:?}", whole.city().require(filled.lille).unwrap().to_owned());
    let (mut refused, mut read) = (0, 0);
    for place in (0..journal.len()).step_by(37) {
        let mut flipped = journal.clone();
        flipped[place] ^= 1 << (place % 8);
        match tutorial::Database::from_bytes(flipped) {
            Ok(reader) => {
                let now = reader.read();
                let city = now.city().require(filled.lille).unwrap().to_owned();
                assert_eq!(format!("{city:?}"), expected, "byte {place}");
                read += 1;
            }
            Err(error) => {
                assert!(error.to_string().contains("the database in the program"), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 5 && read > 5, "{refused} were refused, {read} read");
}
