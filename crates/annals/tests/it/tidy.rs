//! House rules, as tests. Each was seen to fail.

mod circles;
mod imports;
mod layers;
mod names;
mod rooms;
mod tokens;
mod unsafe_code;

use std::fs;
use std::path::{Path, PathBuf};

/// The crates that make up the library: what a program gets that adds `annals`.
const LIBRARY: [&str; 5] =
    ["annals", "annals-event", "annals-journal", "annals-storage", "annals-store"];
const LONGEST_FILE: usize = 500;
const BANNED: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("to", "do!("),
    concat!("unimpl", "emented!("),
    concat!("db", "g!("),
];

/// Returns the folder that has a crate's source.
fn source_of(name: &str) -> PathBuf {
    root().join("crates").join(name).join("src")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns all files below `folder` with this ending, but for build output and data.
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
fn names_of_files_and_folders_say_what_is_in_them() {
    const EMPTY: [&str; 8] =
        ["util", "utils", "helpers", "helper", "common", "misc", "stuff", "shared_code"];
    let root = root();
    for path in files(&root, ".rs") {
        let inside = path.strip_prefix(&root).unwrap().with_extension("");
        let empty = inside.iter().find(|name| EMPTY.iter().any(|empty| *name == *empty));
        assert!(empty.is_none(), "{}: {empty:?} says nothing", path.display());
    }
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

/// Returns the folders of the crates that are published, and their manifests.
fn published() -> Vec<(PathBuf, String)> {
    let folders = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let with_manifest = folders.map(|folder| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        (folder, manifest)
    });
    with_manifest.filter(|(_, manifest)| !manifest.contains("publish = false")).collect()
}

#[test]
fn packages_hold_their_licences_and_all_that_they_are_built_from() {
    let published = published();
    assert!(published.len() >= LIBRARY.len());
    for (folder, manifest) in published {
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let text = fs::read_to_string(root().join(licence)).unwrap();
            // These are links, which a package holds as files.
            let path = folder.join(licence);
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "{}", path.display());
        }
        let include = manifest.lines().find(|line| line.starts_with("include = ")).unwrap();
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let is_beside = name.starts_with("LICENSE-")
                || ["Cargo.toml", "README.md", "tests"].contains(&&*name);
            let is_in_it = is_beside
                || include.contains(&format!("\"{name}\""))
                || include.contains(&format!("\"{name}/**\""));
            assert!(is_in_it, "{}: isn't in `{include}`", path.display());
        }
    }
}

/// Returns the folders that the map's first column names, each as a whole path.
fn folders_of_the_map(map: &str) -> Vec<String> {
    const STEP: &str = "&nbsp;&nbsp;";
    let mut above: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for line in map.lines() {
        let Some(cell) = line.strip_prefix("| ").and_then(|line| line.split('|').next()) else {
            continue;
        };
        above.truncate(cell.matches(STEP).count());
        let names: Vec<_> = cell.split('`').skip(1).step_by(2).collect();
        let before = above.concat();
        found.extend(names.iter().map(|name| format!("{before}{name}")));
        above.extend(names.first().map(|name| (*name).to_owned()));
    }
    found
}

#[test]
fn the_map_shows_every_room() {
    let shown = folders_of_the_map(&fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap());
    for name in LIBRARY.into_iter().chain(["annals-schema", "annals-tools", "annals-cli"]) {
        let source = source_of(name);
        let mut rooms: Vec<_> = files(&source, ".rs")
            .into_iter()
            // What has nothing but tests needs no place on the map.
            .filter(|path| !path.ends_with("tests.rs") && !path.iter().any(|part| part == "tests"))
            .filter_map(|path| Some(path.parent()?.strip_prefix(&source).ok()?.to_path_buf()))
            .filter(|room| *room != Path::new(""))
            .map(|room| {
                let inside = room.to_string_lossy().replace('\\', "/");
                format!("crates/{name}/{inside}/")
            })
            .collect();
        rooms.dedup();
        let missing: Vec<_> = rooms.iter().filter(|room| !shown.contains(room)).collect();
        assert!(missing.is_empty(), "ARCHITECTURE.md does not show {missing:?}");
        let own = format!("crates/{name}/");
        let mut folders = shown.iter().filter_map(|shown| shown.strip_prefix(&own));
        let gone = folders.find(|folder| !source.join(folder).is_dir());
        assert_eq!(gone, None, "ARCHITECTURE.md shows what isn't there");
    }
}

/// A name of a test in a document, as `room::the_name_of_it`: no other word of the documents has so many parts,
/// but for those of Python that begin with `__`.
fn is_test_name(word: &str) -> bool {
    let name = word.rsplit("::").next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:".contains(c);
    word.chars().all(is_plain) && !name.starts_with("__") && name.matches('_').count() >= 4
}

#[test]
fn tests_that_documents_name_are_there() {
    let code: String = files(&root().join("crates"), ".rs")
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let (mut missing, mut named) = (Vec::new(), 0);
    for path in files(&root().join("docs"), ".md") {
        let text = fs::read_to_string(&path).unwrap();
        // Every second piece between backticks is code.
        for word in text.split('`').skip(1).step_by(2).filter(|word| is_test_name(word)) {
            named += 1;
            let name = word.rsplit("::").next().unwrap_or_default();
            if !code.contains(&format!("fn {name}(")) {
                missing.push(format!("{}: {word}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(named > 80, "only {named} were found");
}
