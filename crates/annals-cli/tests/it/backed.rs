//! `annals serve --backup`: killed at any moment, all that it acknowledged is in the backup.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::program::{run, succeed};
use crate::served::{Served, create};

fn titles(dir: &Path, database: &str) -> BTreeSet<String> {
    let dump = succeed(dir, &["dump", database, "--format", "json"], "");
    let dump: serde_json::Value = serde_json::from_str(&dump).unwrap();
    let rows = dump["page"].as_array().unwrap().iter();
    rows.map(|row| row["title"].as_str().unwrap().to_owned()).collect()
}

/// Writes through a server until it is killed; returns what was acknowledged.
fn write_and_kill(dir: &Path, served: &mut Served, round: u64) -> Vec<String> {
    let script: String =
        (0..400).map(|n| format!("insert page \"{round} {n}\"\ncommit\n")).collect();
    let (url, replica) = (served.url.clone(), format!("replica-{round}.annals"));
    let printed = std::thread::scope(|scope| {
        let writing = scope.spawn(move || {
            // It can't ask any more, and gives up at once.
            let script = script.as_bytes();
            let mut writing =
                crate::program::annals(dir, &["shell", &replica, "--replica-of", &url]);
            let writing = writing
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::null());
            let mut writing = writing.spawn().unwrap();
            let mut input = writing.stdin.take().unwrap();
            let _ = std::io::Write::write_all(&mut input, script);
            drop(input);
            std::thread::sleep(Duration::from_millis(700));
            writing.kill().unwrap();
            writing.wait_with_output().unwrap().stdout
        });
        std::thread::sleep(Duration::from_millis(350 + 29 * (round % 7)));
        served.kill();
        writing.join().unwrap()
    });
    let printed = String::from_utf8(printed).unwrap();
    let count = printed.lines().filter(|line| line.starts_with("committed ")).count();
    (0..count).map(|n| format!("{round} {n}")).collect()
}

#[test]
fn all_that_was_acknowledged_is_in_the_backup_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    let rounds = if full { 100 } else { 4 };
    let options = ["--no-token", "--backup", "copy.annals"];
    let mut acknowledged = Vec::new();
    for round in 0..rounds {
        let mut served = Served::start(dir, "127.0.0.1:0", &options);
        acknowledged.extend(write_and_kill(dir, &mut served, round));
        let there = titles(dir, "copy.annals");
        for title in &acknowledged {
            assert!(there.contains(title), "{title} was acknowledged, and isn't in the backup");
        }
        let here = titles(dir, "a.annals");
        assert!(there.is_subset(&here), "the backup is ahead");
    }
    assert!(acknowledged.len() > 4, "{acknowledged:?}");
    // After the next start both are the same again, whatever was on its way.
    Served::start(dir, "127.0.0.1:0", &options).end();
    let log = |file: &str| succeed(dir, &["log", file], "");
    assert_eq!(log("copy.annals"), log("a.annals"));
    assert!(succeed(dir, &["check", "copy.annals", "--replay"], "").starts_with("ok"));
}

#[test]
fn a_backup_on_another_server_takes_over() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    succeed(dir, &["backup", "a.annals", "copy.annals"], "");
    let token = succeed(dir, &["token", "add", "copy.annals", "--role", "admin"], "");
    let copy = Served::of(dir, "copy.annals", &["--listen", "127.0.0.1:0"]);
    let options = ["--no-token", "--backup", &copy.url, "--token", token.trim()];
    let mut served = Served::start(dir, "127.0.0.1:0", &options);
    let written = ["shell", "replica.annals", "--replica-of", &served.url];
    assert_eq!(succeed(dir, &written, "insert page one\n"), "committed txid=2 runs=1\n");
    served.kill();
    // The machine is gone: the other server goes on.
    let written = ["shell", "replica.annals", "--replica-of", &copy.url, "--token", token.trim()];
    assert_eq!(succeed(dir, &written, "insert page two\n"), "committed txid=3 runs=1\n");
    copy.end();
    // What comes back sees that it is behind, and takes nothing.
    let copy = Served::of(dir, "copy.annals", &["--listen", "127.0.0.1:0"]);
    let options =
        ["--no-token", "--backup-timeout", "1", "--backup", &copy.url, "--token", token.trim()];
    let served = Served::start(dir, "127.0.0.1:0", &options);
    let written = ["push", "replica.annals", &served.url];
    let refused = run(dir, &written, b"");
    assert!(!refused.status.success(), "it takes nothing");
    let log = std::fs::read_to_string(dir.join("a.annals.log")).unwrap();
    assert!(log.contains("has transactions that this database doesn't have"), "{log}");
    served.end();
    copy.end();
}
