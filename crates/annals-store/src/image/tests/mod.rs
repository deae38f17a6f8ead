//! What an image keeps: whatever is done to it, and whenever the power goes off.
#![allow(clippy::indexing_slicing, reason = "a test that indexes wrongly fails, as it should")]

mod crash;
mod damage;
mod hostile;
mod life;
mod space;
mod world;
