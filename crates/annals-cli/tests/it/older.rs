//! Files that an older program wrote open, answer and verify as they did then, and go on.
//!
//! `older/make.sh` says how the program of a0300d08 made the folder `files`, and `answers.txt` of `questions.txt`. That
//! program didn't verify the history index: the lines of `check` about it were added.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::program::{run, succeed};
use crate::served::Served;

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/older"))
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let copied = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &copied);
        } else {
            fs::copy(entry.path(), copied).unwrap();
        }
    }
}

/// Splits a command into its words, which may stand in double quotes.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate();
    let words = parts.flat_map(|(number, part)| match number % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

/// Returns what the program answers to each question, as a transcript.
fn answers(dir: &Path) -> String {
    let mut answers = String::new();
    for line in fs::read_to_string(folder().join("questions.txt")).unwrap().lines() {
        let here = dir.display().to_string();
        let words: Vec<_> = words(line).iter().map(|word| word.replace("$PWD", &here)).collect();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let output = run(dir, &words, b"");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).unwrap().replace(&here, "$PWD");
        write!(answers, "$ {line}\n{said}").unwrap();
        match output.status.code() {
            Some(0) => {}
            status => writeln!(answers, "[status {}]", status.unwrap()).unwrap(),
        }
    }
    answers
}

#[test]
fn older_files_open_answer_and_verify_alike() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path();
    copy(&folder().join("files"), dir);
    let expected = fs::read_to_string(folder().join("answers.txt")).unwrap();
    let answers = answers(dir);
    let differing = expected.lines().zip(answers.lines()).position(|(then, now)| then != now);
    if let Some(line) = differing {
        let of = |text: &str| text.lines().nth(line).unwrap().to_owned();
        panic!("line {}\nthen: {}\nnow:  {}", line + 1, of(&expected), of(&answers));
    }
    assert_eq!(expected.lines().count(), answers.lines().count());
}

#[test]
fn older_files_go_on() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path();
    copy(&folder().join("files"), dir);
    for name in ["all", "forgotten"] {
        let file = format!("{name}.annals");
        let before = succeed(dir, &["history", &file, "person", "0"], "");
        succeed(dir, &["shell", &file], "update person 0 height 2.5\ncommit\n");
        assert!(succeed(dir, &["dump", &file], "").contains("2.5"));
        let after = succeed(dir, &["history", &file, "person", "0"], "");
        assert!(after.len() > before.len() && after.contains("2.5"), "{after}");
        succeed(dir, &["backfill", &file, "--mode", "restart"], "");
        succeed(dir, &["erase", &file, "person", "1", "--yes"], "");
        succeed(dir, &["check", &file], "");
    }
    let archive = format!("file://{}/archive", dir.display());
    succeed(dir, &["restore", &archive, "restored.annals"], "");
    succeed(dir, &["shell", "killed.annals"], "insert t 4\ncommit\n");
    succeed(dir, &["check", "killed.annals"], "");

    let served = Served::of(dir, "server.annals", &["--listen", "127.0.0.1:0", "--no-token"]);
    let pushed = succeed(dir, &["push", "replica.annals", &served.url], "");
    assert!(pushed.contains('2'), "{pushed}");
    served.end();
    let dump = succeed(dir, &["dump", "server.annals"], "");
    assert!(dump.contains("two") && dump.contains("changed"), "{dump}");
}
