//! What a step of the explorer's slider costs the server: the events since the nearest kept root, and no state.

use annals::event::testing::decoded_events;
use annals_replica::lazy::testing::create;
use annals_server::Server;

use crate::running::Running;

const PERSONS: u64 = 20_000;
/// The values before a transaction are found from the nearest kept root on: up to 220 transactions of three events here. A
/// state from the journal alone would be all events.
const MOST: u64 = 700;

#[test]
fn a_step_decodes_no_whole_history() {
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
        let events = cost(&format!("/log?after={}&limit=1&rows=2000", txid - 1));
        assert!((1..=MOST).contains(&events), "transaction {txid}: {events}");
    }
    // It would count more: this reads all of the history.
    assert!(cost("/log?limit=10000&rows=1") > PERSONS);
}
