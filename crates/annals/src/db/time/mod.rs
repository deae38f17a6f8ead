//! The past: which moment is meant, the state as it was then, and what changed from then on.
//!
//! `moment` says when; `at` gives the state as it was then; `changed` is what one transaction, or one version of a row, did.

mod at;
mod changed;
mod moment;

pub(super) use at::{Present, Through};
pub use changed::{Changed, RowChange, Version};
pub use moment::{Moment, MomentError, Txid};
