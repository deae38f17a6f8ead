//! Runs the benchmarks at sizes that say nothing, to see that they measure what
//! they should: every engine keeps its promises in them, or the run fails.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod costs;

use std::path::Path;
use std::process::{Command, Output};

const ENGINES: [&str; 6] = ["Annals", "Annals, full replay", "SQLite WAL", "LMDB", "redb", "fjall"];

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_annals-bench"));
    // Nobody steps through what is built here.
    command.env("CARGO_PROFILE_DEV_DEBUG", "0").args(arguments).output().unwrap()
}

/// Runs a benchmark, and returns the figures that it printed.
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
    let few = ["--rows", "300", "--appended", "150", "--updated", "150", "--turns", "2"];
    let figures = figures(&[&["open"], &few[..]].concat());
    for engine in ENGINES {
        let workloads = workloads_of(&figures, engine);
        let kinds =
            [("after a clean close", 2), ("killed, rows appended", 3), ("killed, rows updated", 2)];
        for (begin, expected) in kinds {
            let count = workloads.iter().filter(|workload| workload.starts_with(begin)).count();
            assert_eq!(count, expected, "{engine}: {begin}: {workloads:?}");
        }
        let idle = workloads.iter().filter(|workload| workload.starts_with("killed when idle"));
        assert_eq!(idle.count(), 2, "{engine}: {workloads:?}");
        let tails = workloads.iter().filter(|workload| workload.starts_with("tail "));
        let expected = if engine.starts_with("Annals") { 4 } else { 0 };
        assert_eq!(tails.count(), expected, "{engine}: {workloads:?}");
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
    for engine in ["Annals", "SQLite wal_checkpoint(FULL)"] {
        assert!(workloads_of(&costs, engine).contains(&"checkpoint"), "{engine}");
    }
    let sizes = figures(&["size"]);
    let annals = sizes.iter().filter(|figure| figure["engine"] == "Annals");
    let largest = annals.map(|figure| figure["value"].as_f64().unwrap()).fold(0.0, f64::max);
    assert!(largest > 0.0 && largest <= 65_536.0, "100 rows take {largest} bytes");
}

/// Returns the one value of an engine's workload in a unit.
fn value(figures: &[serde_json::Value], engine: &str, (workload, unit): (&str, &str)) -> f64 {
    let is_it = |figure: &&serde_json::Value| {
        figure["engine"] == engine && figure["workload"] == workload && figure["unit"] == unit
    };
    let found: Vec<_> = figures.iter().filter(is_it).collect();
    assert_eq!(found.len(), 1, "{engine}: {workload}: {unit}: {figures:#?}");
    found[0]["value"].as_f64().unwrap()
}

#[test]
#[cfg(unix)]
fn backfills_write_what_was_dirtied() {
    let figures = figures(&["backfill", "--mib", "8", "--turns", "2"]);
    let written = |case| value(&figures, "Annals", (case, "MiB written"));
    let new = written("a new image");
    assert!((7.0..10.0).contains(&new), "{new}");
    let half = written("every second page, into fragmented space");
    let all = written("every page again");
    assert!(all < new && half < all * 0.7 && half > all * 0.3, "{half} of {all}");
    for engine in ["Annals", "1 MiB writes in a row", "a sorted loop of pwrite"] {
        assert!(value(&figures, engine, ("every page again", "MiB/s")) > 0.0);
    }
}

#[test]
#[cfg(unix)]
fn commits_go_on_during_a_backfill() {
    let figures =
        figures(&["backfill-during", "--mib", "64", "--milliseconds", "40", "--turns", "2"]);
    for level in ["durable", "soft"] {
        for who in ["without a backfill", "during a backfill"] {
            let at =
                |quantile| value(&figures, who, (&*format!("{level} commit, {quantile}"), "us"));
            assert!(at("median") > 0.0 && at("median") <= at("p99"), "{level}, {who}");
            assert!(at("p99") <= at("p99.9") && at("p99.9") <= at("longest"), "{level}, {who}");
        }
    }
}

