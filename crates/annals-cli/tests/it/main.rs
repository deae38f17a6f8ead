//! Tests of the program: the built binary is run as a person would run it.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "tests look at the program from outside")]

#[cfg(all(target_os = "linux", feature = "net"))]
mod abused;
#[cfg(all(unix, feature = "net"))]
mod archived;
#[cfg(all(feature = "arrow", feature = "sqlite"))]
mod asked;
#[cfg(all(unix, feature = "net"))]
mod backed;
mod damage;
#[cfg(all(unix, feature = "net"))]
mod deployed;
#[cfg(target_os = "linux")]
mod device;
mod exchange;
#[cfg(all(unix, feature = "net"))]
mod explore;
#[cfg(all(feature = "sqlite", target_os = "linux", target_arch = "x86_64"))]
mod exported;
#[cfg(all(target_os = "linux", feature = "net"))]
mod faults;
#[cfg(unix)]
mod follow;
mod generated;
mod identity;
mod joedb;
mod joedb_differs;
mod joedb_files;
#[cfg(all(unix, feature = "net"))]
mod lazily;
mod leftovers;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(all(unix, feature = "net"))]
mod offline;
mod older;
#[cfg(all(unix, feature = "net"))]
mod only_read;
#[cfg(unix)]
mod outputs;
#[cfg(unix)]
mod permissions;
#[cfg(unix)]
mod postgres;
mod program;
mod recover;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod savepoints;
mod segments;
#[cfg(all(unix, feature = "net"))]
mod served;
#[cfg(all(unix, feature = "net"))]
mod shared_log;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod sql;
#[cfg(all(unix, feature = "net"))]
mod ssh;
#[cfg(feature = "net")]
mod strangers;
mod streams;
#[cfg(unix)]
mod terminal;
// The transcripts hold messages of the system, paths, and the name of the program as it is here; and its help
// names all formats.
#[cfg(all(unix, feature = "sqlite"))]
mod transcripts;
mod undo;
