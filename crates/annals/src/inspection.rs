//! For tools: what the files of a database hold, read without opening it for work: their heads, segments and image, what
//! recovery would do, and each event of the history.

pub use crate::db::{
    Checked, Examination, HistoryCheck, HistoryInspection, ImageInspection, ImageRoot, Inspection,
    SegmentInspection, examine, inspect, inspect_head, inspect_head_in, inspect_in, scan, scan_in,
};
