//! Makes a program of each Rust block of the guide.
//!
//! A chapter is a module. `annals::schema!("FILE")` in it, or that of `annals_replica`, compiles the last block `schema FILE`
//! above, once, and the blocks below see the module that it makes.

#[allow(dead_code, unreachable_pub, reason = "the library's file, of which this needs a part")]
#[path = "src/chapter.rs"]
mod chapter;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use chapter::{Block, Chapter};

fn main() {
    let variable =
        |name| PathBuf::from(env::var_os(name).unwrap_or_else(|| panic!("{name} isn't set")));
    let guide = variable("CARGO_MANIFEST_DIR").join("../../docs/guide/src");
    println!("cargo::rerun-if-changed={}", guide.display());
    let out = variable("OUT_DIR");
    let (mut code, mut table) = (String::new(), String::new());
    for chapter in chapter::read_all(&guide) {
        Chapters { out: &out, code: &mut code, table: &mut table }.add(&chapter);
    }
    let head = "/// All blocks.\n";
    writeln!(code, "{head}pub(super) const RUST: &[Block] = &[\n{table}];")
        .expect("a string takes everything");
    write(&out.join("blocks.rs"), &code);
}

struct Chapters<'a> {
    out: &'a Path,
    code: &'a mut String,
    table: &'a mut String,
}

impl Chapters<'_> {
    fn add(&mut self, chapter: &Chapter) {
        let module = chapter.name.replace('-', "_");
        // The text of each schema file as it is at this place, and the modules that blocks see.
        let (mut schemas, mut seen) = (BTreeMap::new(), BTreeMap::new());
        let mut code = String::new();
        for block in chapter.blocks.iter().filter(|block| block.not_run().is_none()) {
            match block.language.as_str() {
                "schema" => drop(schemas.insert(block.note.as_str(), block)),
                "rust" => {
                    for (of, file) in schemas_in(&block.text) {
                        let place = format!("docs/guide/src/{}.md:{}", chapter.name, block.line);
                        let Some(schema) = schemas.get(file) else {
                            panic!("{place}: no block `schema {file}` is above it");
                        };
                        // Of two files that are called so in two folders, the blocks below see the last.
                        let is_new = !seen.values().any(|line| *line == schema.line);
                        seen.insert(Path::new(file).file_stem(), schema.line);
                        let path =
                            self.out.join(&chapter.name).join(schema.line.to_string()).join(file);
                        if is_new {
                            // The root of the crate is that of the block which the types are in.
                            let root = format!(" as crate::blocks::{module}::b{}::", block.line);
                            write(&path, &schema.text.replace(" as crate::", &root));
                            code +=
                                &format!("mod s{} {{ {of}::schema!({path:?}); }}\n", schema.line);
                        }
                    }
                    code += &program(block, seen.values());
                    let line = block.line;
                    let run = format!("|| Termination::report({module}::b{line}::main())");
                    *self.table += &format!("({:?}, {line}, {run}),\n", chapter.name);
                }
                _ => {}
            }
        }
        *self.code += &format!("mod {module} {{\n{code}}}\n\n");
    }
}

/// Makes a module with a `main` of a block.
fn program<'a>(block: &Block, schemas: impl Iterator<Item = &'a usize>) -> String {
    let mut text = String::new();
    for line in block.text.lines() {
        let line = if line == "#" { "" } else { line.strip_prefix("# ").unwrap_or(line) };
        if schemas_in(line).next().is_none() {
            text += line;
        }
        text.push('\n');
    }
    let mut uses = String::new();
    for schema in schemas {
        uses += &format!("use super::s{schema}::*;\n");
    }
    let body = if text.contains("fn main(") {
        text.replacen("fn main(", "pub(in super::super) fn main(", 1)
    } else {
        let result = "::std::result::Result<(), ::std::boxed::Box<dyn ::std::error::Error>>";
        format!("pub(in super::super) fn main() -> {result} {{\n{text}\nOk(())\n}}\n")
    };
    format!("pub(super) mod b{} {{\n{uses}{body}}}\n", block.line)
}

/// Returns the files that `annals::schema!("FILE")` names, after the crate of the macro: it may also be `annals_replica`.
fn schemas_in(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices("::schema!(\"").filter_map(|(at, macro_name)| {
        let (before, after) = (&text[..at], &text[at + macro_name.len()..]);
        let of = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next()?;
        Some((of, after.split_once('"')?.0))
    })
}

fn write(path: &Path, text: &str) {
    let folder = path.parent().expect("a file is in a folder");
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, text))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
