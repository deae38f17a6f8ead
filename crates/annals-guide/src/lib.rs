//! The guide, `docs/guide/src`, as its tests see it: chapters, their blocks and their links.
//!
//! The blocks of a chapter are played in order in a folder of their own. By their language they are
//!
//! - `schema FILE`: written as that file. What `annals::schema!("FILE")` below it, or that of `annals_replica`, compiles.
//! - `rust`: compiled by `build.rs` and run. A block without `fn main` is the body of one, which may
//!   use `?`; lines that begin with `# ` are not shown in the book.
//! - `sh`: run by `sh -e`, with `annals` in the path. What it prints is everything that a terminal shows.
//! - `text`: what the block above it prints. `…` in a line stands for anything, and a line of its own
//!   for any lines. A block without one prints nothing.
//!
//! A block whose language is followed by `not run: REASON` is only shown; a test lists those.

mod chapter;

use std::fs;
use std::path::{Path, PathBuf};

pub use chapter::{Block, Chapter, Link, slug};

/// Returns the folder of the book's sources.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/src")
}

/// Returns all files of the book but `SUMMARY.md`, in the order of their names.
///
/// # Panics
/// A file can't be read.
#[must_use]
pub fn chapters() -> Vec<Chapter> {
    chapter::read_all(&folder())
}

/// Returns the text of `SUMMARY.md`, the table of contents.
///
/// # Panics
/// The file can't be read.
#[must_use]
pub fn summary() -> Chapter {
    let path = folder().join("SUMMARY.md");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("SUMMARY.md: {error}"));
    Chapter::parse("SUMMARY", &text)
}
