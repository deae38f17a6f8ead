//! The generator's output, compared with `golden/*.rs`; `UPDATE=1` rewrites them. The tests of
//! `annals` compile the same files.

#![allow(clippy::unwrap_used, reason = "a test that fails should panic")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use annals_codegen::{generate, generate_module, generate_python, module_name};
use annals_schema::{SchemaFile, parse};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/golden");

fn compare(name: &str) {
    compare_with(name, "rs", generate);
}

fn compare_with(name: &str, language: &str, generate: impl Fn(&SchemaFile) -> String) {
    let folder = Path::new(GOLDEN);
    let text = fs::read_to_string(folder.join(format!("{name}.schema"))).unwrap();
    let code = generate(&parse(&text).unwrap());
    let path = folder.join(format!("{name}.{language}"));
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &code).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap();
    assert!(
        code == golden,
        "{name}.{language} differs from what is generated: look, then UPDATE=1"
    );
}

/// The Python package checks these modules with mypy.
#[test]
fn modules_of_python() {
    for name in ["tutorial", "python"] {
        compare_with(name, "py", generate_python);
    }
}

#[test]
fn tutorial() {
    compare("tutorial");
}

#[test]
fn types() {
    compare("types");
}

#[test]
fn collisions() {
    compare("collisions");
}

#[test]
fn wide() {
    compare("wide");
}

#[test]
fn evolved() {
    compare("evolved");
}

#[test]
fn own() {
    compare("own");
}

/// Returns what rustfmt makes of code for who has no settings of their own.
fn formatted(code: &str) -> String {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--config", "max_width=100,use_small_heuristics=Default"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("rustfmt is a component of the toolchain");
    rustfmt.stdin.take().unwrap().write_all(code.as_bytes()).unwrap();
    String::from_utf8(rustfmt.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn rustfmt_leaves_everything_as_it_is() {
    for name in ["tutorial", "types", "collisions", "wide", "evolved", "own"] {
        let path = Path::new(GOLDEN).join(format!("{name}.schema"));
        let schema = parse(&fs::read_to_string(path).unwrap()).unwrap();
        for namespace in [None, Some("a"), Some("a::b")] {
            let code = match namespace {
                Some(namespace) => generate_module(&schema, namespace),
                None => generate(&schema),
            };
            let formatted = formatted(&code);
            let lines = code.lines().zip(formatted.lines()).enumerate();
            let other = lines.into_iter().find(|(_, (code, formatted))| code != formatted);
            assert_eq!(other, None, "{name} in {namespace:?}");
            assert!(code == formatted, "{name} in {namespace:?} ends differently");
        }
    }
}

#[test]
fn modules_nest_by_namespace() {
    let schema = parse("create_table city").unwrap();
    let code = generate_module(&schema, "outer::type");
    assert!(code.contains("\npub mod outer {\n    pub mod r#type {\n        //! The typed API"));
}

#[test]
fn module_is_named_by_namespace_or_file() {
    assert_eq!(module_name(Some("a::b"), "file"), "a::b");
    assert_eq!(module_name(None, "my-schema.v2"), "my_schema_v2");
    assert_eq!(module_name(None, "2024"), "_2024");
}

#[test]
fn the_examples_parse() {
    for (text, tables) in [
        (include_str!("../../../../examples/tutorial.schema"), 2),
        (include_str!("../../../../examples/airports/airports.schema"), 5),
    ] {
        assert_eq!(parse(text).unwrap().schema.tables().len(), tables);
    }
}

/// rust-analyzer shows a slash at the beginning of each line of a comment that a macro gives.
#[test]
fn what_a_macro_expands_to_has_its_documentation_as_attributes() {
    let text = "create_table t\nadd_field t a string default \"/// no comment\"";
    let file = annals_schema::parse(text).unwrap();
    let (kept, expanded) =
        (annals_codegen::generate_module(&file, "m"), annals_codegen::expand_module(&file, "m"));
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    assert!(kept.lines().filter(is_comment).count() > 30);
    assert_eq!(expanded.lines().find(is_comment), None);
    for line in kept.lines().filter_map(|line| line.trim_start().strip_prefix("///")) {
        assert!(expanded.contains(&format!("#[doc = {line:?}]")), "{line}");
    }
}
