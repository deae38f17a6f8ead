//! What a run of the tests leaves out on this machine, and what would bring it.
//!
//! A test that needs a server, a browser or an interpreter which isn't there calls [`untested`] and returns. libtest shows
//! nothing of a test that passes, so the lines are kept in files, and printed by the last test program of the run.

use std::path::PathBuf;
use std::{env, fs, thread};

/// Notes that the test of this thread can't run, and what would bring it: `no chromium; Debian has it as chromium`.
pub fn untested(needs: &str) {
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    let folder = folder();
    let file = folder.join(format!("{}-{}", run(), test.replace("::", ".")));
    // The note is for people: a test doesn't fail because it can't be kept.
    drop(fs::create_dir_all(&folder).and_then(|()| fs::write(file, format!("{test}: {needs}"))));
}

/// Returns the lines of this run in order, and forgets all.
#[must_use]
pub fn take() -> Vec<String> {
    let mut lines = Vec::new();
    for file in fs::read_dir(folder()).into_iter().flatten().flatten() {
        // Those of a run that failed before its end are dropped.
        if file.file_name().to_string_lossy().starts_with(&format!("{}-", run())) {
            lines.extend(fs::read_to_string(file.path()));
        }
        drop(fs::remove_file(file.path()));
    }
    lines.sort();
    lines
}

/// Returns the folder of the notes, beside the folder of the test programs.
fn folder() -> PathBuf {
    let program = env::current_exe().unwrap_or_default();
    program.ancestors().nth(2).unwrap_or(&program).join("untested")
}

/// Returns what all test programs of one run have in common: the process of Cargo.
fn run() -> u32 {
    #[cfg(unix)]
    return std::os::unix::process::parent_id();
    #[cfg(not(unix))]
    return 0;
}
