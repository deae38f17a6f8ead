//! Tools for whole Annals databases, as free functions; and [`Undo`], which restores rows and reverts transactions.
//!
//! Each function takes the [`Options`](annals::Options) for the files that it reads, and writes new files: an existing
//! file is never replaced. A new file gets its name once it is whole and on permanent storage. [`scan`], [`inspect`],
//! [`overview`], [`verify`], [`examine`] and the checks of the image write nothing.
//!
//! ```
//! use annals::{Database, Options};
//! use annals_tools::{OnConflict, merge};
//!
//! # fn main() -> annals::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let [north, south, all] = ["north", "south", "all"].map(|name| folder.path().join(name));
//! let schema = annals_schema::parse("create_table city\nadd_field city name string").unwrap().schema;
//! let table = schema.tables()[0].number;
//! for (path, name) in [(&north, "Lille"), (&south, "Marseille")] {
//!     let db = Options::new().open_schema(path, &schema)?;
//!     db.write(|tx| tx.insert(table, &[annals::ValueRef::String(name)]).map(drop))?;
//!     db.close()?;
//! }
//! let merged = merge(&Options::new(), &[&north, &south], &all, OnConflict::Refuse)?;
//! assert_eq!(merged.rows, 2);
//! assert_eq!(Database::open(&all)?.read().table(table)?.len(), 2);
//! # Ok(())
//! # }
//! ```

mod copies;
mod erase;
mod inspection;
mod merge;
mod names;
mod pack;
mod rebase;
/// For `annals-server`, which writes these comments.
#[doc(hidden)]
pub mod requests;
mod salvage;
mod undo;

pub use copies::{Converted, Copied, Push, backup, backup_in, convert, push, push_in};
pub use erase::{Erase, Erased, erase, erase_in};
pub use inspection::examine::{Examination, SegmentInspection, examine, examine_in};
pub use inspection::history::{HistoryCheck, HistoryInspection, check_history_index};
pub use inspection::image::{ImageInspection, ImageRoot};
pub use inspection::image_check::{
    ImageCheck, ImageComparison, check_image, check_image_in, compare_image, compare_image_in,
};
pub use inspection::inspect::{Inspection, inspect, inspect_head, inspect_head_in, inspect_in};
pub use inspection::overview::{overview, overview_in};
pub use inspection::scan::{scan, scan_in};
pub use inspection::verify::{verify, verify_in};
pub use merge::{Merged, OnConflict, merge, merge_in};
/// For the program, which writes new databases, too.
#[doc(hidden)]
pub use names::Names;
pub use pack::{pack, pack_in};
pub use rebase::Renumbered;
/// For `annals-replica`, which proposes the transactions to the other side.
#[doc(hidden)]
pub use rebase::{Rebased, last_made_again, rebase};
pub use salvage::{Fate, Gap, Restored, Run, Salvaged, SalvagedSegment, salvage, salvage_in};
pub use undo::{RowOf, Undo};
