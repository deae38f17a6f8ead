//! Tests of the program: the built binary is run as a person would run it.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "tests look at the program from outside")]

mod damage;
mod identity;
mod program;
mod sql;
mod streams;
#[cfg(unix)]
mod terminal;
mod transcripts;
