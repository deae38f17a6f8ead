//! `annals push --follow`: it copies what is committed as it comes, and may be killed at any moment.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use serde_json::Value;

use crate::program::{annals, run, succeed};

/// A push that follows.
struct Follower {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Follower {
    fn start(dir: &Path) -> Self {
        let mut command = annals(dir, &["push", "a.annals", "b.annals", "--follow", "--json"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Waits until a transaction was copied.
    fn wait_for(&mut self, txid: u64) {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it ended before {txid}");
            let told: Value = serde_json::from_str(&line).unwrap();
            if told["txid"].as_u64().unwrap() >= txid {
                return;
            }
        }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Commits a transaction; returns its number.
fn write(dir: &Path, number: u64) -> u64 {
    let script = format!("insert page \"page {number}\"\n");
    let told = succeed(dir, &["shell", "a.annals"], &script);
    told.split("txid=").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_copy_follows_is_killed_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    succeed(dir, &["shell", "a.annals"], "create_table page\nadd_field page title string\n");
    let mut number = 0;
    for round in 0..6_u64 {
        let mut follower = Follower::start(dir);
        for _ in 0..3 {
            number += 1;
            let txid = write(dir, number);
            follower.wait_for(txid);
            let copied = succeed(dir, &["dump", "b.annals", "--format", "json"], "");
            assert!(copied.contains(&format!("page {number}\"")), "{copied}");
        }
        if round == 2 {
            succeed(dir, &["backfill", "a.annals", "--mode", "restart"], "");
        }
        if round == 4 {
            // It reads the old file to its end, though that is removed at once.
            number += 1;
            write(dir, number);
            succeed(dir, &["backfill", "a.annals", "--mode", "truncate", "--forget-history"], "");
            number += 1;
            let txid = write(dir, number);
            follower.wait_for(txid);
        }
        // Without waiting for it.
        number += 1;
        write(dir, number);
        follower.kill();
    }
    let pushed = run(dir, &["push", "a.annals", "b.annals"], b"");
    assert!(pushed.status.success(), "{pushed:?}");
    let [a, b] = ["a.annals", "b.annals"].map(|file| succeed(dir, &["dump", file], ""));
    assert_eq!(a, b);
    succeed(dir, &["check", "b.annals"], "");
    // The copy kept what the original forgot.
    let log = succeed(dir, &["log", "b.annals"], "");
    assert!(log.contains("page 1\""), "{log}");
}
