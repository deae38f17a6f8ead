//! Files that may be journals.

use std::sync::Arc;

use annals::event::Event;
use annals::storage::MemoryDirectory;
use annals::{Committed, Database, Error, ErrorKind, Reader, Recovery, Schema, Sink, Snapshot};
use annals_tools::{inspect_in, scan_in};

use crate::content::content;
use crate::draft::draft;
use crate::file::{NAME, bytes_of, install, open};
use crate::memory::peak;
use crate::weight::Weight;

/// Takes the bytes for a journal: after a first byte that is even as they are, else for the program
/// that makes one.
///
/// # Panics
/// If memory grows out of proportion, an unreadable file is changed, or reading and writing disagree on the contents.
/// Also if an opened file can't be written, closed and opened again.
pub fn journal(input: &[u8]) {
    let Some((how, rest)) = input.split_first() else { return };
    let bytes = if how.is_multiple_of(2) { rest.to_vec() } else { draft(rest) };
    let weight = Weight::of(&bytes);
    if weight.is_too_much() {
        return;
    }
    let directory = install(&bytes);
    let (seen, taken) = peak(|| look(&directory));
    assert!(taken < weight.limit(), "reading {} bytes took {taken}: {weight:?}", bytes.len());
    assert_eq!(bytes_of(&directory), bytes, "reading changed the file");

    let refused = open(&install(&bytes), Recovery::Refuse);
    let (opened, taken) = peak(|| open(&directory, Recovery::Checked));
    assert!(taken < weight.limit(), "opening {} bytes took {taken}: {weight:?}", bytes.len());
    match opened {
        Err(error) => {
            assert_helpful(&error);
            assert_eq!(bytes_of(&directory), bytes, "refusing changed the file: {error}");
            assert!(refused.is_err(), "the strict way opens what the other doesn't: {error}");
            assert!(seen.is_err() || error.kind() == ErrorKind::Unsupported, "{error}");
        }
        Ok(database) => {
            let before = content(&database.read());
            match seen {
                Ok(seen) => assert_eq!(seen, before, "reading and writing see different things"),
                Err(error) => panic!("it opens, but not for reading only: {error}"),
            }
            if let Ok(refused) = refused {
                assert_eq!(content(&refused.read()), before, "two ways to open differ");
            }
            match database.unapplied() {
                Some(unapplied) => {
                    let told = unapplied.explain(NAME);
                    assert!(told.contains("annals recover"), "it doesn't say what to do: {told}");
                    stay(&directory, database, &bytes);
                }
                None => go_on(&directory, database),
            }
        }
    }
}

/// Checks that a file with a commit that doesn't apply isn't written.
fn stay(directory: &MemoryDirectory, database: Database, bytes: &[u8]) {
    check(&database.read());
    let commented = database.write(|transaction| transaction.comment("one more"));
    let refused = commented.map_err(|error| error.kind());
    assert_eq!(refused, Err(ErrorKind::Unapplied), "it is written though a commit doesn't apply");
    let closed = database.close();
    assert!(closed.is_ok(), "it can't be closed: {closed:?}");
    assert_eq!(bytes_of(directory), bytes, "a commit doesn't apply, and the file was changed");
}

/// Counts what a scan shows.
#[derive(Default)]
struct Count {
    commits: u64,
    last: Option<u64>,
}

impl Sink for Count {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> annals::Result<()> {
        if let Event::Insert { table, .. } | Event::Delete { table, .. } = event {
            assert!(schema.table(*table).is_some(), "{event:?}");
        }
        Ok(())
    }
    fn commit(&mut self, _: &Schema, committed: &Committed) -> annals::Result<()> {
        let follows = self.last.is_none_or(|last| last + 1 == committed.txid.0);
        assert!(follows, "txid {} behind {:?}", committed.txid, self.last);
        self.last = Some(committed.txid.0);
        self.commits += 1;
        Ok(())
    }
}

