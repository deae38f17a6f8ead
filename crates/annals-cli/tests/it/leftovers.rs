//! What makes a new database leaves just that: nothing of its temporary name lies beside it.

use std::fmt::Write as _;

use std::path::Path;
#[cfg(unix)]
use std::process::{Command, Stdio};

#[cfg(unix)]
use crate::program::annals;
use crate::program::succeed;

#[test]
fn nothing_lies_beside_what_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    // So long that closing makes an image.
    let mut script = "create_table t\nadd_field t text string\n".to_owned();
    for row in 0..20_000 {
        writeln!(script, "insert t \"{row} {}\"", "x".repeat(100)).unwrap();
    }
    succeed(dir, &["shell", "a"], &script);
    for what in [
        &["export", "joedb", "a", "joedb"][..],
        &["export", "json", "a", "json"],
        &["import", "joedb", "joedb", "of-joedb"],
        &["import", "json", "json", "of-json"],
        &["merge", "merged", "a", "of-json"],
        &["pack", "a", "packed"],
        &["backup", "a", "backup"],
        &["push", "a", "pushed"],
        &["recover", "a", "--salvage", "salvaged"],
    ] {
        succeed(dir, what, "");
    }
    let list = names(dir);
    assert!(list.iter().any(|name| name == "a-image"), "{list:?}: closing made no image");
    let left: Vec<_> = list.iter().filter(|name| name.contains('.')).collect();
    assert!(left.is_empty(), "{left:?}");
}

fn names(dir: &Path) -> Vec<String> {
    let list = std::fs::read_dir(dir).unwrap();
    let mut list: Vec<_> = list.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    list.sort();
    list
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let mut script = "create_table t\nadd_field t text string\n".to_owned();
    for row in 0..100_000 {
        writeln!(script, "insert t \"{row} {}\"", "x".repeat(100)).unwrap();
    }
    succeed(dir, &["shell", "a"], &script);
    succeed(dir, &["export", "ndjson", "a", "rows"], "");
    succeed(dir, &["shell", "a2"], "create_table t\nadd_field t text string\n");
    let before = names(dir);
    let mut commands = vec![
        &["import", "ndjson", "rows", "b"][..],
        &["export", "json", "a", "b"],
        &["export", "joedb", "a", "b"],
        &["backup", "a", "b"],
        &["convert", "a", "b"],
        &["merge", "b", "a", "a2"],
        &["pack", "a", "b"],
        &["recover", "a", "--salvage", "b"],
    ];
    if cfg!(feature = "sqlite") {
        commands.push(&["export", "sqlite", "a", "b"]);
    }
    for command in commands {
        // One that ended before it was interrupted has made its file, and is tried again.
        while !is_interrupted(dir, command, &before) {
            for made in names(dir).iter().filter(|name| !before.contains(name)) {
                std::fs::remove_file(dir.join(made)).unwrap();
            }
        }
        // It may have had its name already.
        for made in names(dir).iter().filter(|name| !before.contains(name)) {
            assert!(["b", "b-image"].contains(&made.as_str()), "{command:?}: {made}");
            std::fs::remove_file(dir.join(made)).unwrap();
        }
    }
}

/// Interrupts a command once it has made a file; false if it ended well before.
#[cfg(unix)]
fn is_interrupted(dir: &Path, command: &[&str], before: &[String]) -> bool {
    let mut child =
        annals(dir, command).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while names(dir) == before {
        assert!(child.try_wait().unwrap().is_none(), "{command:?} has ended");
        std::thread::yield_now();
    }
    let process = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &process]).status().unwrap().success());
    match child.wait().unwrap().code() {
        Some(130) => true,
        Some(0) => false,
        status => panic!("{command:?}: {status:?}"),
    }
}
