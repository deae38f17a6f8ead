//! The journal: the append-only file that is the truth.

#[cfg(feature = "testing")]
#[doc(hidden)]
pub use annals_journal::testing;
pub use annals_journal::{
    Carried, Committed, Copies, Cursor, CursorError, Cut, Erasure, Level, Plan, Point, Recovered,
    Recovery, Retention, SegmentFacts, Survey, format,
};

pub(crate) use annals_journal::{
    Checkpoints, Frame, FrameHeader, FrameReader, Head, Rule, Settled, Singles, Verdict, Writer,
    busy, cannot_open, copy_whole, create, create_on, holder, is_blank, join, keep_name, live,
    refuse, segments, settle, settle_shared, shown_path,
};
pub(crate) use annals_storage::sync::lock;
