//! House rules, as tests. Each was seen to fail.

use std::fs;
use std::path::{Path, PathBuf};

const LONGEST_FILE: usize = 500;
const BANNED: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("to", "do!("),
    concat!("unimpl", "emented!("),
    concat!("db", "g!("),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Gives all files below `folder` with this ending, but for build output and data.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && !name.starts_with("target") && name != "data" {
                found.extend(files(&path, ending));
            }
        } else if name.ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn is_generated(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "golden")
}

#[test]
fn files_fit_in_a_head_and_say_what_they_are() {
    let mut wrong = Vec::new();
    for path in files(&root(), ".rs").into_iter().filter(|path| !is_generated(path)) {
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().count();
        if lines > LONGEST_FILE {
            wrong.push(format!("{}: {lines} lines, {LONGEST_FILE} at most", path.display()));
        }
        if !text.starts_with("//!") {
            wrong.push(format!("{}: does not begin with what it is (`//!`)", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_is_left_for_later() {
    let mut wrong = Vec::new();
    for path in files(&root(), ".rs") {
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            if BANNED.iter().any(|word| line.contains(word)) {
                wrong.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_of_files_say_what_is_in_them() {
    for path in files(&root(), ".rs") {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(
            !["util", "utils", "helpers", "helper", "common", "misc"].contains(&&*stem),
            "{}",
            path.display()
        );
    }
}

#[test]
fn unsafe_code_gives_its_reason() {
    let mut wrong = Vec::new();
    for path in files(&root().join("crates"), ".rs").into_iter().filter(|path| !is_generated(path))
    {
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let code = line.trim_start();
            let is_unsafe = code.contains(concat!("unsa", "fe {"))
                || code.starts_with(concat!("unsa", "fe impl"));
            let said =
                lines[number.saturating_sub(4)..=number].iter().any(|l| l.contains("SAFETY"));
            if is_unsafe && !code.starts_with("//") && !said {
                wrong.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_readme_shows_what_ci_runs() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    for command in ["cargo run --release --example airports", "cargo test --workspace"] {
        assert!(readme.contains(command), "README.md does not show `{command}`");
        assert!(ci.contains(command), ".ci/run does not run `{command}`");
    }
}

#[test]
fn the_tutorial_has_one_schema() {
    let schema = fs::read_to_string(root().join("examples/tutorial.schema")).unwrap();
    // The example of the library's documentation must be in its package.
    let packaged = fs::read_to_string(root().join("crates/annals/tutorial.schema")).unwrap();
    assert_eq!(packaged, schema, "crates/annals/tutorial.schema");
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (comment, commands) = schema.split_once('\n').unwrap();
    assert!(comment.starts_with('#'), "{comment}");
    assert!(readme.contains(&format!("```text\n{commands}```\n")), "README.md shows another one");
}

#[test]
fn packages_hold_their_licences() {
    for name in ["annals", "annals-cli", "annals-macros", "annals-schema"] {
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let text = fs::read_to_string(root().join(licence)).unwrap();
            // These are links, which a package holds as files.
            let path = root().join("crates").join(name).join(licence);
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "{}", path.display());
        }
    }
}

#[test]
fn the_map_shows_every_room() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for folder in ["crates/annals/src", "crates/annals-schema/src", "crates/annals-cli/src"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                assert!(
                    map.contains(&format!("`{name}/`")),
                    "ARCHITECTURE.md does not show {folder}/{name}/"
                );
            }
        }
    }
}

/// Rooms and what they must not know: the arrows of ARCHITECTURE.md.
#[test]
fn rooms_do_not_know_what_they_need_not() {
    let forbidden: [(&str, &[&str]); 5] = [
        ("event", &["crate::storage", "crate::journal", "crate::store", "crate::db", "std::fs"]),
        ("journal", &["crate::store::", "crate::db", "std::fs"]),
        ("store", &["crate::journal", "crate::storage", "crate::db", "std::fs"]),
        ("image", &["crate::store", "crate::db", "crate::event", "std::fs"]),
        ("db", &["std::fs", "println!"]),
    ];
    for (room, words) in forbidden {
        let files = files(&root().join("crates/annals/src").join(room), ".rs");
        for path in files.into_iter().filter(|path| !path.ends_with("tests.rs")) {
            let text = fs::read_to_string(&path).unwrap();
            let product = text.split("#[cfg(test)]").next().unwrap_or_default();
            for word in words {
                assert!(!product.contains(word), "{}: knows {word}", path.display());
            }
        }
    }
}
