//! The image of an open database: opening from it, and bringing it forward.
//!
//! In reading order: a [`report`] says what a backfill did; [`pins`] tell which roots are still read;
//! [`opening`] finds the image, and whether the journal has its point; the [`imager`] knows what the image
//! has, lets the store go on from it, and runs a [`backfill`], which hands what changed over to
//! [`drafting`]; a [`spill`] does the first half of that for a transaction that is larger than memory. The
//! [`background`] thread asks for a backfill when the tail has grown, or what is in memory alone; in some
//! modes the journal is [`restarted`](restarting) behind it. The store goes on from another image if this one
//! is [`renewed`](renewing). Where the image is damaged a [`rebuild`] in the background makes the state again from
//! an older root or the journal, and [`rescue`] gives views to those who wait for it. [`verify`] looks at an image
//! from outside, and [`compare`]s views; the past is replayed from an [`earlier`] root.

mod backfill;
mod background;
mod compare;
mod drafting;
mod earlier;
mod imager;
mod inspection;
mod opening;
mod pins;
#[cfg(feature = "testing")]
mod proof;
mod reading;
mod rebuild;
mod renewing;
mod report;
mod rescue;
mod restarting;
mod shared;
mod spill;
mod survey;
mod verify;

pub(super) use background::Background;
pub(super) use compare::is_same;
pub(super) use earlier::{Earlier, late_entries};
pub(super) use imager::Imager;
pub(super) use inspection::inspect;
pub(super) use opening::{Found, Looking, load};
pub(super) use reading::{Beginning, Reading, Replayed, hard_position};
pub use report::{BackfillMode, BackfillOutcome, BackfillPhases, BackfillProgress, Backfilled};
pub(super) use rescue::{Rescued, Rescuer};
pub use restarting::Restarting;
pub use verify::{ImageCheck, ImageComparison};
