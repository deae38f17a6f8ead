//! Starting this program under valgrind, and what valgrind says of it.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};

use super::operations::Operation;
use crate::engines::Failure;

const ABSENT: &str = "valgrind is needed to count instructions: install the package `valgrind` (as by \
                      `apt-get install valgrind`), which there is for Linux and few other systems";

/// Makes the C library copy and fill with vector loops of any length: valgrind counts the one instruction that it
/// would use for a page as one for each byte.
const IN_VECTORS: &str = "glibc.cpu.x86_rep_movsb_threshold=0x40000000:\
                          glibc.cpu.x86_rep_stosb_threshold=0x40000000";

/// Returns what counts depend on: compiler, valgrind, processor.
pub(super) fn tools() -> Result<String, Failure> {
    let valgrind = first_line(&started(Command::new("valgrind").arg("--version"))?);
    // Without a compiler, the program alone suffices for counting.
    let rustc = Command::new("rustc").arg("--version").output();
    let rustc = rustc.map_or_else(|_| "an unknown compiler".to_owned(), |said| first_line(&said));
    Ok(format!("{rustc}, {valgrind}, {}", std::env::consts::ARCH))
}

fn first_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned()
}

fn started(command: &mut Command) -> Result<Output, Failure> {
    command.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ABSENT.into(),
        _ => error.into(),
    })
}

/// Returns the instructions of one operation.
pub(super) fn each(operation: &Operation) -> Result<f64, Failure> {
    let (few, many) = (count(operation, operation.times)?, count(operation, 2 * operation.times)?);
    let between = many.checked_sub(few).filter(|&count| count > 0);
    let between = between.ok_or_else(|| {
        let name = operation.name;
        format!("{name}: {} times took {few} instructions, twice as often {many}", operation.times)
    })?;
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    Ok(between as f64 / operation.times as f64)
}

/// Counts all instructions of a process that does an operation so often.
fn count(operation: &Operation, times: u64) -> Result<u64, Failure> {
    let folder = tempfile::tempdir()?;
    (operation.prepare)(folder.path(), times)?;
    let report = folder.path().join("report");
    let mut command = Command::new("valgrind");
    // The environment would change counts: the linker and the C library read it.
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.env("GLIBC_TUNABLES", IN_VECTORS);
    command.args(["--tool=callgrind", "--error-exitcode=1", "-q"]);
    command.arg(joined("--callgrind-out-file=", &report));
    command.arg(std::env::current_exe()?).args(["counted", operation.name]);
    let output = started(command.arg(folder.path()).arg(times.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}, under valgrind: {}\n{said}", operation.name, output.status).into());
    }
    let report = std::fs::read_to_string(report)?;
    total(&report).ok_or_else(|| "valgrind's report has no line of totals".into())
}

fn joined(option: &str, path: &Path) -> std::ffi::OsString {
    let mut joined = OsStr::new(option).to_owned();
    joined.push(path);
    joined
}

/// Finds the number of instructions in a report of callgrind: the first number of its totals.
fn total(report: &str) -> Option<u64> {
    let totals = report.lines().rev().find_map(|line| line.strip_prefix("totals:"))?;
    totals.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn the_total_is_found() {
        let report = "events: Ir\nfn=(1) main\n1 20\ntotals: 1234567\n";
        assert_eq!(total(report), Some(1_234_567));
        assert_eq!(total("totals: 12 34\n"), Some(12), "with further events");
        assert_eq!(total("events: Ir\n"), None);
        assert_eq!(total("totals: many\n"), None);
    }
}