/// Reads a file in all ways that write nothing; returns the state of a reader.
fn look(directory: &MemoryDirectory) -> annals::Result<String> {
    let reader = Reader::open(directory, NAME);
    let mut count = Count::default();
    let scanned = scan_in(&annals::Options::new(), directory, NAME, &mut count);
    let inspected = inspect_in(&annals::Options::new(), directory, NAME);
    for error in [scanned.as_ref().err(), inspected.as_ref().err()].into_iter().flatten() {
        assert_helpful(error);
    }
    let reader = match reader {
        Ok(reader) => reader,
        Err(error) => {
            assert_helpful(&error);
            return Err(error);
        }
    };
    let snapshot = reader.read();
    if let Some(unapplied) = reader.unapplied() {
        assert_eq!(unapplied.txid, snapshot.txid() + 1, "{unapplied}");
        check(&snapshot);
        return Ok(content(&snapshot));
    }
    assert!(scanned.is_ok(), "it can be read, but not scanned: {scanned:?}");
    assert!(count.last.is_none_or(|last| last == snapshot.txid().0), "{}", snapshot.txid());
    match inspected {
        Ok(found) => assert_eq!((found.end.txid, found.damage), (snapshot.txid(), None)),
        Err(error) => panic!("it can be read, but not inspected: {error}"),
    }
    check(&snapshot);
    Ok(content(&snapshot))
}

/// Sees that the invariants hold, but for what only a writer sees to (docs/decisions/13-constraints.md): a
/// journal that another program wrote may break a rule, and is still read as it says.
fn check(snapshot: &Snapshot) {
    let Err(error) = snapshot.check() else { return };
    let text = error.to_string();
    let is_rule = error.kind() == ErrorKind::Unique
        || ["refers to row", "should have exactly one"].iter().any(|rule| text.contains(rule));
    assert!(is_rule, "what was read contradicts itself: {error}");
}

/// Checks that an error has a kind for bad files, and names the file.
fn assert_helpful(error: &Error) {
    let kinds = [
        ErrorKind::Corrupt,
        ErrorKind::NotAJournal,
        ErrorKind::Unsupported,
        ErrorKind::NeedsRecovery,
        ErrorKind::Unapplied,
    ];
    let text = error.to_string();
    assert!(kinds.contains(&error.kind()) && text.contains(NAME), "an odd error: {error:?}");
}

/// Checks that all commits would be kept if the process ended now.
fn assert_kept(directory: &MemoryDirectory, database: &Database) {
    match open(&install(&bytes_of(directory)), Recovery::Refuse) {
        Ok(again) => assert_eq!(content(&again.read()), content(&database.read())),
        Err(error) => panic!("it can't be opened if the process ends now: {error}"),
    }
}

/// Writes on, closes and opens: all must be there.
fn go_on(directory: &Arc<MemoryDirectory>, database: Database) {
    check(&database.read());
    assert_kept(directory, &database);
    let commented = database.write(|transaction| transaction.comment("one more"));
    assert!(commented.is_ok(), "it can't be written: {commented:?}");
    assert_kept(directory, &database);
    let before = content(&database.read());
    let tables: Vec<_> = database.read().schema().tables().iter().map(|it| it.number).collect();
    let inserted = database.write(|transaction| {
        tables.iter().try_for_each(|&table| transaction.insert_vector(table, 2).map(drop))
    });
    if let Err(error) = inserted {
        assert_eq!(content(&database.read()), before, "half a transaction: {error}");
    }
    let before = content(&database.read());
    check(&database.read());
    let txid = database.read().txid();
    let closed = database.close();
    assert!(closed.is_ok(), "it can't be closed: {closed:?}");
    match open(directory, Recovery::Refuse) {
        Ok(database) => {
            assert!(!database.recovered().unclean, "it was closed");
            assert_eq!(content(&database.read()), before);
            assert_eq!(database.read().txid(), txid);
            check(&database.read());
        }
        Err(error) => panic!("it was closed and can't be opened: {error}"),
    }
}
