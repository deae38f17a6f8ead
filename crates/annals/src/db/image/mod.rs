//! The image of an open database: updating it, and what else is done in the background.
//!
//! In reading order: [`trigger`] says when a [`backfill`] is due, and [`background`] does it.
//! [`restart`] continues the journal in another segment, and [`retain`] forgets. [`compare`] compares views.

pub(in crate::db) mod ahead;
pub(in crate::db) mod backfill;
#[cfg(feature = "testing")]
pub(in crate::db) mod backfill_check;
pub(in crate::db) mod background;
pub(in crate::db) mod compare;
pub(in crate::db) mod lifetime;
pub(in crate::db) mod restart;
pub(in crate::db) mod retain;
pub(in crate::db) mod shared_image;
pub(in crate::db) mod trigger;
