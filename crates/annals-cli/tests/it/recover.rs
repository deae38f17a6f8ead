//! `recover` on files of processes that were killed, or that still run.

use std::fs;
use std::path::Path;

use annals::{Database, Level, Options};

use crate::program::{run, succeed};

/// Writes transactions, one durable and two soft ones, and leaves the file open.
fn opened(path: &Path) -> Database {
    let database = Options::new().background(false).open(path).unwrap();
    let comment = |level, text: &str| {
        let write = database.write(|tx| {
            tx.set_level(level);
            tx.comment(text)
        });
        write.unwrap();
    };
    comment(Level::Checksummed, "one");
    comment(Level::Soft, "two");
    comment(Level::Soft, "three");
    database
}

/// Copies the file as it is when the process is killed.
fn killed(dir: &Path, name: &str) {
    let database = opened(&dir.join("open.annals"));
    fs::copy(dir.join("open.annals"), dir.join(name)).unwrap();
    drop(database);
    fs::remove_file(dir.join("open.annals")).unwrap();
}

#[test]
fn each_end_can_be_chosen() {
    for (to, kept) in [("hard", 1), ("soft", 1), ("end", 3)] {
        let dir = tempfile::tempdir().unwrap();
        killed(dir.path(), "a.annals");
        let before = fs::read(dir.path().join("a.annals")).unwrap();
        let arguments = ["recover", "a.annals", "--to", to, "--yes"];
        let output = succeed(dir.path(), &arguments, "");
        if kept < 3 {
            assert!(
                output.contains("2 transactions to be cut, though the frames verify (2 to 3,"),
                "{to}: {output}"
            );
            assert!(output.contains("done: the file is closed properly"), "{to}: {output}");
            let mut files = fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().path());
            let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
            let copy = files.find(|path| name(path).contains(".before-recovery-1-"));
            assert_eq!(fs::read(copy.unwrap()).unwrap(), before, "{to}");
        } else {
            assert!(output.contains("nothing to do"), "{to}: {output}");
        }
        let log = succeed(dir.path(), &["log", "a.annals"], "");
        assert_eq!(log.matches("comment").count(), kept, "{to}: {log}");
    }
}

#[test]
fn a_file_that_another_process_has_open_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let database = opened(&dir.path().join("a.annals"));
    let before = fs::read(dir.path().join("a.annals")).unwrap();
    let output = run(dir.path(), &["recover", "a.annals", "--to", "hard", "--yes"], b"");
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("has it open for writing"), "{error}");
    assert_eq!(fs::read(dir.path().join("a.annals")).unwrap(), before);
    // Reading what it holds takes no lock.
    let info = succeed(dir.path(), &["info", "a.annals"], "");
    let pid = std::process::id();
    assert!(info.contains(&format!("closed: no, opened by process {pid}, which lives")), "{info}");
    let salvaged = succeed(dir.path(), &["recover", "a.annals", "--salvage", "b.annals"], "");
    assert!(salvaged.contains("kept: transactions 1 to 3"), "{salvaged}");
    database.close().unwrap();
}

#[test]
fn nothing_is_done_without_a_yes() {
    let dir = tempfile::tempdir().unwrap();
    killed(dir.path(), "a.annals");
    let before = fs::read(dir.path().join("a.annals")).unwrap();
    let output = run(dir.path(), &["recover", "a.annals", "--to", "hard"], b"yes\n");
    assert_eq!(output.status.code(), Some(1), "a pipe is no terminal");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("nothing was changed") && error.contains("--yes"), "{error}");
    let plan = succeed(dir.path(), &["recover", "a.annals", "--to", "hard", "--dry-run"], "");
    assert!(plan.contains("keep: transaction 1, up to position"), "{plan}");
    assert!(plan.contains("copy: the whole file before that"), "{plan}");
    assert_eq!(fs::read(dir.path().join("a.annals")).unwrap(), before);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing was made");
}

#[test]
fn info_tells_the_same_as_json() {
    let dir = tempfile::tempdir().unwrap();
    killed(dir.path(), "a.annals");
    let json = succeed(dir.path(), &["info", "--json", "a.annals"], "");
    let info: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(info["end"]["txid"], 3);
    assert_eq!(info["closed"], false);
    assert_eq!(info["damage"], serde_json::Value::Null);
    assert_eq!(info["header"]["version"], 1);
    assert_eq!(info["process"], std::process::id());
    let header = succeed(dir.path(), &["info", "--json", "--header", "a.annals"], "");
    let header: serde_json::Value = serde_json::from_str(&header).unwrap();
    assert_eq!(header["slots"], info["slots"]);
    assert_eq!(header["end"], serde_json::Value::Null);
}

