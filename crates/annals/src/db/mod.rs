//! What users hold: the database, its transactions and snapshots, and the ways to read a journal.
//!
//! In reading order: `options` open a file that they `acquire`, `careful` ones on the way, and tell their
//! `progress`; `upgrade` brings the schema up; `database` is the handle; `transaction` writes by each `statement` and `group`
//! acknowledges, `vectors` are whole runs of rows, and `references` what follows from a change; `snapshot` is
//! what was committed; `blobs` are written and read; `keeper` works in the background; `shared` and `turns` are
//! for files that several processes write; `restart` lets the journal go on in a new `segment`, which may begin with
//! the `state`, and others `follow`; `past` are the segments before, until we `forget` them, which rules of
//! retention do (`retain`); `scan`, `reader` and `inspect` read journals without writing; `time` reads their
//! past, `history` that of a row; `salvage` writes another, and `erase` all segments anew; what is `beside` a journal
//! is proven to be its own.

mod acquire;
mod beside;
mod blobs;
mod careful;
mod conflicts;
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
mod keeper;
mod merge;
mod options;
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

use crate::progress;

pub use blobs::BlobReader;
pub use conflicts::OnConflict;
pub use copies::Push;
pub use database::Database;
pub use erase::{Erase, Erased};
pub use history::{History, HistoryCheck, HistoryInspection};
pub use image::{
    BackfillMode, BackfillOutcome, BackfillPhases, BackfillProgress, Backfilled, ImageCheck,
    ImageComparison, ImageInspection, ImageRoot, OldestReader, Restarting,
};
pub use inspect::{
    Examination, HeadInspection, Inspection, SegmentInspection, examine, inspect, inspect_head,
    inspect_head_in, inspect_in,
};
pub use merge::Merged;
pub use options::Options;
pub use pack::Packed;
pub use reader::Reader;
pub use restart::{Forgotten, Older, Restarted};
pub use salvage::{Fate, Gap, Restored, Run, Salvaged, SalvagedSegment};
pub use scan::{Sink, scan, scan_in};
pub use snapshot::Snapshot;
pub use time::{
    Changed, Changes, Events, Moment, MomentError, RowChange, Subscription, Tail, Txid, Version,
};
pub use transaction::{Commit, Pending, Transaction};
pub use unapplied::Unapplied;
pub use upgrade::{Custom, Customs};
