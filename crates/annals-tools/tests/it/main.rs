//! Tests of the tools.
#![allow(clippy::unwrap_used, reason = "a test that fails should panic")]

mod merge;
