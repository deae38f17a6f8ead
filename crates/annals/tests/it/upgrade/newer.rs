//! A file that a newer program has changed, and an older program: whatever the line was, nothing of it is lost.

use std::path::Path;

use annals::{Database, ErrorKind, Options, Reader, Result};
use annals_schema::Evolution;

use super::schema;

/// Makes a file by the older program, with rows, and brings it up by the newer one.
fn evolved(evolution: &Evolution, path: &Path) {
    let db = Options::new().open_schema(path, &schema(&evolution.older())).unwrap();
    for table in db.read().schema().tables() {
        if db.read().table(table.number).unwrap().is_empty() {
            let zeros: Vec<_> = table.fields.iter().map(annals::Field::default_value).collect();
            let zeros: Vec<_> = zeros.iter().map(annals::Value::as_ref).collect();
            db.write(|tx| tx.insert(table.number, &zeros)).unwrap();
        }
    }
    db.backfill(annals::BackfillMode::Full).unwrap();
    db.close().unwrap();
    open_newer(evolution, &Options::new(), path).unwrap().close().unwrap();
}

fn open_newer(evolution: &Evolution, options: &Options, path: &Path) -> Result<Database> {
    options.open_schema_with(path, &schema(&evolution.newer()), &mut |_, _| Ok(()))
}

/// Checks what an older program is told that wants to write.
fn is_told_of(evolution: &Evolution, opened: Result<Database>) {
    let error = opened.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch, "{evolution:?}: {error}");
    let text = error.to_string();
    assert!(text.contains("newer") && text.contains(evolution.line), "{evolution:?}: {text}");
}

/// Checks what an older program is told that only reads.
fn is_read_if_it_can_be(evolution: &Evolution, opened: Result<Reader>) {
    match opened {
        Ok(reader) => {
            assert!(evolution.is_readable, "{evolution:?}");
            let now = reader.read();
            let tables = now.schema().tables().iter();
            let rows: u64 = tables.map(|table| now.table(table.number).unwrap().len()).sum();
            assert_eq!(rows, 2, "{evolution:?}");
        }
        Err(error) => {
            assert!(!evolution.is_readable, "{evolution:?}: {error}");
            assert_eq!(error.kind(), ErrorKind::SchemaMismatch, "{evolution:?}: {error}");
            assert!(error.to_string().contains(evolution.line), "{evolution:?}: {error}");
        }
    }
}

#[test]
fn an_older_program_leaves_all_that_a_newer_one_has_added_or_dropped() {
    for evolution in &Evolution::ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("it.annals");
        evolved(evolution, &path);
        let files = || {
            let read = |name| std::fs::read(folder.path().join(name)).unwrap();
            (read("it.annals"), read("it.annals-image"))
        };
        let before = files();
        let older = schema(&evolution.older());
        let exclusive = Options::new();
        for options in [exclusive.clone(), exclusive.clone().shared(true)] {
            is_told_of(evolution, options.open_schema(&path, &older));
            is_read_if_it_can_be(evolution, options.open_schema_read_only(&path, &older));
        }
        // Without image and history index, the same is said by the journal.
        std::fs::rename(folder.path().join("it.annals-image"), folder.path().join("kept")).unwrap();
        is_told_of(evolution, exclusive.open_schema(&path, &older));
        is_read_if_it_can_be(evolution, exclusive.open_schema_read_only(&path, &older));
        let _ = std::fs::remove_file(folder.path().join("it.annals-image"));
        std::fs::rename(folder.path().join("kept"), folder.path().join("it.annals-image")).unwrap();
        is_read_if_it_can_be(evolution, exclusive.open_schema_bytes(before.0.clone(), &older));
        let db = open_newer(evolution, &exclusive, &path).unwrap();
        assert_eq!(db.read().schema().to_text(), schema(&evolution.newer()).to_text());
        db.read().check().unwrap();
    }
}

/// Both programs run at once: what the older one opened before stays of use until the newer one has come.
#[test]
fn an_older_program_that_shares_the_file_is_told_when_a_newer_one_has_come() {
    for evolution in &Evolution::ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("it.annals");
        let shared = Options::new().shared(true);
        let old = schema(&evolution.older());
        let older = shared.open_schema(&path, &old).unwrap();
        let upgraded = open_newer(evolution, &shared, &path);
        let refused = older.write(|tx| tx.comment("of the older program"));
        match (upgraded, refused) {
            // The newer one has changed the schema under a program that is open.
            (Ok(newer), Err(error)) => {
                assert_eq!(error.kind(), ErrorKind::SchemaMismatch, "{evolution:?}: {error}");
                assert!(
                    error.to_string().contains("upgraded the schema"),
                    "{evolution:?}: {error}"
                );
                assert_eq!(newer.read().schema().to_text(), schema(&evolution.newer()).to_text());
            }
            (upgraded, refused) => panic!("{evolution:?}: {upgraded:?} {refused:?}"),
        }
    }
}

/// What an older program has open for reading, or follows, goes on up to a state that it doesn't understand, and says so then.
#[test]
fn an_older_program_is_not_shown_what_lacks_something_of_its_schema() {
    for evolution in &Evolution::ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("it.annals");
        let shared = Options::new().shared(true);
        let old = schema(&evolution.older());
        let older = shared.open_schema(&path, &old).unwrap();
        let reader = Options::new().open_schema_read_only(&path, &old).unwrap();
        let before = reader.read().schema().to_text();
        let mut feeds = [older.subscribe(), reader.subscribe()];
        let newer = open_newer(evolution, &shared, &path).unwrap();
        newer.write(|tx| tx.comment("of the newer program")).unwrap();
        for _ in 0..2 {
            match reader.pull() {
                Ok(now) => {
                    assert!(evolution.is_readable, "{evolution:?}");
                    assert_eq!(now.txid(), newer.read().txid());
                }
                Err(error) => {
                    assert!(!evolution.is_readable, "{evolution:?}: {error}");
                    assert_eq!(error.kind(), ErrorKind::SchemaMismatch, "{evolution:?}: {error}");
                    assert_eq!(reader.read().schema().to_text(), before);
                }
            }
        }
        // A program that writes is told in any case, as by its next transaction.
        for (feed, goes_on) in feeds.iter_mut().zip([false, evolution.is_readable]) {
            match feed.try_next() {
                Ok(changed) => assert!(goes_on && changed.is_some(), "{evolution:?}"),
                Err(error) => {
                    assert!(!goes_on, "{evolution:?}: {error}");
                    assert_eq!(error.kind(), ErrorKind::SchemaMismatch, "{evolution:?}: {error}");
                }
            }
        }
    }
}
