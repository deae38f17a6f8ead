//! The integration tests of the library, through its public API.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that fails should panic, and say why"
)]

mod asking;
mod batch;
mod batch_processes;
mod blobs;
mod checks;
mod claims;
mod collation;
mod columns;
mod compiler;
mod crash;
mod crash_states;
mod database_model;
mod device;
mod edges;
#[cfg(unix)]
mod editor;
mod embedded;
mod enums;
mod erase;
mod errors;
mod evolved;
mod exact;
mod examples;
mod foreign_frames;
mod fork;
mod generated;
mod generated_for_tests;
mod group;
mod handles;
mod history_model;
mod history_of;
mod hostile;
mod image;
mod indexes;
mod library;
mod locales;
mod museum;
mod overview;
mod own;
mod own_types;
mod pack;
mod package;
mod past;
mod processes;
mod recovery;
mod references;
mod replica;
mod required;
mod savepoints;
mod segments;
mod shared;
mod shared_faults;
mod shown;
mod single_row;
mod stats;
mod storage;
mod store_cases;
mod store_model;
mod streams;
mod tidy;
mod traced;
mod transcripts;
mod typed;
mod undo;
mod upgrade;
mod uuids;
mod vectors;
mod verbs;
mod watched;
mod wire;
