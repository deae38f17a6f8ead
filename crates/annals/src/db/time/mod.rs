//! The past: which moment is meant, the state as it was then, and what changed from then on.
//!
//! `moment` says when; `at` gives the state as it was then, which the `handles` offer; `changed` is what one transaction, or one version of a row, did.

mod at;
mod changed;
mod handles;
mod moment;

pub use changed::{Changed, RowChange, Version};
pub use moment::{Moment, MomentError, Txid};
