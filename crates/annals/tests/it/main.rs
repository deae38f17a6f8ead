//! The integration tests of the library.

#![allow(clippy::unwrap_used, reason = "a test that unwraps an error fails, as it should")]

mod crash_states;
mod generated;
mod storage;
mod tidy;
mod typed;
