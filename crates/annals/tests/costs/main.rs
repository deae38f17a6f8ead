//! What operations cost that can be counted: the bytes they write and hold, how often they ask for memory.
//!
//! `docs/costs.md` shows what these tests hold. They are a program of their own, because a program has one
//! allocator, and this one counts.

#![allow(clippy::unwrap_used, reason = "a test that fails should panic")]
#![allow(unsafe_code, reason = "an allocator can't be written without")]

#[cfg(target_os = "linux")]
mod budget;
mod bytes;
mod counting;
mod history;
mod loops;
mod peaks;
mod schema;

use std::path::Path;

use annals::{Level, Options};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

annals::schema!("tests/costs/costs.schema");

use costs::Database;

/// Strings that fit in their cell, and that don't.
const STRINGS: [&str; 2] = ["TOTO", "a name that is too long to be kept within its cell"];

/// Creates a database that does nothing but what it is asked for.
fn open(folder: &Path) -> Database {
    let options = Options::new().background(false).level(Level::Soft);
    Database::open_with(folder.join("counted.annals"), &options).unwrap()
}

/// Returns different strings that come in no order.
fn names(count: u64) -> Vec<String> {
    (0..count).map(|row| format!("{:016x}", row.wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect()
}
