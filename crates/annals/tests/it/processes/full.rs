//! File systems that are full or read-only.

use std::fs;
use std::path::Path;

use annals::{Database, ErrorKind, Level, Options};
use annals_tools::{inspect, scan};

use super::child::{self, Child};
use super::ledger::{Seen, audit, schema, write};
use super::mounted::Mounted;
use crate::hostile::journals::Log;

const WRITER: u64 = 7;

/// A database and how many transactions it has.
struct Book {
    database: Database,
    number: u64,
}

impl Book {
    fn open(path: &Path) -> Self {
        let database = Options::new().open_schema(path, &schema()).unwrap();
        let number = audit(&database.read()).of(WRITER);
        Self { database, number }
    }

    fn commit(&mut self, level: Level, bulk: usize) -> annals::Result<()> {
        let mut transaction = self.database.begin()?;
        transaction.set_level(level);
        write(&mut transaction, WRITER, self.number, 2, bulk)?;
        transaction.commit()?;
        self.number += 1;
        Ok(())
    }

    #[track_caller]
    fn check(&self) -> Seen {
        let seen = audit(&self.database.read());
        assert_eq!(seen.of(WRITER), self.number);
        seen
    }
}

/// Fills the file system under a database, at each level and with transactions of each length; then
/// continues as soon as there is space.
fn fill_and_go_on(mounted: &Mounted, path: &Path) {
    let mut book = Book::open(path);
    let mut refused = 0;
    for level in Level::ALL {
        // Within the space that was filled ahead, a frame of its own, several frames.
        for bulk in [0, 900_000, 2_500_000] {
            book.commit(level, 0).unwrap();
            let before = book.check();
            let filler = mounted.fill();
            for _ in 0..3 {
                let Err(error) = book.commit(level, bulk) else { continue };
                refused += 1;
                assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                let text = error.to_string();
                assert!(text.contains("No space left"), "{text}");
                assert!(text.contains(path.to_str().unwrap()), "{text}");
            }
            book.check().follows(&before);
            let other = Options::new().open_read_only(path).unwrap();
            assert_eq!(audit(&other.read()), book.check(), "others see the same");
            drop(filler);
            book.commit(level, 0).unwrap();
            book.check();
        }
        book.database.hard_checkpoint().unwrap();
    }
    assert!(refused >= 8, "{refused}");
    // A long one fits, now that there is space; and it ends, and begins again, as always.
    book.commit(Level::Checksummed, 1_500_000).unwrap();
    let seen = book.check();
    book.database.close().unwrap();
    let mut book = Book::open(path);
    assert!(!book.database.recovered().unclean);
    assert_eq!(book.check(), seen);
    book.commit(Level::TwoPhase, 0).unwrap();
}

#[test]
fn what_does_not_fit_is_rolled_back_and_writing_goes_on() {
    // Ten megabytes hold what succeeds even if every second transaction finds space.
    for mounted in [Mounted::ext4(40), Mounted::memory(30)].into_iter().flatten() {
        let path = mounted.file("full.annals");
        fill_and_go_on(&mounted, &path);
        let mut log = Log::default();
        scan(&Options::new(), &path, &mut log).unwrap();
        assert_eq!(inspect(&Options::new(), &path).unwrap().damage, None);
    }
}

/// Commits softly, also long transactions, until it is killed.
#[test]
fn child_that_fills() {
    let Some(job) = child::job() else { return };
    let mut book = Book::open(Path::new(&job[0]));
    for _ in 0..20 {
        book.commit(Level::Soft, 0).unwrap();
    }
    let mut transaction = book.database.begin().unwrap();
    write(&mut transaction, WRITER, book.number, 2, 2_500_000).unwrap();
    child::say("written");
    child::wait_for_the_parent();
}

#[test]
fn opening_recovering_and_closing_need_no_space() {
    for mounted in [Mounted::ext4(12), Mounted::memory(8)].into_iter().flatten() {
        let path = mounted.file("unclean.annals");
        let mut child =
            Child::start("processes::full::child_that_fills", &[path.to_str().unwrap()]);
        child.wait_for("written");
        child.kill();
        let filler = mounted.fill();
        let seen = audit(&Options::new().open_read_only(&path).unwrap().read());
        let book = Book::open(&path);
        let recovered = book.database.recovered();
        let cut = recovered.cut.as_ref().unwrap();
        assert!(recovered.unclean && cut.uncommitted_frames >= 2, "{recovered:?}");
        assert_eq!(book.check(), seen);
        assert_eq!(seen.of(WRITER), 20);
        book.database.close().unwrap();
        assert!(inspect(&Options::new(), &path).unwrap().is_closed());
        assert_eq!(Book::open(&path).check(), seen);
        drop(filler);
        Book::open(&path).commit(Level::Checksummed, 0).unwrap();
    }
}

#[test]
fn a_tail_that_there_is_no_space_to_save_is_reported() {
    for mounted in [Mounted::ext4(8), Mounted::memory(4)].into_iter().flatten() {
        let (path, torn) = (mounted.file("whole.annals"), mounted.file("torn.annals"));
        let options = Options::new().level(Level::Soft).background(false);
        let database = options.open_schema(&path, &schema()).unwrap();
        let mut book = Book { database, number: 0 };
        for _ in 0..10 {
            book.commit(Level::Soft, 0).unwrap();
        }
        // As after a power cut: the last commit but one is torn, the last one is whole.
        let mut bytes = fs::read(&path).unwrap();
        let place = bytes.len() - 300;
        bytes[place] ^= 1;
        fs::write(&torn, &bytes).unwrap();
        let filler = mounted.fill();
        let book = Book::open(&torn);
        let recovered = book.database.recovered();
        let cut = recovered.cut.as_ref().unwrap();
        assert!(cut.may_have_been_acknowledged && cut.saved_as.is_none(), "{recovered:?}");
        assert!(recovered.findings[0].contains("for want of space"), "{recovered:?}");
        assert!(book.number < 10);
        book.check();
        book.database.close().unwrap();
        drop(filler);
    }
}

#[test]
fn a_read_only_file_system_is_read_and_errors_say_so() {
    for mounted in [Mounted::ext4(8), Mounted::memory(4)].into_iter().flatten() {
        let (closed, unclean) = (mounted.file("closed.annals"), mounted.file("unclean.annals"));
        let mut book = Book::open(&closed);
        book.commit(Level::Checksummed, 0).unwrap();
        fs::copy(&closed, &unclean).unwrap();
        book.database.close().unwrap();
        mounted.make_read_only();
        for path in [closed, unclean] {
            for create in [true, false] {
                let opened = Options::new().create(create).open(&path).map(|_| ());
                let error = opened.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                let text = error.to_string();
                assert!(text.contains("open it read-only"), "{text}");
                assert!(text.contains(path.to_str().unwrap()), "{text}");
            }
            let reader = Options::new().open_read_only(&path).unwrap();
            assert_eq!(audit(&reader.read()).of(WRITER), 1);
            scan(&Options::new(), &path, &mut Log::default()).unwrap();
            inspect(&Options::new(), &path).unwrap();
        }
        let new = mounted.file("new.annals");
        let error = Database::open(&new).map(|_| ()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("can't create it") && text.contains("Read-only"), "{text}");
        assert!(text.contains(new.to_str().unwrap()), "{text}");
    }
}
