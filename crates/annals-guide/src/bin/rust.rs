//! Runs one Rust block of the guide: `guide-rust CHAPTER LINE`.

use std::process::{ExitCode, Termination};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [chapter, line] = &arguments[..] else {
        return fail("wanted: the name of a chapter, and the line of a block in it");
    };
    let block = (chapter.as_str(), line.parse().unwrap_or_default());
    match blocks::RUST.iter().find(|(chapter, line, _)| (*chapter, *line) == block) {
        Some((.., run)) => run(),
        None => fail("there is no such block"),
    }
}

#[allow(clippy::print_stderr, reason = "a program tells what is wrong")]
fn fail(message: &str) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::from(2)
}

/// What `build.rs` made of the chapters: a module each, and in it a module for each block.
#[allow(clippy::print_stdout, reason = "blocks print what they find")]
#[allow(missing_docs, dead_code, reason = "blocks are shown as they are")]
#[allow(unused_imports, reason = "a block needn't need each module that it could")]
#[allow(clippy::disallowed_methods, reason = "blocks are programs of their own")]
#[allow(clippy::unwrap_used, reason = "a block of a test shows at once what is wrong")]
#[allow(clippy::unnecessary_wraps, clippy::needless_pass_by_value, reason = "as above")]
mod blocks {
    use super::{ExitCode, Termination};

    /// The chapter of a block, its line, and what runs it.
    type Block = (&'static str, usize, fn() -> ExitCode);

    include!(concat!(env!("OUT_DIR"), "/blocks.rs"));
}
