//! The suite of connections over those of this crate, and replicas that write without the other side.

#![allow(clippy::indexing_slicing, reason = "a test that fails should panic")]
#![allow(clippy::unwrap_used, reason = "a test that fails should panic")]
#![allow(
    clippy::print_stderr,
    reason = "what was found is shown when a test fails, and a test that is skipped says so"
)]

mod accepted;
mod archive;
mod batches;
mod counts;
mod crash;
mod crash_offline;
mod fixtures;
mod hanging;
mod interposed;
mod lazy;
mod lease;
mod model;
mod museum;
mod naive;
mod offline;
mod pulls;
mod shared_log;
mod typed;

use std::sync::Arc;

use annals::Options;
use annals_replica::{Connection, Local, testing};
use annals_storage::{Directory as _, MemoryDirectory, SystemClock};

#[test]
fn a_database_in_this_process_is_a_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    testing::run(folder.path(), &|origin| {
        Arc::new(Local::new(origin.clone())) as Arc<dyn Connection>
    });
}

#[test]
fn a_database_in_memory_is_a_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let in_memory = |_: &std::path::Path| {
        let (directory, clock) = (MemoryDirectory::new().again(), Arc::new(SystemClock));
        Options::new().open_in(directory, "origin", clock).expect("a database")
    };
    testing::run_over(folder.path(), &in_memory, &|origin| {
        Arc::new(Local::new(origin.clone())) as Arc<dyn Connection>
    });
}
