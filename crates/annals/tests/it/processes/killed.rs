//! Writers that are killed while they commit, one after another, and readers all the while.

#![allow(clippy::disallowed_methods, reason = "what a process does meanwhile takes real time")]

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use annals::{Database, ErrorKind, Options, Recovery};
use annals_simulated::Rng;
use annals_tools::inspect;

use super::ledger::{Said, Seen, audit};
use super::{effort, work};

/// What the parent and its reader know.
struct Ledger {
    path: PathBuf,
    said: Mutex<Said>,
    ended: AtomicBool,
}

impl Ledger {
    fn hear(&self, line: &str) {
        self.said.lock().unwrap().hear(line);
    }

    /// Looks at the file as often as it can, as long as the writers live and die.
    fn read_all_the_while(&self) -> u64 {
        let (mut before, mut looks) = (Seen::default(), 0);
        while !self.ended.load(Ordering::Relaxed) {
            let said = self.said.lock().unwrap().clone();
            let reader = match Options::new().open_read_only(&self.path) {
                Ok(reader) => reader,
                Err(error) if looks == 0 && error.kind() == ErrorKind::NotFound => continue,
                Err(error) => panic!("{error:?}"),
            };
            let seen = audit(&reader.read());
            said.is_kept_by(&seen);
            seen.follows(&before);
            before = seen;
            looks += 1;
        }
        looks
    }

    /// Starts a writer and kills it: while it opens, or after it has said a random number of lines.
    fn run_and_kill(&self, generation: u64, rng: &mut Rng) {
        let threads = if rng.percent(50) { 1 } else { 3 };
        let seed = rng.below(1 << 30);
        let mut child = work::start(&self.path, "alone", generation * 10, threads, seed);
        let lines = if rng.percent(25) { 0 } else { rng.below(120) };
        for _ in 0..lines {
            let Some(line) = child.next_line() else { panic!("the writer ended by itself") };
            self.hear(&line);
        }
        std::thread::sleep(Duration::from_micros(rng.below(20_000)));
        child.kill();
        while let Some(line) = child.next_line() {
            self.hear(&line);
        }
    }
}

#[test]
fn writers_are_killed_and_nothing_acknowledged_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger {
        path: folder.path().join("killed.annals"),
        said: Mutex::default(),
        ended: AtomicBool::new(false),
    };
    let seed = effort(1, u64::from(std::process::id()));
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| ledger.read_all_the_while());
        let stop = StopOnDrop(&ledger.ended);
        let mut before = Seen::default();
        for generation in 0..effort(15, 120) {
            ledger.run_and_kill(generation, &mut rng);
            let said = ledger.said.lock().unwrap().clone();
            if !ledger.path.exists() {
                assert!(said.submitted.is_empty());
                continue;
            }
            // Whatever the next opening cuts off, nobody has ever seen.
            let seen = audit(&Options::new().open_read_only(&ledger.path).unwrap().read());
            said.is_kept_by(&seen);
            said.explains(&seen);
            seen.follows(&before);
            if rng.percent(30) {
                before = recover(&ledger.path, &seen, &mut rng);
            }
        }
        drop(stop);
        assert!(reader.join().unwrap() > 0);
    });
    let database = Database::open(&ledger.path).unwrap();
    let seen = audit(&database.read());
    assert!(seen.of.len() > 3, "they got somewhere: {seen:?}");
    database.close().unwrap();
    assert!(inspect(&Options::new(), &ledger.path).unwrap().is_closed());
}

/// Lets a reader end also if the test fails.
pub(super) struct StopOnDrop<'a>(pub(super) &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Opens here, sees the same, and continues or closes.
fn recover(path: &Path, expected: &Seen, rng: &mut Rng) -> Seen {
    let inspection = inspect(&Options::new(), path).unwrap();
    assert_eq!(inspection.damage, None);
    let refusing = Options::new().recovery(Recovery::Refuse).open(path);
    let database = match refusing {
        Ok(database) => database,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::NeedsRecovery, "{error}");
            let database = Database::open(path).unwrap();
            assert!(database.recovered().cut.is_some(), "{:?}", database.recovered());
            database
        }
    };
    let seen = audit(&database.read());
    assert_eq!(&seen, expected, "opening shows what reading showed");
    if rng.percent(50) {
        database.close().unwrap();
    }
    seen
}
