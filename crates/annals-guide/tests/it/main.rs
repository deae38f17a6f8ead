//! The guide: that each block does what stands below it, and that all leads somewhere.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "tests look at files from outside")]

mod book;
mod output;
// Blocks of commands are for a shell of Unix, and so are the messages of the system in them.
#[cfg(unix)]
mod play;
