//! The image of an open database: opening from it, and bringing it forward.
//!
//! In reading order: a [`report`] says what a backfill did; [`pins`] tell which roots are still read;
//! [`opening`] finds the image, and whether the journal has its point; the [`imager`] knows what the image
//! has, lets the store go on from it, and runs a [`backfill`], whose batches go through a [`pipeline`]; the [`background`] thread asks for one when
//! the tail has grown; in some modes the journal is [`restarted`](restarting) behind it. [`verify`] looks at an image from outside, and [`compare`]s views.

mod backfill;
mod background;
mod compare;
mod imager;
mod inspection;
mod opening;
mod pins;
mod pipeline;
#[cfg(feature = "testing")]
mod proof;
mod reading;
mod report;
mod restarting;
mod shared;
mod verify;

pub(super) use background::Background;
pub(super) use imager::Imager;
pub(super) use inspection::inspect;
pub use inspection::{ImageInspection, ImageRoot};
pub(super) use opening::{Found, Looking, identity};
pub(super) use reading::{Beginning, Reading, Replayed, hard_position};
pub use report::{
    BackfillMode, BackfillOutcome, BackfillPhases, BackfillProgress, Backfilled, OldestReader,
};
pub use restarting::Restarting;
pub(super) use shared::Patience;
pub use verify::{ImageCheck, ImageComparison};
