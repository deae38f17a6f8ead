//! Bugs of other systems, as tests: each is named after its story, with the link. `docs/museum.md` lists them all.

mod answers;
mod commits;
mod copies;
mod maintenance;
mod questions;
// Replicas are compiled from C, in part.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod rebase;
