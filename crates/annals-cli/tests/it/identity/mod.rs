//! What `log` and `dump` print makes the same file again, for random histories.

mod generator;
mod rows;
mod values;

use std::path::Path;

use self::generator::Generator;
use crate::program::succeed;

/// Returns a random script for the shell, which is right.
pub(crate) fn script(seed: u64) -> String {
    Generator::new(seed).script()
}

#[test]
fn log_and_dump_make_the_same_file_again() {
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    for seed in 0..if full { 2000 } else { 60 } {
        let script = script(seed);
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("script"), &script).unwrap();
        // A panic that passes through leaves the files there, to look at.
        let dir = dir.keep();
        println!("seed {seed} in {}", dir.display());
        check(&dir, &script);
        std::fs::remove_dir_all(dir).unwrap();
    }
}

fn check(dir: &Path, script: &str) {
    let told = succeed(dir, &["shell", "first.annals"], script);
    let log = succeed(dir, &["log", "first.annals"], "");
    let dump = succeed(dir, &["dump", "first.annals"], "");
    let json = succeed(dir, &["dump", "first.annals", "--format", "json"], "");
    let lines = succeed(dir, &["log", "first.annals", "--format", "json"], "");

    let told_again = succeed(dir, &["shell", "second.annals"], &log);
    assert_eq!(succeed(dir, &["log", "second.annals"], ""), log);
    assert_eq!(succeed(dir, &["dump", "second.annals"], ""), dump);
    assert_eq!(succeed(dir, &["dump", "second.annals", "--format", "json"], ""), json);
    // A commit of nothing is told, but is no part of the history.
    let commits = |text: &str| -> Vec<_> { text.lines().filter_map(commit).collect() };
    let mut told = commits(&told);
    told.dedup_by_key(|(txid, _)| txid.clone());
    told.retain(|(txid, _)| txid != "txid=0");
    assert_eq!(commits(&told_again), told);

    succeed(dir, &["shell", "third.annals"], &dump);
    assert_eq!(succeed(dir, &["dump", "third.annals"], ""), dump);
    let third = succeed(dir, &["dump", "third.annals", "--format", "json"], "");
    assert_eq!(with_blobs_in_order(&third), with_blobs_in_order(&json));

    in_pieces(dir, &log, lines.lines().count());
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    crate::sql::holds_the_same(dir, "first.annals", &dump);
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    crate::sql::history_gives_the_same(dir, "first.annals");
    let _: serde_json::Value = serde_json::from_str(&json).unwrap();
    let events = lines.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["events"].as_array().unwrap().len()
    });
    let commits = lines.lines().count();
    assert_eq!(events.sum::<usize>() + commits, log.lines().count());
    for file in ["first.annals", "second.annals", "third.annals"] {
        assert!(succeed(dir, &["check", file], "").starts_with("ok: "), "{file}");
    }
}

/// Checks that what is printed up to a moment, and from there, is the whole.
fn in_pieces(dir: &Path, log: &str, transactions: usize) {
    let border = |part: usize| format!("txid:{}", transactions * part / 3);
    let piece = |options: &[&str]| succeed(dir, &[&["log", "first.annals"], options].concat(), "");
    let (one, two) = (border(1), border(2));
    let pieces = piece(&["--to", &one]) + &piece(&["--from", &one, "--to", &two]);
    assert_eq!(pieces + &piece(&["--from", &two]), log);
}

/// Returns txid and level of a line that tells of a commit; others name a blob that was written.
fn commit(line: &str) -> Option<(String, String)> {
    let words: Vec<&str> = line.split(' ').collect();
    if let [name] = words[..] {
        assert!(name.starts_with("blob:"), "{line:?}");
        return None;
    }
    let ["committed", txid, position, level] = words[..] else { panic!("{line:?}") };
    assert!(position.starts_with("position="), "{line:?}");
    Some((txid.to_owned(), level.to_owned()))
}

/// Numbers blobs in the order in which they are there, as a dump does, which leaves out those that
/// no row names.
fn with_blobs_in_order(json: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut parts = json.split("\"blob:");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('"').unwrap();
        let known = names.iter().position(|known| *known == name);
        let place = known.unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        text += &format!("\"blob:{place}\"{rest}");
    }
    text
}
