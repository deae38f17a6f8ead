//! The generator's output, compared with `golden/`: one schema's code as text, the public items of the others, and
//! modules of Python. `UPDATE=1` rewrites them.

#![allow(clippy::unwrap_used, reason = "a test that fails should panic")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use annals_codegen::{generate, generate_module, generate_python, module_name};
use annals_schema::{SchemaFile, parse};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/golden");
/// The schemas whose code is kept as its public items. The tests of `annals` compile and run it.
const WITH_ITEMS: [&str; 5] = ["types", "collisions", "wide", "evolved", "own"];

fn schema(name: &str) -> SchemaFile {
    let path = Path::new(GOLDEN).join(format!("{name}.schema"));
    parse(&fs::read_to_string(path).unwrap()).unwrap()
}

fn compare(name: &str, language: &str, generate: impl Fn(&SchemaFile) -> String) {
    let code = generate(&schema(name));
    let path = Path::new(GOLDEN).join(format!("{name}.{language}"));
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &code).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap();
    assert!(
        code == golden,
        "{name}.{language} differs from what is generated: look, then UPDATE=1"
    );
}

/// Returns what a program can name: public items and fields, and variants, each in its module or after the type that it
/// is of, without bodies and values.
fn items(code: &str) -> String {
    let mut items = String::new();
    for line in code.lines() {
        let statement = line.trim_start();
        let is_variant = statement.ends_with(',')
            && statement.starts_with(char::is_uppercase)
            && !statement.contains(" => ");
        let is_of_type = statement.starts_with("impl") && !statement.contains(" for ");
        if statement.starts_with("pub ") || is_variant || is_of_type {
            let is_constant = statement.starts_with("pub const ");
            let (item, _value) =
                line.split_once(" = ").filter(|_| is_constant).unwrap_or((line, ""));
            items += item.trim_end_matches([' ', '{', ';', ',']);
            items.push('\n');
        }
    }
    items
}

/// The Python package checks these modules with mypy.
#[test]
fn modules_of_python() {
    for name in ["tutorial", "python"] {
        compare(name, "py", generate_python);
    }
}

#[test]
fn the_code_of_the_tutorial() {
    compare("tutorial", "rs", generate);
}

#[test]
fn the_items_of_other_schemas() {
    for name in WITH_ITEMS {
        compare(name, "items", |schema| items(&generate(schema)));
    }
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
    for name in ["tutorial"].into_iter().chain(WITH_ITEMS) {
        let schema = schema(name);
        for namespace in [None, Some("a"), Some("a::b")] {
            let code = match namespace {
                Some(namespace) => generate_module(&schema, namespace),
                None => generate(&schema),
            };
            assert!(code == formatted(&code), "{name} in {namespace:?}");
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
