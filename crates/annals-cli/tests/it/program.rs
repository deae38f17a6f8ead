//! Runs the program.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Returns a command that runs the program in a directory.
pub(crate) fn annals(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
    command.args(arguments).current_dir(dir);
    command
}

/// Runs the program with this on standard input.
pub(crate) fn run(dir: &Path, arguments: &[&str], input: &[u8]) -> Output {
    feed(annals(dir, arguments), input)
}

/// Runs a command with this on standard input.
pub(crate) fn feed(mut command: Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // The program may stop reading at an error: then the rest isn't wanted.
    let feeder = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    let _ = feeder.join().unwrap();
    output
}

/// Runs the program, which must do what is asked; returns its standard output.
pub(crate) fn succeed(dir: &Path, arguments: &[&str], input: &str) -> String {
    let output = run(dir, arguments, input.as_bytes());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "annals {arguments:?} failed: {errors}\nfor:\n{input}");
    assert_eq!(errors, "", "annals {arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}
