//! What differs from joedb: times at the end of a transaction, names, defaults, vectors of no rows and over rows that
//! aren't there, rows of zeros at ids that were used, and its scripts. The files are joedb's own.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::joedb::data;
use crate::program::{run, succeed};

/// Imports a file of joedb's; returns what was said on standard error.
fn import(dir: &Path, name: &str, options: &[&str]) -> (bool, String) {
    let file = data().join("more").join(format!("{name}.joedb"));
    let _ = fs::remove_file(dir.join("a.annals"));
    let command = [&["import", "joedb"], options, &[file.to_str().unwrap(), "a.annals"]].concat();
    let output = run(dir, &command, b"");
    (output.status.success(), String::from_utf8(output.stderr).unwrap())
}

fn json(dir: &Path, arguments: &[&str]) -> Value {
    let output = succeed(dir, &[&["dump", "a.annals", "--format", "json"], arguments].concat(), "");
    serde_json::from_str(&output).unwrap()
}

#[test]
fn rows_are_there_from_the_timestamp_on_that_ends_their_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    assert_eq!(import(dir, "times", &[]), (true, String::new()));
    let times = [1_795_361_086_i64, 1_795_361_088, 1_795_361_090];
    let log = succeed(dir, &["log", "a.annals"], "");
    for (place, seconds) in times.into_iter().enumerate() {
        let time = annals::Timestamp::from_seconds(seconds);
        assert!(log.contains(&format!("timestamp {seconds}\ncommit soft at {time}\n")), "{log}");
        let rows = |at: String| json(dir, &["--at", &format!("time:{at}")])["t"].clone();
        assert_eq!(rows(time.to_string()).as_array().unwrap().len(), place + 1);
        if place > 0 {
            let before = annals::Timestamp::from_seconds(seconds - 1).to_string();
            assert_eq!(rows(before).as_array().unwrap().len(), place);
        }
    }
    assert_eq!(log.matches("commit ").count(), 3);
    // It goes back to the same entries, and times that are written come back as the same.
    for times in [&["--force"][..], &["--force", "--times"]] {
        let export = [&["export", "joedb"], times, &["a.annals", "b.joedb"]].concat();
        succeed(dir, &export, "");
        let theirs = fs::read(data().join("more/times.joedb")).unwrap();
        assert_eq!(fs::read(dir.join("b.joedb")).unwrap()[41..], theirs[41..]);
    }
}

#[test]
fn the_marks_that_end_a_transaction_stay_together() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let script = "create_table t\ninsert_into t 0\ncomment \"a\"\nvalid_data\ntimestamp 100\ninsert_into t 1\n\
                  comment \"b\"\ninsert_into t 2\ntimestamp 200\nvalid_data\ninsert_into t 3\n";
    succeed(dir, &["shell", "a.annals"], script);
    succeed(dir, &["export", "joedb", "a.annals", "a.joedb"], "");
    succeed(dir, &["import", "joedb", "a.joedb", "b.annals"], "");
    let log = succeed(dir, &["log", "b.annals"], "");
    let is_end = |line: &&str| line.starts_with("commit ");
    let commits: Vec<&str> = log.lines().filter(is_end).collect();
    let at = |seconds| format!("commit soft at {}", annals::Timestamp::from_seconds(seconds));
    // A comment's transaction has the time of the next timestamp; after the last one only the import's is sure.
    assert_eq!(commits[..3], [at(100), at(200), at(200)]);
    assert_eq!(commits.len(), 5);
    assert!(commits[3..].iter().all(|line| *line > "commit soft at 2020"), "{commits:?}");
    assert!(log.contains("comment \"a\"\nvalid_data\ntimestamp 100\ncommit"), "{log}");
}

#[test]
fn names_that_no_joedb_tool_opens_become_others() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let script = "create_table a__b\nadd_field a__b c__d int32\nadd_field a__b c_d int32\ncreate_table a_b\n\
                  rename_table a__b e\nrename_field e c__d f__g\ninsert e 1 2\n";
    succeed(dir, &["shell", "a.annals"], script);
    let strict = run(dir, &["export", "joedb", "--strict", "a.annals", "a.joedb"], b"");
    let said = String::from_utf8(strict.stderr).unwrap();
    assert!(said.contains("table a__b has __ in its name"), "{said}");
    let told = run(dir, &["export", "joedb", "a.annals", "a.joedb"], b"");
    let said = String::from_utf8(told.stderr).unwrap();
    assert!(said.contains("note: table a__b: joedb takes no name with __"), "{said}");
    let bytes = fs::read(dir.join("a.joedb")).unwrap();
    assert!(!bytes.windows(2).any(|pair| pair == b"__"), "{bytes:?}");
    succeed(dir, &["import", "joedb", "a.joedb", "b.annals"], "");
    let log = succeed(dir, &["log", "b.annals"], "");
    let schema = "create_table a_b\nadd_field a_b c_d int32\nadd_field a_b c_d_2 int32\n\
                  create_table a_b_2\nrename_table a_b e\nrename_field e c_d f_g\n";
    assert!(log.starts_with(schema), "{log}");
}

