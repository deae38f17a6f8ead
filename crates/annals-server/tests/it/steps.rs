//! What a step of the explorer's slider costs the server: the events of its transaction, and those of the places where its
//! fields were set before. No state is made.

use std::process::Command;

use annals::event::testing::decoded_by_all;
use annals_replica::lazy::testing::create;
use annals_server::Server;

use crate::running::Running;

const PERSONS: u64 = 20_000;
/// The events of a transaction are three at most here. A row's value before is in a small transaction, or in a block of a bulk
/// load, which is verified and decoded as a whole: 64 rows here.
const MOST: u64 = 140;

/// In this process nothing else is decoded.
const ALONE: &str = "ANNALS_TEST_ALONE";

#[test]
fn a_step_decodes_what_it_changed() {
    if std::env::var_os(ALONE).is_none() {
        let mut alone = Command::new(std::env::current_exe().unwrap());
        alone.args(["steps::a_step_decodes_what_it_changed", "--exact", "--nocapture"]);
        let ended = alone.env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let database = create(&folder.path().join("a.annals"), PERSONS);
    let last = database.read().txid().0;
    let server = Server::new().database("a", database).unwrap().open_to_all();
    let running = Running::start(server);
    let cost = |path: &str| {
        let before = decoded_by_all();
        let answer = reqwest::blocking::get(format!("{}{path}", running.of("a"))).unwrap();
        assert!(answer.status().is_success(), "{path}");
        assert!(answer.text().unwrap().len() > 10, "{path}");
        decoded_by_all() - before
    };
    for txid in (last - 300..=last).step_by(7) {
        let events = cost(&format!("/log?after={}&limit=1&rows=2000&fields=changed", txid - 1));
        assert!((1..=MOST).contains(&events), "transaction {txid}: {events}");
    }
    // It would count more: this reads all of the history.
    assert!(cost("/log?limit=10000&rows=1") > PERSONS);
}
