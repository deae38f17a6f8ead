//! The image of an open database: opening from it, and bringing it forward.
//!
//! In reading order: a [`report`] says what a backfill did; [`pins`] tell which roots are still read;
//! [`opening`] finds the image, and whether the journal has its point, which a [`survey`] continues from; the [`imager`]
//! knows what the image has, what was written ahead of a backfill ([`spill`]), and what is [`rebuilding`] where it is
//! damaged; [`drafting`] writes what changed. [`reading`] is for those who never write. [`verify`] looks at an image
//! from outside, and [`compare`]s views.

pub(in crate::db) mod ahead;
pub(in crate::db) mod compare;
pub(in crate::db) mod drafting;
pub(in crate::db) mod imager;
pub(in crate::db) mod inspection;
pub(in crate::db) mod opening;
pub(in crate::db) mod pins;
#[cfg(feature = "testing")]
pub(in crate::db) mod proof;
pub(in crate::db) mod reading;
pub(in crate::db) mod rebuilding;
pub(in crate::db) mod report;
pub(in crate::db) mod spill;
pub(in crate::db) mod survey;
pub(in crate::db) mod verify;

pub(super) use compare::is_same;
pub(super) use imager::Imager;
pub(super) use inspection::inspect;
pub(super) use opening::{Found, Looking, load};
pub(super) use reading::{Beginning, Reading, Replayed, hard_position};
pub use report::{BackfillMode, BackfillOutcome, BackfillPhases, BackfillProgress, Backfilled};
pub use verify::{
    ImageCheck, ImageComparison, check_image, check_image_in, compare_image, compare_image_in,
};
