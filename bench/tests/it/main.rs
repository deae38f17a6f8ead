//! Runs the benchmarks of openings and sizes at sizes that say nothing, to see that they measure what
//! they should: every engine keeps its promises in them, or the run fails.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output};

const ENGINES: [&str; 6] = ["Annals", "Annals, full replay", "SQLite WAL", "LMDB", "redb", "fjall"];

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_annals-bench")).args(arguments).output().unwrap()
}

/// Runs a benchmark, and gives the figures that it printed.
fn figures(arguments: &[&str]) -> Vec<serde_json::Value> {
    let output = run(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn workloads_of<'a>(figures: &'a [serde_json::Value], engine: &str) -> Vec<&'a str> {
    let own = figures.iter().filter(|figure| figure["engine"] == engine);
    own.map(|figure| figure["workload"].as_str().unwrap()).collect()
}

#[test]
fn every_engine_opens_after_a_close_and_after_a_kill() {
    let few = ["--rows", "300", "--appended", "150", "--updated", "150", "--turns", "1"];
    let figures = figures(&[&["open"], &few[..]].concat());
    for engine in ENGINES {
        let workloads = workloads_of(&figures, engine);
        for begin in ["after a clean close", "killed, rows appended", "killed, rows updated"] {
            let count = workloads.iter().filter(|workload| workload.starts_with(begin)).count();
            assert_eq!(count, 2, "{engine}: {begin}: {workloads:?}");
        }
    }
}

#[test]
fn one_row_that_was_updated_often_is_opened() {
    let figures = figures(&["open", "--updates", "30000", "--turns", "1"]);
    for engine in ENGINES {
        assert_eq!(workloads_of(&figures, engine).len(), 2, "{engine}");
    }
}

#[test]
fn checkpoints_and_sizes_are_measured() {
    let costs = figures(&["checkpoint", "--rows", "300", "--changed", "150", "--turns", "1"]);
    assert!(costs.iter().all(|figure| figure["value"].as_f64().unwrap() > 0.0));
    let sizes = figures(&["size"]);
    let annals = sizes.iter().filter(|figure| figure["engine"] == "Annals");
    let largest = annals.map(|figure| figure["value"].as_f64().unwrap()).fold(0.0, f64::max);
    assert!(largest > 0.0 && largest <= 65_536.0, "100 rows take {largest} bytes");
}

/// Tells whether the database in a folder is found to have this value in row 7.
fn opens_with(folder: &Path, engine: &str, value: &str) -> bool {
    let folder = folder.to_str().unwrap();
    run(&["step", engine, folder, "open", "index", "5", "7", value]).status.success()
}

#[test]
fn a_lost_change_fails_the_run() {
    for engine in ["annals", "sqlite", "lmdb", "redb", "fjall"] {
        let folder = tempfile::tempdir().unwrap();
        let filled = run(&["step", engine, folder.path().to_str().unwrap(), "fill", "10"]);
        assert!(filled.status.success());
        assert!(opens_with(folder.path(), engine, "7"), "{engine}");
        assert!(!opens_with(folder.path(), engine, "8"), "{engine}");
    }
}
