//! The image of an open database: opening from it, and updating it.
//!
//! In reading order: a [`report`] says what a backfill did; [`pins`] list the roots with readers. [`opening`] finds
//! the image, and checks that the journal has its point, from which a [`survey`] makes the present state. The
//! [`image_state`] has the image's state, and pages written ahead of a backfill ([`spill`]);
//! [`drafting`] writes changed pages. [`reading`] is for those who never write. [`verify`] examines an image without
//! opening, and [`compare`]s views.

pub(in crate::db) mod ahead;
#[cfg(feature = "testing")]
pub(in crate::db) mod backfill_check;
pub(in crate::db) mod compare;
pub(in crate::db) mod drafting;
pub(in crate::db) mod image_state;
pub(in crate::db) mod inspection;
pub(in crate::db) mod opening;
pub(in crate::db) mod pins;
pub(in crate::db) mod reading;
pub(in crate::db) mod report;
pub(in crate::db) mod spill;
pub(in crate::db) mod survey;
pub(in crate::db) mod verify;

pub(super) use image_state::ImageState;
pub(super) use inspection::inspect;
pub(super) use opening::{OpenRequest, OpenedImage, load};
pub(super) use reading::{Beginning, Follower, Reading};
pub use report::{BackfillMode, BackfillOutcome, BackfillPhases, BackfillProgress, Backfilled};
pub(super) use spill::SpillMark;
pub(super) use survey::hard_position;
pub use verify::{
    ImageCheck, ImageComparison, check_image, check_image_in, compare_image, compare_image_in,
};
