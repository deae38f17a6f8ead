//! An archive: a journal in an object store, enough to restore any moment.
//!
//! ```text
//! a file ── Uploader ──► frames/..  (ranges of the journal, named by what they hold)
//!                   ├──► images/..  (states as pages, for those who read without restoring)
//!                   └──► manifests/N  (the list of them; the next number is taken by whoever comes first)
//! Archive ─┬─ a Connection that can only be pulled from ──► restore, clone, log, ..
//!          └─ a source of ranges ──► lazy replicas: history, blame, diff, dump, sql, ..
//! ```
//!
//! Invariants
//! 1. Objects are only ever created, never replaced; a name says what is in it.
//! 2. A manifest lists only objects that are there already, in order, without a gap.
//! 3. What is removed is in no list any more, and no name is used again for other bytes.
//! 4. Manifest N + 1 is made by whoever made manifest N, or by a new uploader that thereby ends the one before it.
//!
//! `docs/archive.md` has the layout, and argues why two uploaders can't mix.

use std::sync::Arc;

use annals_storage::{MemoryDirectory, Spool};

mod bucket;
mod check;
mod erased;
mod folder;
mod image;
mod lazily;
mod manifest;
mod pull;
mod refusal;
mod restore;
mod retain;
mod segments;
mod upload;

pub use bucket::Bucket;
pub use check::{Checked, Raced, check, race};
pub use manifest::{Begins, ImageEntry, LeftOut, Manifest, Range};
pub use pull::Archive;
pub use restore::{Restored, restore};
pub use upload::{Archiving, Uploaded, Uploader};

/// Returns an empty spool in memory: for a range, which is in memory anyway.
fn memory() -> Spool {
    Spool::new(Arc::new(MemoryDirectory::new()), "range".to_owned(), 0)
}
