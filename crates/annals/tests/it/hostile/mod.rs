//! What a damaged or hostile file can do: get an error that says what, where and what to do, or
//! give the right data. Never a panic, never memory out of proportion, never wrong data.

pub(crate) mod crafted;
pub(crate) mod damage;
mod events;
mod features;
mod fixture;
pub(crate) mod journals;
pub(crate) mod memory;
mod places;
pub(crate) mod unapplied;
