//! The server as its clients see it, over sockets of this machine.

#![allow(clippy::unwrap_used, reason = "a test that fails should panic")]

mod running;
mod statuses;
mod suite;
mod tokens;
