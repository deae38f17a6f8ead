//! The examples, run: what they print is compared with the `.out` file beside each. `UPDATE=1`
//! rewrites those.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds an example, and returns its program. With the features of the whole workspace, that is done already when all
/// tests are run.
fn built(name: &str) -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--message-format=json", "--workspace", "--example", name])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8(output.stdout).unwrap();
    let messages = messages.lines().map(|line| serde_json::from_str(line).unwrap());
    let is_wanted = |message: &serde_json::Value| message["target"]["name"] == name;
    let program = messages
        .filter(is_wanted)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    program.unwrap_or_else(|| panic!("{name} has no program"))
}

/// Runs an example as a user would.
fn prints(name: &str, expected: &str) {
    let output =
        Command::new(built(name)).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    let (printed, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name}: {errors}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(expected);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, printed.as_bytes()).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    assert_eq!(printed, expected, "{name}, as {}", path.display());
}

#[test]
fn examples_print_what_they_say() {
    prints("tutorial", "tutorial.out");
    prints("upgrade", "upgrade/upgrade.out");
    prints("blobs", "blobs.out");
    prints("vectors", "vectors.out");
    prints("processes", "processes.out");
}

/// The README's program is the example's, but for where the file is and how it ends.
#[test]
fn the_readme_shows_the_tutorial() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let example = fs::read_to_string(root.join("examples/tutorial.rs")).unwrap();
    let statements = example.split_once("db.write(|tx| {").unwrap().1;
    for line in statements.lines().map(str::trim).filter(|line| line.len() > 2) {
        assert!(readme.contains(line), "README.md does not show `{line}`");
    }
    let schema = fs::read_to_string(root.join("examples/tutorial.schema")).unwrap();
    for line in schema.lines().filter(|line| !line.starts_with('#')) {
        assert!(readme.contains(line), "README.md does not show `{line}`");
    }
}