#[test]
fn a_program_takes_the_file_of_a_schema_with_values() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    assert_eq!(import(dir, "settings", &[]), (true, String::new()));
    let schema = "create_table settings\ninsert_into settings 0\nadd_field settings dark_mode boolean = true\n\
                  add_field settings host string = \"www.kayufu.com\"\nadd_field settings user string = \"joe\"\n";
    fs::write(dir.join("settings.joedbi"), schema).unwrap();
    let compared = run(dir, &["schema", "diff", "a.annals", "settings.joedbi"], b"");
    assert_eq!(compared.status.code(), Some(0), "{compared:?}");
    // Another type, or a default that the file has and the program hasn't, is another schema.
    for (from, to) in [("= true", ""), ("user string", "user blob")] {
        let other = schema.replace(from, to).replace("blob = \"joe\"", "blob");
        fs::write(dir.join("other.joedbi"), &other).unwrap();
        let compared = run(dir, &["schema", "diff", "a.annals", "other.joedbi"], b"");
        assert_eq!(compared.status.code(), Some(if to.is_empty() { 0 } else { 4 }), "{other}");
    }
}

#[test]
fn vectors_of_no_rows_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let (done, said) = import(dir.path(), "empty_vectors", &[]);
    assert!(done && said.contains("1 vector of no rows left out"), "{said}");
}

#[test]
fn values_for_rows_that_are_not_there_are_left_out_if_something_may_be_lost() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (done, said) = import(dir, "hole", &[]);
    assert!(!done && said.contains("--lossy leaves out what is for such rows"), "{said}");
    let (done, said) = import(dir, "hole", &["--lossy"]);
    assert!(done && said.contains("1 value of vectors left out"), "{said}");
    let theirs: Value =
        serde_json::from_str(&fs::read_to_string(data().join("more/hole.json")).unwrap()).unwrap();
    let ours = json(dir, &[]);
    let values: Value = [0, 1].iter().map(|&row: &usize| ours["t"][row]["i"].clone()).collect();
    assert_eq!(values, theirs["t"]["i"]);
}

/// joedb's interpreter and its pack tool show there what the deleted rows had.
#[test]
fn zeros_are_written_where_an_id_was_used_before() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let script = "create_table t\nadd_field t a int32\nadd_field t s string\ninsert t 1 \"x\"\ninsert t 2 \"y\"\n\
                  delete_vector t 0 2\ninsert_into t 0\nupdate t 0 a 7\ndelete_from t 0\ninsert_vector t 0 3\n\
                  update_vector t 0 a 2 8 9\n";
    succeed(dir, &["shell", "a.annals"], script);
    let export = |options: &[&str], from: &str, to: &str| {
        let output = run(dir, &[&["export", "joedb"], options, &[from, to]].concat(), b"");
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(export(&[], "a.annals", "a.joedb"), "");
    succeed(dir, &["import", "joedb", "a.joedb", "b.annals"], "");
    let log = succeed(dir, &["log", "b.annals"], "");
    assert!(
        log.contains("insert_into t 0\nupdate t 0 a 7\nupdate t 0 s \"\"\ndelete_from t 0\n"),
        "{log}"
    );
    assert!(
        log.contains(
            "insert_vector t 0 3\nupdate_vector t 0 a 2 8 9\nupdate_vector t 0 s 2 \"\" \"\"\n"
        ),
        "{log}"
    );
    // Once is enough.
    assert_eq!(export(&[], "b.annals", "b.joedb"), "");
    assert_eq!(fs::read(dir.join("a.joedb")).unwrap(), fs::read(dir.join("b.joedb")).unwrap());
    let said = export(&["--same-bytes"], "a.annals", "c.joedb");
    assert!(said.contains("3 rows of zeros at ids that were used before"), "{said}");
}

#[test]
fn scripts_of_joedbs_interpreter_run() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let script = "echo off\nprompt on\ncreate_table person\nadd_field person name string\nadd_field person n int8\n\
                  add_field person photo blob\ninsert_into person 1 \"R\\?mi\" 5 0,0\ncheckpoint\n\
                  timestamp 1795361086 2026-11-22 15:24:46 GMT\nflush\nquit\n";
    succeed(dir, &["shell", "a.annals"], script);
    assert_eq!(
        json(dir, &[])["person"][0],
        serde_json::json!({"id": 1, "name": "R?mi", "n": 5, "photo": null})
    );
    let log = succeed(dir, &["log", "a.annals"], "");
    assert!(log.ends_with(&log[log.find("timestamp 1795361086\ncommit").unwrap()..]), "{log}");

    let refused = |line: &str| {
        let output = run(dir, &["shell", "a.annals"], format!("{line}\n").as_bytes());
        assert_eq!(output.status.code(), Some(1), "{line}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused("update person 1 photo 55,5").contains("a place in a joedb file"));
    assert!(
        refused("timestamp 1795361086 2026-11-22 15:24:47 GMT").contains("expected `timestamp")
    );
    assert!(refused("insert_into person 2 \"Ada\"").contains("expected `insert_into T ID`"));
    assert!(
        refused("delete_from person 1\nabort\ninsert_into person 3").contains("line 2: aborted")
    );
    assert_eq!(json(dir, &[])["person"].as_array().unwrap().len(), 1);
}

/// What joedb_logdump prints is a script, but for the places of blobs.
#[test]
fn joedbs_logs_run() {
    for name in ["library", "random7", "evolution", "types", "vectors", "sparse"] {
        let dir = tempfile::tempdir().unwrap();
        let log = fs::read_to_string(data().join(format!("{name}.logdump"))).unwrap();
        succeed(dir.path(), &["shell", "a.annals"], &log);
    }
}
