//! One script over all implementations of storage, and the lock between processes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;

use annals::storage::{Access, Directory, FileDirectory, Hold, Lock, MemoryDirectory, Storage};
use annals_simulated::SimulatedDisk;

/// Runs calls on one directory and writes down what they give.
struct Runner<'a> {
    directory: &'a dyn Directory,
    handles: BTreeMap<String, Arc<dyn Storage>>,
}

impl Runner<'_> {
    fn call(&mut self, line: &str) -> io::Result<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match *words.as_slice() {
            [handle, "=", "create", name] => {
                let file = self.directory.create(name)?;
                self.handles.insert(handle.to_owned(), file);
                Ok("ok".to_owned())
            }
            [handle, "=", "open", name, access] => {
                let access = if access == "write" { Access::Write } else { Access::Read };
                let file = self.directory.open(name, access)?;
                self.handles.insert(handle.to_owned(), file);
                Ok("ok".to_owned())
            }
            ["link", from, to] => self.directory.link(from, to).map(done),
            ["rename", from, to] => self.directory.rename(from, to).map(done),
            ["remove", name] => self.directory.remove(name).map(done),
            ["list"] => Ok(format!("[{}]", self.directory.list()?.join(", "))),
            ["sync"] => self.directory.flush().map(done),
            ["drop", handle] => {
                self.handles.remove(handle).unwrap();
                Ok("ok".to_owned())
            }
            [call, handle, ref arguments @ ..] => self.call_file(call, handle, arguments),
            _ => panic!("no such call: {line}"),
        }
    }

    fn call_file(&self, call: &str, handle: &str, arguments: &[&str]) -> io::Result<String> {
        let file = &self.handles[handle];
        let number = |index: usize| arguments[index].parse::<u64>().unwrap();
        match call {
            "len" => Ok(file.len()?.to_string()),
            "read" => {
                let mut buffer = vec![b'?'; usize::try_from(number(1)).unwrap()];
                let count = file.read_at(number(0), &mut buffer)?;
                Ok(format!("{:?}", String::from_utf8_lossy(&buffer[..count])))
            }
            "write" => file.write_at(number(0), arguments[1].as_bytes()).map(done),
            "set_len" => file.set_len(number(0)).map(done),
            "flush" => file.flush().map(done),
            "lock" => Ok(file.try_lock(Lock::Head, Hold::Exclusive)?.to_string()),
            "linked" => Ok(file.is_linked()?.to_string()),
            _ => panic!("no such call: {call}"),
        }
    }
}

fn done((): ()) -> String {
    "ok".to_owned()
}

/// Returns the script with the results of this directory.
fn run(script: &str, directory: &dyn Directory) -> String {
    let mut runner = Runner { directory, handles: BTreeMap::new() };
    let mut transcript = String::new();
    for line in script.lines() {
        match line.strip_prefix("> ") {
            Some(call) => {
                let result = runner.call(call).unwrap_or_else(|e| format!("{:?}", e.kind()));
                writeln!(transcript, "{line}\n{result}").unwrap();
            }
            None if line.is_empty() || line.starts_with('#') => {
                writeln!(transcript, "{line}").unwrap();
            }
            None => {}
        }
    }
    transcript
}

fn script_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/storage.txt")
}

#[test]
fn all_implementations_do_what_the_script_says() {
    let script = std::fs::read_to_string(script_path()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let real = run(&script, &FileDirectory::new(folder.path()));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(script_path(), &real).unwrap();
    } else {
        assert_eq!(real, script, "real files");
    }
    assert_eq!(run(&script, &MemoryDirectory::new()), real, "memory");
    assert_eq!(run(&script, &SimulatedDisk::new(1)), real, "simulated disk");
}

/// Holds the lock in a child process until it is told to end. It is the other half of the test
/// below, which starts this binary again with the path in the environment.
#[test]
fn child_that_holds_the_lock() {
    let Some(path) = std::env::var_os("ANNALS_TEST_LOCK") else { return };
    let (directory, name) = FileDirectory::split(path).unwrap();
    let file = directory.open(&name, Access::Write).unwrap();
    assert!(file.try_lock(Lock::Head, Hold::Exclusive).unwrap());
    let mut output = io::stdout();
    writeln!(output, "\nlocked").unwrap();
    output.flush().unwrap();
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
}

/// Starts a child and returns when it has the lock. It ends when its input does, and needs
/// somebody to read its output.
fn start_child(path: &Path) -> (Child, ChildStdin, impl Sized) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "storage::child_that_holds_the_lock", "--nocapture"])
        .env("ANNALS_TEST_LOCK", path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "locked"), "the child didn't get the lock");
    (child, input, lines)
}

#[test]
fn a_lock_excludes_other_processes_and_ends_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let (directory, name) = FileDirectory::split(&path).unwrap();
    let file = directory.create(&name).unwrap();

    let (mut child, input, _output) = start_child(&path);
    assert!(!file.try_lock(Lock::Head, Hold::Exclusive).unwrap(), "the child holds it");
    file.write_at(0, b"the lock covers no data").unwrap();
    drop(input);
    child.wait().unwrap();
    assert!(file.try_lock(Lock::Head, Hold::Exclusive).unwrap(), "the child has ended");
    drop(file);

    let (mut child, _input, _output) = start_child(&path);
    let file = directory.open(&name, Access::Write).unwrap();
    assert!(!file.try_lock(Lock::Head, Hold::Exclusive).unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        file.try_lock(Lock::Head, Hold::Exclusive).unwrap(),
        "a killed process leaves no lock behind"
    );
}

#[cfg(unix)]
#[test]
fn a_child_that_is_being_started_keeps_no_lock() {
    let folder = tempfile::tempdir().unwrap();
    let directory = FileDirectory::new(folder.path());
    drop(directory.create("journal").unwrap());
    let starter = std::thread::spawn(|| {
        for _ in 0..20 {
            let mut child = Command::new("true").spawn().unwrap();
            child.wait().unwrap();
        }
    });
    while !starter.is_finished() {
        let file = directory.open("journal", Access::Write).unwrap();
        assert!(file.try_lock(Lock::Head, Hold::Exclusive).unwrap());
    }
    starter.join().unwrap();
}
