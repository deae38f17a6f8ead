//! An image keeps its contents through every operation and every power cut.
#![allow(clippy::indexing_slicing, reason = "a test that indexes wrongly fails, as it should")]

mod crash;
mod damage;
mod document;
mod hostile;
mod life;
mod space;
mod vectors;
mod world;
