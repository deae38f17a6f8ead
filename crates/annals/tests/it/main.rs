//! The tests of the library from outside.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail by panicking, and say what it was doing"
)]

mod store_cases;
mod store_model;
