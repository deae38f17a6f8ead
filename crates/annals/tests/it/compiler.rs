//! What the compiler says of mistakes: each program in `mistakes/` says in its first lines (`//~`)
//! what its user must read. Those in `accepted/` must compile without a word, and so must files as `annals compile`
//! writes them.
//!
//! All are compiled in one go, as binaries of a package of their own.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::package::Package;

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it");
/// The program that has generated files, in the folder of the package.
const GENERATED: &str = "generated.rs";

/// Returns the programs of a folder by name.
fn programs(folder: &str) -> Vec<(String, PathBuf)> {
    let files = fs::read_dir(Path::new(TESTS).join(folder)).unwrap();
    let rust = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "rs");
    let mut found: Vec<_> = files.map(|entry| entry.unwrap().path()).filter(rust).collect();
    found.sort();
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    found.into_iter().map(|path| (name(&path), path)).collect()
}

/// Writes the package whose binaries are the programs.
fn package(programs: &[(String, PathBuf)]) -> Package {
    let mut targets = String::new();
    for (name, path) in programs {
        write!(targets, "[[bin]]\nname = {name:?}\npath = {path:?}\n").unwrap();
    }
    let package = Package::new("mistakes", &targets);
    for entry in fs::read_dir(Path::new(TESTS).join("mistakes")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "schema") {
            fs::copy(&path, package.folder.join(path.file_name().unwrap())).unwrap();
        }
    }
    write_generated(&package);
    package
}

/// The lints of the program that has generated files: all that they don't allow themselves.
const LINTS: &str = "#![warn(missing_docs, missing_debug_implementations, rust_2018_idioms, trivial_casts, \
    trivial_numeric_casts, unsafe_code, unused, unused_import_braces, unused_lifetimes, variant_size_differences)]";

/// Writes a program whose modules are generated files, of the schemas that the generator's tests have, too.
fn write_generated(package: &Package) {
    let mut program = format!("//! Generated files.\n{LINTS}\n");
    program += "#[allow(warnings)] mod own_types;\nfn main() {}\n";
    for name in ["collisions", "evolved", "own", "types", "wide"] {
        let schema = format!("../../../annals-codegen/tests/it/golden/{name}.schema");
        let schema = fs::read_to_string(Path::new(TESTS).join(schema)).unwrap();
        let code = annals_codegen::generate(&annals_schema::parse(&schema).unwrap());
        package.write(&format!("{name}.rs"), &code);
        program += &format!("pub mod {name};\n");
    }
    fs::copy(Path::new(TESTS).join("own_types.rs"), package.folder.join("own_types.rs")).unwrap();
    package.write(GENERATED, &program);
}

/// Compiles all programs, and returns what the compiler says of each.
fn said(programs: &[(String, PathBuf)]) -> HashMap<String, String> {
    let mut check = package(programs).cargo("check");
    let output = check.args(["--bins", "--keep-going", "--message-format=json"]).output().unwrap();
    let mut said = HashMap::<String, String>::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: serde_json::Value = serde_json::from_str(line).unwrap();
        if let (Some(name), Some(text)) =
            (message["target"]["name"].as_str(), message["message"]["rendered"].as_str())
        {
            said.entry(name.to_owned()).or_default().push_str(text);
        }
    }
    assert!(!said.is_empty(), "nothing was compiled: {}", String::from_utf8_lossy(&output.stderr));
    said
}

/// The programs whose messages the guide explains, since the compiler says nothing of this library there.
const EXPLAINED: [&str; 7] = [
    "borrow_from_write",
    "maybe_no_row",
    "past_without_a_name",
    "row_outlives_snapshot",
    "row_while_writing",
    "text_as_error",
    "two_writers",
];

#[test]
fn the_guide_explains_what_the_compiler_cannot() {
    let guide = Path::new(TESTS).join("../../../../docs/guide/src/errors.md");
    let guide = fs::read_to_string(guide).unwrap().replace("\\[", "[");
    for (name, path) in programs("mistakes") {
        let program = fs::read_to_string(path).unwrap();
        let mut messages = program.lines().filter_map(|line| line.strip_prefix("//~ error"));
        let explains = |message: &str| guide.contains(&format!("| error{message} |"));
        assert_eq!(messages.any(explains), EXPLAINED.contains(&&*name), "{name}");
    }
}

#[test]
fn the_compiler_says_what_to_do() {
    let (mistakes, mut accepted) = (programs("mistakes"), programs("accepted"));
    accepted.push(("generated".to_owned(), GENERATED.into()));
    let all: Vec<_> = mistakes.iter().chain(&accepted).cloned().collect();
    let said = said(&all);
    let mut wrong = String::new();
    for (name, path) in &mistakes {
        let text = said.get(name).map_or("", String::as_str);
        let program = fs::read_to_string(path).unwrap();
        let expected: Vec<_> =
            program.lines().filter_map(|line| line.strip_prefix("//~ ")).collect();
        assert!(!expected.is_empty(), "{name} doesn't say what the compiler says (`//~ `)");
        for sentence in expected.into_iter().filter(|sentence| !text.contains(sentence)) {
            writeln!(wrong, "{name}: not said: {sentence}\nbut:\n{text}").unwrap();
        }
    }
    for (name, _) in &accepted {
        if let Some(text) = said.get(name) {
            writeln!(wrong, "{name}: nothing was to be said, but:\n{text}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