#[test]
fn every_byte_to_the_image_is_counted() {
    let arguments = ["amplification", "--rows", "400000", "--updated", "10000"];
    let figures = figures(&arguments);
    let of = |phase, unit| value(&figures, "Annals", (phase, unit));
    let phases = ["rows loaded, by 1,000", "random updates, by 1,000"];
    let [load, update] = phases.map(|phase| of(phase, "MiB to the image"));
    let all = of("in all, closed", "MiB to the image");
    // Closing brings in what the background didn't: 24 bytes a row and more, the index besides.
    assert!(all > 9.0 && load + update <= all, "{load} + {update}, {all}");
    assert!(of("in all, closed", "backfills") >= 1.0);
    assert!(of("in all, closed", "MiB of journal") > 4.0);
}

#[test]
fn wide_rows_are_the_same_in_every_engine() {
    let sizes = ["--rows", "300", "--updates", "100", "--turns", "2"];
    let figures = figures(&[&["wide"], &sizes[..]].concat());
    for (engine, soft) in [("Annals", 3), ("SQLite WAL", 3), ("LMDB", 3), ("redb", 0), ("fjall", 3)]
    {
        let workloads = workloads_of(&figures, engine);
        let commits = figures
            .iter()
            .filter(|figure| figure["engine"] == engine && figure["unit"] == "us/commit");
        assert_eq!(commits.count(), soft, "{engine}: {workloads:?}");
        let rest = workloads.iter().filter(|workload| !workload.contains("soft commits"));
        assert_eq!(rest.count(), 6, "{engine}: {workloads:?}");
    }
}

