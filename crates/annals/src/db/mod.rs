//! What users hold: the database, its transactions and snapshots, and the ways to read a journal.
//!
//! In reading order: `options` say what a program wants; `open` does it: it gets hold of a file (`acquire`), asks
//! before a recovery (`careful`), and tells its `progress`; `upgrade` brings the schema up; `database` is the handle; `transaction` writes by each `statement` and `group`
//! acknowledges, `vectors` are whole runs of rows, and `references` what follows from a change; `snapshot` is
//! what was committed; `blobs` are written and read; `keeper` works in the background; `shared` and `turns` are
//! for files that several processes write; `restart` lets the journal go on in a new `segment`, which may begin with
//! the `state`, and others `follow`; `past` are the segments before, until we `forget` them, which rules of
//! retention do (`retain`); `scan` replays them, unless a commit is `unapplied`, so that nothing is `writable` any more; `reader`, `inspect` and `outside`
//! read journals without writing, and tell `inspection`s; the image is a `witness` of the journal's length; `time` reads their
//! past, `history` that of a row; `salvage` writes another, and `erase` all segments anew; what is `beside` a journal
//! is proven to be its own.

mod acquire;
mod beside;
mod blobs;
mod careful;
mod copies;
mod core;
mod database;
mod erase;
mod follow;
mod forget;
mod forward;
mod group;
mod history;
mod image;
mod inspect;
mod inspection;
mod keeper;
mod open;
mod options;
mod outside;
mod pack;
mod past;
mod reader;
mod references;
mod restart;
mod retain;
mod salvage;
mod scan;
mod segment;
mod shared;
mod snapshot;
mod state;
mod statement;
mod time;
mod transaction;
mod turns;
mod unapplied;
#[cfg(test)]
mod unloadable;
mod upgrade;
mod vectors;
mod witness;
mod writable;

use crate::progress;

pub use blobs::BlobReader;
pub use copies::Push;
pub use database::Database;
pub use erase::{Erase, Erased};
pub use history::{History, HistoryCheck};
pub use image::{
    BackfillMode, BackfillOutcome, BackfillPhases, BackfillProgress, Backfilled, ImageCheck,
    ImageComparison, Restarting,
};
pub use inspect::{Examination, inspect, inspect_head, inspect_head_in, inspect_in};
pub use inspection::{
    HeadInspection, HistoryInspection, ImageInspection, ImageRoot, Inspection, OldestReader,
    SegmentInspection,
};
pub use options::{Options, locate};
pub use outside::{examine, scan, scan_in};
pub use pack::Packed;
pub use reader::Reader;
pub use restart::{Forgotten, Older, Restarted};
pub use salvage::{Fate, Gap, Restored, Run, Salvaged, SalvagedSegment};
pub use scan::Sink;
pub use snapshot::Snapshot;
pub use time::{
    Changed, Changes, Events, Moment, MomentError, RowChange, Subscription, Tail, Txid, Version,
};
pub use transaction::{Commit, Pending, Transaction};
pub use unapplied::Unapplied;
pub use upgrade::{Custom, Customs};
