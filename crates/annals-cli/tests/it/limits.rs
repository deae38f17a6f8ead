//! Limits of the process, closed streams, and locks of others: the program says what is wrong, and ends with a status.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::program::{annals, succeed};

/// Runs a line of the shell in which `annals` is the program.
fn sh(dir: &std::path::Path, line: &str) -> Output {
    let line = format!("annals() {{ '{}' \"$@\"; }}; {line}", env!("CARGO_BIN_EXE_annals"));
    Command::new("bash").arg("-c").arg(line).current_dir(dir).output().unwrap()
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_not_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let row = format!("insert t \"{}\"\ncommit\n", "x".repeat(1500));
    let script = format!("create_table t\nadd_field t s string\n{}", row.repeat(1000));
    succeed(dir, &["shell", "a"], &script);
    std::fs::write(dir.join("more"), row.repeat(100)).unwrap();
    for command in
        ["backup a b", "export json a c", "export csv a d", "pack a e", "recover a --salvage f"]
    {
        let output = sh(dir, &format!("ulimit -f 100; annals {command}"));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command}: {errors}");
        assert!(errors.contains("File too large"), "{command}: {errors}");
    }
    // An image that may not become larger is given up: what is committed is committed.
    std::fs::remove_file(dir.join("a-image")).unwrap();
    let output = sh(dir, "ulimit -f 2000; annals shell a < more; echo status $?");
    let (told, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(told.matches("committed txid=").count(), 100, "{told} {errors}");
    assert!(succeed(dir, &["check", "a"], "").contains("1100 rows"));
}

#[test]
fn what_nobody_gets_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    succeed(dir, &["shell", "a"], "create_table t\ninsert t\n");
    std::fs::write(dir.join("s.schema"), "create_table t\n").unwrap();
    std::fs::write(dir.join("script"), "table t\n").unwrap();
    let commands = [
        "check a",
        "dump a",
        "log a",
        "info a",
        "history a t 0",
        "schema show a",
        "compile s.schema",
        "completions bash",
        "man",
        "--help",
        "--version",
        "shell a < script",
    ];
    for command in commands {
        for to in [">&-", "> /dev/full"] {
            let output = sh(dir, &format!("annals {command} {to}"));
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{command} {to}: {errors}");
        }
        // Who doesn't want to read more needs no error, but a status.
        let output = sh(dir, &format!("annals {command} | true; exit ${{PIPESTATUS[0]}}"));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command}");
        // Whoever wants no output at all gets none, and all is well.
        for to in ["> /dev/null", "1<> /dev/null"] {
            let output = sh(dir, &format!("annals {command} {to}"));
            assert!(output.status.success(), "{command} {to}");
        }
    }
    // What has nothing to say loses nothing.
    let output = sh(dir, "annals export json a a.json >&-");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A pager or `head` that has seen enough is no failure of what shows something; what wasn't done is.
#[test]
fn a_reader_that_leaves_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let rows: String =
        (0..5000).map(|row| format!("insert t \"{row} {}\"\n", "x".repeat(100))).collect();
    succeed(dir, &["shell", "a"], &format!("create_table t\nadd_field t s string\ncommit\n{rows}"));
    succeed(dir, &["shell", "a"], "insert t last\n");
    std::fs::write(dir.join("script"), format!("{}insert t no\n", "table t 10000\n".repeat(5)))
        .unwrap();
    let mut commands = vec![
        ("log a", 0),
        ("log a --format json", 0),
        ("dump a", 0),
        ("dump a --format json", 0),
        ("diff a txid:1 txid:3", 3),
        ("shell a < script", 1),
    ];
    if cfg!(feature = "sqlite") {
        commands.push(("sql a 'SELECT * FROM t'", 0));
    }
    for (command, status) in commands {
        let line = format!("annals {command} | head -n 1 > /dev/null; exit ${{PIPESTATUS[0]}}");
        let output = sh(dir, &line);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*errors), (Some(status), ""), "{command}");
    }
    assert!(!succeed(dir, &["dump", "a"], "").contains("\"no\""));
    // Damage is found however much of it is read.
    let mut bytes = std::fs::read(dir.join("a")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(dir.join("damaged"), bytes).unwrap();
    let output = sh(dir, "annals check damaged 2>&1 | true; exit ${PIPESTATUS[0]}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn waiting_for_others_ends_when_it_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    succeed(dir, &["shell", "a"], "create_table t\nadd_field t x int32\n");
    let mut holder = annals(dir, &["shell", "--shared", "a"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = holder.stdin.take().unwrap();
    // What it shows is shown once it has its turn.
    input.write_all(b"begin\ninsert t 5\ntable t\n").unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(holder.stdout.take().unwrap()));
    assert!(lines.any(|line| line.unwrap().contains("1 row")));
    for command in [
        &["backfill", "--shared", "a", "--timeout", "1"][..],
        &["backfill", "--shared", "a", "--mode", "restart", "--timeout", "1"],
        &["pack", "--shared", "a", "--timeout", "1"],
        &["retain", "--shared", "a", "--transactions", "1", "--timeout", "1"],
        &["shell", "--shared", "a", "--timeout", "1"],
    ] {
        let begun = Instant::now();
        let output = annals(dir, command).stdin(Stdio::null()).output().unwrap();
        let (took, errors) = (begun.elapsed(), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{command:?}: {errors}");
        assert!(errors.contains("wait longer (--timeout"), "{command:?}: {errors}");
        assert!((Duration::from_secs(1)..Duration::from_secs(5)).contains(&took), "{took:?}");
    }
    drop(input);
    assert!(holder.wait().unwrap().success());
}
