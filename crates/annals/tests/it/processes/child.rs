//! A child: this test binary again, running one test that does what its job says.
//!
//! What it says goes through its output, in which the test harness writes, too: that a test begins, that it
//! takes long, how it ended. So each line that is said bears a mark, and nothing else is heard.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::effort;

const JOB: &str = "ANNALS_TEST_JOB";

/// What a line that is said begins with; what is in front of it is somebody else's line without an end.
const MARK: &str = "the child says: ";

/// Returns how long a child may take for anything, on any machine.
fn deadline() -> Duration {
    Duration::from_secs(effort(120, 1200))
}

/// Returns the words of this process's job; none if it is no child, and the test has nothing to do.
pub(super) fn job() -> Option<Vec<String>> {
    let words = std::env::var(JOB).ok()?;
    Some(words.split('\n').map(str::to_owned).collect())
}

/// Says a line to the parent. It is there as soon as this returns, whatever becomes of this process.
pub(super) fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    output.write_all(format!("{MARK}{line}\n").as_bytes()).unwrap();
    output.flush().unwrap();
}

/// Waits until the parent lets this process continue, or end.
pub(super) fn wait_for_the_parent() {
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// Returns the next line that is said; none if there will be none. What was cut off by the end of the process
/// is no line.
fn hear(output: &mut impl BufRead) -> Option<String> {
    loop {
        let mut line = String::new();
        output.read_line(&mut line).ok()?;
        let line = line.strip_suffix('\n')?;
        if let Some((_, said)) = line.split_once(MARK) {
            return Some(said.to_owned());
        }
    }
}

/// A child that runs, and is killed if the test ends before it.
pub(super) struct Child {
    process: std::process::Child,
    lines: Receiver<String>,
}

impl Child {
    /// Starts the test of this path, with a job.
    pub(super) fn start(test: &str, job: &[&str]) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(JOB, job.join("\n"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            while let Some(line) = hear(&mut output) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { process, lines }
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Returns the next line; none if there will be none.
    pub(super) fn next_line(&self) -> Option<String> {
        match self.lines.recv_timeout(deadline()) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("a child says nothing"),
        }
    }

    /// Returns the next line if it is there by now.
    #[cfg(any(target_os = "linux", windows))]
    pub(super) fn line_so_far(&self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    /// Reads on until a line is said.
    #[track_caller]
    pub(super) fn wait_for(&self, wanted: &str) {
        while let Some(line) = self.next_line() {
            if line == wanted {
                return;
            }
        }
        panic!("the child didn't say {wanted}");
    }

    /// Lets it continue from where it waits for the first time.
    pub(super) fn go_on(&mut self) {
        self.process.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// Kills it, at whatever it is doing (`SIGKILL`).
    pub(super) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Lets it end by itself.
    pub(super) fn end(&mut self) -> ExitStatus {
        drop(self.process.stdin.take());
        self.process.wait().unwrap()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn child_among_others_that_write() {
    let Some(job) = job() else { return };
    let write = |text: &str| std::io::stdout().lock().write_all(text.as_bytes()).unwrap();
    write("test of something has been running for over 60 seconds\n");
    say(&job[0]);
    write("test of something ... ");
    say("");
    write("\n\n");
    wait_for_the_parent();
    write("test of something has been running for over 60 seconds\n");
    say("the end");
    write(&format!("{MARK}cut o"));
    std::io::stdout().flush().unwrap();
    std::process::exit(0);
}

#[test]
fn only_what_a_child_says_is_heard() {
    let mut child = Child::start("processes::child::child_among_others_that_write", &["a job"]);
    assert_eq!(child.next_line().as_deref(), Some("a job"));
    assert_eq!(child.next_line().as_deref(), Some(""));
    child.go_on();
    assert_eq!(child.next_line().as_deref(), Some("the end"));
    assert_eq!(child.next_line(), None);
}
