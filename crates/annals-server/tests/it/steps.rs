//! What a step of the explorer's slider costs the server: the events of its transaction, and those of the places where its
//! fields were set before. No state is made.

use annals::event::testing::decoded_events;
use annals_replica::lazy::testing::create;
use annals_server::Server;

use crate::running::Running;

const PERSONS: u64 = 20_000;
/// The events of a transaction are three at most here. A row's value before is in a small transaction, or in a block of a bulk
/// load, which is verified and decoded as a whole: 64 rows here.
const MOST: u64 = 140;

#[test]
fn a_step_decodes_what_it_changed() {
    let folder = tempfile::tempdir().unwrap();
    let database = create(&folder.path().join("a.annals"), PERSONS);
    let last = database.read().txid().0;
    let server = Server::new().database("a", database).unwrap().open_to_all();
    // All requests are answered by one thread, which counts.
    let running = Running::with_threads(server, 1);
    let decoded = || {
        let counted = running.runtime.spawn_blocking(decoded_events);
        running.runtime.block_on(counted).unwrap()
    };
    let cost = |path: &str| {
        let before = decoded();
        let answer = reqwest::blocking::get(format!("{}{path}", running.of("a"))).unwrap();
        assert!(answer.status().is_success(), "{path}");
        assert!(answer.text().unwrap().len() > 10, "{path}");
        decoded() - before
    };
    for txid in (last - 300..=last).step_by(7) {
        let events = cost(&format!("/log?after={}&limit=1&rows=2000&fields=changed", txid - 1));
        assert!((1..=MOST).contains(&events), "transaction {txid}: {events}");
    }
    // It would count more: this reads all of the history.
    assert!(cost("/log?limit=10000&rows=1") > PERSONS);
}
