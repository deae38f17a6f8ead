//! Commits of several threads share flushes.

use std::sync::Arc;

use annals_schema::Txid;
use annals_simulated::SimulatedClock;

use crate::storage::MemoryDirectory;
use crate::{Database, Level, Options};

/// Commits from several threads, so few that Miri can also run the test. `tests/it/processes/crowd.rs` tests
/// their visibility with many threads.
#[test]
fn threads_share_flushes() {
    let (directory, clock) = (MemoryDirectory::new(), SimulatedClock::new(1));
    let options = Options::new().background(false);
    let opened = options.open_in(Arc::new(directory), "journal", Arc::new(clock));
    let database = &opened.unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || commit_at_all_levels(database, thread));
        }
    });
    assert_eq!(database.read().txid(), Txid(3 * 4));
}

fn commit_at_all_levels(database: &Database, thread: usize) {
    let mut before = 0;
    for number in 0..4 {
        let mut transaction = database.begin().unwrap();
        transaction.set_level(Level::ALL[(thread + number) % 4]);
        transaction.comment("a commit").unwrap();
        let txid = transaction.commit().unwrap().txid;
        let seen = database.read().txid();
        assert!(txid > Txid(before) && seen >= txid, "{before}, {txid}, {seen}");
        before = seen.0;
    }
}