#[test]
fn a_unique_index_is_measured_beside_a_map() {
    let figures = figures(&["unique", "--rows", "300", "--turns", "2"]);
    for engine in ["BTreeMap<String, u64>", "Annals", "SQLite WAL", "LMDB", "redb", "fjall"] {
        assert_eq!(workloads_of(&figures, engine).len(), 3, "{engine}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn readers_and_a_writer_go_on_beside_each_other() {
    let short = ["--rows", "3000", "--milliseconds", "400", "--readers", "2", "--turns", "1"];
    let figures = figures(&[&["mixed"], &short[..]].concat());
    for who in ["readers", "writer"] {
        assert!(value(&figures, who, ("beside the other, of alone", "ratio")) > 0.0, "{who}");
    }
    assert!(value(&figures, "both", ("soft commits", "a second of the writer")) > 0.0);
}

#[test]
fn a_program_with_a_schema_is_built_and_run() {
    let small = ["--tables", "3", "--profiles", "debug", "--turns", "1"];
    // The library's own tests build the library there, with the same options.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
    let target = ["--target", target.to_str().unwrap()];
    let figures = figures(&[&["compile"], &small[..], &target].concat());
    let lines = value(&figures, "Annals", ("generated code, without comments", "lines"));
    assert!((500.0..3000.0).contains(&lines), "{lines}");
}

/// True if the database in a folder is found to have this value in row 7.
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

/// The engines of the table, unless more are compiled in.
const PEERS: [&str; 7] =
    ["Annals", "SQLite WAL", "SQLite rollback", "LMDB", "redb", "redb 2PC", "fjall"];

#[test]
fn every_workload_gives_the_same_with_every_engine() {
    // A run fails unless all engines find the same sum.
    let figures = figures(&["--rows", "3000", "--turns", "1"]);
    let no_soft = ["SQLite rollback", "redb", "redb 2PC"];
    let workloads: [(&str, &[&str]); 12] = [
        ("bulk", &[]),
        ("vectors", &PEERS[1..]),
        ("soft", &no_soft),
        ("durable", &[]),
        ("threads-4", &[]),
        ("threads-16", &[]),
        ("update", &[]),
        ("update-soft", &no_soft),
        ("read", &[]),
        ("scan", &[]),
        ("replay", &PEERS),
        ("ordered", &[]),
    ];
    for (workload, absent) in workloads {
        for engine in PEERS {
            let times = figures.iter().filter(|figure| {
                let is_own = figure["workload"] == workload && figure["engine"] == engine;
                is_own && figure["measure"] == "time" && figure["value"].as_f64().unwrap() > 0.0
            });
            assert_eq!(
                times.count(),
                usize::from(!absent.contains(&engine)),
                "{workload}: {engine}"
            );
        }
        let reached = figures.iter().filter(|line| line["workload"] == workload);
        let targets: Vec<_> = reached.filter(|line| line["target"].is_string()).collect();
        assert!(!targets.is_empty(), "{workload}");
        assert!(targets.iter().all(|line| line["met"].is_boolean()), "{targets:#?}");
    }
}

#[test]
fn only_what_is_asked_for_is_run() {
    let few = ["--only", "durable", "--engines", "annals,sqlite", "--rows", "1000"];
    let figures = figures(&[&few[..], &["--turns", "2"]].concat());
    let own = |engine: &str| figures.iter().any(|figure| figure["engine"] == engine);
    assert!(own("Annals") && own("SQLite WAL") && own("write into zeroed space, flush"));
    assert!(!own("LMDB"));
    assert!(figures.iter().all(|figure| figure["workload"] == "durable"));
    // Who isn't there can't be compared with.
    assert!(figures.iter().all(|figure| figure["target"].is_null() || !figure["met"].is_null()));
    let percentile = |engine| {
        figures
            .iter()
            .any(|figure| figure["engine"] == engine && figure["measure"] == "99th percentile")
    };
    assert!(percentile("Annals") && percentile("SQLite WAL"));
}

#[test]
fn the_tables_have_every_workload() {
    let arguments = ["--table", "--rows", "1000", "--turns", "1", "--only", "vectors,replay"];
    let output = run(&[&arguments[..], &["--engines", "annals,replay"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("| vectors | at most 25 ns of CPU a row |"), "{text}");
    assert!(text.contains("Openings without an image"), "{text}");
    assert!(text.contains("| Annals, full replay |"), "{text}");
}

const PAST: [&str; 4] = ["--loaded", "300", "--changes", "500"];

#[test]
fn the_past_is_measured_beside_a_history_by_triggers() {
    let few = ["--durable", "100", "--engines", "annals,sqlite", "--turns", "1"];
    let figures = figures(&[&["past"], &PAST[..], &few].concat());
    for (engine, sizes) in [("Annals", 2), ("SQLite + triggers", 1)] {
        // Two kinds of commits, sizes, an opening; eight questions and undoing, each cold and warm.
        assert_eq!(workloads_of(&figures, engine).len(), 4 + sizes + 1 + 9 * 2, "{engine}");
        assert!(value(&figures, engine, ("undoing a transaction, not waiting", "us, warm")) > 0.0);
    }
}

#[test]
fn a_peer_that_is_not_built_is_named_with_its_build() {
    let few = ["--ask", "row", "--engines", "doltlite", "--doltlite", "/none", "--turns", "1"];
    let failed = run(&[&["past"], &PAST[..], &few].concat());
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(!failed.status.success() && said.contains("--manifest-path bench/doltlite"), "{said}");
}

#[test]
fn a_wrong_answer_about_the_past_fails_the_run() {
    for engine in ["annals", "sqlite"] {
        let folder = tempfile::tempdir().unwrap();
        let step = |arguments: [&str; 4]| {
            let [deed, rows, changes, what] = arguments;
            let folder = folder.path().to_str().unwrap();
            run(&["past-step", engine, deed, folder, rows, changes, what]).status.success()
        };
        assert!(step(["write", "300", "500", "indexed"]), "{engine}");
        for question in ["hot", "short", "row", "index", "sum", "difference", "differences"] {
            assert!(step(["ask", "300", "500", question]), "{engine}: {question}");
            // The model has another work then.
            assert!(!step(["ask", "300", "400", question]), "{engine}: {question}");
        }
        assert!(step(["undo", "300", "500", "0"]) && !step(["undo", "300", "400", "1"]));
    }
}
