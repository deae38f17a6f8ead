//! Plays the chapters: each in a folder of its own, its blocks in order. `UPDATE=1` rewrites what
//! blocks print; lines that agree with what is printed stay as they are.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use annals_guide::{Block, Chapter, chapters, folder};

use crate::output::{agrees, line_agrees};

#[test]
fn blocks_print_what_stands_below_them() {
    let tools = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_guide-annals"), tools.path().join("annals"))
        .unwrap();
    let (failures, chapters) = (Mutex::new(Vec::new()), chapters());
    std::thread::scope(|scope| {
        for chapter in &chapters {
            scope.spawn(|| {
                let found = play(chapter, tools.path());
                failures.lock().unwrap().extend(found);
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "UPDATE=1 rewrites what is printed:\n{}", failures.join("\n"));
}

/// Plays a chapter; returns what isn't as it says.
fn play(chapter: &Chapter, tools: &Path) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let rewrites = std::env::var_os("UPDATE").is_some();
    let (mut failures, mut updates) = (Vec::new(), Vec::new());
    let blocks: Vec<_> = chapter.blocks.iter().filter(|block| block.not_run().is_none()).collect();
    for (at, block) in blocks.iter().enumerate() {
        let mut command = match block.language.as_str() {
            "schema" => {
                let path = dir.path().join(&block.note);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, &block.text).unwrap();
                continue;
            }
            "rust" => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_guide-rust"));
                command.args([&chapter.name, &block.line.to_string()]);
                command
            }
            "sh" => {
                let script = dir.path().join(".script");
                fs::write(&script, &block.text).unwrap();
                let mut command = Command::new("sh");
                command.arg("-e").arg(script);
                command
            }
            _ => continue,
        };
        let (printed, succeeded) = run(&mut command, dir.path(), tools);
        let below = blocks.get(at + 1).filter(|below| below.language == "text");
        let expected = below.map_or("", |below| &below.text);
        let (lines, printed_lines) = (lines(expected), lines(&printed));
        let place = format!("docs/guide/src/{}.md:{}", chapter.name, block.line);
        if !succeeded {
            failures.push(format!("{place}: it failed, and printed\n{printed}"));
            continue;
        }
        if agrees(&lines, &printed_lines) {
            continue;
        }
        match below.filter(|_| rewrites) {
            Some(below) => updates.push((*below, mixed(&lines, &printed_lines))),
            None => failures.push(format!("{place}: it printed\n{printed}instead of\n{expected}")),
        }
    }
    if rewrites {
        update(&chapter.name, updates);
    }
    failures
}

/// Runs a block; returns what it wrote to standard output and error, and whether it succeeded.
fn run(command: &mut Command, dir: &Path, tools: &Path) -> (String, bool) {
    let path = dir.join(".output");
    let output = File::options().create(true).truncate(true).write(true).open(&path).unwrap();
    let others = std::env::var("PATH").unwrap_or_default();
    let mut child = command
        .current_dir(dir)
        .env("PATH", format!("{}:{others}", tools.display()))
        .env("COLUMNS", "100")
        .stdin(Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output)
        .spawn()
        .unwrap();
    let succeeded = child.wait().unwrap().success();
    (fs::read_to_string(path).unwrap(), succeeded)
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_end).collect()
}

/// Returns what was printed, with the lines that were expected where those agree.
fn mixed(expected: &[&str], printed: &[&str]) -> String {
    let mut text = String::new();
    for line in printed {
        let same =
            expected.iter().find(|expected| **expected != "…" && line_agrees(expected, line));
        text.push_str(same.unwrap_or(line));
        text.push('\n');
    }
    text
}

/// Rewrites blocks of a chapter, from the last one on so that lines keep their numbers.
fn update(name: &str, updates: Vec<(&Block, String)>) {
    let path = folder().join(format!("{name}.md"));
    let text = fs::read_to_string(&path).unwrap();
    let mut all: Vec<_> = text.lines().map(str::to_owned).collect();
    for (block, printed) in updates.into_iter().rev() {
        let from = block.line;
        let count = block.text.lines().count();
        all.splice(from..from + count, printed.lines().map(str::to_owned));
    }
    let mut file = File::create(&path).unwrap();
    file.write_all((all.join("\n") + "\n").as_bytes()).unwrap();
}
