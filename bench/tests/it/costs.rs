//! Counts of instructions and tables of growth, at sizes that say nothing.

use std::process::Command;

use super::{figures, run};

#[test]
fn tables_are_measured_as_they_grow() {
    let figures = figures(&["growth", "--rows", "300,20000", "--reads", "100"]);
    for rows in [300, 20_000] {
        let of_size = figures.iter().filter(|figure| figure["rows"] == rows);
        let (all, part): (Vec<_>, Vec<_>) = of_size.partition(|figure| figure["memory"].is_null());
        for (table, compared) in [(all, "`Vec` of rows"), (part, "whole pages of the image")] {
            let is_compared = |figure: &&serde_json::Value| {
                figure["what"].as_str().unwrap().starts_with(compared)
            };
            assert_eq!(table.iter().filter(|figure| is_compared(figure)).count(), 1, "{compared}");
            assert_eq!(table.len(), 13, "{table:#?}");
        }
    }
    assert!(!run(&["growth", "--rows", "0"]).status.success(), "no table");
}

#[test]
fn counting_needs_valgrind_and_says_so() {
    let nothing = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_annals-bench"))
        .args(["instructions", "snapshot"])
        .env("PATH", nothing.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("apt-get install valgrind"), "{said}");
}

#[test]
fn counts_are_compared_with_the_accepted_ones() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return; // there is nothing that could count
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("accepted");
    let count = |more: &[&str]| {
        let arguments = ["instructions", "snapshot", "--accepted", file.to_str().unwrap()];
        run(&[&arguments, more].concat())
    };
    assert!(count(&["--accept"]).status.success(), "nothing was accepted before");
    let again = count(&[]);
    let line: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    let change = line["change in percent"].as_f64().unwrap();
    assert!(again.status.success() && change.abs() < 1.0, "{line}");
    let (accepted, now) = (std::fs::read_to_string(&file).unwrap(), &line["instructions"]);
    let less = format!("{:.1}", now.as_f64().unwrap() / 1.03);
    let better: Vec<_> = accepted.lines().filter(|line| !line.ends_with("snapshot")).collect();
    std::fs::write(&file, format!("{}\n{less} snapshot\n", better.join("\n"))).unwrap();
    let worse = count(&["--table"]);
    let said = String::from_utf8_lossy(&worse.stderr).into_owned();
    assert!(!worse.status.success() && said.contains("snapshot"), "{said}");
    let table = String::from_utf8(worse.stdout).unwrap();
    let shown = table.split("| +").nth(1).and_then(|rest| rest.split([' ', '%']).next());
    let change: f64 = shown.and_then(|shown| shown.parse().ok()).unwrap_or_default();
    assert!(
        (change - 3.0).abs() < 1.0,
        "the table shows it, as far as counts are the same: {table}"
    );
    assert!(count(&["--accept"]).status.success() && count(&[]).status.success());
    let unknown = run(&["instructions", "no such operation"]);
    assert!(!unknown.status.success(), "what isn't there can't be counted");
}
