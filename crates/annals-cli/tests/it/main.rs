//! Tests of the program: the built binary is run as a person would run it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod damage;
mod identity;
mod program;
mod streams;
mod transcripts;
