//! The parts of this crate for those above it: `annals-tools` and the program.
//!
//! No program needs it. It is not part of the API, and changes with any version.

pub use crate::db::{
    Fate, Gap, Generation, ImageCheck, ImageComparison, OldSegment, Proven, Removable, Restored,
    Run, Salvaged, SalvagedSegment, check_image, check_image_in, compare_image, compare_image_in,
    locate, salvage, salvage_in, write_state,
};
pub use crate::names::{Names, like};
pub use crate::progress::Watch;

/// Returns the progress callback of an operation with these options.
#[must_use]
pub fn watch(options: &crate::Options) -> Option<Watch> {
    options.watch()
}