#[test]
fn a_large_file_is_no_reason_for_a_bar_where_nobody_looks() {
    let dir = tempfile::tempdir().unwrap();
    killed(dir.path(), "a.annals");
    let output = run(dir.path(), &["check", "a.annals"], b"");
    assert_eq!(output.stderr, b"", "standard error is no terminal");
}

#[cfg(unix)]
#[test]
fn a_plan_names_the_files_that_will_be_there() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("real")).unwrap();
    std::os::unix::fs::symlink("real/a.annals", dir.path().join("link.annals")).unwrap();
    for round in 1..=3 {
        // The same crash again, so that the names are taken from the second round on.
        if round == 1 {
            killed(dir.path(), "real/a.annals");
            fs::copy(dir.path().join("real/a.annals"), dir.path().join("crashed")).unwrap();
        }
        fs::copy(dir.path().join("crashed"), dir.path().join("real/a.annals")).unwrap();
        let recover = |decision| {
            succeed(dir.path(), &["recover", "link.annals", "--to", "hard", decision], "")
        };
        let plan = recover("--dry-run");
        let lines =
            plan.lines().filter(|line| line.starts_with("save") || line.starts_with("copy"));
        let names = lines.map(|line| Path::new(line.rsplit_once(" as ").unwrap().1));
        let names: Vec<&Path> = names.collect();
        assert_eq!(names.len(), 2, "{plan}");
        assert!(names.iter().all(|name| !name.exists()), "{plan}");
        recover("--yes");
        assert!(names.iter().all(|name| name.exists()), "{plan}");
    }
}

#[test]
fn a_saved_tail_can_be_put_back() {
    let dir = tempfile::tempdir().unwrap();
    killed(dir.path(), "a.annals");
    succeed(dir.path(), &["recover", "a.annals", "--to", "hard", "--yes"], "");
    assert_eq!(succeed(dir.path(), &["log", "a.annals"], "").matches("comment").count(), 1);
    let names = fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().path());
    let tail = names.into_iter().find(|path| path.to_str().unwrap().contains(".tail-")).unwrap();
    let mut whole = fs::read(dir.path().join("a.annals")).unwrap();
    whole.extend(fs::read(tail).unwrap());
    fs::write(dir.path().join("b.annals"), whole).unwrap();
    succeed(dir.path(), &["recover", "b.annals", "--to", "end", "--yes"], "");
    assert_eq!(succeed(dir.path(), &["log", "b.annals"], "").matches("comment").count(), 3);
    succeed(dir.path(), &["check", "b.annals"], "");
}

#[test]
fn info_names_tables_and_indexes_as_json() {
    let dir = tempfile::tempdir().unwrap();
    let script =
        "create_table t\nadd_field t x int32\nadd_field t y int32\ncreate_unique_index i t y,x\n";
    succeed(dir.path(), &["shell", "a.annals"], script);
    let info = succeed(dir.path(), &["info", "--json", "a.annals"], "");
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["tables"][0]["name"], "t");
    let index =
        serde_json::json!({"name": "i", "table": "t", "fields": ["y", "x"], "unique": true});
    assert_eq!(info["indexes"], serde_json::json!([index]));
}

/// Starts `recover` at a terminal, answers its question, and returns how it ended.
#[cfg(unix)]
fn answered(dir: &Path, answer: &str) -> (String, bool) {
    let command = crate::program::annals(dir, &["recover", "a.annals", "--to", "hard"]);
    let options = rexpect::session::Options::new().timeout_ms(Some(20_000));
    let mut terminal = rexpect::session::spawn_with_options(command, options).unwrap();
    terminal.exp_string("Do it? [yes, no] ").unwrap();
    terminal.send_line(answer).unwrap();
    let rest = terminal.exp_eof().unwrap();
    let status = format!("{:?}", terminal.process().wait().unwrap());
    (rest, status.ends_with(", 0)"))
}

#[cfg(unix)]
#[test]
fn a_person_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    killed(dir.path(), "a.annals");
    let before = fs::read(dir.path().join("a.annals")).unwrap();
    let (said, done) = answered(dir.path(), "no");
    assert!(said.contains("nothing was changed") && !done, "{said}");
    assert_eq!(fs::read(dir.path().join("a.annals")).unwrap(), before);
    let (said, done) = answered(dir.path(), "yes");
    assert!(said.contains("done: the file is closed properly") && done, "{said}");
    assert_eq!(succeed(dir.path(), &["log", "a.annals"], "").matches("comment").count(), 1);
}
